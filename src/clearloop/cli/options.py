"""These are the options that several commands share, and the functions that read their values."""

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

from clearloop.cli.terminal import UNSAFE, say
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
        "--data", help="A log; repeatable. If not given, the task's plant makes one.", metavar="FILE"
    ),
]
Robust = Annotated[
    str | None,
    typer.Option(
        "--robust",
        help="on: the pick keeps the margins that the task asks for. off: as in the paper.",
        metavar="on|off",
        show_default="on",
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
"""The words for the plant after --on. `system` is the older word; it is the default because the JSON of
`evaluate` repeats the word that was used."""
ControllerName = Annotated[
    str,
    typer.Argument(help="A controller file; or with --run, its number, such as 003.", metavar="CONTROLLER"),
]
Run = Annotated[
    Path | None, typer.Option("--run", help="The run that the controller belongs to.", metavar="DIR")
]
RunFolder = Annotated[
    Path, typer.Option("--run", help="The run that the controller belongs to.", metavar="DIR")
]
TaskOfRun = Annotated[
    str | None,
    typer.Option(
        "--task", help="A built-in task or a task file; the run's task if not given.", metavar="TASK"
    ),
]


class Commands(typer.Typer):
    """A group of commands. A parameter `task` can be given as the argument TASK and as the option --task."""

    def command(self, *args: Any, **settings: Any) -> Callable[[Any], Any]:
        """Return typer's decorator for a command; it leaves the decorated function as it is."""
        register = super().command

        def add(command: Any) -> Any:
            # Without its line breaks, because typer keeps those of all paragraphs but the first.
            paragraphs = (" ".join(one.split()) for one in (command.__doc__ or "").split("\n\n"))
            said = {"help": "\n\n".join(paragraphs), **settings}
            register(*args, **said)(_taking_its_task_both_ways(command))
            return command

        return add


def _taking_its_task_both_ways(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a second parameter for the task: an option beside its argument, or the reverse."""
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
                f"two tasks are given, {task} and {task_too}: give only one, as TASK or as --task TASK"
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
    """Load a task by its name or its file; without a name, load the task of the run."""
    from clearloop.runs import RunDirectory
    from clearloop.task import Task

    if name is not None:
        return Task.load(name)
    if run is None:
        raise ClearloopError("the task is missing: give --task TASK, or --run DIR to use the task of a run")
    return RunDirectory(run).task()


def controller_file(name: str, run: Path | None) -> Path:
    """Return the file of a controller.

    Args:
        name: A file, or the number of a controller of the run, such as 003.
        run: The run directory, if one is given.

    Raises:
        ClearloopError: There is no such controller.
    """
    file = Path(name)
    if file.exists():
        return file
    if run is not None and (known := run / "controllers" / f"{name}.json").exists():
        return known
    if file.suffix:
        return file
    if run is None:
        raise ClearloopError(f"{name}: not found; to give a controller by its number, add --run DIR")
    numbers = sorted(one.stem for one in (run / "controllers").glob("*.json"))
    hint = f"this run has {', '.join(numbers)}" if numbers else "this run has none"
    raise ClearloopError(f"{name}: no controller file, and no controller of {run}; {hint}")


def is_robust(word: str | None, track: str) -> bool:
    """Return what `--robust` says; the published track is never robust.

    Args:
        word: The word that the user gave, or None.
        track: The word of `--track`.
    """
    if word not in (None, "on", "off"):
        raise ClearloopError(f"--robust {word}: expected on or off")
    if word == "on" and track == "published":
        raise ClearloopError(
            "--robust on: --track published does as the paper does, which does not ask for margins: leave "
            "one of the two out"
        )
    return word != "off" and track != "published"


def print_json(document: Any) -> None:
    """Print JSON values on one line."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    typer.echo(UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # the same JSON


def load_controller(path: Path, task: "Task") -> "Controller":
    """Load a controller; the task supplies limits, units and setpoints that its file does not have."""
    from clearloop.controllers import load

    controller = load(path)
    try:
        return controller.for_task(task)
    except ClearloopError as error:
        raise ClearloopError(f"{path}: {error}") from error


def find_surrogate(on: str, run: Path | None, task: "Task") -> "Surrogate | None":
    """Return the surrogate of the run for `--on model`, and None for `--on plant`.

    Raises:
        ClearloopError: The task has no plant, `--run` is missing, or `on` is another word.
    """
    if on in PLANT:
        if task.plant is None:
            raise ClearloopError(
                f"the task {quoted(task.name)} has no plant to test on: use --on model --run DIR"
            )
        return None
    if on != "model":
        raise ClearloopError(f"--on {on}: expected plant or model")
    if run is None:
        raise ClearloopError("--on model needs the run that holds the model: add --run DIR")
    from clearloop.surrogate import Surrogate

    return Surrogate.load(run / "surrogate", task)


def parse_budget(text: str) -> int:
    """Read a number of model steps, such as `quick`, `2000000` or `2e6`."""
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
    """Read an assignment such as `theta=0.3`; `option` names its option in errors."""
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


def configure(methods: "Sequence[Method]", assignments: Sequence[str]) -> "tuple[Method, ...]":
    """Change settings of methods, as `--set` gives them.

    A name is that of a field of the method's dataclass, of a dataclass in it, or of a key of a table in it.

    Args:
        methods: The methods.
        assignments: Texts such as `rules=2,4`, or for one of the methods only, `fpsrl.rules=2,4`.

    Returns:
        The methods with these settings.

    Raises:
        ClearloopError: There is no such setting, or the value does not fit.
    """
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
    """Find the methods that have a setting at this path."""
    names = [method.name for method in methods]
    if path[0] in METHODS and path[0] not in names:
        raise ClearloopError(f"{path[0]} is not a method of this run, whose methods are {', '.join(names)}")
    named = [names.index(path[0])] if path[0] in names else list(range(len(methods)))
    inner = path[1:] if path[0] in names else path
    having = [i for i in named if _has_setting(methods[i], inner)]
    if not having:
        known = list(dict.fromkeys(name for i in named for name in _paths(methods[i])))
        name = ".".join(inner)
        raise ClearloopError(f"no setting {quoted(name)} among {', '.join(known)}{did_you_mean(name, known)}")
    return having


def _has_setting(settings: Any, path: Sequence[str]) -> bool:
    # A path must lead to a value; a table takes any key.
    if not path:
        return not is_dataclass(settings) and not isinstance(settings, dict)
    if isinstance(settings, dict):
        return len(path) == 1
    known = [field.name for field in fields(settings)] if is_dataclass(settings) else []
    return path[0] in known and _has_setting(getattr(settings, path[0]), path[1:])


def _paths(settings: Any) -> Iterator[str]:
    """Yield all settings as users write them: `functions`, `gp.population`, `q.NAME`."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            yield from (f"{field.name}.{path}" for path in _paths(value))
        else:
            yield f"{field.name}.NAME" if isinstance(value, dict) else field.name


def _assigned(settings: Any, path: Sequence[str], text: str) -> Any:
    """Return the settings with another value at the path."""
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
    """Read a value of a field's type; a list has commas."""
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
    """Yield the values that a text can mean; the last one is the most likely."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    yield from (text, parts) if "," in text else (parts, text)
    with suppress(ValueError):
        yield float(text)  # a whole number, too, may be written as 1e6
    if text.casefold() == "none":
        yield None


def answer(source: str, reasons: "Sequence[Finding]", *, force: bool) -> list[dict[str, str]]:
    """Refuse data or a model that cannot support a controller, unless the user forces the search.

    Args:
        source: The name of the data, for the error.
        reasons: Why the data or the model cannot support a controller; often none.
        force: Print the reasons instead of refusing.

    Returns:
        The reasons, as JSON values for `run.json`.

    Raises:
        ClearloopError: There are reasons, and `force` is False.
    """
    from clearloop.data.findings import refuse

    if not reasons:
        return []
    if force or len(reasons) > 1:
        but = ", but the search is forced" if force else ""
        say(f"No controller can be learned from this data{but}:", err=True)
        for reason in reasons:
            say(f"  {reason.code}: {reason.message}", indent="    ", err=True)
    if not force:
        raise refuse(source, reasons)
    return in_words(reasons)


def in_words(reasons: "Sequence[Finding]") -> list[dict[str, str]]:
    """Return the reasons as JSON values for `run.json`."""
    return [{"code": reason.code, "message": reason.message} for reason in reasons]
