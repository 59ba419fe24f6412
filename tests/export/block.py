"""Controllers as function blocks, run by the interpreter beside `controller.act`."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from clearloop.controllers import Controller, from_json
from clearloop.export.interpreter import Block
from clearloop.export.precision import DOUBLE, Precision
from clearloop.export.structured_text.printing import pous, structured_text
from clearloop.expression import OPERATIONS, Call, Expression, Number, parse, to_text
from clearloop.expression.operations import Kind

STATES = ("theta", "theta_dot", "rho", "rho_dot")
READ = (*STATES, "theta[t-3]", "rho[t-2]", "rho_dot[t-1]", "force[t-1]", "force[t-2]")
EDGES = (0.0, -0.0, 1.0, -1.0, 1e-300, 5e-324, 1e12, -1e12, 1e300, -1e300)


T = TypeVar("T")


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    return options[int(rng.integers(len(options)))]


def some(rng: np.random.Generator, options: Sequence[T], count: int) -> list[T]:
    return [options[int(place)] for place in rng.permutation(len(options))[:count]]


def whole(rng: np.random.Generator, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(rng.uniform(low, high))


def text_of(controller: Controller, precision: Precision = DOUBLE, *options: str) -> str:
    return structured_text(pous(controller, "test", precision, frozenset(options)))


def block_of(controller: Controller, precision: Precision = DOUBLE, *options: str) -> Block:
    return Block(text_of(controller, precision, *options))


def step(block: Block, observation: dict[str, float]) -> dict[str, float]:
    """A block has inputs for what its controller looks at only."""
    return block.step({name: value for name, value in observation.items() if name in block.inputs})


def observation(rng: np.random.Generator) -> dict[str, float]:
    return {
        name: pick(rng, (between(rng, -3, 3), between(rng, -1e3, 1e3), pick(rng, EDGES))) for name in STATES
    }


def formula(rng: np.random.Generator, kind: Kind, depth: int) -> Expression:
    """Any operation of the language, half of them sums and products."""
    if kind == "number" and (depth == 0 or rng.random() < 0.15):
        return Number(number(rng)) if rng.random() < 0.4 else parse(pick(rng, (*READ, "rho.setpoint")))
    rows = [row for row in OPERATIONS.values() if row.kind == kind]
    if kind == "condition" and depth < 2:
        rows = [row for row in rows if row.kinds[0] == "number"]
    operation = pick(rng, rows)
    if kind == "number" and rng.random() < 0.4:
        operation = OPERATIONS[pick(rng, ("add", "sub", "mul"))]
    return Call(operation, tuple(formula(rng, argument, max(depth - 1, 0)) for argument in operation.kinds))


def number(rng: np.random.Generator) -> float:
    return pick(
        rng, (round(between(rng, -5, 5), 2), between(rng, -100, 100), pick(rng, (*EDGES, 1e308, 1 / 3)))
    )


def coefficient(rng: np.random.Generator) -> float:
    return min(max(number(rng), -1e12), 1e12)


def _loops(rng: np.random.Generator) -> list[dict[str, Any]]:
    gains = ("weight", "kp", "ki", "kd")
    return [
        {"input": pick(rng, STATES), "window": whole(rng, 1, 12)} | {gain: coefficient(rng) for gain in gains}
        for _ in range(whole(rng, 1, 3))
    ]


def _rules(rng: np.random.Generator) -> list[dict[str, Any]]:
    widths = (1e-6, 0.1, 1.0, 5.0, 1e3)
    return [
        {
            "if": {
                name: {"center": between(rng, -2, 2), "width": pick(rng, widths)}
                for name in some(rng, READ, whole(rng, 1, 4))
            },
            "then": between(rng, -1, 1),
        }
        for _ in range(whole(rng, 1, 5))
    ]


def _law(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    if kind == "equation":
        return {"outputs": {"force": to_text(formula(rng, "number", whole(rng, 0, 5)))}}
    if kind == "linear":
        return {"gains": {"force": {name: coefficient(rng) for name in some(rng, READ, whole(rng, 1, 5))}}}
    if kind == "pid":
        return {"outputs": {"force": {"scale": coefficient(rng), "loops": _loops(rng)}}}
    return {
        "outputs": {
            "force": {"scale": between(rng, 1, 20), "alpha": between(rng, -4, 4), "rules": _rules(rng)}
        }
    }


def random_controller(kind: str, rng: np.random.Generator) -> Controller:
    table = {"clearloop": 1, "kind": kind, **_law(kind, rng)}
    if rng.random() < 0.5:
        table["setpoint"] = {"rho": between(rng, -1, 1)}
    if rng.random() < 0.7:
        low, high = pick(rng, ((-10.0, 10.0), (-3.0, 2.5), (0.0, 100.0)))
        table["limits"] = {"force": [low, high]}
        if rng.random() < 0.2:
            table["steps"] = {"force": (high - low) / pick(rng, (1, 4, 10))}
    return from_json(json.dumps(table))
