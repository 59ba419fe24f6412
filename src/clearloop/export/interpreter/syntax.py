"""The tree of a text: units with their declarations, statements and expressions. Names are in upper case."""

from dataclasses import dataclass
from typing import Literal as OneOf

Value = float | bool | int

Section = OneOf["VAR_INPUT", "VAR_OUTPUT", "VAR", "VAR_TEMP", "VAR CONSTANT"]


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value
    type: str
    """ANY_REAL and ANY_INT where the text says no more"""
    line: int


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Element:
    """Of an array."""

    name: str
    index: "Expression"
    line: int


@dataclass(frozen=True, slots=True)
class Member:
    """An input or output of an instance of a function block."""

    instance: str
    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Unary:
    operator: str
    operand: "Expression"
    line: int


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: "Expression"
    right: "Expression"
    line: int


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: "tuple[Expression, ...]"
    line: int


Expression = Literal | Name | Element | Member | Unary | Binary | Call


@dataclass(frozen=True, slots=True)
class Assignment:
    target: Name | Element
    value: Expression
    line: int


@dataclass(frozen=True, slots=True)
class If:
    branches: "tuple[tuple[Expression, tuple[Statement, ...]], ...]"
    otherwise: "tuple[Statement, ...]"
    line: int


@dataclass(frozen=True, slots=True)
class For:
    variable: Name
    first: Expression
    last: Expression
    step: Expression
    body: "tuple[Statement, ...]"
    line: int


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call of an instance of a function block."""

    instance: str
    inputs: tuple[tuple[str, Expression], ...]
    line: int


@dataclass(frozen=True, slots=True)
class Return:
    line: int


Statement = Assignment | If | For | Invocation | Return


@dataclass(frozen=True, slots=True)
class Declaration:
    name: str
    spelling: str
    """as it stands in the text"""
    section: Section
    type: str
    """of its elements, if it is an array; the name of a function block, if it is an instance"""
    bounds: tuple[int, int] | None
    """of an array's index"""
    initial: tuple[Literal, ...]
    """empty: zeros"""
    line: int


@dataclass(frozen=True, slots=True)
class Unit:
    """A function, a function block or a program."""

    name: str
    spelling: str
    result: str | None
    """the type of what a function returns; None for the others"""
    declarations: tuple[Declaration, ...]
    body: tuple[Statement, ...]
    line: int

    def section(self, section: Section) -> tuple[Declaration, ...]:
        return tuple(one for one in self.declarations if one.section == section)
