"""Test vectors: episodes of inputs, because controllers remember."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers import Controller
from clearloop.controllers.controller import read_formula
from clearloop.controllers.routine import Output, Routine, call, formulas
from clearloop.exports.spans import Precision
from clearloop.expression import Call, Expression, Number, Variable, variables
from clearloop.expression.nodes import postorder
from clearloop.verification.bounds import Arithmetic, Inputs, Shadow, Watch

# Where a routine changes its mind: conditions, divisions, limits; and inputs right beside them.

HALVINGS = 64  # a distance is then as small as doubles tell apart, except right at 0
MOST_EDGES = 200


def edges(routine: Routine) -> list[Expression]:
    """Formulas that are 0 where the routine turns from one case to another."""
    found: list[Expression] = []
    for statement in routine.body:
        for tree in formulas(statement):
            for node in postorder(tree):
                if isinstance(node, Call):
                    found += _edges_of(node)
        if isinstance(statement, Output) and statement.limits:
            found += [call("sub", statement.value, Number(limit)) for limit in statement.limits]
    return list(dict.fromkeys(found))[:MOST_EDGES]


def _edges_of(node: Call) -> Iterator[Expression]:
    x = node.arguments
    match node.operation.name:
        case "lt" | "le" | "gt" | "ge" | "eq" | "ne" | "min" | "max":
            yield call("sub", x[0], x[1])
        case "div":
            yield x[1]
        case "pow" | "sqrt" | "log" | "abs" | "sign":
            yield x[0]
        case "clip":
            yield from (call("sub", x[0], limit) for limit in x[1:])
        case "wrap":
            yield from (call("sub", x[0], Number(turn * math.pi)) for turn in (-1, 1, 3))


def beside(
    edge: Expression, watch: Watch, starts: list[Inputs], rng: np.random.Generator
) -> tuple[Inputs, Inputs] | None:
    """Two inputs as near to each other as can be, on both sides of the edge; None if none were found.

    They lie on the way between two of the starts.
    """
    values = [(watch(edge, one), one) for one in starts]
    below, above = [one for value, one in values if value < 0], [one for value, one in values if value > 0]
    if not (below and above):
        return None
    left, right = below[rng.integers(len(below))], above[rng.integers(len(above))]
    for _ in range(HALVINGS):
        middle = {name: _middle(left[name], right[name]) for name in left}
        if middle in (left, right):
            break
        value = watch(edge, middle)
        if value == 0:
            return _around(edge, watch, middle, left, right)
        left, right = (middle, right) if value < 0 else (left, middle)
    return left, right


def _around(edge: Expression, watch: Watch, at: Inputs, left: Inputs, right: Inputs) -> tuple[Inputs, Inputs]:
    """The edge itself, and what comes next on the way."""
    for side in (left, right):
        near = {name: math.nextafter(at[name], side[name]) for name in at}
        if watch(edge, near) != 0:
            return at, near
    return at, right


def _middle(a: float, b: float) -> float:
    return a / 2 + b / 2


EXTREMES = (0.0, 5e-324, 1e-300, 1e-30, 1e-9, 1.0, 1e6, 1e12, 1.0000000000000002e12, 1e300, 1.7e308)
MOST_CORNERS = 64

Episode = list[Inputs]
_T = TypeVar("_T")


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
    return [representable(episode, precision) for episode in episodes]


def representable(episode: Episode, precision: Precision) -> Episode:
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

    def _some(self, things: Sequence[_T]) -> Iterator[_T]:
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


# What the original controller does on test vectors, and where an export cannot be held to it.

TOLERANCES = {"double": 1e-12, "single": 1e-5}
"""Of an action, relative to its range."""


@dataclass(frozen=True)
class Expectation:
    episodes: Sequence[Episode]
    actions: NDArray[np.float64]
    """[N, A], step after step through all episodes, actions in the order of the routine's outputs"""
    ranges: NDArray[np.float64]
    """[N, A]: from limit to limit; without limits the action's own size, at least 1"""
    compared: NDArray[np.bool_]
    """[N]: not where the last places of a library's function, or of single precision, decide"""
    tolerance: float

    def difference(self, found: NDArray[np.float64]) -> float:
        """The largest one, relative to the action's range; `found`: [N, A]."""
        off = np.abs(found - self.actions) / self.ranges
        off = np.where(np.isfinite(found), off, np.inf)
        return float(off[self.compared].max(initial=0.0))


def expect(
    controller: Controller, routine: Routine, episodes: Sequence[Episode], precision: Precision
) -> Expectation:
    """Runs the original; the shadow beside it says how far an export may be off."""
    # The meaning of a formula is its evaluation in printed order; other kinds are sums in any order.
    exact = precision.name == "double" and controller.exact
    actions, bounds = [], []
    for episode in episodes:
        memory, shadow = controller.reset(), Shadow(routine, Arithmetic(precision, exact))
        rest = _everything(controller)
        for inputs in episode:
            action = controller.act(
                {**rest, **_states(inputs)}, memory, {**_aims(controller), **_setpoints(inputs)}
            )
            found = shadow.step(inputs)
            actions.append([action[output.action.name] for output in routine.outputs])
            bounds.append([found[output.action].bound for output in routine.outputs])
    values = np.array(actions, dtype=float).reshape(len(actions), len(routine.outputs))
    ranges = np.maximum(np.abs(values), 1.0)
    for column, output in enumerate(routine.outputs):
        if output.limits:
            ranges[:, column] = output.limits[1] - output.limits[0]
    tolerance = TOLERANCES[precision.name]
    compared = (np.array(bounds).reshape(values.shape) <= tolerance * ranges).all(1)
    return Expectation(episodes, values, ranges, compared, tolerance)


def _states(inputs: Inputs) -> dict[str, float]:
    return {variable.name: value for variable, value in inputs.items() if variable.part == "value"}


def _setpoints(inputs: Inputs) -> dict[str, float]:
    return {variable.name: value for variable, value in inputs.items() if variable.part == "setpoint"}


def _aims(controller: Controller) -> dict[str, float]:
    return {name: controller.setpoint.get(name, 0.0) for name in controller.follows}


def _everything(controller: Controller) -> dict[str, float]:
    """Values for what the controller looks at though nothing depends on it: a state with a gain of 0."""
    read = {variable.name for _, variable in controller.variables()}
    for text in controller.derived.values():
        read |= {variable.name for variable in variables(read_formula(text))}
    return dict.fromkeys(read - {*controller.actions, *controller.derived}, 0.0)
