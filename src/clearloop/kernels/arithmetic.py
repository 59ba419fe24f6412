"""Elementary functions of vectors exist in both precisions.

Double precision calls the C library, lane by lane, because it defines what a formula means. Single precision
is for search only and has series of its own.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils

from clearloop.kernels import series
from clearloop.kernels.compilation import emit_inlined, emitted
from clearloop.kernels.vectors import FLOAT, INT64, VECTOR

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


exp = _of_one(_exp_of_number, series.exp_series)  # limited to the largest finite number
log = _of_one(_log_of_number, series.log_series)  # of numbers not smaller than 1e-30
tanh = _of_one(_tanh_of_number, series.tanh_series)
sin = _of_one(_sin_of_number, series.sin_series)
cos = _of_one(_cos_of_number, series.cos_series)
tan = _of_one(_tan_of_number)
wrap = _of_one(_wrap_of_number)
atan2 = _of_two(_atan2_of_numbers)
power = _of_two(_power_of_numbers)
