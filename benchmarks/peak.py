"""What this machine can do at best: multiply-adds in registers, in the widest vectors it has."""

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16 if llvm.get_host_cpu_features().get("avx512f") else 8  # floats in a register
CHAINS = 12  # independent sums: enough to hide the latency of an instruction


@intrinsic  # type: ignore[untyped-decorator]
def _chains(_typing: Any, _count: Any, _factor: Any) -> Any:
    """As many times a ← a · factor + factor, for CHAINS vectors; gives their sum."""
    vector = ir.VectorType(ir.FloatType(), LANES)

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        repeats, number = arguments
        factor = ir.Constant(vector, ir.Undefined)
        for lane in range(LANES):
            factor = builder.insert_element(factor, number, ir.IntType(32)(lane))
        sums = [cgutils.alloca_once_value(builder, factor) for _ in range(CHAINS)]
        with cgutils.for_range(builder, repeats):
            for place in sums:
                product = builder.fmul(builder.load(place), factor, flags=("contract",))
                builder.store(builder.fadd(product, factor, flags=("contract",)), place)
        total = builder.load(sums[0])
        for place in sums[1:]:
            total = builder.fadd(total, builder.load(place))
        return builder.extract_element(total, ir.IntType(32)(0))

    return types.float32(types.intp, types.float32), generate


@numba.njit(nogil=True)  # type: ignore[untyped-decorator]
def _run(count: int, factor: float) -> float:
    return _chains(count, factor)  # type: ignore[no-any-return]


def peak_runner(count: int) -> Callable[[], float]:
    """Runs `count · CHAINS · LANES` multiply-adds on one core."""
    return lambda: float(_run(count, np.float32(0.5)))


def multiply_adds(count: int) -> int:
    return count * CHAINS * LANES
