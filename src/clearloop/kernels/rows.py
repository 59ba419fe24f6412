"""Rows of lanes in memory: arrays [rows, LANES] that start on a cache line."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from clearloop.kernels.compilation import emitted, inlined
from clearloop.kernels.layout import LANES
from clearloop.kernels.vectors import INT32, INT64, MASK, VECTOR, Vector, broadcast, where

LINE = 64  # bytes


def aligned(*shape: int, dtype: Any) -> Any:
    """An uninitialised array that starts on a cache line."""
    size = np.dtype(dtype).itemsize
    count = int(np.prod(shape))
    raw = np.empty(count + LINE // size, dtype)
    skip = (-raw.ctypes.data % LINE) // size
    return raw[skip : skip + count].reshape(shape)


def address(context: Any, builder: Any, kind: Any, array: Any, row: Any, lane: Any) -> Any:
    """Where rows[row, lane] stands."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [builder.add(builder.mul(row, INT64(LANES)), lane)])


@emitted
def load(_typing: Any, rows: Any, _row: Any, _lane: Any) -> Any:
    """The vector that starts at rows[row, lane]; lane is a multiple of VECTOR."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = address(context, builder, signature.args[0], *arguments)
        kind = context.get_value_type(signature.return_type)
        value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
        value.align = LINE
        return value

    return Vector(rows.dtype)(rows, types.intp, types.intp), generate


@emitted
def store(_typing: Any, rows: Any, _row: Any, _lane: Any, value: Any) -> Any:
    """Write a vector, a mask as ones and zeros, or a number sixteen times, from rows[row, lane] on."""
    scalar = isinstance(value, types.Number)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, row, lane, vector = arguments
        if scalar:
            vector = broadcast(builder, vector)
        elif value == MASK:
            vector = builder.uitofp(vector, context.get_value_type(Vector(rows.dtype)))
        pointer = address(context, builder, signature.args[0], array, row, lane)
        builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer())).align = LINE
        return context.get_dummy_value()

    return types.none(rows, types.intp, types.intp, rows.dtype if scalar else value), generate


@emitted
def splat(_typing: Any, rows: Any, _number: Any) -> Any:
    """The number in every lane, in the precision of the rows."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return broadcast(builder, arguments[1])

    return Vector(rows.dtype)(rows, rows.dtype), generate


@emitted
def inside(_typing: Any, _lane: Any, _lo: Any, _hi: Any) -> Any:
    """The mask of those lanes of the vector at `lane` that are in [lo, hi)."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        first, lo, hi = (broadcast(builder, builder.trunc(number, INT32)) for number in arguments)
        lanes = builder.add(first, ir.Constant(ir.VectorType(INT32, VECTOR), list(range(VECTOR))))
        return builder.and_(builder.icmp_signed(">=", lanes, lo), builder.icmp_signed("<", lanes, hi))

    return MASK(types.intp, types.intp, types.intp), generate


@inlined
def put(rows: Any, row: int, i: int, value: Any, lo: int, hi: int) -> None:
    """Store those lanes of the vector at i that are in [lo, hi)."""
    store(rows, row, i, where(inside(i, lo, hi), value, load(rows, row, i)))
