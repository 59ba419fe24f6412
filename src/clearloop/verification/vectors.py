"""Test vectors: episodes of inputs, because controllers remember."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np

from clearloop.export.precision import Precision
from clearloop.export.routine import Routine, formulas
from clearloop.expression import Expression, Variable
from clearloop.expression.nodes import Number, postorder
from clearloop.verification.approximation import Arithmetic
from clearloop.verification.edges import beside, edges
from clearloop.verification.shadow import Inputs, Shadow

EXTREMES = (0.0, 5e-324, 1e-300, 1e-30, 1e-9, 1.0, 1e6, 1e12, 1.0000000000000002e12, 1e300, 1.7e308)
MOST_CORNERS = 64

Episode = list[Inputs]
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Amount:
    episodes: int = 40
    """of random inputs"""
    length: int = 12
    """steps of a random episode"""
    after: int = 2
    """random steps that follow an extreme or an edge, in which it is the past"""
    tries: int = 1
    """searches for each edge"""
    share: float = 1.0
    """of the corners, extremes and constants"""


def vectors(
    routine: Routine,
    precision: Precision,
    *,
    rng: np.random.Generator,
    amount: Amount,
    scales: Mapping[Variable, float] | None = None,
) -> list[Episode]:
    """Random inputs, corners, extremes, both sides of every edge. `scales`: usual sizes, 1 if not given."""
    if not routine.inputs:
        return [[{}, {}]]
    maker = _Maker(routine, precision, rng, amount, dict(scales or {}))
    episodes = [*maker.random(), *maker.corners(), *maker.extremes(), *maker.constants(), *maker.edges()]
    return [rounded(episode, precision) for episode in episodes]


def rounded(episode: Episode, precision: Precision) -> Episode:
    """With numbers that the target can be given."""
    return [{name: precision.rounded(value) for name, value in inputs.items()} for inputs in episode]


@dataclass(frozen=True)
class _Maker:
    routine: Routine
    precision: Precision
    rng: np.random.Generator
    amount: Amount
    scales: dict[Variable, float]

    @property
    def names(self) -> list[Variable]:
        return [one.variable for one in self.routine.inputs]

    def draw(self) -> Inputs:
        size = 10 ** self.rng.uniform(-3, 1)
        return {name: float(self.rng.normal() * size * self.scales.get(name, 1.0)) for name in self.names}

    def draws(self, count: int) -> Episode:
        return [self.draw() for _ in range(count)]

    def _some(self, things: Sequence[T]) -> Iterator[T]:
        return (thing for thing in things if self.rng.random() < self.amount.share)

    def random(self) -> Iterator[Episode]:
        for _ in range(self.amount.episodes):
            episode = self.draws(self.amount.length)
            yield (
                [{**step, **self._aims(episode[0])} for step in episode]
                if self.rng.random() < 0.5
                else episode
            )

    def _aims(self, inputs: Inputs) -> Inputs:
        """Setpoints, which mostly stay for a while."""
        return {name: value for name, value in inputs.items() if name.part == "setpoint"}

    def corners(self) -> Iterator[Episode]:
        """All inputs at a usual size, with all signs."""
        signs = list(product((-1.0, 1.0), repeat=min(len(self.names), 12)))
        for row in self._some(signs[:: max(len(signs) // MOST_CORNERS, 1)]):
            corner = self.draw()
            for name, sign in zip(self.names, row, strict=False):
                corner = {**corner, name: sign * 3 * self.scales.get(name, 1.0)}
            yield [corner, *self.draws(self.amount.after)]

    def extremes(self) -> Iterator[Episode]:
        """Huge and tiny values, in one input and in all."""
        largest = self.precision.largest
        sizes = [sign * min(size, largest) for size in (*EXTREMES, largest) for sign in (-1.0, 1.0)]
        for value in self._some(sizes):
            yield [dict.fromkeys(self.names, value), *self.draws(self.amount.after)]
            one = self.names[self.rng.integers(len(self.names))]
            yield [
                {**self.draw(), one: value},
                *self.draws(self.amount.after),
                {**self.draw(), one: -value},
            ]

    def constants(self) -> Iterator[Episode]:
        """Inputs that are a constant of the routine, and its neighbours."""
        trees: list[Expression] = [tree for one in self.routine.body for tree in formulas(one)]
        found = {node.value for tree in trees for node in postorder(tree) if isinstance(node, Number)}
        for value in self._some(sorted(found, key=abs)[:32]):
            for one in self.names:
                near = [value, *(self.precision.neighbour(value, end) for end in (-math.inf, math.inf))]
                yield [{**self.draw(), one: sign * number} for number in near for sign in (1.0, -1.0)]

    def edges(self) -> Iterator[Episode]:
        """Both sides of every edge, as first steps."""
        arithmetic = Arithmetic(self.precision, exact=True)

        def watch(edge: Expression, inputs: Inputs) -> float:
            shadow = Shadow(self.routine, arithmetic)
            shadow.step(inputs)
            return shadow.watch(edge)

        for edge in edges(self.routine):
            for _ in range(self.amount.tries):
                pair = beside(edge, watch, [*self.draws(8), dict.fromkeys(self.names, 0.0)], self.rng)
                for inputs in pair or ():
                    yield [inputs, *self.draws(self.amount.after)]
