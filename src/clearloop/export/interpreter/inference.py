"""The types of expressions, which are checked once, before anything runs."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from clearloop.export.interpreter.error import StructuredTextError
from clearloop.export.interpreter.functions import standard
from clearloop.export.interpreter.syntax import (
    Binary,
    Call,
    Element,
    Expression,
    Literal,
    Member,
    Name,
    Unary,
    Value,
)
from clearloop.export.interpreter.types import INTEGERS, NUMBERS, check, common

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
LOGIC: dict[str, Callable[[Any, Any], Any]] = {
    "AND": operator.and_,
    "OR": operator.or_,
    "XOR": operator.xor,
}


class Variable(NamedTuple):
    type: str
    bounds: tuple[int, int] | None
    writable: bool
    """inside its unit"""
    kept: bool
    """has a value when the unit is called"""


class Function(NamedTuple):
    """One that the text declares."""

    arguments: tuple[str, ...]
    result: str
    call: Callable[..., Value]


class Inference:
    """`blocks`: of function blocks, the types of what can be seen from outside."""

    def __init__(
        self,
        variables: Mapping[str, Variable],
        functions: Mapping[str, Function],
        blocks: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.variables = variables
        self.functions = functions
        self.blocks = blocks

    def variable(self, name: str, line: int) -> Variable:
        if name not in self.variables:
            raise StructuredTextError(f"{name} is not declared", line)
        return self.variables[name]

    def member(self, instance: str, name: str, line: int) -> str:
        """The type of an input or output of an instance."""
        type_ = self.variable(instance, line).type
        if type_ not in self.blocks:
            raise StructuredTextError(f"{type_} is not declared as a function block", line)
        if name not in self.blocks[type_]:
            raise StructuredTextError(f"{instance} has no {name}", line)
        return self.blocks[type_][name]

    def type_of(self, node: Expression) -> str:
        match node:
            case Literal():
                return node.type
            case Name() | Element():
                variable = self.variable(node.name, node.line)
                if (variable.bounds is None) is isinstance(node, Element):
                    raise StructuredTextError(f"{node.name} is used as what it is not", node.line)
                return variable.type
            case Member():
                return self.member(node.instance, node.name, node.line)
            case Unary():
                allowed = ("BOOL",) if node.operator == "NOT" else NUMBERS
                return check(self.type_of(node.operand), allowed, node.line)
            case Binary():
                operands = self.operands(node)
                return "BOOL" if node.operator in COMPARISONS else operands
            case Call():
                return self.function(node).result

    def operands(self, node: Binary) -> str:
        found = common(self.type_of(node.left), self.type_of(node.right), node.line)
        if node.operator in LOGIC:
            return check(found, ("BOOL",), node.line)
        if node.operator in ("=", "<>"):
            return found
        return check(found, INTEGERS if node.operator == "MOD" else NUMBERS, node.line)

    def function(self, node: Call) -> Function:
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
