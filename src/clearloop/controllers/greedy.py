"""A Q network, and of some actions the one that it values most (NFQ, sec. 3.3 of the paper)."""

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from clearloop.controllers.controller import Coefficient
from clearloop.controllers.memory import Memory
from clearloop.controllers.network import FUNCTIONS, Layered, check_layers
from clearloop.controllers.reading import read_variable
from clearloop.errors import ClearloopError
from clearloop.programs.features import Features

MOST_CHOICES = 4_096

Levels = Annotated[tuple[Coefficient, ...], Field(min_length=1, max_length=MOST_CHOICES)]


class GreedyQ(Layered):
    """The network's inputs: those that are named, then the actions in the order of `outputs`; one output."""

    kind: Literal["greedy-q"] = "greedy-q"
    outputs: Annotated[dict[str, Levels], Field(min_length=1)]
    """the values of each action; every combination is a choice"""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_layers(self.layers, len(self.inputs) + len(self.outputs), 1, "the value")
        if prod(map(len, self.outputs.values())) > MOST_CHOICES:
            raise ClearloopError(f"outputs: expected at most {MOST_CHOICES:,} combinations of actions")
        return self

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self.outputs)

    @property
    def choices(self) -> list[tuple[float, ...]]:
        """Every combination of actions, in the order of `outputs`."""
        return list(product(*self.outputs.values()))

    @property
    def summary(self) -> str:
        return f"best of {len(self.choices):,} actions by a Q network {'-'.join(map(str, self.widths))}"

    def words(self) -> Iterator[str]:
        names = ", ".join(str(variable) for _, variable in self.variables())
        yield f"{self.summary} on {names}: {self.complexity:,} numbers, not meant to be read"
        for action, levels in self.outputs.items():
            span = f"{min(levels):g} … {max(levels):g}{self.unit(action)}"
            yield f"{action} is one of {len(levels)} values, {span}."
        yield from self.limit_words()
        yield from self.setpoint_words()

    def respond(self, memory: Memory) -> dict[str, float]:
        choices = np.array(self.choices)
        read = np.array([memory.error(read_variable(name)) for name in self.inputs])
        values = np.hstack([np.tile(read, (len(choices), 1)), choices])
        for layer in self.layers:
            values = FUNCTIONS[layer.activation](values @ np.array(layer.weights).T + np.array(layer.bias))
        best = choices[np.argmax(values[:, 0])]
        return dict(zip(self.actions, best.tolist(), strict=True))

    def numbers(self, features: Features) -> list[float]:
        order = [self.actions.index(name) for name in features.actions]
        columns = [*range(len(self.inputs)), *(len(self.inputs) + i for i in order)]
        numbers: list[float] = []
        for number, layer in enumerate(self.layers):
            weights = np.array(layer.weights)
            weights = weights[:, columns] if number == 0 else weights
            numbers += [*weights.T.ravel().tolist(), *layer.bias]
        return [*numbers, *np.array(self.choices)[:, order].ravel().tolist()]
