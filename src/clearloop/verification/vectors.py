"""Test vectors and the expected actions; the vectors are episodes, because controllers have memory."""

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

# Edges: the thresholds of conditions, divisions and limits, and inputs as close to them as possible.

_HALVINGS = 64  # then a distance is as small as doubles can be, except near 0
_MOST_EDGES = 200


def edges(routine: Routine) -> list[Expression]:
    """Return formulas that are 0 at the threshold of a condition, a division or a limit."""
    found: list[Expression] = []
    for statement in routine.body:
        for tree in formulas(statement):
            for node in postorder(tree):
                if isinstance(node, Call):
                    found += _edges_of(node)
        if isinstance(statement, Output) and statement.limits:
            found += [call("sub", statement.value, Number(limit)) for limit in statement.limits]
    return list(dict.fromkeys(found))[:_MOST_EDGES]


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
    """Return two inputs on both sides of an edge, as close to each other as possible.

    They lie on the line between two of the starts.

    Args:
        edge: The formula that is 0 at the edge.
        watch: The function that evaluates it for inputs.
        starts: Inputs to start from.
        rng: The source of randomness.

    Returns:
        The two inputs, or None if all starts are on one side.
    """
    values = [(watch(edge, one), one) for one in starts]
    below, above = [one for value, one in values if value < 0], [one for value, one in values if value > 0]
    if not (below and above):
        return None
    left, right = below[rng.integers(len(below))], above[rng.integers(len(above))]
    for _ in range(_HALVINGS):
        middle = {name: _middle(left[name], right[name]) for name in left}
        if middle in (left, right):
            break
        value = watch(edge, middle)
        if value == 0:
            return _around(edge, watch, middle, left, right)
        left, right = (middle, right) if value < 0 else (left, middle)
    return left, right


def _around(edge: Expression, watch: Watch, at: Inputs, left: Inputs, right: Inputs) -> tuple[Inputs, Inputs]:
    """Return the edge itself, and the next input on the line that is not on the edge."""
    for side in (left, right):
        near = {name: math.nextafter(at[name], side[name]) for name in at}
        if watch(edge, near) != 0:
            return at, near
    return at, right


def _middle(a: float, b: float) -> float:
    return a / 2 + b / 2


_EXTREMES = (0.0, 5e-324, 1e-300, 1e-30, 1e-9, 1.0, 1e6, 1e12, 1.0000000000000002e12, 1e300, 1.7e308)
_MOST_CORNERS = 64

Episode = list[Inputs]
"""The values of the inputs at each step of an episode."""
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Amount:
    """The amount of test vectors.

    Attributes:
        episodes: The number of episodes of random inputs.
        length: The number of steps of a random episode.
        after: The number of random steps that follow an extreme or an edge, which is then in the past.
        tries: The number of searches for each edge.
        share: The share of the corners, extremes and constants that are used.
    """

    episodes: int = 40
    length: int = 12
    after: int = 2
    tries: int = 1
    share: float = 1.0


def vectors(
    routine: Routine,
    precision: Precision,
    *,
    rng: np.random.Generator,
    amount: Amount,
    scales: Mapping[Variable, float] | None = None,
) -> list[Episode]:
    """Return test vectors: random inputs, corners, extremes, and both sides of every edge.

    Args:
        routine: The routine that is tested.
        precision: The precision of the export.
        rng: The source of randomness.
        amount: The amount of vectors.
        scales: The usual magnitudes of inputs; 1 for those that are not given.
    """
    if not routine.inputs:
        return [[{}, {}]]
    maker = _Maker(routine, precision, rng, amount, dict(scales or {}))
    episodes = [*maker.random(), *maker.corners(), *maker.extremes(), *maker.constants(), *maker.edges()]
    return [representable(episode, precision) for episode in episodes]


def representable(episode: Episode, precision: Precision) -> Episode:
    """Return an episode with its values rounded to the precision of the target."""
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
        """Return the setpoints among some inputs, which mostly stay for a while."""
        return {name: value for name, value in inputs.items() if name.part == "setpoint"}

    def corners(self) -> Iterator[Episode]:
        """Yield inputs of usual magnitude with all combinations of signs."""
        signs = list(product((-1.0, 1.0), repeat=min(len(self.names), 12)))
        for row in self._some(signs[:: max(len(signs) // _MOST_CORNERS, 1)]):
            corner = self.draw()
            for name, sign in zip(self.names, row, strict=False):
                corner = {**corner, name: sign * 3 * self.scales.get(name, 1.0)}
            yield [corner, *self.draws(self.amount.after)]

    def extremes(self) -> Iterator[Episode]:
        """Yield huge and tiny values in one input and in all."""
        largest = self.precision.largest
        sizes = [sign * min(size, largest) for size in (*_EXTREMES, largest) for sign in (-1.0, 1.0)]
        for value in self._some(sizes):
            yield [dict.fromkeys(self.names, value), *self.draws(self.amount.after)]
            one = self.names[self.rng.integers(len(self.names))]
            yield [
                {**self.draw(), one: value},
                *self.draws(self.amount.after),
                {**self.draw(), one: -value},
            ]

    def constants(self) -> Iterator[Episode]:
        """Yield inputs that equal a constant of the routine or its neighbours."""
        trees: list[Expression] = [tree for one in self.routine.body for tree in formulas(one)]
        found = {node.value for tree in trees for node in postorder(tree) if isinstance(node, Number)}
        for value in self._some(sorted(found, key=abs)[:32]):
            for one in self.names:
                near = [value, *(self.precision.neighbour(value, end) for end in (-math.inf, math.inf))]
                yield [{**self.draw(), one: sign * number} for number in near for sign in (1.0, -1.0)]

    def edges(self) -> Iterator[Episode]:
        """Yield both sides of every edge, each as the first step."""
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


TOLERANCES = {"double": 1e-12, "single": 1e-5}
"""The largest allowed difference of an action, relative to its range."""


@dataclass(frozen=True)
class Expectation:
    """The actions of the original controller on test vectors.

    Attributes:
        episodes: The test vectors.
        actions: [N, A] the actions, step after step through all episodes, in the order of the outputs.
        ranges: [N, A] the range of each action; without limits its own magnitude, at least 1.
        compared: [N] whether the step is compared; not if the last places of a number decide.
        tolerance: The largest allowed difference, relative to the range.
    """

    episodes: Sequence[Episode]
    actions: NDArray[np.float64]
    ranges: NDArray[np.float64]
    compared: NDArray[np.bool_]
    tolerance: float

    def difference(self, found: NDArray[np.float64]) -> float:
        """Return the largest difference of actions [N, A] from the expected ones, relative to the range."""
        off = np.abs(found - self.actions) / self.ranges
        off = np.where(np.isfinite(found), off, np.inf)
        return float(off[self.compared].max(initial=0.0))


def expect(
    controller: Controller, routine: Routine, episodes: Sequence[Episode], precision: Precision
) -> Expectation:
    """Run the original controller on test vectors, with a shadow that gives error bounds for its export."""
    # A formula is evaluated in its printed order; the sums of other kinds may be evaluated in any order.
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
    """Return values for what the controller reads though no action depends on it, as for a gain of 0."""
    read = {variable.name for _, variable in controller.variables()}
    for text in controller.derived.values():
        read |= {variable.name for variable in variables(read_formula(text))}
    return dict.fromkeys(read - {*controller.actions, *controller.derived}, 0.0)
