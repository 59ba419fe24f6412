"""Vectors of lanes as values, for kernels to compute with.

LLVM's own vectoriser has to prove that rows do not overlap, keeps a scalar copy of every loop and picks
half of the vector length that some machines have. With a type for a vector there is nothing to guess: a
kernel loads sixteen lanes (`rows.py`), computes on them with the usual operators, and stores them.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model

from clearloop.kernels.compilation import emitted

VECTOR = 16  # lanes: one register of floats with AVX-512, two with AVX2; LLVM splits what is too long

FLOAT = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}
INT32, INT64 = ir.IntType(32), ir.IntType(64)
# A product and the sum that takes it may become one instruction. No other liberty: with "no NaNs" and "no
# infinities", the guards that make the formula language total would be optimised away.
CONTRACT = ("contract",)


class Vector(types.Type):  # type: ignore[misc]
    """Sixteen numbers of one precision."""

    def __init__(self, element: Any) -> None:
        self.element = element
        super().__init__(name=f"Vector({element})")


class Mask(types.Type):  # type: ignore[misc]
    """Sixteen truths."""


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
    """The scalar, `count` times."""
    nothing = ir.Constant(ir.VectorType(scalar.type, count), ir.Undefined)
    first = builder.insert_element(nothing, scalar, INT32(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(INT32, count), [0] * count))


def _element(kinds: Any) -> Any:
    """The precision of the vectors among operands that may be scalars."""
    return next((kind.element for kind in kinds if isinstance(kind, Vector)), None)


def _vectors(context: Any, builder: Any, kinds: Any, values: Any) -> list[Any]:
    """The operands; scalars among them in the precision of the vectors, and broadcast."""
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
    return _vector((a, b))(a, b), _selection("<")


@emitted
def maximum(_typing: Any, a: Any, b: Any) -> Any:
    return _vector((a, b))(a, b), _selection(">")


@emitted
def where(_typing: Any, mask: Any, a: Any, b: Any) -> Any:
    """The lanes of a where the mask holds, those of b elsewhere."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*_vectors(context, builder, signature.args, arguments))

    return _vector((a, b))(mask, a, b), generate


@emitted
def anywhere(_typing: Any, mask: Any) -> Any:
    """Whether the mask holds in any lane."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = ir.IntType(VECTOR)
        return builder.icmp_unsigned("!=", builder.bitcast(arguments[0], bits), bits(0))

    return types.boolean(mask), generate


def _built_in(name: str) -> Any:
    """The vector version of a function that LLVM has."""

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
    """In double precision."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fpext(arguments[0], ir.VectorType(FLOAT[types.float64], VECTOR))

    return Vector(types.float64)(x), generate


@emitted
def narrowed(_typing: Any, x: Any) -> Any:
    """In single precision."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fptrunc(arguments[0], ir.VectorType(FLOAT[types.float32], VECTOR))

    return Vector(types.float32)(x), generate
