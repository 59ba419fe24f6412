"""`clearloop evaluate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clearloop.cli.options import Json, On, Run, TaskName, find_surrogate, print_json
from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from clearloop.task import Task


def evaluate(
    controller: Annotated[Path, typer.Argument(help="A controller file.", metavar="CONTROLLER")],
    task: TaskName,
    on: On = "system",
    run: Run = None,
    starts: Annotated[
        str,
        typer.Option(help="How many points of the scoring set, or a CSV with a column for each state.", metavar="N|FILE.csv"),
    ] = "1024",
    as_json: Json = False,
) -> None:
    """Score one controller: minus the mean discounted return, and the share of starts that fail.

    Example: clearloop evaluate examples/published/gprl.json --task cartpole
    """
    from clearloop.controllers import load
    from clearloop.evaluation import evaluate as score
    from clearloop.task import Task

    the_task = Task.load(task)
    the_controller = load(controller)
    result = score(
        the_controller, the_task, surrogate=find_surrogate(on, run, the_task), starts=_starts(starts, the_task)
    )
    if as_json:
        print_json(result.to_dict())
        return
    se = f" ± {result.standard_error:.3f}" if result.penalties.shape[1] > 1 else ""
    where = "plant" if result.on == "system" else f"model, mean of {result.penalties.shape[0]}"
    typer.echo(f"penalty   {result.penalty:.3f}{se}   (on the {where}, {result.penalties.shape[1]:,} starts)")
    typer.echo(f"failures  {result.failures:.1%}")


def _starts(text: str, task: "Task") -> "NDArray[float64] | int":
    if not text.lower().endswith(".csv"):
        if not text.isdecimal() or not 1 <= int(text) <= 2**20:
            raise ClearloopError(f"--starts {text}: expected a number from 1 to {2**20:,}, or a .csv file")
        return int(text)
    import numpy as np

    from clearloop.data import read
    from clearloop.task.suggest import did_you_mean

    frame = read(text)
    columns = []
    for name in task.state_names:
        if name not in frame.columns:
            raise ClearloopError(f"{text}: no column '{name}'{did_you_mean(name, frame.columns)}")
        try:
            columns.append(frame[name].to_numpy().astype(np.float64))
        except (TypeError, ValueError) as error:
            raise ClearloopError(f"{text}: column '{name}' has cells that are not numbers") from error
    points = np.stack(columns, axis=1)
    if not len(points) or not np.isfinite(points).all():
        raise ClearloopError(f"{text}: expected at least one row, and no empty cells")
    return points
