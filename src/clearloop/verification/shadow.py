"""Runs a routine in plain Python, with a bound of how far an export of it may be off."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers.range import Range
from clearloop.export.routine import Best, Fill, Layer, Let, Mean, Output, Routine, Statement, Store, Sum
from clearloop.expression import Expression, Number, Variable, fold
from clearloop.expression.meanings import READ_LIMIT, read
from clearloop.verification.approximation import Approximate, Arithmetic
from clearloop.verification.bounds import apply

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]  # values, bounds
Inputs = Mapping[Variable, float]
Watch = Callable[[Expression, Inputs], float]


class Shadow:
    """One episode of a routine."""

    def __init__(self, routine: Routine, arithmetic: Arithmetic) -> None:
        self.routine, self.arithmetic = routine, arithmetic
        self._rings = {ring.name: [Approximate(0.0)] * (ring.depth + 1) for ring in routine.rings}
        self._first = True
        self._values: dict[Variable, Approximate] = {}
        self._arrays: dict[Variable, list[Approximate]] = {}

    def step(self, inputs: Inputs) -> dict[Variable, Approximate]:
        """The actions; `inputs`: all of the routine's."""
        self._values = {one.variable: self._read(inputs[one.variable]) for one in self.routine.inputs}
        for past in self._rings.values():
            past[1:] = past[:-1]
        for statement in self.routine.body:
            self._run(statement)
        self._first = False
        return {output.action: self._values[output.action] for output in self.routine.outputs}

    def watch(self, tree: Expression) -> float:
        """A formula's value, as of the last step."""
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
        """Σ m output / Σ m: how far each membership m = exp(fit − best) may be off, then their mean."""
        values, bounds = (column[0] for column in _pair(fits))
        unit = self.arithmetic.precision.unit
        distance = values - values.max()
        with np.errstate(over="ignore", invalid="ignore"):
            rivals = values + bounds >= (values - bounds).max()  # which may be the best
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
        """For some rows of inputs [R, n] at once."""
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
    """[1, n] each."""
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
