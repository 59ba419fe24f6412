"""Numbers with a bound of how far an export may be off, carried through every operation.

A target's library of functions differs from ours in last places, single precision everywhere. Most formulas
hardly magnify that; some do (a difference of large numbers, a condition right at its edge). The bound says
where.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from clearloop.export.precision import Precision
from clearloop.expression import OPERATIONS
from clearloop.expression.meanings import power, wrap
from clearloop.expression.operations import Operation

LIBRARY = 4  # units in the last place that two mathematical libraries may differ by


class Approximate(NamedTuple):
    value: float
    """What it is in the original."""
    bound: float = 0.0
    """How far it may be off in an export."""
    constant: bool = False

    @property
    def low(self) -> float:
        return self.value - self.bound

    @property
    def high(self) -> float:
        return self.value + self.bound


Rule = Callable[["Arithmetic", float, Sequence[Approximate]], float]
"""From the result and the arguments to the bound of the result, without the rounding of the operation."""


@dataclass(frozen=True)
class Arithmetic:
    precision: Precision
    exact: bool
    """Sums, products and quotients are those of the original to the bit."""

    def number(self, value: float) -> Approximate:
        return Approximate(value, abs(value - self.precision.rounded(value)), constant=True)

    def rounding(self, value: float) -> float:
        """Of one operation that every processor does in the same way."""
        return 0.0 if self.exact else self.precision.unit * abs(value) + self.precision.tiny

    def library(self, value: float) -> float:
        """Of one function that libraries compute in their own ways."""
        return LIBRARY * 2 * self.precision.unit * abs(value) + self.precision.tiny

    def call(self, operation: Operation, arguments: Sequence[Approximate]) -> Approximate:
        value = operation.meaning(*(argument.value for argument in arguments))
        bound = _RULES[operation.name](self, value, arguments)
        fits = abs(value) + bound <= self.precision.largest  # not so if the bound is NaN
        return Approximate(value, bound if fits else math.inf)

    def monotone(self, operation: str, x: Approximate) -> float:
        """How far a rising function may be off."""
        meaning = OPERATIONS[operation].meaning
        value = meaning(x.value)
        off = max(meaning(_finite(x.high)) - value, value - meaning(_finite(x.low))) if x.bound else 0.0
        return off + self.library(value)


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


def _between(operation: str) -> Rule:
    """For operations that rise with all arguments and only choose one."""
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
    # In single precision a turn itself is off.
    off = x[0].bound + (0.0 if a.exact else 4 * a.precision.unit * (abs(x[0].value) + 4))
    near = off > 1 or any(abs(wrap(x[0].value + move) - value) > 1 for move in (-2 * off, 2 * off))
    return 2 * math.pi + 1 if off and near else off


def _comparison(_: Arithmetic, __: float, x: Sequence[Approximate]) -> float:
    """A number that is exact is compared with a constant exactly: exports see to that."""
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


def _rising(operation: str) -> Rule:
    return lambda a, _, x: a.monotone(operation, x[0])


_RULES: dict[str, Rule] = {
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
