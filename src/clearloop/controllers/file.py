"""Controller files: reading and writing the JSON that people read, edit and sign."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from clearloop.controllers.controller import Controller
from clearloop.errors import ClearloopError, quoted
from clearloop.files import read_text, whole_file
from clearloop.registry import KINDS
from clearloop.task.tables import faults_of

LARGEST_FILE = 16 * 1024 * 1024  # bytes; a network with a million weights


def load(path: str | Path) -> Controller:
    """Read a controller from its file.

    Args:
        path: A JSON file of any kind of controller.

    Returns:
        The controller.

    Raises:
        ClearloopError: If the file cannot be read, or is no valid controller; the message names the place.
    """
    return from_json(read_text(path, LARGEST_FILE), source=str(path)).beside(path)


def save(controller: Controller, path: str | Path) -> None:
    """Write a controller to a file, which appears whole or not at all.

    Args:
        controller: The controller.
        path: The JSON file, which is replaced if it exists.
    """
    with whole_file(path) as file:
        file.write(to_json(controller).encode())


def from_json(text: str, *, source: str = "controller") -> Controller:
    """Return the controller that a JSON text describes; `source` names the text in error messages."""
    try:
        return _of_table(_parse(text))
    except ValidationError as error:
        where, what = faults_of(error)[0]
        raise ClearloopError(f"{source}: {json_path(where)}{': ' if where else ''}{what}") from error
    except ClearloopError as error:
        raise ClearloopError(f"{source}: {error}") from error


def _of_table(table: Any) -> Controller:
    if not isinstance(table, dict) or table.get("clearloop") != 1:
        raise ClearloopError('expected a JSON object with "clearloop": 1, the version of the format')
    if "kind" not in table:
        raise ClearloopError(f"missing key 'kind'; the kinds are: {', '.join(KINDS)}")
    try:
        kind: type[Controller] = KINDS.find(str(table["kind"]))
    except ClearloopError as error:
        raise ClearloopError(f"kind: {error}") from error
    return kind.model_validate(table)


def to_json(controller: Controller) -> str:
    """Return a controller as readable JSON, in which short lists and small tables stand on one line."""
    table = controller.model_dump(mode="json", by_alias=True, exclude_none=True)
    return _pretty({key: value for key, value in table.items() if value != {}}) + "\n"


def json_path(where: Sequence[str | int]) -> str:
    """Return a place in a file as text, such as `outputs.force.rules[1].then`."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part if part.isidentifier() else quoted(part)}"
    return text.removeprefix(".")


def _parse(text: str) -> Any:
    try:
        return json.loads(
            text, object_pairs_hook=_no_duplicates, parse_int=_whole, parse_constant=_no_constant
        )
    except RecursionError as error:
        raise ClearloopError("nested too deeply for a controller file") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ClearloopError(f"broken JSON in {place}: {error.msg}") from error


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that occurs twice: what a person signs must not depend on which of two lines counts."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ClearloopError(f"the key {quoted(key)} occurs twice in one object")
        table[key] = value
    return table


def _whole(digits: str) -> int | float:
    """Read many digits as a float, because Python refuses to read thousands of them as an integer."""
    return int(digits) if len(digits) < 20 else float(digits)


def _no_constant(name: str) -> NoReturn:
    raise ClearloopError(f"{name} is not allowed in a controller: give a finite number")


def _pretty(value: Any, indent: str = "") -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= 100 or not isinstance(value, dict | list):
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        rows = [
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {_pretty(item, inner)}"
            for key, item in value.items()
        ]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _pretty(item, inner) for item in value) + f"\n{indent}]"
