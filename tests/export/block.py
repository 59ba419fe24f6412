"""Controllers as function blocks, run by the interpreter beside `controller.act`."""

import json
import random
from typing import Any

from clearloop.controllers import Controller, from_json
from clearloop.export.interpreter import Block
from clearloop.export.precision import DOUBLE, Precision
from clearloop.export.structured_text.printing import pous, structured_text
from clearloop.expression import OPERATIONS, Call, Expression, Number, parse, to_text
from clearloop.expression.operations import Kind

STATES = ("theta", "theta_dot", "rho", "rho_dot")
READ = (*STATES, "theta[t-3]", "rho[t-2]", "rho_dot[t-1]", "force[t-1]", "force[t-2]")
EDGES = (0.0, -0.0, 1.0, -1.0, 1e-300, 5e-324, 1e12, -1e12, 1e300, -1e300)


def text_of(controller: Controller, precision: Precision = DOUBLE, *options: str) -> str:
    return structured_text(pous(controller, "test", precision, frozenset(options)))


def block_of(controller: Controller, precision: Precision = DOUBLE, *options: str) -> Block:
    return Block(text_of(controller, precision, *options))


def step(block: Block, observation: dict[str, float]) -> dict[str, float]:
    """A block has inputs for what its controller looks at only."""
    return block.step({name: value for name, value in observation.items() if name in block.inputs})


def observation(rng: random.Random) -> dict[str, float]:
    return {
        name: rng.choice((rng.uniform(-3, 3), rng.uniform(-1e3, 1e3), rng.choice(EDGES))) for name in STATES
    }


def formula(rng: random.Random, kind: Kind, depth: int) -> Expression:
    """Any operation of the language, half of them sums and products."""
    if kind == "number" and (depth == 0 or rng.random() < 0.15):
        return Number(number(rng)) if rng.random() < 0.4 else parse(rng.choice((*READ, "rho.setpoint")))
    rows = [row for row in OPERATIONS.values() if row.kind == kind]
    if kind == "condition" and depth < 2:
        rows = [row for row in rows if row.kinds[0] == "number"]
    operation = rng.choice(rows)
    if kind == "number" and rng.random() < 0.4:
        operation = OPERATIONS[rng.choice(("add", "sub", "mul"))]
    return Call(operation, tuple(formula(rng, argument, max(depth - 1, 0)) for argument in operation.kinds))


def number(rng: random.Random) -> float:
    return rng.choice(
        (round(rng.uniform(-5, 5), 2), rng.uniform(-100, 100), rng.choice((*EDGES, 1e308, 1 / 3)))
    )


def coefficient(rng: random.Random) -> float:
    return min(max(number(rng), -1e12), 1e12)


def _loops(rng: random.Random) -> list[dict[str, Any]]:
    gains = ("weight", "kp", "ki", "kd")
    return [
        {"input": rng.choice(STATES), "window": rng.randint(1, 12)}
        | {gain: coefficient(rng) for gain in gains}
        for _ in range(rng.randint(1, 3))
    ]


def _rules(rng: random.Random) -> list[dict[str, Any]]:
    widths = (1e-6, 0.1, 1.0, 5.0, 1e3)
    return [
        {
            "if": {
                name: {"center": rng.uniform(-2, 2), "width": rng.choice(widths)}
                for name in rng.sample(READ, rng.randint(1, 4))
            },
            "then": rng.uniform(-1, 1),
        }
        for _ in range(rng.randint(1, 5))
    ]


def _law(kind: str, rng: random.Random) -> dict[str, Any]:
    if kind == "equation":
        return {"outputs": {"force": to_text(formula(rng, "number", rng.randint(0, 5)))}}
    if kind == "linear":
        return {"gains": {"force": {name: coefficient(rng) for name in rng.sample(READ, rng.randint(1, 5))}}}
    if kind == "pid":
        return {"outputs": {"force": {"scale": coefficient(rng), "loops": _loops(rng)}}}
    return {
        "outputs": {"force": {"scale": rng.uniform(1, 20), "alpha": rng.uniform(-4, 4), "rules": _rules(rng)}}
    }


def random_controller(kind: str, rng: random.Random) -> Controller:
    table = {"clearloop": 1, "kind": kind, **_law(kind, rng)}
    if rng.random() < 0.5:
        table["setpoint"] = {"rho": rng.uniform(-1, 1)}
    if rng.random() < 0.7:
        low, high = rng.choice(((-10.0, 10.0), (-3.0, 2.5), (0.0, 100.0)))
        table["limits"] = {"force": [low, high]}
        if rng.random() < 0.2:
            table["steps"] = {"force": (high - low) / rng.choice((1, 4, 10))}
    return from_json(json.dumps(table))
