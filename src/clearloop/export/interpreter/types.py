"""The elementary types: what becomes of a result, and which of two types an operator works in.

A PLC may stop at an overflow, or go on with a wrong number. Here it is an error: an exported text must not
have any.
"""

import math
from collections.abc import Callable
from struct import Struct

from clearloop.export.interpreter.error import StructuredTextError
from clearloop.export.interpreter.syntax import Value

Fit = Callable[[Value], Value]

REALS = ("LREAL", "REAL", "ANY_REAL")
INTEGERS = ("DINT", "LINT", "ANY_INT")
NUMBERS = REALS + INTEGERS

_BITS = {"DINT": 31, "LINT": 63}
_GENERIC = {"ANY_REAL": ("LREAL", "REAL"), "ANY_INT": ("DINT", "LINT")}
_SINGLE = Struct("<f")


def fitting(type_: str, line: int) -> Fit:
    """What makes a result of this type: rounds to single precision for REAL, refuses what is too large."""
    if type_ == "BOOL":
        return lambda value: value
    refusal = StructuredTextError(f"a result is too large for {type_}", line)
    if type_ == "LREAL":

        def double(value: Value) -> Value:
            if not math.isfinite(value):
                raise refusal
            return value

        return double
    if type_ == "REAL":

        def single(value: Value) -> Value:
            try:
                rounded: float = _SINGLE.unpack(_SINGLE.pack(value))[0]
            except OverflowError:
                raise refusal from None
            if not math.isfinite(rounded):
                raise refusal
            return rounded

        return single
    if type_ not in _BITS:
        raise StructuredTextError(f"{type_} is not declared", line)
    limit = 1 << _BITS[type_]

    def whole(value: Value) -> Value:
        if not -limit <= value < limit:
            raise refusal
        return value

    return whole


def common(left: str, right: str, line: int) -> str:
    """The type of two operands: types are not mixed, and a literal without a type takes the other's."""
    if left == right:
        return left
    for one, other in ((left, right), (right, left)):
        if other in _GENERIC.get(one, ()):
            return other
    raise StructuredTextError(f"{left} and {right} cannot be mixed", line)


def settled(type_: str) -> str:
    """Of literals among themselves."""
    return _GENERIC[type_][0] if type_ in _GENERIC else type_


def check(type_: str, allowed: tuple[str, ...], line: int) -> str:
    if type_ not in allowed:
        raise StructuredTextError(f"expected {' or '.join(allowed)}, found {type_}", line)
    return type_
