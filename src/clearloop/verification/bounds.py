"""Error bounds: how far the results of an export may differ from those of the original controller.

The mathematical library of a target differs from ours in the last places, and single precision differs
everywhere. Most formulas hardly magnify that, but some do (a difference of large numbers, a condition right
at its threshold). A bound that is carried through every operation shows where.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers.controller import Range
from clearloop.controllers.routine import (
    Best,
    Correct,
    Fill,
    Layer,
    Let,
    Mean,
    Output,
    Routine,
    Statement,
    Store,
    Sum,
)
from clearloop.exports.spans import Precision
from clearloop.expression import OPERATIONS, Expression, Number, Variable, fold
from clearloop.expression.nodes import READ_LIMIT, Operation, power, read, wrap

_LIBRARY = 4  # units in the last place by which two mathematical libraries may differ


class Approximate(NamedTuple):
    """A number with an error bound.

    Attributes:
        value: The number in the original.
        bound: The largest amount by which it may differ in an export.
        constant: Whether it is a constant of the formula.
    """

    value: float
    bound: float = 0.0
    constant: bool = False

    @property
    def low(self) -> float:
        """The least value in an export."""
        return self.value - self.bound

    @property
    def high(self) -> float:
        """The largest value in an export."""
        return self.value + self.bound


@dataclass(frozen=True)
class Arithmetic:
    """The rounding errors of an export.

    Attributes:
        precision: The precision of the export.
        exact: Whether sums, products and quotients equal those of the original to the bit.
    """

    precision: Precision
    exact: bool

    def number(self, value: float) -> Approximate:
        """Return a constant, which may be rounded in the export."""
        return Approximate(value, abs(value - self.precision.rounded(value)), constant=True)

    def rounding(self, value: float) -> float:
        """Return the error bound of one operation that every processor computes in the same way."""
        return 0.0 if self.exact else self.precision.unit * abs(value) + self.precision.tiny

    def library(self, value: float) -> float:
        """Return the error bound of one function that libraries compute in different ways."""
        return _LIBRARY * 2 * self.precision.unit * abs(value) + self.precision.tiny


_Rule = Callable[[Arithmetic, float, Sequence[Approximate]], float]
"""A function that gives the error bound of a result, from the result and the arguments."""


def apply(arithmetic: Arithmetic, operation: Operation, arguments: Sequence[Approximate]) -> Approximate:
    """Return the result of an operation in the original, with its error bound."""
    value = operation.meaning(*(argument.value for argument in arguments))
    bound = _RULES[operation.name](arithmetic, value, arguments)
    fits = abs(value) + bound <= arithmetic.precision.largest  # False if the bound is NaN
    return Approximate(value, bound if fits else math.inf)


def _finite(value: float) -> float:
    return min(max(value, -1.7e308), 1.7e308)


def _sum(a: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
    return x[0].bound + x[1].bound + a.rounding(value)


def _product(a: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
    p, q = x
    off = 0.0
    for size, bound in ((abs(p.value), q.bound), (abs(q.value), p.bound), (p.bound, q.bound)):
        off += size * bound if bound else 0.0
    return off + a.rounding(value)


def _quotient(a: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
    p, q = x
    if q.value == 0 and q.bound == 0:
        return 0.0
    if abs(q.value) <= q.bound:
        return math.inf
    return (p.bound + abs(value) * q.bound) / (abs(q.value) - q.bound) + a.rounding(value)


def _power(a: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
    base, exponent = x
    if exponent == Approximate(2.0, 0.0, constant=True):  # a product, or as good as one
        return _product(a, value, (base, base)) + 2 * a.precision.unit * abs(value)
    if not (base.bound or exponent.bound):
        return a.library(value)
    whole = exponent.bound == 0 and exponent.value.is_integer()
    through_zero = base.low <= 0 <= base.high
    if through_zero and not (exponent.bound == 0 and exponent.value > 0):
        return math.inf
    if base.low < 0 and not (whole or exponent.bound == 0):
        return math.inf
    corners = product(
        (_finite(base.low), _finite(base.high)), (_finite(exponent.low), _finite(exponent.high))
    )
    ends = [power(b, e) for b, e in corners] + [0.0] * through_zero
    return max(abs(end - value) for end in ends) + a.library(value)


def _same(_: Arithmetic, __: float, x: Sequence[Approximate]) -> float:
    return x[0].bound


def _between(operation: str) -> _Rule:
    """Return the rule for an operation that increases with all arguments and returns one of them."""
    meaning = OPERATIONS[operation].meaning

    def bound(_: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
        low, high = meaning(*(one.low for one in x)), meaning(*(one.high for one in x))
        return max(high - value, value - low)

    return bound


def _root(a: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
    high, low = math.sqrt(max(x[0].high, 0.0)), math.sqrt(max(x[0].low, 0.0))
    return (max(high - value, value - low) if x[0].bound else 0.0) + a.rounding(value)


def _wave(a: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
    return min(x[0].bound + a.library(value), 2.0)


def _tangent(a: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
    slope = 1 + value * value
    return (2 * x[0].bound * slope if x[0].bound * slope < 0.1 else math.inf) + a.library(value)


def _angle(a: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
    off = x[0].bound + x[1].bound
    if off and (
        math.hypot(x[0].value, x[1].value) <= 2 * off or (x[1].low <= 0 and x[0].low <= 0 <= x[0].high)
    ):
        return 2 * math.pi + 1
    return (2 * off / math.hypot(x[0].value, x[1].value) if off else 0.0) + a.library(value)


def _sign(_: Arithmetic, __: float, x: Sequence[Approximate]) -> float:
    return 2.0 if x[0].bound and abs(x[0].value) <= x[0].bound else 0.0


def _turned(a: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
    # In single precision a full turn is itself rounded.
    off = x[0].bound + (0.0 if a.exact else 4 * a.precision.unit * (abs(x[0].value) + 4))
    near = off > 1 or any(abs(wrap(x[0].value + move) - value) > 1 for move in (-2 * off, 2 * off))
    return 2 * math.pi + 1 if off and near else off


def _comparison(_: Arithmetic, __: float, x: Sequence[Approximate]) -> float:
    """Return 1 if the comparison may differ; an exact number is compared with a constant exactly."""
    p, q = x
    bound = p.bound + q.bound
    if (p.constant and q.bound == 0) or (q.constant and p.bound == 0):
        bound = 0.0
    return 1.0 if bound and abs(p.value - q.value) <= bound else 0.0


def _equality(_: Arithmetic, __: float, x: Sequence[Approximate]) -> float:
    bound = x[0].bound + x[1].bound
    return 1.0 if bound and abs(x[0].value - x[1].value) <= bound else 0.0


def _both(_: Arithmetic, __: float, x: Sequence[Approximate]) -> float:
    if any(p.value == 0 and p.bound == 0 for p in x):
        return 0.0
    return max(p.bound for p in x)


def _either(_: Arithmetic, __: float, x: Sequence[Approximate]) -> float:
    if any(p.value != 0 and p.bound == 0 for p in x):
        return 0.0
    return max(p.bound for p in x)


def _choice(_: Arithmetic, __: float, x: Sequence[Approximate]) -> float:
    condition, yes, no = x
    if condition.bound:
        return abs(yes.value - no.value) + max(yes.bound, no.bound)
    return yes.bound if condition.value else no.bound


def _rising(operation: str) -> _Rule:
    """Return the rule for an increasing function of a mathematical library."""
    meaning = OPERATIONS[operation].meaning

    def bound(a: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
        high, low = meaning(_finite(x[0].high)), meaning(_finite(x[0].low))
        return (max(high - value, value - low) if x[0].bound else 0.0) + a.library(value)

    return bound


_RULES: dict[str, _Rule] = {
    "add": _sum,
    "sub": _sum,
    "mul": _product,
    "div": _quotient,
    "pow": _power,
    **dict.fromkeys(("neg", "abs", "not"), _same),
    **{name: _between(name) for name in ("min", "max", "clip")},
    "sqrt": _root,
    **{name: _rising(name) for name in ("exp", "log", "tanh")},
    "sin": _wave,
    "cos": _wave,
    "tan": _tangent,
    "atan2": _angle,
    "sign": _sign,
    "wrap": _turned,
    **dict.fromkeys(("lt", "le", "gt", "ge"), _comparison),
    **dict.fromkeys(("eq", "ne"), _equality),
    "and": _both,
    "or": _either,
    "if": _choice,
}


Pair = tuple[NDArray[np.float64], NDArray[np.float64]]  # values, bounds
Inputs = Mapping[Variable, float]
Watch = Callable[[Expression, Inputs], float]


class Shadow:
    """One episode of a routine in plain Python, in which every value has an error bound.

    Args:
        routine: The routine.
        arithmetic: The rounding errors of the export.
    """

    def __init__(self, routine: Routine, arithmetic: Arithmetic) -> None:
        self.routine, self.arithmetic = routine, arithmetic
        self._rings = {ring.name: [Approximate(0.0)] * (ring.depth + 1) for ring in routine.rings}
        self._first = True
        self._values: dict[Variable, Approximate] = {}
        self._arrays: dict[Variable, list[Approximate]] = {}

    def step(self, inputs: Inputs) -> dict[Variable, Approximate]:
        """Run one step with values for all of the routine's inputs, and return the actions."""
        self._values = {
            one.variable: self._read(max(inputs[one.variable], one.low)) for one in self.routine.inputs
        }
        self._values |= {one.variable: self.arithmetic.number(one.value) for one in self.routine.gains}
        for past in self._rings.values():
            past[1:] = past[:-1]
        for statement in self.routine.body:
            self._run(statement)
        self._first = False
        return {output.action: self._values[output.action] for output in self.routine.outputs}

    def restart(self) -> None:
        """Let the next step take its inputs for the past ones, as after steps in which a guard held it."""
        self._first = True

    def correct(self, name: Variable, value: float, bound: float = 0.0) -> None:
        """Replace the latest value in the ring of this name, if there is one; its error grows by a bound."""
        if name in self._rings:
            before = self._rings[name][0]
            self._rings[name][0] = Approximate(read(value), before.bound + bound)

    def latest(self, name: Variable) -> float:
        """Return the latest value in the ring of this name."""
        return self._rings[name][0].value

    def watch(self, tree: Expression) -> float:
        """Return the value of a formula after the last step."""
        return self._value(tree).value

    def _read(self, value: float) -> Approximate:
        limit = self.arithmetic.number(math.copysign(READ_LIMIT, value))
        return Approximate(read(value), limit.bound if abs(value) >= READ_LIMIT else 0.0)

    def _leaf(self, node: Number | Variable) -> Approximate:
        if isinstance(node, Number):
            return self.arithmetic.number(node.value)
        if node.lag is None:
            return self._values[node]
        array = Variable(node.name, node.part)
        return (self._rings if array in self._rings else self._arrays)[array][node.lag]

    def _value(self, tree: Expression) -> Approximate:
        return fold(tree, self._leaf, lambda operation, x: apply(self.arithmetic, operation, x))

    def _run(self, statement: Statement) -> None:
        match statement:
            case Let():
                self._values[statement.target] = self._value(statement.value)
            case Store(ring=ring):
                past, value = self._rings[ring.name], self._value(ring.holds)
                past[:] = [value] * len(past) if self._first and ring.repeat else [value, *past[1:]]
            case Correct(ring=ring):
                self._rings[ring.name][0] = self._value(statement.value)
            case Sum(ring=ring):
                self._values[statement.target] = self._sum(self._rings[ring.name][: statement.count])
            case Fill():
                self._arrays[statement.target] = [self._value(value) for value in statement.values]
            case Mean():
                fits = self._arrays[statement.source]
                self._values[statement.target] = self._mean(fits, statement.outputs)
            case Layer():
                values, bounds = self._layer(statement, _pair(self._arrays[statement.source]))
                pairs = zip(values[0].tolist(), bounds[0].tolist(), strict=True)
                self._arrays[statement.target] = [Approximate(*pair) for pair in pairs]
            case Best():
                self._best(statement)
            case Output():
                self._values[statement.action] = self._limited(statement, self._value(statement.value))

    def _sum(self, terms: Sequence[Approximate]) -> Approximate:
        off = len(terms) * self.arithmetic.rounding(sum(abs(term.value) for term in terms))
        return Approximate(sum(term.value for term in terms), sum(term.bound for term in terms) + off)

    def _mean(self, fits: Sequence[Approximate], outputs: Sequence[float]) -> Approximate:
        """Return Σ m output / Σ m with its bound, from the bounds of the memberships m = exp(fit − best)."""
        values, bounds = (column[0] for column in _pair(fits))
        unit = self.arithmetic.precision.unit
        distance = values - values.max()
        with np.errstate(over="ignore", invalid="ignore"):
            rivals = values + bounds >= (values - bounds).max()  # these may be the best in an export
            off = bounds + bounds[rivals].max() + 4 * unit * (1 + np.abs(distance))
            m, out = np.exp(distance), np.array(outputs)
            m_off = np.nan_to_num(np.minimum(np.expm1(off) * m, 1.0), nan=1.0)
            mean = float(m @ out / m.sum())
            n = len(out) + 2
            above = float(m_off @ np.abs(out)) + n * unit * float(m @ np.abs(out))
            below = float(m_off.sum()) + n * unit * float(m.sum())
            bound = (above + abs(mean) * below) / max(float(m.sum()) - below, 1 - n * unit)
        widest = float(np.ptp(out)) + 4 * unit * float(np.abs(out).max())
        return Approximate(mean, min(bound, widest))

    def _layer(self, layer: Layer, source: Pair) -> Pair:
        """Return the outputs of a layer, with bounds, for rows of inputs [R, n]."""
        x, x_off = source
        unit = self.arithmetic.precision.unit
        weights, bias = np.array(layer.weights), np.array(layer.bias)
        y = x @ weights.T + bias
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.abs(x) @ np.abs(weights).T + np.abs(bias)
            off = x_off @ np.abs(weights).T + (len(weights[0]) + 4) * unit * size
            off = np.where(np.abs(y) + off <= self.arithmetic.precision.largest, off, np.inf)
            return _activated(layer.activation, y, off, unit)

    def _best(self, best: Best) -> None:
        rows, unit = np.array(best.rows), self.arithmetic.precision.unit
        read_value, read_off = _pair(self._arrays[best.source][: -rows.shape[1]])
        count = len(rows)
        pair = (
            np.hstack([np.tile(read_value, (count, 1)), rows]),
            np.hstack([np.tile(read_off, (count, 1)), unit * np.abs(rows)]),
        )
        for layer in best.layers:
            pair = self._layer(layer, pair)
        values, bounds = pair[0][:, 0], pair[1][:, 0]
        chosen = int(np.argmax(values))
        rivals = rows[values + bounds >= values[chosen] - bounds[chosen]]
        off = np.abs(rivals - rows[chosen]).max(0) + np.abs(rows[chosen]) * unit
        for target, value, bound in zip(best.targets, rows[chosen].tolist(), off.tolist(), strict=True):
            self._values[target] = Approximate(value, bound)

    def _limited(self, output: Output, value: Approximate) -> Approximate:
        if output.limits is None:
            return value
        low, high = output.limits
        span = Range(low, high, (high - low) / output.parts if output.parts else None)
        off = value.bound
        if output.parts and not self.arithmetic.exact:
            off += 8 * self.arithmetic.precision.unit * (abs(low) + abs(high))
        ends = [span.limited(value.value + off), span.limited(value.value - off)]
        limited = span.limited(value.value)
        rounding = max(self.arithmetic.number(limit).bound for limit in output.limits)
        return Approximate(limited, max(abs(end - limited) for end in ends) + rounding)


def _pair(numbers: Sequence[Approximate]) -> Pair:
    """Return the values and the bounds, each as an array [1, n]."""
    return np.array([[one.value for one in numbers]]), np.array([[one.bound for one in numbers]])


def _activated(activation: str, y: NDArray[np.float64], off: NDArray[np.float64], unit: float) -> Pair:
    if activation == "identity":
        return y, off
    if activation == "relu":
        return np.maximum(y, 0.0), np.maximum(
            np.maximum(y + off, 0) - np.maximum(y, 0), np.maximum(y, 0) - np.maximum(y - off, 0)
        )
    scale, shift = (1.0, 0.0) if activation == "tanh" else (0.5, 0.5)
    value = shift + scale * np.tanh(scale * y)
    high, low = (shift + scale * np.tanh(scale * (y + sign * off)) for sign in (1, -1))
    return value, np.maximum(high - value, value - low) + 8 * unit
