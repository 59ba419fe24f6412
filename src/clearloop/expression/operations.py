"""The operations of the formula language: one table that parser, printer, kernels and exports all read."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from clearloop.expression import meanings

Kind = Literal["number", "condition"]

NUMBER, VARIABLE = 0, 1  # opcodes of the two leaves; operations are numbered from 2 in the table's order

# How tightly the infix and prefix operations bind, as in Python.
OR, AND, NOT, COMPARISON, SUM, PRODUCT, NEGATION, POWER, ATOM = range(1, 10)


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One row of the table. There is one object for each, so `is` compares them."""

    name: str
    opcode: int
    kinds: tuple[Kind, ...]
    """What the arguments must be."""
    kind: Kind
    """What the result is."""
    weight: int
    """What it adds to a formula's complexity."""
    meaning: Callable[..., float]
    """The definition, on doubles; conditions are 1.0 and 0.0."""
    symbol: str = ""
    """How it is written between or before its arguments; empty if it is written as a function."""
    precedence: int = ATOM

    @property
    def arity(self) -> int:
        return len(self.kinds)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], "Operation"], tuple[str]]:
        return _operation, (self.name,)  # a copy is the same object again


_ONE: tuple[Kind, ...] = ("number",)
_TWO: tuple[Kind, ...] = ("number", "number")
_THREE: tuple[Kind, ...] = ("number", "number", "number")
_CONDITION: tuple[Kind, ...] = ("condition",)
_CONDITIONS: tuple[Kind, ...] = ("condition", "condition")
_CHOICE: tuple[Kind, ...] = ("condition", "number", "number")

_Row = tuple[str, tuple[Kind, ...], Kind, int, Callable[..., float], str, int]
_ROWS: tuple[_Row, ...] = (
    # name, arguments, result, weight, meaning, symbol, precedence
    ("add", _TWO, "number", 1, meanings.add, "+", SUM),
    ("sub", _TWO, "number", 1, meanings.sub, "-", SUM),
    ("mul", _TWO, "number", 1, meanings.mul, "*", PRODUCT),
    ("div", _TWO, "number", 2, meanings.div, "/", PRODUCT),
    ("pow", _TWO, "number", 4, meanings.power, "**", POWER),
    ("neg", _ONE, "number", 1, meanings.neg, "-", NEGATION),
    ("min", _TWO, "number", 4, min, "", ATOM),
    ("max", _TWO, "number", 4, max, "", ATOM),
    ("abs", _ONE, "number", 4, abs, "", ATOM),
    ("sqrt", _ONE, "number", 4, meanings.sqrt, "", ATOM),
    ("exp", _ONE, "number", 4, meanings.exp, "", ATOM),
    ("log", _ONE, "number", 4, meanings.log, "", ATOM),
    ("sin", _ONE, "number", 4, math.sin, "", ATOM),
    ("cos", _ONE, "number", 4, math.cos, "", ATOM),
    ("tan", _ONE, "number", 4, meanings.tan, "", ATOM),
    ("atan2", _TWO, "number", 4, meanings.atan2, "", ATOM),
    ("tanh", _ONE, "number", 4, math.tanh, "", ATOM),
    ("sign", _ONE, "number", 4, meanings.sign, "", ATOM),
    ("clip", _THREE, "number", 4, meanings.clip, "", ATOM),
    ("wrap", _ONE, "number", 4, meanings.wrap, "", ATOM),
    ("lt", _TWO, "condition", 4, meanings.lt, "<", COMPARISON),
    ("le", _TWO, "condition", 4, meanings.le, "<=", COMPARISON),
    ("gt", _TWO, "condition", 4, meanings.gt, ">", COMPARISON),
    ("ge", _TWO, "condition", 4, meanings.ge, ">=", COMPARISON),
    ("eq", _TWO, "condition", 4, meanings.eq, "==", COMPARISON),
    ("ne", _TWO, "condition", 4, meanings.ne, "!=", COMPARISON),
    ("and", _CONDITIONS, "condition", 4, meanings.both, "and", AND),
    ("or", _CONDITIONS, "condition", 4, meanings.either, "or", OR),
    ("not", _CONDITION, "condition", 4, meanings.inverse, "not", NOT),
    ("if", _CHOICE, "number", 5, meanings.choose, "", ATOM),
)

OPERATIONS: dict[str, Operation] = {
    name: Operation(name, opcode, kinds, kind, weight, meaning, symbol, precedence)
    for opcode, (name, kinds, kind, weight, meaning, symbol, precedence) in enumerate(_ROWS, VARIABLE + 1)
}

_ALL = OPERATIONS.values()
BY_OPCODE: dict[int, Operation] = {row.opcode: row for row in _ALL}
FUNCTIONS: dict[str, Operation] = {row.name: row for row in _ALL if not row.symbol}
PREFIX: dict[str, Operation] = {row.symbol: row for row in _ALL if row.symbol and row.arity == 1}
INFIX: dict[str, Operation] = {row.symbol: row for row in _ALL if row.symbol and row.arity == 2}

RESERVED = frozenset(FUNCTIONS) | {"and", "or", "not"}


def is_name(text: str) -> bool:
    """Whether a state, an action or a column of this name can be read in a formula."""
    return text.isidentifier() and text not in RESERVED


def _operation(name: str) -> Operation:
    return OPERATIONS[name]
