"""Interval analysis: the bounds of a value, and whether an operation on it needs its special case.

The ends of intervals are computed in the precision of the target. Rounding is monotone, so the ends of a sum,
a product or a quotient are exact bounds; the functions of a mathematical library get a margin.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from clearloop.expression import nodes
from clearloop.expression.nodes import LARGEST, READ_LIMIT, SMALLEST_LOGARITHM, saturated

_ROUND = 1e6  # from here on, numbers with one significant digit are written as 1e+12

PrecisionName = Literal["double", "single"]


@dataclass(frozen=True)
class Precision:
    """A floating-point format: double or single precision.

    Attributes:
        name: "double" or "single".
        largest: The largest finite number.
        unit: The largest relative error of one rounding.
        tiny: The largest absolute error of one rounding near 0.
    """

    name: PrecisionName
    largest: float
    unit: float
    tiny: float

    def rounded(self, value: float) -> float:
        """Return the nearest representable number; beyond the largest one, that one."""
        if self.name == "double":
            return saturated(value)
        return float(np.float32(min(max(value, -self.largest), self.largest)))

    def below(self, value: float) -> float:
        """Return the largest representable number that is not above `value`."""
        near = self.rounded(value)
        return near if near <= max(value, -self.largest) else self.neighbour(near, -math.inf)

    def above(self, value: float) -> float:
        """Return the smallest representable number that is not below `value`."""
        return -self.below(-value)

    def neighbour(self, value: float, toward: float) -> float:
        """Return the next representable number in the direction of `toward`."""
        if self.name == "double":
            return self.rounded(math.nextafter(value, toward))
        with np.errstate(over="ignore"):  # the neighbour of the largest number is infinite
            return self.rounded(float(np.nextafter(np.float32(self.rounded(value)), np.float32(toward))))

    def text(self, value: float) -> str:
        """Return the shortest decimal that is read back as this number."""
        value = self.rounded(value)
        short = f"{value:.0e}"
        if _ROUND <= abs(float(short)) <= self.largest and self.rounded(float(short)) == value:
            return short  # 1e+12, not 1000000000000.0
        return repr(value) if self.name == "double" else str(np.float32(value))


DOUBLE = Precision("double", LARGEST, 2.0**-53, 2.0**-1075)
SINGLE = Precision("single", float(np.finfo(np.float32).max), 2.0**-24, 2.0**-150)
PRECISIONS: dict[str, Precision] = {one.name: one for one in (DOUBLE, SINGLE)}


_MARGIN = 16  # units in the last place that a library's function may be off by, generously
_HALF_TURN = 3.14  # wrap does not change angles up to this one


class Span(NamedTuple):
    """A closed interval from `low` to `high`."""

    low: float
    high: float

    @property
    def has_zero(self) -> bool:
        """True if 0 lies in the interval."""
        return self.low <= 0 <= self.high

    @property
    def size(self) -> float:
        """The largest magnitude in the interval."""
        return max(abs(self.low), abs(self.high))

    def within(self, low: float, high: float) -> bool:
        """Return whether the interval lies in the one from `low` to `high`."""
        return low <= self.low and self.high <= high

    def hull(self, *others: "Span") -> "Span":
        """Return the smallest interval that contains this one and the others."""
        return Span(min(self.low, *(o.low for o in others)), max(self.high, *(o.high for o in others)))


class FoundSpan(NamedTuple):
    """The span of an operation's results, and whether the operation needs the form for its special case."""

    span: Span
    special: bool


_Rule = Callable[[Sequence[Span], Precision], FoundSpan]


def of_number(value: float, precision: Precision) -> Span:
    """Return the span of a constant."""
    return Span(precision.rounded(value), precision.rounded(value))


def of_input(precision: Precision) -> Span:
    """Return the span of an input, which is limited to ±1e12 when it is read."""
    return Span(precision.rounded(-READ_LIMIT), precision.rounded(READ_LIMIT))


def found(operation: str, spans: Sequence[Span], precision: Precision) -> FoundSpan:
    """Return the span of an operation's results for arguments from these spans."""
    return _RULES[operation](spans, precision)


def with_margin(span: Span, precision: Precision) -> Span:
    """Return the span, widened by the amount by which mathematical libraries may differ."""
    margin = _MARGIN * precision.unit * span.size + precision.tiny
    return Span(precision.rounded(span.low - margin), precision.rounded(span.high + margin))


def _fitting(ends: Sequence[float], precision: Precision) -> FoundSpan:
    """Return the span between the least and the largest of these results, which may overflow."""
    low, high = min(ends), max(ends)
    over = max(-low, high) > precision.largest
    return FoundSpan(Span(precision.rounded(low), precision.rounded(high)), over)


def _add(spans: Sequence[Span], precision: Precision) -> FoundSpan:
    a, b = spans
    return _fitting([a.low + b.low, a.high + b.high], precision)


def _sub(spans: Sequence[Span], precision: Precision) -> FoundSpan:
    a, b = spans
    return _fitting([a.low - b.high, a.high - b.low], precision)


def _mul(spans: Sequence[Span], precision: Precision) -> FoundSpan:
    return _fitting([x * y for x, y in product(*spans)], precision)


def _div(spans: Sequence[Span], precision: Precision) -> FoundSpan:
    if spans[1].has_zero:
        return FoundSpan(_all(precision), True)
    return _fitting([x / y for x, y in product(*spans)], precision)


def _power(spans: Sequence[Span], precision: Precision) -> FoundSpan:
    base, exponent = spans
    fixed = exponent.low if exponent.low == exponent.high else 0.5
    if base.low <= 0 and not (fixed >= 1 and fixed.is_integer()):
        return FoundSpan(Span(0.0, precision.largest) if base.low >= 0 else _all(precision), True)
    ends = [nodes.power(x, y) for x, y in product(*spans)] + [0.0] * (base.low <= 0 <= base.high)
    over = max(map(abs, ends)) >= precision.largest
    wide = with_margin(_fitting(ends, precision).span, precision)
    return FoundSpan(Span(max(wide.low, 0.0), wide.high) if min(ends) >= 0 else wide, over)


def _sqrt(spans: Sequence[Span], precision: Precision) -> FoundSpan:
    ends = [nodes.sqrt(end) for end in spans[0]]
    return FoundSpan(_fitting(ends, precision).span, spans[0].low < 0)


def _exp(spans: Sequence[Span], precision: Precision) -> FoundSpan:
    low, high = (nodes.exp(end) for end in spans[0])
    over = high * (1 + _MARGIN * precision.unit) >= precision.largest
    wide = with_margin(Span(low, min(high, precision.largest)), precision)
    return FoundSpan(Span(max(wide.low, 0.0), wide.high), over)


def _log(spans: Sequence[Span], precision: Precision) -> FoundSpan:
    ends = [nodes.log(end) for end in spans[0]]
    smallest = precision.rounded(SMALLEST_LOGARITHM)
    return FoundSpan(with_margin(_fitting(ends, precision).span, precision), spans[0].low < smallest)


def _tanh(spans: Sequence[Span], precision: Precision) -> FoundSpan:
    wide = with_margin(Span(*(math.tanh(end) for end in spans[0])), precision)
    return FoundSpan(Span(max(wide.low, -1.0), min(wide.high, 1.0)), False)


def _neg(spans: Sequence[Span], _: Precision) -> FoundSpan:
    return FoundSpan(Span(-spans[0].high, -spans[0].low), False)


def _abs(spans: Sequence[Span], _: Precision) -> FoundSpan:
    x = spans[0]
    return FoundSpan(Span(0.0 if x.has_zero else min(abs(x.low), abs(x.high)), x.size), False)


def _min(spans: Sequence[Span], _: Precision) -> FoundSpan:
    return FoundSpan(Span(min(one.low for one in spans), min(one.high for one in spans)), False)


def _max(spans: Sequence[Span], _: Precision) -> FoundSpan:
    return FoundSpan(Span(max(one.low for one in spans), max(one.high for one in spans)), False)


def _clip(spans: Sequence[Span], precision: Precision) -> FoundSpan:
    x, low, high = spans
    clipped = _min([_max([x, low], precision).span, high], precision).span
    return FoundSpan(clipped, not x.within(low.high, high.low))


def _atan2(spans: Sequence[Span], _: Precision) -> FoundSpan:
    """Ask for the special case where the sign of a zero would decide between −π and π."""
    y, x = spans
    return FoundSpan(Span(-3.2, 3.2), y.has_zero and x.low <= 0)


def _wrap(spans: Sequence[Span], _: Precision) -> FoundSpan:
    inside = spans[0].within(-_HALF_TURN, _HALF_TURN)
    return FoundSpan(spans[0] if inside else Span(-3.2, 3.2), not inside)


def _choice(spans: Sequence[Span], _: Precision) -> FoundSpan:
    return FoundSpan(spans[1].hull(spans[2]), False)


def _all(precision: Precision) -> Span:
    return Span(-precision.largest, precision.largest)


def _always(low: float, high: float) -> _Rule:
    return lambda _spans, _precision: FoundSpan(Span(low, high), False)


_RULES: dict[str, _Rule] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "pow": _power,
    "neg": _neg,
    "min": _min,
    "max": _max,
    "abs": _abs,
    "sqrt": _sqrt,
    "exp": _exp,
    "log": _log,
    "sin": _always(-1, 1),
    "cos": _always(-1, 1),
    "tan": _always(-1e17, 1e17),  # no floating-point number is closer to π/2
    "atan2": _atan2,
    "tanh": _tanh,
    "sign": _always(-1, 1),
    "clip": _clip,
    "wrap": _wrap,
    "if": _choice,
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"), _always(0, 1)),
}
