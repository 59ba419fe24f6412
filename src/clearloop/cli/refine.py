"""The command `refine` simplifies a controller of a run as far as its penalty allows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearloop.cli.options import (
    ControllerName,
    Json,
    RunFolder,
    controller_file,
    find_task,
    load_controller,
    print_json,
)
from clearloop.cli.terminal import echo, print_table, progress, say
from clearloop.numbers import counted, format_penalty, percent, signed_estimate

if TYPE_CHECKING:
    from clearloop.controllers import Controller
    from clearloop.evaluation import Evaluation
    from clearloop.refining import Refinement


def refine_command(
    controller: ControllerName,
    run: RunFolder,
    digits: Annotated[
        int, typer.Option("--round", help="The fewest digits that a constant may keep.", metavar="DIGITS")
    ] = 2,
    drop: Annotated[
        bool,
        typer.Option("--drop-terms", help="Also leave out terms, factors, gains, loops and rules."),
    ] = False,
    tolerance: Annotated[
        float,
        typer.Option(
            help="How much all steps together may raise the penalty, as a share of it.", metavar="SHARE"
        ),
    ] = 0.01,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where to write the result; if not given, beside the controller as NAME-refined.json.",
            metavar="FILE",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Simplify a controller as far as its penalty allows: round its constants, leave parts out.

    The run's models judge each step, from starts that no search saw. The plant, if any, tests the result.

    Example: clearloop refine 009 --run runs/demo --round 1, or:
    clearloop refine mine.json --run runs/demo --drop-terms --tolerance 0.02 --out short.json
    """
    from clearloop.controllers import save
    from clearloop.data import Batch
    from clearloop.evaluation import evaluate
    from clearloop.refining import Judge, Settings
    from clearloop.refining import refine as simplify
    from clearloop.runs import RunDirectory
    from clearloop.runs.front import judging_starts
    from clearloop.surrogate import Surrogate

    directory, task = RunDirectory(run), find_task(None, run)
    settings = Settings(digits=digits, drop=drop, tolerance=tolerance)
    file = controller_file(controller, run)
    given = load_controller(file, task)
    batch = Batch.load(run / "batch.parquet", task)
    surrogate = Surrogate.load(run / "surrogate", task)
    starts = judging_starts(directory, task, batch)
    with progress("Refining") as tell:
        tell(0.0, "trying what can be left out")
        judge = Judge(given, task, surrogate, starts)
        found = simplify(given, judge, settings)
    title = f"{file.stem}, refined within {100 * tolerance:g} %"
    refined = found.controller.model_copy(update={"name": title})
    path = out or file.with_name(f"{file.stem}-refined.json")
    save(refined, path)
    tested = [evaluate(each, task) for each in (given, refined)] if task.scorable else None
    if as_json:
        print_json(_document(given, found, tested, path))
    else:
        _print(given, found, tested, path, len(starts), len(surrogate.judge_members))


def _document(
    given: "Controller", found: "Refinement", tested: "list[Evaluation] | None", path: Path
) -> dict[str, Any]:
    return {
        "file": str(path),
        "summary": found.controller.summary,
        "complexity": {"before": given.complexity, "after": found.controller.complexity},
        "model": found.to_dict(),
        "system": tested and dict(zip(("before", "after"), (one.to_dict() for one in tested), strict=True)),
    }


def _print(
    given: "Controller",
    found: "Refinement",
    tested: "list[Evaluation] | None",
    path: Path,
    starts: int,
    models: int,
) -> None:
    rows = [["", f"{found.before:.4f}", str(given.complexity), "as given"]]
    rows += [
        [str(number), f"{step.penalty:.4f}", str(step.complexity), step.what]
        for number, step in enumerate(found.steps, 1)
    ]
    print_table(("step", "penalty", "complexity", "what changed"), rows, right=(0, 1, 2))
    echo()
    share = f" ({100 * found.extra / found.before:+.2f} %)" if found.before > 0 else ""
    judges = f"{starts:,} starts and {counted(models, 'model')} that no search saw"
    say(
        f"Cost       {signed_estimate(found.extra, found.extra_error, 4)}{share} on {judges}", indent=" " * 11
    )
    if tested:
        before, after = tested
        said = f"{format_penalty(before.penalty)} before, {format_penalty(after.penalty)} now"
        fail = f"{percent(before.failures)} and {percent(after.failures)} of the starts fail"
        say(f"On plant   {said}; {fail}", indent=" " * 11)
    else:
        echo("On plant   not tested, because the task has no plant")
    say(f"Now        {found.controller.summary}", indent=" " * 11)
    echo(f"File       {path}")
