"""The standard functions of IEC 61131-3 that exported texts may call: errors outside their domain."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from clearloop.export.interpreter.error import StructuredTextError
from clearloop.export.interpreter.types import INTEGERS, NUMBERS, REALS, check, common

Types = tuple[str, ...]


class Standard(NamedTuple):
    """A standard function, for arguments of given types."""

    arguments: Types
    """What the arguments are taken as; a literal takes the type of the others."""
    result: str
    meaning: Callable[..., Any]


def standard(name: str, types: Types, line: int) -> Standard | None:
    """The function of this name for arguments of these types; None if there is none of this name."""
    source, to, target = name.partition("_TO_")
    if to and source in (*NUMBERS, "BOOL") and target in NUMBERS:
        _count(name, types, 1, line)
        return Standard((source,), target, round if target in INTEGERS else float)
    if name in _REAL:
        _count(name, types, 1, line)
        check(types[0], REALS, line)
        return Standard(types, types[0], _REAL[name])
    if name in _SPECIAL:
        return _SPECIAL[name](types, line)
    return None


def _count(name: str, types: Types, count: int, line: int) -> None:
    if len(types) != count:
        raise StructuredTextError(f"{name} takes {count} arguments, found {len(types)}", line)


def _abs(types: Types, line: int) -> Standard:
    _count("ABS", types, 1, line)
    return Standard(types, check(types[0], NUMBERS, line), abs)


def _trunc(types: Types, line: int) -> Standard:
    _count("TRUNC", types, 1, line)
    check(types[0], REALS, line)
    return Standard(types, "DINT", math.trunc)


def _alike(name: str, count: int, meaning: Callable[..., Any]) -> Callable[[Types, int], Standard]:
    """Of numbers of one type, which is also the result's."""

    def signature(types: Types, line: int) -> Standard:
        _count(name, types, count, line)
        result = check(types[0], NUMBERS, line)
        for other in types[1:]:
            result = common(result, other, line)
        return Standard((result,) * count, result, meaning)

    return signature


def _sel(types: Types, line: int) -> Standard:
    """Computes both values, like any function, and returns the second one if the condition holds."""
    _count("SEL", types, 3, line)
    result = common(types[1], types[2], line)
    return Standard(("BOOL", result, result), result, lambda condition, no, yes: yes if condition else no)


def _expt(types: Types, line: int) -> Standard:
    _count("EXPT", types, 2, line)
    check(types[0], REALS, line)
    whole = check(types[1], NUMBERS, line) in INTEGERS
    exponent = types[1] if whole else common(types[0], types[1], line)
    base = types[0] if whole else exponent
    return Standard((base, exponent), base, _whole_power if whole else _power)


def _whole_power(base: float, exponent: int) -> float:
    if base == 0 and exponent < 0:
        raise ValueError("EXPT of 0 with a negative exponent")
    return math.pow(base, exponent)


def _power(base: float, exponent: float) -> float:
    if base < 0 or (base == 0 and exponent <= 0):
        raise ValueError(f"EXPT of {base!r} with the exponent {exponent!r}")
    return math.pow(base, exponent)


def _positive(name: str, meaning: Callable[[float], float]) -> Callable[[float], float]:
    def checked(x: float) -> float:
        if x <= 0:
            raise ValueError(f"{name} of {x!r}")
        return meaning(x)

    return checked


def _sqrt(x: float) -> float:
    if x < 0:
        raise ValueError(f"SQRT of {x!r}")
    return math.sqrt(x)


_REAL: dict[str, Callable[[float], float]] = {
    "SQRT": _sqrt,
    "LN": _positive("LN", math.log),
    "LOG": _positive("LOG", math.log10),
    "EXP": math.exp,
    "SIN": math.sin,
    "COS": math.cos,
    "TAN": math.tan,
    "ASIN": math.asin,
    "ACOS": math.acos,
    "ATAN": math.atan,
}
_SPECIAL: dict[str, Callable[[Types, int], Standard]] = {
    "ABS": _abs,
    "TRUNC": _trunc,
    "MIN": _alike("MIN", 2, min),
    "MAX": _alike("MAX", 2, max),
    "LIMIT": _alike("LIMIT", 3, lambda low, value, high: min(max(value, low), high)),
    "SEL": _sel,
    "EXPT": _expt,
}
