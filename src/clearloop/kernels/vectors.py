"""Kernels compute with vectors of lanes as values.

LLVM's own vectoriser has to prove that rows do not overlap, keeps a scalar copy of every loop, and uses half
of the vector length that some machines have. With a type for a vector there is nothing to guess: a kernel
loads sixteen lanes, computes on them with the usual operators, and stores them.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from clearloop.kernels.compilation import emitted, inlined
from clearloop.kernels.layout import LANES

VECTOR = 16  # lanes: one register of floats with AVX-512, two with AVX2; LLVM splits what is too long

FLOAT = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}
INT32, INT64 = ir.IntType(32), ir.IntType(64)
# A product and the sum that takes it may become one instruction. LLVM gets no other freedom: with "no NaNs"
# and "no infinities", it would remove the guards that make the formula language total.
CONTRACT = ("contract",)


class Vector(types.Type):  # type: ignore[misc]
    """The type of sixteen numbers of one precision."""

    def __init__(self, element: Any) -> None:
        self.element = element
        super().__init__(name=f"Vector({element})")


class Mask(types.Type):  # type: ignore[misc]
    """The type of sixteen conditions."""


MASK = Mask(name="Mask")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.VectorType(FLOAT[kind.element], VECTOR))


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, ir.VectorType(ir.IntType(1), VECTOR))


def broadcast(builder: Any, scalar: Any, count: int = VECTOR) -> Any:
    """Return a vector with the scalar in all `count` lanes."""
    nothing = ir.Constant(ir.VectorType(scalar.type, count), ir.Undefined)
    first = builder.insert_element(nothing, scalar, INT32(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(INT32, count), [0] * count))


def _element(kinds: Any) -> Any:
    """Return the precision of the vectors among operands that may be scalars."""
    return next((kind.element for kind in kinds if isinstance(kind, Vector)), None)


def _vectors(context: Any, builder: Any, kinds: Any, values: Any) -> list[Any]:
    """Return the operands as vectors; scalars among them are broadcast in the precision of the vectors."""
    element = _element(kinds)

    def vector(kind: Any, value: Any) -> Any:
        scalar = isinstance(kind, types.Number)
        return broadcast(builder, context.cast(builder, value, kind, element)) if scalar else value

    return list(map(vector, kinds, values))


def _define(function: Any, result: Callable[[Any], Any], emit: Callable[..., Any], *operands: Any) -> None:
    """Give an operator a meaning for each of these combinations of operands."""

    class _Typing(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, _kws: Any) -> Any:
            fits = any(len(args) == len(kinds) and all(map(isinstance, args, kinds)) for kinds in operands)
            return signature(result(args), *args) if fits else None

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return emit(builder, *_vectors(context, builder, sig.args, args))

    infer_global(function)(_Typing)
    for kinds in operands:
        lower_builtin(function, *kinds)(lower)


def _vector(kinds: Any) -> Any:
    return Vector(_element(kinds))


def _mask(_kinds: Any) -> Any:
    return MASK


_TWO = (Vector, Vector), (Vector, types.Number), (types.Number, Vector)
_define(operator.add, _vector, lambda builder, a, b: builder.fadd(a, b, flags=CONTRACT), *_TWO)
_define(operator.iadd, _vector, lambda builder, a, b: builder.fadd(a, b, flags=CONTRACT), *_TWO)
_define(operator.sub, _vector, lambda builder, a, b: builder.fsub(a, b, flags=CONTRACT), *_TWO)
_define(operator.mul, _vector, lambda builder, a, b: builder.fmul(a, b, flags=CONTRACT), *_TWO)
_define(operator.truediv, _vector, lambda builder, a, b: builder.fdiv(a, b), *_TWO)
_define(operator.neg, _vector, lambda builder, a: builder.fneg(a), (Vector,))
_define(operator.lt, _mask, lambda builder, a, b: builder.fcmp_ordered("<", a, b), *_TWO)
_define(operator.le, _mask, lambda builder, a, b: builder.fcmp_ordered("<=", a, b), *_TWO)
_define(operator.gt, _mask, lambda builder, a, b: builder.fcmp_ordered(">", a, b), *_TWO)
_define(operator.ge, _mask, lambda builder, a, b: builder.fcmp_ordered(">=", a, b), *_TWO)
_define(operator.eq, _mask, lambda builder, a, b: builder.fcmp_ordered("==", a, b), *_TWO)
_define(operator.ne, _mask, lambda builder, a, b: builder.fcmp_unordered("!=", a, b), *_TWO)
_define(operator.or_, _mask, lambda builder, a, b: builder.or_(a, b), (Mask, Mask))


def _selection(symbol: str) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b = _vectors(context, builder, signature.args, arguments)
        return builder.select(builder.fcmp_ordered(symbol, a, b), a, b)

    return generate


@emitted
def minimum(_typing: Any, a: Any, b: Any) -> Any:
    """Return the lesser of a and b in each lane; b if they are not ordered."""
    return _vector((a, b))(a, b), _selection("<")


@emitted
def maximum(_typing: Any, a: Any, b: Any) -> Any:
    """Return the greater of a and b in each lane; b if they are not ordered."""
    return _vector((a, b))(a, b), _selection(">")


@emitted
def where(_typing: Any, mask: Any, a: Any, b: Any) -> Any:
    """Return the lanes of a if the mask holds there, else those of b."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*_vectors(context, builder, signature.args, arguments))

    return _vector((a, b))(mask, a, b), generate


@emitted
def anywhere(_typing: Any, mask: Any) -> Any:
    """Return whether the mask holds in any lane."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = ir.IntType(VECTOR)
        return builder.icmp_unsigned("!=", builder.bitcast(arguments[0], bits), bits(0))

    return types.boolean(mask), generate


def _built_in(name: str) -> Any:
    """Return the vector version of a function that LLVM has."""

    def define(_typing: Any, x: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = arguments[0].type
            full = f"llvm.{name}.v{VECTOR}f{x.element.bitwidth}"
            function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), full)
            return builder.call(function, arguments)

        return x(x), generate

    return emitted(define)


floor, square_root, absolute = _built_in("floor"), _built_in("sqrt"), _built_in("fabs")


@emitted
def widened(_typing: Any, x: Any) -> Any:
    """Return the vector in double precision."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fpext(arguments[0], ir.VectorType(FLOAT[types.float64], VECTOR))

    return Vector(types.float64)(x), generate


@emitted
def narrowed(_typing: Any, x: Any) -> Any:
    """Return the vector in single precision."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fptrunc(arguments[0], ir.VectorType(FLOAT[types.float32], VECTOR))

    return Vector(types.float32)(x), generate


# In memory, rows of lanes are arrays [rows, LANES] that start on a cache line.

_LINE = 64  # bytes


def aligned(*shape: int, dtype: Any) -> Any:
    """Return an uninitialised array that starts on a cache line."""
    size = np.dtype(dtype).itemsize
    count = int(np.prod(shape))
    raw = np.empty(count + _LINE // size, dtype)
    skip = (-raw.ctypes.data % _LINE) // size
    return raw[skip : skip + count].reshape(shape)


def address(context: Any, builder: Any, kind: Any, array: Any, row: Any, lane: Any) -> Any:
    """Return a pointer to rows[row, lane]."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [builder.add(builder.mul(row, INT64(LANES)), lane)])


@emitted
def fetch(_typing: Any, rows: Any, _row: Any, _lane: Any) -> Any:
    """Return the vector that starts at rows[row, lane]; lane is a multiple of VECTOR."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = address(context, builder, signature.args[0], *arguments)
        kind = context.get_value_type(signature.return_type)
        value = builder.load(builder.bitcast(pointer, kind.as_pointer()))
        value.align = _LINE
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
        builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer())).align = _LINE
        return context.get_dummy_value()

    return types.none(rows, types.intp, types.intp, rows.dtype if scalar else value), generate


@emitted
def splat(_typing: Any, rows: Any, _number: Any) -> Any:
    """Return a vector with the number in every lane, in the precision of the rows."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return broadcast(builder, arguments[1])

    return Vector(rows.dtype)(rows, rows.dtype), generate


@emitted
def lanes_inside(_typing: Any, _lane: Any, _lo: Any, _hi: Any) -> Any:
    """Return the mask of the lanes of the vector at `lane` that are in [lo, hi)."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        first, lo, hi = (broadcast(builder, builder.trunc(number, INT32)) for number in arguments)
        lanes = builder.add(first, ir.Constant(ir.VectorType(INT32, VECTOR), list(range(VECTOR))))
        return builder.and_(builder.icmp_signed(">=", lanes, lo), builder.icmp_signed("<", lanes, hi))

    return MASK(types.intp, types.intp, types.intp), generate


@inlined
def put(rows: Any, row: int, i: int, value: Any, lo: int, hi: int) -> None:
    """Store the lanes of the vector at i that are in [lo, hi)."""
    store(rows, row, i, where(lanes_inside(i, lo, hi), value, fetch(rows, row, i)))
