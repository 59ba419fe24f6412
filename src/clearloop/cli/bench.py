"""`clearloop bench`."""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearloop.cli.learn import find_methods, parse_budget
from clearloop.cli.model import find_batch, find_track
from clearloop.cli.options import Json, Seed, print_json
from clearloop.cli.terminal import InterruptedRunError, count, progress, table
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from clearloop.bench.course import Bench, Course
    from clearloop.bench.engines import Engine
    from clearloop.bench.table import Row
    from clearloop.runs import RunDirectory
    from clearloop.task import Task

ALL = ("lqr", "pid", "pso-p", "nfq", "psonn", "fpsrl", "fgprl", "gprl")


def bench(
    task: Annotated[str, typer.Argument(help="A built-in task, or a file with a plant.", metavar="TASK")],
    method: Annotated[
        list[str] | None,
        typer.Option(help="Repeatable; all of the paper's if none is given.", metavar="NAME"),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Experiments of each method.", min=1, max=1000)] = 10,
    seed: Seed = 0,
    batch: Annotated[
        str,
        typer.Option(
            help="One batch and model for all, as in the paper, or its own for each experiment.",
            metavar="shared|fresh",
        ),
    ] = "shared",
    budget: Annotated[
        str, typer.Option(help="Of each experiment.", metavar="quick|standard|full|STEPS")
    ] = "standard",
    track: Annotated[
        str,
        typer.Option(help="As we know to be better, as in the paper; both.", metavar="best|published|both"),
    ] = "best",
    out: Annotated[Path, typer.Option(help="The run directory.", metavar="DIR")] = Path("runs/bench"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the bench in --out; what is done is not repeated.")
    ] = False,
    engine: Annotated[
        str,
        typer.Option(
            help="This machine's cores, a Dask cluster on it, or yours.", metavar="local|dask|dask:ADDRESS"
        ),
    ] = "local",
    as_json: Json = False,
) -> None:
    """Compare methods by many experiments each: the paper's table.

    Example: clearloop bench cartpole --seeds 2 --budget quick --out runs/bench
    """
    from clearloop.bench.course import Bench, Course
    from clearloop.bench.store import Store
    from clearloop.runs import Request, RunDirectory
    from clearloop.task import Task

    start, the_task = find_engine(engine), Task.load(task)
    if the_task.plant is None:
        raise ClearloopError(
            f"bench: {the_task.name} has no plant, and experiments make their batches with one"
        )
    if batch not in ("shared", "fresh"):
        raise ClearloopError(f"--batch {batch}: expected shared or fresh")
    request = Request(
        command="bench",
        task=task,
        methods=tuple(find_methods(tuple(method or ALL))),
        budget=parse_budget(budget),
        track=track if track == "both" else find_track(track).name,
        seed=seed,
    )
    asked = Bench(request=request, seeds=seeds, fresh=batch == "fresh")
    run = RunDirectory(out)
    course = Course(asked, the_task, Store(run))
    if not (resume and run.exists):
        run = RunDirectory.claim(out)
        run.begin(the_task, find_batch(the_task, [], seed), asked.to_dict())
    else:
        _check(run, the_task, asked)
    if run.describe()["status"] != "finished":
        with closing(start()) as workers:
            carry_out(run, course, workers, f"clearloop bench {task} --out {out} --resume")
    print_bench(run, as_json)


def print_bench(run: "RunDirectory", as_json: bool) -> None:
    """The table of a finished bench."""
    from clearloop.bench.table import Row
    from clearloop.published import published_for
    from clearloop.runs.tables import read_table
    from clearloop.task import Task

    description = run.describe()
    if description["status"] != "finished":
        raise ClearloopError(f"{run.path}: no table yet, the bench is not finished; go on with --resume")
    rows = read_table(run.path / "table.csv", Row)
    if as_json:
        print_json({"run": str(run.path), "table": [vars(row) for row in rows]})
        return
    in_paper = bool(published_for(Task.model_validate(description["task"])))
    for track in dict.fromkeys(row.track for row in rows):
        typer.echo(f"Track {track}: means ± standard errors over experiments\n")
        _print_track([row for row in rows if row.track == track], in_paper)
        typer.echo()
    failed = sum(row.penalty_model is None for row in rows)
    if failed:
        typer.echo(f"Failed     {count(failed, 'experiment')}: table.md says why")
    typer.echo(f"Table      {run.path / 'table.md'}: also which method is better, and how sure that is")


def _print_track(rows: "Sequence[Row]", in_paper: bool) -> None:
    """A line for each method; what the paper says of its own starts beside it."""
    from clearloop.bench.table import PAPER, Mean

    lines = []
    for method in dict.fromkeys(row.method for row in rows):
        mine = [row for row in rows if row.method == method]
        model, system = (Mean.of([getattr(r, f"penalty_{on}") for r in mine]) for on in ("model", "system"))
        failures = Mean.of([row.failures_system for row in mine]).mean
        paper = [mean.partition(" ")[0] for mean in PAPER.get(method, ("", ""))] if in_paper else []
        figures = [str(model), *paper[:1], str(system), *paper[1:]]
        lines.append([method, *figures, f"{100 * failures:.1f} %", str(len(mine))])
    paper_titles = ["paper"] if in_paper else []
    titles = ["method", "model", *paper_titles, "plant", *paper_titles, "failures", "n"]
    table(titles, lines, right=range(1, len(titles)))


def find_engine(name: str) -> "Callable[[], Engine]":
    """What starts it."""
    from clearloop.bench.cluster import Dask
    from clearloop.bench.local import Local

    kind, _, address = name.partition(":")
    if name == "local":
        return Local
    if kind == "dask" and (address or name == "dask"):
        return partial(Dask, address)
    raise ClearloopError(f"--engine {name}: expected local, dask, or dask:ADDRESS of a scheduler")


def carry_out(run: "RunDirectory", course: "Course", engine: "Engine", again: str) -> None:
    from clearloop.bench.engines import Failure
    from clearloop.bench.tables import write_tables

    run.go_on()
    try:
        with progress("Experiments") as tell:
            done, total = course.done, course.total

            def report(key: str, outcome: Any) -> None:
                nonlocal done
                done += 1
                said = f"gave up: {outcome.reason}" if isinstance(outcome, Failure) else "done"
                tell(done / total, f"{done} of {total}, {key} {said}")

            tell(done / total, f"{done} of {total}")
            course.go(engine, report)
    except KeyboardInterrupt as stop:
        run.mark("interrupted")
        kept = count(course.done, "experiment")
        raise InterruptedRunError(f"interrupted, with {kept} done; to go on: {again}") from stop
    write_tables(run, course)
    run.mark("finished")


def _check(run: "RunDirectory", task: "Task", asked: "Bench") -> None:
    """Whether it is the bench that was begun."""
    from clearloop.runs import agreement

    begun = run.describe()
    agreement.check_task(run, begun["task"], task)
    if begun["status"] != "finished":
        agreement.check_version(run, begun["versions"])
    now = asked.to_dict()
    for option in ("command", "methods", "budget", "track", "seed", "seeds", "batch"):
        was, given = begun["asked"].get(option), now[option]
        if option == "methods":
            was, given = list(was or {}), list(given)
        agreement.check_option(run, "--method" if option == "methods" else f"--{option}", was, given)
