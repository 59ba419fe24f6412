"""`clearloop evaluate`."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.model_free import evaluate_on_batch
from clearloop.cli.options import (
    ControllerName,
    Json,
    Run,
    Seed,
    TaskOfRun,
    controller_file,
    find_surrogate,
    find_task,
    load_controller,
    print_json,
)
from clearloop.cli.terminal import progress
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from clearloop.plants.scenarios import Scenarios
    from clearloop.task import Task

MOST_STARTS = 2**20


def evaluate(
    controller: ControllerName,
    run: Run = None,
    task: TaskOfRun = None,
    on: Annotated[
        str,
        typer.Option(help="The plant, the model of --run, or the batch alone.", metavar="system|model|batch"),
    ] = "system",
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="A log, for --on batch; repeatable. Without it or --run, a task with a plant makes its own.",
            metavar="FILE",
        ),
    ] = None,
    approximator: Annotated[
        str, typer.Option(help="What --on batch fits.", metavar="networks|trees")
    ] = "networks",
    seed: Seed = 0,
    starts: Annotated[
        str,
        typer.Option(
            help="How many points of the scoring set, or a CSV with a column for each state.",
            metavar="N|FILE.csv",
        ),
    ] = "1024",
    as_json: Json = False,
) -> None:
    """Score one controller: minus the mean discounted return, and the share of starts that fail.

    On the batch: fitted Q evaluation, its standard error over an ensemble; it cannot count failures.

    On the model of a run: by the models that judged its front, so that figures compare with the front's.

    Example: clearloop evaluate examples/published/gprl.json --task cartpole, or:
    clearloop evaluate edited.json --run runs/demo --on model
    """
    from clearloop.evaluation import evaluate as score

    if on not in ("system", "model", "batch"):
        raise ClearloopError(f"--on {on}: expected system, model or batch")
    the_task = find_task(task, run)
    the_controller = load_controller(controller_file(controller, run), the_task)
    if on == "batch":
        value = evaluate_on_batch(
            the_controller,
            the_task,
            data=data or [],
            run=run,
            approximator=approximator,
            starts=_starts(starts, the_task),
            seed=seed,
        )
        print_json(value.to_dict()) if as_json else typer.echo(value.summary)
        return
    if data:
        raise ClearloopError(f"--on {on}: takes no --data, which is for --on batch")
    plans = the_controller.kind == "planner"  # which takes its time
    with progress("Planning") if plans else nullcontext() as tell:
        surrogate = find_surrogate(on, run, the_task)
        result = score(
            the_controller,
            the_task,
            surrogate=surrogate,
            members=None if surrogate is None else surrogate.judge_members,
            starts=_situations(starts, the_task, run if on == "model" else None),
            progress=(lambda share: tell(share, "")) if tell else None,
        )
    if as_json:
        print_json(result.to_dict())
        return
    se = f" ± {result.standard_error:.3f}" if result.penalties.shape[1] > 1 else ""
    where = "plant" if result.on == "system" else f"model, mean of {result.penalties.shape[0]}"
    typer.echo(f"penalty   {result.penalty:.3f}{se}   (on the {where}, {result.penalties.shape[1]:,} starts)")
    typer.echo(f"failures  {result.failures:.1%}")


def _situations(text: str, task: "Task", run: Path | None) -> "Scenarios | NDArray[float64] | int":
    """For a model of a task whose starts come from the log: the rows that the run judged its front by."""
    from clearloop.data import Batch
    from clearloop.runs import RunDirectory
    from clearloop.runs.judgement import judging_starts

    starts = _starts(text, task)
    if not isinstance(starts, int) or task.start_box is not None or run is None:
        return starts
    batch = Batch.load(run / "batch.parquet", task)
    return judging_starts(RunDirectory(run), task, batch, starts)


def _starts(text: str, task: "Task") -> "NDArray[float64] | int":
    if text.lower().endswith(".csv"):
        return _read_starts(Path(text), task)
    if not text.isdecimal() or len(text) > len(str(MOST_STARTS)) or not 1 <= int(text) <= MOST_STARTS:
        raise ClearloopError(f"--starts {text}: expected a number from 1 to {MOST_STARTS:,}, or a .csv file")
    return int(text)


def _read_starts(path: Path, task: "Task") -> "NDArray[float64]":
    import numpy as np

    from clearloop.data import read
    from clearloop.data.cells import numbers

    frame = read(path)
    if not len(frame):
        raise ClearloopError(f"{path}: expected at least one row of states to start from")
    columns = []
    for name in task.state_names:
        if name not in frame.columns:
            raise ClearloopError(f"{path}: no column '{name}'; the columns are: {', '.join(frame.columns)}")
        values, problems = numbers(frame[name], np.zeros(len(frame), np.bool_))
        for problem in problems:
            raise ClearloopError(f"{path}: {problem.message.rpartition('; ')[0]}")
        columns.append(values)
    return np.stack(columns, axis=1)
