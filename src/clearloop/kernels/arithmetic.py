"""Elementary functions of vectors exist in both precisions.

Double precision calls the C library, lane by lane, because it defines what a formula means. Single precision
is for search only: series, to a few units in the last place. They are total: finite arguments give finite
results.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from clearloop.kernels.compilation import emit_inlined, emitted, inlined
from clearloop.kernels.vectors import (
    FLOAT,
    INT32,
    INT64,
    VECTOR,
    floor,
    maximum,
    minimum,
    narrowed,
    where,
    widened,
)

# Single precision: by series.

_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4  # their sum is ln 2; whole multiples of the first are exact
_LOG2_E = math.log2(math.e)
_LARGEST_FLOAT = float(np.finfo(np.float32).max)
_E2, _E3, _E4, _E5, _E6, _E7 = (1 / math.factorial(n) for n in range(2, 8))
_S3, _S5, _S7, _S9 = ((-1) ** (n // 2) / math.factorial(n) for n in (3, 5, 7, 9))
_C4, _C6, _C8 = ((-1) ** (n // 2) / math.factorial(n) for n in (4, 6, 8))
_ROOT_HALF = 0x3F3504F3  # the bits of √½

_WHOLE = ir.VectorType(INT32, VECTOR)


def _each(number: int) -> Any:
    return ir.Constant(_WHOLE, [number] * VECTOR)


@emitted
def _power_of_two(_typing: Any, n: Any) -> Any:
    """Return 2ⁿ for whole n in [-126, 127], by the bits of the exponent."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        biased = builder.add(builder.fptosi(arguments[0], _WHOLE), _each(127))
        return builder.bitcast(builder.shl(biased, _each(23)), arguments[0].type)

    return n(n), generate


@emitted
def _exponent(_typing: Any, x: Any) -> Any:
    """Return the n of x = m · 2ⁿ with m in [√½, √2)."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = builder.sub(builder.bitcast(arguments[0], _WHOLE), _each(_ROOT_HALF))
        return builder.sitofp(builder.ashr(bits, _each(23)), arguments[0].type)

    return x(x), generate


@emitted
def _significand(_typing: Any, x: Any) -> Any:
    """Return the m of x = m · 2ⁿ with m in [√½, √2)."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = builder.sub(builder.bitcast(arguments[0], _WHOLE), _each(_ROOT_HALF))
        fraction = builder.and_(bits, _each(0x007FFFFF))
        return builder.bitcast(builder.add(fraction, _each(_ROOT_HALF)), arguments[0].type)

    return x(x), generate


@inlined
def _expm1_series(r: Any) -> Any:
    """Return eʳ − 1 for |r| ≤ ln(2)/2, to degree 7."""
    tail = _E5 + r * (_E6 + r * _E7)
    return r + r * r * (_E2 + r * (_E3 + r * (_E4 + r * tail)))


def exp_series(x: Any) -> Any:
    """Return eˣ, limited to the largest finite number."""
    limited = minimum(maximum(x, -87.3), 89.0)  # not down to subnormal numbers, which are slow
    n = floor(limited * _LOG2_E + 0.5)
    r = (limited - n * _LN2_HIGH) - n * _LN2_LOW
    half = floor(n * 0.5)  # 2ⁿ may be too large for a float where eˣ is not
    value = (_expm1_series(r) + 1.0) * _power_of_two(half) * _power_of_two(n - half)
    return minimum(value, _LARGEST_FLOAT)


def tanh_series(x: Any) -> Any:
    """Return tanh x."""
    # tanh x = m / (m + 2) with m = exp(2x) − 1, which keeps its precision near 0.
    y = minimum(maximum(x, -9.5), 9.5) * 2.0
    n = floor(y * _LOG2_E + 0.5)
    r = (y - n * _LN2_HIGH) - n * _LN2_LOW
    scale = _power_of_two(n)
    m = _expm1_series(r) * scale + (scale - 1.0)
    return m / (m + 2.0)


def log_series(x: Any) -> Any:
    """Return log x for normal x > 0."""
    # x = m · 2ⁿ; log m = 2 artanh(s), s = (m − 1)/(m + 1).
    n, m = _exponent(x), _significand(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = z * (2 / 3 + z * (2 / 5 + z * (2 / 7 + z * (2 / 9))))
    return n * _LN2_HIGH + (s * (2.0 + series) + n * _LN2_LOW)


@inlined
def _sine(x: Any, quarter: float) -> Any:
    """Return sin(x + quarter · π/2), by series on |r| ≤ π/4."""
    wide = widened(x)
    n = floor(wide * (2.0 / math.pi) + 0.5)
    # Beyond 2⁵³ a reduced angle means nothing; it only has to stay in range.
    r = minimum(maximum(narrowed(wide - n * (math.pi / 2.0)), -math.pi / 4.0), math.pi / 4.0)
    turn = n + quarter
    turn = narrowed(turn - 4.0 * floor(turn * 0.25))
    z = r * r
    sine = r + r * z * (_S3 + z * (_S5 + z * (_S7 + z * _S9)))
    cosine = 1.0 - 0.5 * z + z * z * (_C4 + z * (_C6 + z * _C8))
    value = where((turn == 1.0) | (turn == 3.0), cosine, sine)
    return where(turn >= 2.0, -value, value)


def sin_series(x: Any) -> Any:
    """Return sin x."""
    return _sine(x, 0.0)


def cos_series(x: Any) -> Any:
    """Return cos x."""
    return _sine(x, 1.0)


# Double precision: the C library.

_LARGEST = float(np.finfo(np.float64).max)


def _exp_of_number(x: float) -> float:
    return min(math.exp(x), _LARGEST)


def _log_of_number(x: float) -> float:
    return math.log(x)


def _tanh_of_number(x: float) -> float:
    return math.tanh(x)


def _sin_of_number(x: float) -> float:
    return math.sin(x)


def _cos_of_number(x: float) -> float:
    return math.cos(x)


def _tan_of_number(x: float) -> float:
    return math.tan(x)


def _atan2_of_numbers(y: float, x: float) -> float:
    return math.atan2(y + 0.0, x + 0.0)  # −0.0 + 0.0 is 0.0: negative zeros would turn the result by π


def _power_of_numbers(base: float, exponent: float) -> float:
    defined = exponent >= 0 if base == 0 else base > 0 or np.floor(exponent) == exponent
    return math.pow(base, exponent) if defined else 0.0


def _wrap_of_number(x: float) -> float:
    angle = x - math.tau * np.floor((x + math.pi) / math.tau)
    return angle if -math.pi <= angle < math.pi else -math.pi  # rounding, or overflow for huge x


def _lane_by_lane(context: Any, builder: Any, element: Any, function: Any, vectors: Any) -> Any:
    """Emit a loop over the lanes, which rounds as Python does: nothing is contracted."""
    signature = element(*[element] * len(vectors))
    places = [cgutils.alloca_once_value(builder, vector) for vector in vectors]
    lanes = [builder.bitcast(place, FLOAT[element].as_pointer()) for place in places]
    with cgutils.for_range(builder, INT64(VECTOR)) as loop:
        pointers = [builder.gep(lane, [loop.index]) for lane in lanes]
        values = [builder.load(pointer) for pointer in pointers]
        builder.store(emit_inlined(context, builder, function, signature, values), pointers[0])
    return builder.load(places[0])


def _of_one(number: Callable[[float], float], single: Callable[[Any], Any] | None = None) -> Any:
    """Return a function of a vector: by `single` for floats, if it is given, else by `number` per lane."""

    def define(_typing: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if single is not None and x.element is types.float32:
                return emit_inlined(context, builder, single, signature, arguments)
            return _lane_by_lane(context, builder, x.element, number, arguments)

        return x(x), generate

    return emitted(define)


def _of_two(number: Callable[[float, float], float]) -> Any:
    def define(_typing: Any, x: Any, y: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return _lane_by_lane(context, builder, x.element, number, arguments)

        return x(x, y), generate

    return emitted(define)


exp = _of_one(_exp_of_number, exp_series)  # limited to the largest finite number
log = _of_one(_log_of_number, log_series)  # of numbers not smaller than 1e-30
tanh = _of_one(_tanh_of_number, tanh_series)
sin = _of_one(_sin_of_number, sin_series)
cos = _of_one(_cos_of_number, cos_series)
tan = _of_one(_tan_of_number)
wrap = _of_one(_wrap_of_number)
atan2 = _of_two(_atan2_of_numbers)
power = _of_two(_power_of_numbers)
