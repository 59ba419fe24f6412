"""Controller files: JSON that people read, edit and sign."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from clearloop.controllers.controller import Controller
from clearloop.controllers.equation import Equation
from clearloop.controllers.fuzzy import Fuzzy
from clearloop.controllers.linear import Linear
from clearloop.controllers.network import NetworkController
from clearloop.controllers.pid import PID
from clearloop.errors import ClearloopError
from clearloop.files import read_text, whole_file
from clearloop.task.faults import faults_of
from clearloop.task.suggest import did_you_mean, quoted

LARGEST_FILE = 16 * 1024 * 1024  # bytes; a network with a million weights

_KINDS: dict[str, type[Controller]] = {
    "equation": Equation,
    "linear": Linear,
    "fuzzy": Fuzzy,
    "pid": PID,
    "network": NetworkController,
}


def load(path: str | Path) -> Controller:
    return from_json(read_text(path, LARGEST_FILE), source=str(path))


def save(controller: Controller, path: str | Path) -> None:
    with whole_file(path) as file:
        file.write(to_json(controller).encode())


def from_json(text: str, *, source: str = "controller") -> Controller:
    """A controller from the text of its file; `source` says where it came from in messages."""
    table = _parse(text, source)
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        hint = did_you_mean(str(kind), _KINDS) or f"; the kinds are: {', '.join(_KINDS)}"
        raise ClearloopError(f"{source}: kind: {quoted(str(kind))} is no kind of controller{hint}")
    if table.get("clearloop") != 1:
        raise ClearloopError(f'{source}: expected "clearloop": 1, the version of the format')
    try:
        return _KINDS[kind].model_validate(table)
    except ValidationError as error:
        where, what = faults_of(error)[0]
        place = f"{json_path(where)}: " if where else ""
        raise ClearloopError(f"{source}: {place}{what.removeprefix('Value error, ')}") from error


def to_json(controller: Controller) -> str:
    """Readable JSON: short lists and small tables stand on one line."""
    table = controller.model_dump(mode="json", by_alias=True, exclude_none=True)
    return _pretty({key: value for key, value in table.items() if value != {}}) + "\n"


def json_path(where: Sequence[str | int]) -> str:
    """`outputs.force.rules[1].then`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return text.removeprefix(".")


def _parse(text: str, source: str) -> dict[str, Any]:
    try:
        table = json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ClearloopError(f"{source}: nested too deeply for a controller file") from error
    except json.JSONDecodeError as error:
        raise ClearloopError(
            f"{source}: broken JSON in line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except ValueError as error:
        raise ClearloopError(f"{source}: {error}") from error
    if not isinstance(table, dict):
        raise ClearloopError(f"{source}: expected a JSON object with \"kind\" and what it needs")
    return table


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number that a controller may have")


def _pretty(value: Any, indent: str = "") -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= 100 or not isinstance(value, dict | list):
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        rows = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {_pretty(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _pretty(item, inner) for item in value) + f"\n{indent}]"
