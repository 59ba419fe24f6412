"""Options that several commands share, and how their values are read."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import fields, is_dataclass, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer
from typer.models import ArgumentInfo

from clearloop.cli.terminal import say
from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.registry import METHODS

if TYPE_CHECKING:
    from clearloop.controllers import Controller
    from clearloop.data import Finding
    from clearloop.methods import Method
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
On = Annotated[
    str,
    typer.Option(
        "--on", help="The plant, or the model of --run.", metavar="plant|model", show_default="plant"
    ),
]
PLANT = ("plant", "system")
"""what the plant is called behind --on; `system`, the older word, is still accepted, and it is the default
because the JSON of `evaluate` repeats the word that was used"""
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


# A task can be given to every command in two ways: as the argument TASK and as the option --task TASK.


class Commands(typer.Typer):
    """Commands of which those with a parameter `task` take it both ways."""

    def command(self, *args: Any, **settings: Any) -> Callable[[Any], Any]:
        """As typer's; the decorated function stays as it is."""
        register = super().command(*args, **settings)

        def add(command: Any) -> Any:
            register(_taking_its_task_both_ways(command))
            return command

        return add


def _taking_its_task_both_ways(command: Callable[..., None]) -> Callable[..., None]:
    """The command with a second parameter for the task: an option beside its argument, or the reverse."""
    declared = signature(command).parameters
    if "task" not in declared:
        return command
    needed, usual = declared["task"].default is Parameter.empty, declared["task"].default
    (info,) = declared["task"].annotation.__metadata__
    info = copy(info)
    info.show_default = False if needed else usual or False
    end = "; one of the two is needed." if needed else "."
    other = (
        typer.Option("--task", help=f"The same as the argument TASK{end}", metavar="TASK")
        if isinstance(info, ArgumentInfo)
        else typer.Argument(help=f"The same as the option --task{end}", metavar="TASK", show_default=False)
    )

    def taking(*, task: str | None, task_too: str | None, **given: Any) -> None:
        if None not in (task, task_too) and task != task_too:
            raise ClearloopError(
                f"two tasks are given, {task} and {task_too}: give one, as TASK or as --task TASK"
            )
        found = task if task is not None else task_too
        if found is None and needed:
            raise ClearloopError(
                "the task is missing: give a built-in task or a task file, as TASK or --task TASK"
            )
        command(**given, task=usual if found is None else found)

    both = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, way])
        for name, way in (("task", info), ("task_too", other))
    ]
    parameters = [
        new
        for name, one in declared.items()
        for new in (both if name == "task" else [one.replace(kind=Parameter.KEYWORD_ONLY)])
    ]
    taking.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
    taking.__name__, taking.__doc__ = command.__name__, command.__doc__
    return taking


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
    if on in PLANT:
        if task.plant is None:
            raise ClearloopError(f"task '{task.name}' has no plant to test on: use --on model --run DIR")
        return None
    if on != "model":
        raise ClearloopError(f"--on {on}: expected plant or model")
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


# `--set NAME=VALUE`: a field of a method's dataclass, of a dataclass in it, or a key of a table in it.


def configure(methods: "Sequence[Method]", assignments: Sequence[str]) -> "tuple[Method, ...]":
    """The methods with settings as in `rules=2,4`, or for one of them only, as in `fpsrl.rules=2,4`."""
    chosen = list(methods)
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ClearloopError(f"--set {text}: expected NAME=VALUE or METHOD.NAME=VALUE")
        path = name.strip().split(".")
        try:
            for i in _targets(chosen, path):
                inner = path[1:] if path[0] == chosen[i].name else path
                chosen[i] = _assigned(chosen[i], inner, value.strip())
        except ClearloopError as error:
            raise ClearloopError(f"--set {text}: {error}") from error
    return tuple(chosen)


def _targets(methods: "Sequence[Method]", path: Sequence[str]) -> list[int]:
    """The methods that a path speaks of."""
    names = [method.name for method in methods]
    if path[0] in METHODS and path[0] not in names:
        raise ClearloopError(f"{path[0]} is not a method of this run; there is {', '.join(names)}")
    spoken_of = [names.index(path[0])] if path[0] in names else list(range(len(methods)))
    inner = path[1:] if path[0] in names else path
    having = [i for i in spoken_of if _leads_somewhere(methods[i], inner)]
    if not having:
        known = list(dict.fromkeys(name for i in spoken_of for name in _paths(methods[i])))
        name = ".".join(inner)
        raise ClearloopError(f"no setting {quoted(name)} among {', '.join(known)}{did_you_mean(name, known)}")
    return having


def _leads_somewhere(settings: Any, path: Sequence[str]) -> bool:
    """Whether there is a value at the end of a path; a table has any key."""
    if not path:
        return not is_dataclass(settings) and not isinstance(settings, dict)
    if isinstance(settings, dict):
        return len(path) == 1
    known = [field.name for field in fields(settings)] if is_dataclass(settings) else []
    return path[0] in known and _leads_somewhere(getattr(settings, path[0]), path[1:])


def _paths(settings: Any) -> Iterator[str]:
    """All settings, as they can be written: `functions`, `gp.population`, `q.NAME`."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            yield from (f"{field.name}.{path}" for path in _paths(value))
        else:
            yield f"{field.name}.NAME" if isinstance(value, dict) else field.name


def _assigned(settings: Any, path: Sequence[str], text: str) -> Any:
    """The same settings, with another value where the path leads."""
    name, *inner = path
    value = getattr(settings, name)
    kind = get_type_hints(type(settings), include_extras=True)[name]
    if isinstance(value, dict):
        new: Any = {**value, inner[0]: _read(text, get_args(kind)[1])}
    else:
        new = _assigned(value, inner, text) if inner else _read(text, kind)
    try:
        return replace(settings, **{name: new})
    except ValueError as error:
        raise ClearloopError(str(error)) from error


def _read(text: str, kind: Any) -> Any:
    """A value of a field's type; lists have commas."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError

    adapter = TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False))
    problems = []
    for reading in _readings(text):
        try:
            return adapter.validate_python(reading)
        except ValidationError as error:
            problems.append(error.errors()[0]["msg"])
    raise ClearloopError(problems[-1].replace("Input should be", "expected"))


def _readings(text: str) -> Iterator[Any]:
    """What a text can mean; the last one is what it most looks like."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    yield from (text, parts) if "," in text else (parts, text)
    with suppress(ValueError):
        yield float(text)  # a whole number, too, may be written as 1e6
    if text.casefold() == "none":
        yield None


# Data and models that cannot support a controller: an error with all reasons, or doubts that are kept.


def answer(source: str, reasons: "Sequence[Finding]", *, force: bool) -> list[dict[str, str]]:
    """Without reasons nothing; with `force` they are said and given back; otherwise the first is an error.

    `source`: what the data is called.
    """
    from clearloop.data.findings import refuse

    if not reasons:
        return []
    if force or len(reasons) > 1:
        title = "By force, though this data cannot support a controller:" if force else "Not from this data:"
        say(title, err=True)
        for reason in reasons:
            say(f"  {reason.code}: {reason.message}", indent="    ", err=True)
    if not force:
        raise refuse(source, reasons)
    return in_words(reasons)


def in_words(reasons: "Sequence[Finding]") -> list[dict[str, str]]:
    """As they stand in `run.json`."""
    return [{"code": reason.code, "message": reason.message} for reason in reasons]
