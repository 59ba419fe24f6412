"""Types of Structured Text: how results are made to fit, standard functions, and types of expressions.

A PLC may stop at an overflow, or go on with a wrong number. Here it is an error, because an exported text
must not overflow.
"""

import math
import operator
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, NamedTuple

from clearloop.verification.st.parsing import (
    Binary,
    Element,
    FunctionCall,
    Identifier,
    Literal,
    Member,
    StExpression,
    StructuredTextError,
    Unary,
    Value,
)

_Fit = Callable[[Value], Value]

REALS = ("LREAL", "REAL", "ANY_REAL")
INTEGERS = ("DINT", "LINT", "ANY_INT")
_NUMBERS = REALS + INTEGERS

_BITS = {"DINT": 31, "LINT": 63}
_GENERIC = {"ANY_REAL": ("LREAL", "REAL"), "ANY_INT": ("DINT", "LINT")}
_SINGLE = Struct("<f")


def fitting(type_: str, line: int) -> _Fit:
    """Return the function that makes a result fit a type.

    It rounds to single precision for REAL, and raises a `StructuredTextError` for what is too large.
    """
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


def common_type(left: str, right: str, line: int) -> str:
    """Return the common type of two operands; a literal without a type takes the other's.

    Raises:
        StructuredTextError: If the types differ otherwise, because types must not be mixed.
    """
    if left == right:
        return left
    for one, other in ((left, right), (right, left)):
        if other in _GENERIC.get(one, ()):
            return other
    raise StructuredTextError(f"{left} and {right} cannot be mixed", line)


def settled(type_: str) -> str:
    """Return the type of an expression in which all literals have no type: LREAL or DINT."""
    return _GENERIC[type_][0] if type_ in _GENERIC else type_


def expect_type(type_: str, allowed: tuple[str, ...], line: int) -> str:
    """Return the type, or raise a `StructuredTextError` if it is not among the allowed ones."""
    if type_ not in allowed:
        raise StructuredTextError(f"expected {' or '.join(allowed)}, found {type_}", line)
    return type_


# The standard functions of IEC 61131-3 that exported texts call; arguments outside their domain are errors.

Types = tuple[str, ...]


class Standard(NamedTuple):
    """A standard function for arguments of given types.

    Attributes:
        arguments: The types that the arguments are converted to; a literal takes the type of the others.
        result: The type of the result.
        meaning: The function.
    """

    arguments: Types
    result: str
    meaning: Callable[..., Any]


def standard(name: str, types: Types, line: int) -> Standard | None:
    """Return the standard function of this name for arguments of these types, or None if there is none."""
    source, to, target = name.partition("_TO_")
    if to and source in (*_NUMBERS, "BOOL") and target in _NUMBERS:
        _count(name, types, 1, line)
        return Standard((source,), target, round if target in INTEGERS else float)
    if name in _REAL:
        _count(name, types, 1, line)
        expect_type(types[0], REALS, line)
        return Standard(types, types[0], _REAL[name])
    if name in _SPECIAL:
        return _SPECIAL[name](types, line)
    return None


def _count(name: str, types: Types, count: int, line: int) -> None:
    if len(types) != count:
        raise StructuredTextError(f"{name} takes {count} arguments, found {len(types)}", line)


def _abs(types: Types, line: int) -> Standard:
    _count("ABS", types, 1, line)
    return Standard(types, expect_type(types[0], _NUMBERS, line), abs)


def _trunc(types: Types, line: int) -> Standard:
    _count("TRUNC", types, 1, line)
    expect_type(types[0], REALS, line)
    return Standard(types, "DINT", math.trunc)


def _alike(name: str, count: int, meaning: Callable[..., Any]) -> Callable[[Types, int], Standard]:
    """Return the signature of a function of numbers of one type, which is also the type of the result."""

    def signature(types: Types, line: int) -> Standard:
        _count(name, types, count, line)
        result = expect_type(types[0], _NUMBERS, line)
        for other in types[1:]:
            result = common_type(result, other, line)
        return Standard((result,) * count, result, meaning)

    return signature


def _sel(types: Types, line: int) -> Standard:
    """Return SEL, which computes both values and returns the second one if the condition holds."""
    _count("SEL", types, 3, line)
    result = common_type(types[1], types[2], line)
    return Standard(("BOOL", result, result), result, lambda condition, no, yes: yes if condition else no)


def _expt(types: Types, line: int) -> Standard:
    _count("EXPT", types, 2, line)
    expect_type(types[0], REALS, line)
    whole = expect_type(types[1], _NUMBERS, line) in INTEGERS
    exponent = types[1] if whole else common_type(types[0], types[1], line)
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


# The types of expressions are checked once, before anything runs.

COMPARISON_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
LOGIC_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "AND": operator.and_,
    "OR": operator.or_,
    "XOR": operator.xor,
}


class TypedVariable(NamedTuple):
    """A variable of a unit.

    Attributes:
        type: Its type, or that of its elements for an array.
        bounds: The first and last index of an array; None: it is not an array.
        writable: Whether its unit may assign to it.
        kept: Whether it has a value when the unit is called.
    """

    type: str
    bounds: tuple[int, int] | None
    writable: bool
    kept: bool


class Function(NamedTuple):
    """A function that the text declares."""

    arguments: tuple[str, ...]
    result: str
    call: Callable[..., Value]


class Inference:
    """The types of expressions in a unit.

    Args:
        variables: The variables of the unit.
        functions: The functions that the text has declared.
        blocks: For each function block, the types of its inputs and outputs.
    """

    def __init__(
        self,
        variables: Mapping[str, TypedVariable],
        functions: Mapping[str, Function],
        blocks: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.variables = variables
        self.functions = functions
        self.blocks = blocks

    def variable(self, name: str, line: int) -> TypedVariable:
        """Return a variable, or raise a `StructuredTextError` if it is not declared."""
        if name not in self.variables:
            raise StructuredTextError(f"{name} is not declared", line)
        return self.variables[name]

    def member(self, instance: str, name: str, line: int) -> str:
        """Return the type of an input or output of an instance."""
        type_ = self.variable(instance, line).type
        if type_ not in self.blocks:
            raise StructuredTextError(f"{type_} is not declared as a function block", line)
        if name not in self.blocks[type_]:
            raise StructuredTextError(f"{instance} has no {name}", line)
        return self.blocks[type_][name]

    def type_of(self, node: StExpression) -> str:
        """Return the type of an expression, or raise a `StructuredTextError` if it is not valid."""
        match node:
            case Literal():
                return node.type
            case Identifier() | Element():
                variable = self.variable(node.name, node.line)
                if (variable.bounds is None) is isinstance(node, Element):
                    is_array = "not an array" if isinstance(node, Element) else "an array"
                    raise StructuredTextError(f"{node.name} is {is_array}", node.line)
                return variable.type
            case Member():
                return self.member(node.instance, node.name, node.line)
            case Unary():
                allowed = ("BOOL",) if node.operator == "NOT" else _NUMBERS
                return expect_type(self.type_of(node.operand), allowed, node.line)
            case Binary():
                operands = self.operands(node)
                return "BOOL" if node.operator in COMPARISON_FUNCTIONS else operands
            case FunctionCall():
                return self.function(node).result

    def operands(self, node: Binary) -> str:
        """Return the type that both operands of an operator have."""
        found = common_type(self.type_of(node.left), self.type_of(node.right), node.line)
        if node.operator in LOGIC_FUNCTIONS:
            return expect_type(found, ("BOOL",), node.line)
        if node.operator in ("=", "<>"):
            return found
        return expect_type(found, INTEGERS if node.operator == "MOD" else _NUMBERS, node.line)

    def function(self, node: FunctionCall) -> Function:
        """Return the function that is called, declared in the text or of the standard."""
        types = tuple([self.type_of(argument) for argument in node.arguments])
        if own := self.functions.get(node.function):
            if len(types) != len(own.arguments):
                raise StructuredTextError(
                    f"{node.function} takes {len(own.arguments)} arguments, found {len(types)}", node.line
                )
            return own
        if found := standard(node.function, types, node.line):
            return Function(found.arguments, found.result, _guarded(found.meaning, node.line))
        raise StructuredTextError(f"{node.function} is not declared before it is called", node.line)


def _guarded(meaning: Callable[..., Any], line: int) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        try:
            return meaning(*arguments)
        except (ValueError, OverflowError) as error:
            raise StructuredTextError(str(error), line) from error

    return call
