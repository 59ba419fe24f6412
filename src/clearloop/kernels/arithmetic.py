"""Elementary functions for both precisions.

Double precision calls the C library: it defines what a formula means. Single precision is for search only
and must vectorise over lanes, so it has polynomials of its own, good to a few units in the last place.
"""

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from clearloop.kernels.compilation import FASTMATH, kernel

_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LOG2_E = np.float32(math.log2(math.e))
_HALF, _ONE, _TWO, _THREE = np.float32([0.5, 1.0, 2.0, 3.0])
_E2, _E3, _E4, _E5, _E6, _E7 = (np.float32(1 / math.factorial(n)) for n in range(2, 8))
_S3, _S5, _S7, _S9 = (np.float32((-1) ** (n // 2) / math.factorial(n)) for n in (3, 5, 7, 9))
_C4, _C6, _C8 = (np.float32((-1) ** (n // 2) / math.factorial(n)) for n in (4, 6, 8))
_EXP_LIMIT = np.float32(87.0)
_LARGEST = np.float32(np.finfo(np.float32).max)
_TWO_OVER_PI = 2.0 / math.pi
_HALF_PI = math.pi / 2.0
_QUARTER_PI = np.float32(math.pi / 4)


def exp(x: float) -> float:
    """The exponential, limited to the largest finite number."""
    raise NotImplementedError


def log(x: float) -> float:
    """The natural logarithm of a number not smaller than 1e-30."""
    raise NotImplementedError


def tanh(x: float) -> float:
    raise NotImplementedError


def sin(x: float) -> float:
    raise NotImplementedError


def cos(x: float) -> float:
    raise NotImplementedError


@intrinsic  # type: ignore[misc]
def _bits_to_float(_typing: Any, bits: Any) -> Any:
    """The float32 with these 32 bits."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic  # type: ignore[misc]
def _float_to_bits(_typing: Any, number: Any) -> Any:
    """The 32 bits of a float32."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), generate


def _two_versions(function: Any, single: Any, double: Any) -> None:
    @overload(function, jit_options={"fastmath": FASTMATH})  # type: ignore[misc]
    def _choose(x: Any) -> Any:
        if x is types.float32:
            return single
        return double if x is types.float64 else None


@kernel
def _power_of_two(n: Any) -> Any:
    """2ⁿ for a whole float32 n in [-126, 127]."""
    return _bits_to_float(np.int32((np.int32(n) + np.int32(127)) << np.int32(23)))


@kernel
def _expm1_remainder(r: Any) -> Any:
    """eʳ − 1 for |r| ≤ ln(2)/2, by its Taylor series to degree 7."""
    tail = _E5 + r * (_E6 + r * _E7)
    return r + r * r * (_E2 + r * (_E3 + r * (_E4 + r * tail)))


def _exp_single(x: Any) -> Any:
    top = min(max(x, -_EXP_LIMIT), _EXP_LIMIT)
    n = np.float32(math.floor(top * _LOG2_E + _HALF))
    r = (top - n * _LN2_HIGH) - n * _LN2_LOW
    value = (_expm1_remainder(r) + _ONE) * _power_of_two(n)
    return _LARGEST if x > np.float32(88.5) else value


def _exp_double(x: Any) -> Any:
    return math.exp(x) if x < 709.782712893384 else np.finfo(np.float64).max


def _tanh_single(x: Any) -> Any:
    # tanh x = m / (m + 2) with m = exp(2x) − 1, which keeps its precision near 0.
    y = min(max(x, np.float32(-9.5)), np.float32(9.5)) * _TWO
    n = np.float32(math.floor(y * _LOG2_E + _HALF))
    r = (y - n * _LN2_HIGH) - n * _LN2_LOW
    scale = _power_of_two(n)
    m = _expm1_remainder(r) * scale + (scale - _ONE)
    return m / (m + _TWO)


def _tanh_double(x: Any) -> Any:
    return math.tanh(x)


def _log_single(x: Any) -> Any:
    # x = m · 2ⁿ with m in [√½, √2); log m = 2 artanh(s), s = (m − 1)/(m + 1).
    bits = _float_to_bits(x) - np.int32(0x3F3504F3)
    n = np.float32(bits >> np.int32(23))
    m = _bits_to_float((bits & np.int32(0x007FFFFF)) + np.int32(0x3F3504F3))
    s = (m - _ONE) / (m + _ONE)
    z = s * s
    series = z * (np.float32(2 / 3) + z * (np.float32(2 / 5) + z * (np.float32(2 / 7) + z * np.float32(2 / 9))))
    return n * _LN2_HIGH + (s * (_TWO + series) + n * _LN2_LOW)


def _log_double(x: Any) -> Any:
    return math.log(x)


@kernel
def _sine(x: Any, quarter: Any) -> Any:
    """sin(x + quarter · π/2), by Taylor series on |r| ≤ π/4."""
    wide = np.float64(x)
    n = math.floor(wide * _TWO_OVER_PI + 0.5)
    # Beyond 2⁵³ a reduced angle means nothing; it only has to stay in range.
    r = min(max(np.float32(wide - n * _HALF_PI), -_QUARTER_PI), _QUARTER_PI)
    turn = n + quarter
    turn = np.float32(turn - 4.0 * math.floor(turn * 0.25))
    z = r * r
    sine = r + r * z * (_S3 + z * (_S5 + z * (_S7 + z * _S9)))
    cosine = _ONE - _HALF * z + z * z * (_C4 + z * (_C6 + z * _C8))
    value = cosine if (turn == _ONE) | (turn == _THREE) else sine
    return -value if turn >= _TWO else value


def _sin_single(x: Any) -> Any:
    return _sine(x, 0.0)


def _cos_single(x: Any) -> Any:
    return _sine(x, 1.0)


def _sin_double(x: Any) -> Any:
    return math.sin(x)


def _cos_double(x: Any) -> Any:
    return math.cos(x)


_two_versions(exp, _exp_single, _exp_double)
_two_versions(log, _log_single, _log_double)
_two_versions(tanh, _tanh_single, _tanh_double)
_two_versions(sin, _sin_single, _sin_double)
_two_versions(cos, _cos_single, _cos_double)
