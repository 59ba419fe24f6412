"""Random controllers of every kind, made quickly: odd names, past values, several actions, limits, steps."""

import json
import math
from typing import Any

import numpy as np

from clearloop.controllers import Controller, from_json
from clearloop.expression import OPERATIONS, Call, Expression, Number, Variable, to_text
from clearloop.expression.nodes import Kind
from tests.controllers.kinds import POPULATED, examples

STATES = (
    "theta",
    "theta_dot",
    "θ̇",
    "double",
    "limited",
    "x1",
    "调",
    "yield",
    "k",
    "memory",
    "Input",
    "input",
)
ACTIONS = ("force", "return", "level", "ü", "first")
EDGES = (0.0, 1.0, -1.0, 0.1, math.pi, 1e-30, 5e-324, 1e12, 1e154, 1.7976931348623157e308)
ACTIVATIONS = ("identity", "relu", "tanh", "sigmoid")

Names = list[str]


class Maker:
    """Draws controllers, one after the other."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def controller(self, kind: str) -> Controller:
        states = self.some(STATES, 4)
        actions = self.some(ACTIONS, 2 if self.chance(0.3) else 1)
        head = self.head(states, actions)
        make = getattr(self, kind.replace("-q", ""), None)
        if make is None:  # nobody says how to draw one
            return from_json(json.dumps(self.rng.choice(np.array(examples(kind), object))))
        body = make([*states, *head.get("derived", ())], actions)
        table = {"clearloop": 1, "kind": kind, **head, **body}
        return from_json(json.dumps(table))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def some(self, things: tuple[str, ...], most: int) -> Names:
        chosen = self.rng.choice(things, size=self.rng.integers(1, most + 1), replace=False)
        return [str(name) for name in chosen]

    def number(self) -> float:
        """Mostly of a usual size; now and then 0, 1, huge or tiny."""
        if self.chance(0.1):
            return float(self.rng.choice([0.0, 1.0, -1.0, 2.0, 1e-300, 1e12, -1e12]))
        value = float(self.rng.normal() * 10 ** self.rng.uniform(-2, 2))
        return round(value, 2) if self.chance(0.5) else value

    def head(self, states: Names, actions: Names) -> dict[str, Any]:
        head: dict[str, Any] = {"name": 'odd */ name ??/ \\ " %', "units": {states[0]: "*/ m"}}
        if self.chance(0.85):
            head["limits"] = {name: [-10.0, 10.0] if self.chance(0.7) else [-0.5, 7.25] for name in actions}
            if self.chance(0.2):
                head["steps"] = {
                    actions[0]: (head["limits"][actions[0]][1] - head["limits"][actions[0]][0]) / 7
                }
        if self.chance(0.5):
            head["setpoint"] = {states[-1]: self.number()}
        if self.chance(0.2):
            head["follows"] = {states[0]: "a column"}
        if self.chance(0.2):
            own = f"{states[0]}[t-1] + 0.5*made[t-1] + {actions[0]}[t-2] - {states[0]}.error"
            head["derived"] = {"made": own, "more": f"abs(made) + made[t-1]*{states[0]}"}
        return head

    def variable(self, states: Names, actions: Names) -> Variable:
        if self.chance(0.1):
            return Variable(str(self.rng.choice(actions)), lag=int(self.rng.integers(1, 4)))
        part = self.rng.choice(["value", "value", "value", "error", "setpoint"])
        lag = int(self.rng.integers(0, 5)) if self.chance(0.3) else None
        return Variable(str(self.rng.choice([*states, states[0]])), part, lag)

    def equation(self, states: Names, actions: Names) -> dict[str, Any]:
        return {"outputs": {name: to_text(self.tree("number", 4, states, actions)) for name in actions}}

    def tree(self, kind: Kind, depth: int, states: Names, actions: Names) -> Expression:
        if kind == "number" and (depth == 0 or self.chance(0.2)):
            if self.chance(0.7):
                return self.variable(states, actions)
            return Number(float(self.rng.choice(EDGES)) if self.chance(0.1) else self.number())
        names = [name for name, one in OPERATIONS.items() if one.kind == kind]
        common = [name for name in ("add", "sub", "mul", "div", "mul", "add") if kind == "number"]
        operation = OPERATIONS[str(self.rng.choice(common if common and self.chance(0.5) else names))]
        if depth <= 0 and operation.name in ("and", "or", "not"):
            operation = OPERATIONS["lt"]
        parts = tuple(self.tree(one, max(depth - 1, 0), states, actions) for one in operation.kinds)
        return Call(operation, parts)

    def inputs(self, states: Names, actions: Names) -> Names:
        found = {}
        for _ in range(self.rng.integers(1, 5)):
            variable = self.variable(states, actions)
            found[variable.name, variable.part == "setpoint", variable.lag or 0] = str(variable)
        return list(found.values())

    def linear(self, states: Names, actions: Names) -> dict[str, Any]:
        return {
            "gains": {name: {one: self.number() for one in self.inputs(states, actions)} for name in actions}
        }

    def pid(self, states: Names, actions: Names) -> dict[str, Any]:
        def loop() -> dict[str, Any]:
            gains = {name: self.number() for name in ("weight", "kp", "ki", "kd") if self.chance(0.8)}
            window = int(self.rng.integers(1, 12))
            return {"kp": 1.5, **gains, "input": str(self.rng.choice(states)), "window": window}

        def output() -> dict[str, Any]:
            loops = [loop() for _ in range(self.rng.integers(1, 4))]
            bias = {"bias": self.number()} if self.chance(0.4) else {}
            return {"scale": self.number(), **bias, "loops": loops}

        return {"outputs": {name: output() for name in actions}}

    def fuzzy(self, states: Names, actions: Names) -> dict[str, Any]:
        def rule() -> dict[str, Any]:
            premise = {
                name: {"center": self.number(), "width": max(abs(self.number()), 1e-6)}
                for name in self.inputs(states, actions)
            }
            return {"if": premise, "then": self.number()}

        return {
            "outputs": {
                name: {
                    "scale": self.number(),
                    "alpha": self.number(),
                    "rules": [rule() for _ in range(self.rng.integers(1, 5))],
                }
                for name in actions
            }
        }

    def layers(self, width: int, outputs: int) -> list[dict[str, Any]]:
        layers = []
        for count in [*self.rng.integers(1, 5, size=self.rng.integers(0, 3)).tolist(), outputs]:
            weights = [[self.number() for _ in range(width)] for _ in range(count)]
            bias = [self.number() for _ in range(count)]
            layers.append({"weights": weights, "bias": bias, "activation": str(self.rng.choice(ACTIVATIONS))})
            width = count
        return layers

    def network(self, states: Names, actions: Names) -> dict[str, Any]:
        inputs = self.inputs(states, actions)
        scales = {name: {"scale": self.number()} for name in actions}
        return {"inputs": inputs, "layers": self.layers(len(inputs), len(actions)), "outputs": scales}

    def greedy(self, states: Names, actions: Names) -> dict[str, Any]:
        inputs = self.inputs(states, actions)
        levels = {name: [self.number() for _ in range(self.rng.integers(1, 5))] for name in actions}
        layers = self.layers(len(inputs) + len(actions), 1)
        return {"inputs": inputs, "layers": layers, "outputs": levels}


KINDS = POPULATED
ORDER = ("equation", "linear", "pid", "fuzzy", "network", "greedy-q")  # of seeds


def controllers(kind: str, count: int, seed: int = 0) -> list[Controller]:
    maker = Maker(np.random.default_rng([seed, ORDER.index(kind) if kind in ORDER else len(ORDER)]))
    return [maker.controller(kind) for _ in range(count)]
