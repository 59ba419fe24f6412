"""What each operation means, in plain Python on doubles. These functions define the language.

All are total: finite arguments give a finite result. Where mathematics gives none, the result is 0 or the
largest double of the right sign. Conditions are 1.0 and 0.0. The sign of a zero never decides anything,
so that 0 - x and -x, or x*0 and 0, are interchangeable.
"""

import math
import sys

LARGEST = sys.float_info.max
SMALLEST_LOGARITHM = 1e-30  # log(x) is log(1e-30) below this
READ_LIMIT = 1e12  # a variable is read limited to ±1e12, so that exports can rule overflow out


def read(value: float) -> float:
    return float(min(max(value, -READ_LIMIT), READ_LIMIT))


def saturated(value: float) -> float:
    return min(max(value, -LARGEST), LARGEST)


def add(a: float, b: float) -> float:
    return saturated(a + b)


def sub(a: float, b: float) -> float:
    return saturated(a - b)


def mul(a: float, b: float) -> float:
    return saturated(a * b)


def div(a: float, b: float) -> float:
    return 0.0 if b == 0 else saturated(a / b)


def power(base: float, exponent: float) -> float:
    if base == 0:
        return 1.0 if exponent == 0 else 0.0
    if base < 0 and not exponent.is_integer():
        return 0.0
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -LARGEST if base < 0 and math.fmod(exponent, 2) != 0 else LARGEST


def neg(x: float) -> float:
    return -x


def sqrt(x: float) -> float:
    return math.sqrt(max(x, 0.0))


def exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return LARGEST


def log(x: float) -> float:
    return math.log(max(x, SMALLEST_LOGARITHM))


def tan(x: float) -> float:
    return saturated(math.tan(x))


def atan2(y: float, x: float) -> float:
    return math.atan2(y + 0.0, x + 0.0)  # -0.0 + 0.0 is 0.0: negative zeros would turn the result by π


def sign(x: float) -> float:
    return float(x > 0) - float(x < 0)


def clip(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


def wrap(x: float) -> float:
    """The angle in [−π, π), of no meaning beyond about 1e15, where doubles no longer resolve a turn."""
    turns = float(math.floor((x + math.pi) / math.tau))
    angle = x - math.tau * turns
    return angle if -math.pi <= angle < math.pi else -math.pi  # rounding, or overflow for huge x


def lt(a: float, b: float) -> float:
    return float(a < b)


def le(a: float, b: float) -> float:
    return float(a <= b)


def gt(a: float, b: float) -> float:
    return float(a > b)


def ge(a: float, b: float) -> float:
    return float(a >= b)


def eq(a: float, b: float) -> float:
    return float(a == b)


def ne(a: float, b: float) -> float:
    return float(a != b)


def both(p: float, q: float) -> float:
    return float(p != 0 and q != 0)


def either(p: float, q: float) -> float:
    return float(p != 0 or q != 0)


def inverse(p: float) -> float:
    return float(p == 0)


def choose(p: float, a: float, b: float) -> float:
    return a if p != 0 else b
