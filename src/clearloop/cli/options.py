"""Options that several commands share, and how their values are read."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clearloop.errors import ClearloopError

if TYPE_CHECKING:
    from clearloop.controllers import Controller
    from clearloop.surrogate import Surrogate
    from clearloop.task import Task

MOST_STEPS = 10**15

TaskName = Annotated[str, typer.Option("--task", help="A built-in task or a task file.", metavar="TASK")]
Data = Annotated[
    list[Path] | None,
    typer.Option(
        "--data", help="A log; repeatable. Without it, a task with a plant makes its own.", metavar="FILE"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same result.", min=0, metavar="N")]
On = Annotated[str, typer.Option("--on", help="The plant, or the model of --run.", metavar="system|model")]
ControllerName = Annotated[
    str,
    typer.Argument(help="A controller file; or with --run, its number, such as 003.", metavar="CONTROLLER"),
]
Run = Annotated[Path | None, typer.Option("--run", help="The run that it belongs to.", metavar="DIR")]
RunFolder = Annotated[Path, typer.Option("--run", help="The run that it belongs to.", metavar="DIR")]
TaskOfRun = Annotated[
    str | None,
    typer.Option("--task", help="A built-in task or a task file; the run's, if not given.", metavar="TASK"),
]


def find_task(name: str | None, run: Path | None) -> "Task":
    """By its name or its file, or that of a run."""
    from clearloop.runs import RunDirectory
    from clearloop.task import Task

    if name is not None:
        return Task.load(name)
    if run is None:
        raise ClearloopError("give --task TASK, or --run DIR, the run whose task it is")
    return RunDirectory(run).task()


def controller_file(name: str, run: Path | None) -> Path:
    """A file, or a controller of a run by its number, such as 003."""
    file = Path(name)
    if file.exists():
        return file
    if run is not None and (known := run / "controllers" / f"{name}.json").exists():
        return known
    if file.suffix:
        return file
    if run is None:
        raise ClearloopError(f"{name}: not found; the number of a controller needs --run DIR, its run")
    numbers = sorted(one.stem for one in (run / "controllers").glob("*.json"))
    hint = f"this run has {', '.join(numbers)}" if numbers else "this run has none"
    raise ClearloopError(f"{name}: no controller file, and no controller of {run}; {hint}")


def print_json(document: Any) -> None:
    typer.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))


def load_controller(path: Path, task: "Task") -> "Controller":
    """A controller with what its file leaves to the task."""
    from clearloop.controllers import load

    controller = load(path)
    try:
        return controller.for_task(task)
    except ClearloopError as error:
        raise ClearloopError(f"{path}: {error}") from error


def find_surrogate(on: str, run: Path | None, task: "Task") -> "Surrogate | None":
    """None for the plant; the surrogate of a run for its model."""
    if on == "system":
        if task.plant is None:
            raise ClearloopError(f"task '{task.name}' has no plant to test on: use --on model --run DIR")
        return None
    if on != "model":
        raise ClearloopError(f"--on {on}: expected system or model")
    if run is None:
        raise ClearloopError("--on model needs --run DIR, the run directory that holds the model")
    from clearloop.surrogate import Surrogate

    return Surrogate.load(run / "surrogate", task)


def parse_budget(text: str) -> int:
    """`quick`, `2000000` or `2e6`."""
    from clearloop.methods import BUDGETS

    if text in BUDGETS:
        return BUDGETS[text]
    try:
        steps = float(text)
    except ValueError:
        steps = 0.0
    if not 1 <= steps <= MOST_STEPS:
        raise ClearloopError(
            f"--budget {text}: expected {', '.join(BUDGETS)}, or a number of model steps such as 2e9"
        )
    return int(steps)


def parse_assignment(text: str, option: str) -> tuple[str, float]:
    """`theta=0.3`."""
    name, _, value = text.partition("=")
    try:
        return name.strip(), _finite(value)
    except ValueError as error:
        raise ClearloopError(f"{option} {text}: expected NAME=VALUE, such as theta=0.3") from error


def _finite(text: str) -> float:
    value = float(text)
    if not abs(value) < float("inf"):
        raise ValueError
    return value
