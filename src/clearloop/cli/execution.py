"""Carrying out what was asked of a run, and saying so: the model, the searches, the judgement."""

import shlex
from typing import TYPE_CHECKING, Any

import typer

from clearloop.cli.front import how_to_resume
from clearloop.cli.model import assess_model, find_track, learn_model, print_reasons
from clearloop.cli.refusal import answer, in_words
from clearloop.cli.report import make_report
from clearloop.cli.searching import searching
from clearloop.cli.terminal import InterruptedRunError, clock, count, say
from clearloop.errors import UnsuitableError

if TYPE_CHECKING:
    from clearloop.data import Batch
    from clearloop.runs import Ledger, Request, RunDirectory
    from clearloop.surrogate import Surrogate
    from clearloop.task import Task


def carry_out(
    run: "RunDirectory",
    request: "Request",
    task: "Task",
    batch: "Batch",
    *,
    err: bool = False,
    force: bool = False,
) -> None:
    """A run that is held: from the beginning, or from where it stopped, to the end.

    `err`: talk on standard error. `force`: search even if the model cannot support a controller.
    """
    try:
        run.go_on()
        _carry_out(run, request, task, batch, err, force)
    except KeyboardInterrupt as stop:
        run.mark("interrupted")
        raise InterruptedRunError(f"interrupted; to go on: {how_to_resume(request.task, run)}") from stop
    try:
        make_report(run)
    except KeyboardInterrupt as stop:  # what was found is kept
        where = shlex.quote(str(run.path))
        raise InterruptedRunError(f"interrupted; for the report: clearloop report {where}") from stop
    typer.echo(err=err)


def _carry_out(
    run: "RunDirectory", request: "Request", task: "Task", batch: "Batch", err: bool, force: bool
) -> None:
    from clearloop.runs import Ledger, examine_front, finish, polite_interruption, run_method

    ledger = Ledger(run)
    typer.echo(f"Batch      {batch!r}", err=err)
    surrogate = _surrogate(run, request, task, batch, ledger)
    quality = _quality(run, surrogate, batch)
    typer.echo(f"Surrogate  {count(surrogate.members, 'model')} of the plant: {quality['verdict']}", err=err)
    if quality["verdict"] != "good":
        print_reasons(quality, err=err)
    _trust(run, request, task, batch, surrogate, force)
    results, unsuited = [], {}
    with polite_interruption() as interruption:
        for method in request.methods:
            try:
                with searching(method.name) as tell:
                    result = run_method(
                        run, method, task, batch, surrogate, budget=request.budget, value=request.value,
                        seed=request.seed, ledger=ledger, tell=tell, interruption=interruption,
                    )  # fmt: skip
            except UnsuitableError as reason:
                unsuited[method.name] = reason
                say(f"Search     {method.name}: left out: {reason}", indent=" " * 11, err=True)
                continue
            results.append(result)
            took = clock(sum(row.seconds for row in ledger.timing if row.method == method.name))
            found = count(len(result.points), "controller")
            steps = "model" if request.value == "model" else "logged"
            typer.echo(f"Search     {method.name}: {found}, {result.steps:,} {steps} steps, {took}", err=err)
    if not results:
        raise next(iter(unsuited.values()))
    if unsuited:
        run.mark("running", left_out={name: str(reason) for name, reason in unsuited.items()})
    examine_front(run, task, batch, surrogate, [point for result in results for point in result.points])
    finish(run, task, surrogate, results)


def _surrogate(
    run: "RunDirectory", request: "Request", task: "Task", batch: "Batch", ledger: "Ledger"
) -> "Surrogate":
    """The run's own, or a new one."""
    from clearloop.surrogate import Surrogate

    folder = run.path / "surrogate"
    if (folder / "surrogate.json").exists():
        return Surrogate.load(folder, task)
    with ledger.phase("surrogate"):
        surrogate = learn_model(task, batch, find_track(request.track), request.seed)
    surrogate.save(folder)
    return surrogate


def _trust(
    run: "RunDirectory", request: "Request", task: "Task", batch: "Batch", surrogate: "Surrogate", force: bool
) -> None:
    """The run is marked refused, or goes on with its doubts written down."""
    from clearloop.surrogate import examine_model

    found = [finding for finding in examine_model(task, batch, surrogate) if finding.severity == "problem"]
    if found:
        before = run.describe().get("doubts", [])
        new = [one for one in in_words(found) if one not in before]
        run.mark("running" if force else "refused", doubts=[*before, *new])
    answer(", ".join(request.data) or f"task {task.name}", found, force=force)


def _quality(run: "RunDirectory", surrogate: "Surrogate", batch: "Batch") -> dict[str, Any]:
    from clearloop.files import read_json

    file = run.path / "quality.json"
    if not file.exists():
        return assess_model(surrogate, batch, run).to_dict()
    quality: dict[str, Any] = read_json(file)
    return quality
