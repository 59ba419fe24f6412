"""`--set NAME=VALUE`: a field of a method's dataclass, of a dataclass in it, or a key of a table in it."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from clearloop.errors import ClearloopError, did_you_mean, quoted

if TYPE_CHECKING:
    from clearloop.methods import Method


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
    from clearloop.methods.registry import METHODS

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
