"""Controller files: JSON that people read, edit and sign."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from pydantic import ValidationError

from clearloop.controllers.controller import Controller
from clearloop.controllers.equation import Equation
from clearloop.controllers.fuzzy import Fuzzy
from clearloop.controllers.linear import Linear
from clearloop.controllers.network import GreedyQ, NetworkController
from clearloop.controllers.pid import PID
from clearloop.controllers.planner import Planner
from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import Program
from clearloop.expression import encode as encode_formula
from clearloop.files import read_text, whole_file
from clearloop.kernels import layout
from clearloop.kernels.layout import Policies
from clearloop.programs import Features
from clearloop.task import Task
from clearloop.task.tables import faults_of

LARGEST_FILE = 16 * 1024 * 1024  # bytes; a network with a million weights

_KINDS: dict[str, type[Controller]] = {
    "equation": Equation,
    "linear": Linear,
    "fuzzy": Fuzzy,
    "pid": PID,
    "network": NetworkController,
    "greedy-q": GreedyQ,
    "planner": Planner,
}


def load(path: str | Path) -> Controller:
    controller = from_json(read_text(path, LARGEST_FILE), source=str(path))
    return controller.beside(path) if isinstance(controller, Planner) else controller


def save(controller: Controller, path: str | Path) -> None:
    with whole_file(path) as file:
        file.write(to_json(controller).encode())


def from_json(text: str, *, source: str = "controller") -> Controller:
    """A controller from the text of its file; `source` says where it came from in messages."""
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
        raise ClearloopError(f"missing key 'kind'; the kinds are: {', '.join(_KINDS)}")
    kind = str(table["kind"])
    if kind not in _KINDS:
        hint = did_you_mean(kind, _KINDS) or f"; the kinds are: {', '.join(_KINDS)}"
        raise ClearloopError(f"kind: {quoted(kind)} is no kind of controller{hint}")
    return _KINDS[kind].model_validate(table)


def to_json(controller: Controller) -> str:
    """Readable JSON: short lists and small tables stand on one line."""
    table = controller.model_dump(mode="json", by_alias=True, exclude_none=True)
    return _pretty({key: value for key, value in table.items() if value != {}}) + "\n"


def json_path(where: Sequence[str | int]) -> str:
    """`outputs.force.rules[1].then`."""
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
    """What a person signs must not depend on which of two lines wins."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ClearloopError(f"the key {quoted(key)} stands twice in one object")
        table[key] = value
    return table


def _whole(digits: str) -> int | float:
    """Python refuses to read thousands of digits as an integer; as a float they are merely too large."""
    return int(digits) if len(digits) < 20 else float(digits)


def _no_constant(name: str) -> NoReturn:
    raise ClearloopError(f"{name} is not a number that a controller may have")


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


# Controllers of one kind as a population for the engine.

_POLICIES = {
    "linear": layout.LINEAR,
    "equation": layout.PROGRAM,
    "fuzzy": layout.FUZZY,
    "pid": layout.PID,
    "network": layout.NETWORK,
    "greedy-q": layout.GREEDY,
}


def encode(
    controllers: Sequence[Controller], task: Task, *, history: int, dtype: Any = np.float64
) -> Policies:
    """`history`: observations in the engine's window; at least what every controller needs."""
    controllers = [controller.for_task(task) for controller in controllers]
    if any(controller.kind not in _POLICIES for controller in controllers):
        raise ClearloopError("a planner decides step by step: it cannot be one of a population")
    features = Features(task.state_names, task.action_names, history)
    first = controllers[0]
    sizes = first.sizes(features)
    shape = (first.kind, sizes, first.limits, first.steps)
    if any((c.kind, c.sizes(features), c.limits, c.steps) != shape for c in controllers):
        raise ClearloopError("controllers of one population must have the same kind, shape, limits and steps")
    if any(c.history > history for c in controllers):
        raise ClearloopError(f"a controller looks further back than the {history} observations that are kept")
    largest = np.finfo(dtype).max
    code, operand, spans = _joined([_programs(c, features) for c in controllers])
    return Policies(
        kind=_POLICIES[first.kind],
        numbers=np.array([c.numbers(features) for c in controllers], dtype).reshape(len(controllers), -1),
        sizes=np.array(sizes, np.int64),
        code=code,
        operand=np.clip(operand, -largest, largest).astype(dtype),
        spans=spans,
        limits=np.array([first.limits[name] for name in task.action_names], dtype),
        counts=np.array([first.range_of(name).parts for name in task.action_names], dtype),
    )


def _programs(controller: Controller, features: Features) -> list[Program]:
    """One for each action, of the kind that has any."""
    if not isinstance(controller, Equation):
        return []
    return [encode_formula(controller.formula(action), features.slot) for action in features.actions]


def _joined(population: list[list[Program]]) -> tuple[Any, Any, Any]:
    """All code, all operands, and where each program starts and the last one ends, [P, A + 1]."""
    flat = [program for programs in population for program in programs]
    lengths = np.array([[len(program.code) for program in programs] for programs in population], np.int64)
    ends = np.cumsum(lengths).reshape(lengths.shape)
    first = np.cumsum([0, *lengths.sum(axis=1)])[:-1, None]
    return (
        np.concatenate([np.zeros(0, np.int32), *(program.code for program in flat)]),
        np.concatenate([np.zeros(0), *(program.operand for program in flat)]),
        np.concatenate([first, ends], axis=1),
    )
