"""How far the result of each operation may be off, if its arguments are."""

import math
from collections.abc import Callable, Sequence
from itertools import product

from clearloop.expression import OPERATIONS
from clearloop.expression.meanings import power, wrap
from clearloop.expression.operations import Operation
from clearloop.verification.approximation import Approximate, Arithmetic

Rule = Callable[[Arithmetic, float, Sequence[Approximate]], float]
"""From the result and the arguments to the bound of the result."""


def apply(arithmetic: Arithmetic, operation: Operation, arguments: Sequence[Approximate]) -> Approximate:
    """The result in the original, and how far an export may be off."""
    value = operation.meaning(*(argument.value for argument in arguments))
    bound = _RULES[operation.name](arithmetic, value, arguments)
    fits = abs(value) + bound <= arithmetic.precision.largest  # not so if the bound is NaN
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
    """For functions of a library that rise."""
    meaning = OPERATIONS[operation].meaning

    def bound(a: Arithmetic, value: float, x: Sequence[Approximate]) -> float:
        high, low = meaning(_finite(x[0].high)), meaning(_finite(x[0].low))
        return (max(high - value, value - low) if x[0].bound else 0.0) + a.library(value)

    return bound


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
