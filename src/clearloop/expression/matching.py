"""Laws as patterns: find one in a tree, and write the other side in its place."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat

from clearloop.expression.laws import Law
from clearloop.expression.nodes import Call, Expression, Number, Variable
from clearloop.expression.operations import Kind, Operation
from clearloop.expression.parsing import parse

Make = Callable[[Operation, tuple[Expression, ...]], Expression]
Found = dict[str, Expression]
Head = Operation | type[Number] | type[Variable]


def head(expression: Expression) -> Head:
    """What an expression is at its root."""
    return expression.operation if isinstance(expression, Call) else type(expression)


@dataclass(frozen=True, slots=True)
class Hole:
    """Stands for any expression, for the same one wherever its name occurs."""

    name: str
    constant: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """An operation whose arguments must match as well."""

    operation: Operation
    arguments: "tuple[Pattern, ...]"


Pattern = Hole | Number | Shape


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A law, ready to be applied from left to right."""

    left: Shape
    right: Pattern

    def fits(self, heads: Sequence[Head]) -> bool:
        """Whether arguments with these roots may match: a quick test that rules most laws out."""
        return all(map(_fits, self.left.arguments, heads))

    def apply(self, arguments: tuple[Expression, ...], make: Make) -> Expression | None:
        """The right side for the arguments of the left side's operation, None where they do not match."""
        found: Found = {}
        if _match_all(self.left.arguments, arguments, found):
            return _build(self.right, found, make)
        return None


def rewrite(law: Law, kind: Kind) -> Rewrite:
    left, right = (_pattern(parse(_readable(side), kind=kind)) for side in law)
    assert isinstance(left, Shape)  # noqa: S101 - laws are ours, not the user's
    return Rewrite(left, right)


def _readable(side: str) -> str:
    # The language has no names for conditions: the hole p is read as the condition p == p.
    return re.sub(r"\b([pq])\b", r"(\1 == \1)", side)


def _pattern(expression: Expression) -> Pattern:
    match expression:
        case Number():
            return expression
        case Variable(name):
            return Hole(name, constant=name == "c")
        case Call(_, (Variable("p" | "q" as name), Variable())):
            return Hole(name, constant=False)
        case Call(operation, arguments):
            return Shape(operation, tuple(map(_pattern, arguments)))


def _fits(pattern: Pattern, head: Head) -> bool:
    if isinstance(pattern, Shape):
        return pattern.operation is head
    return head is Number or (isinstance(pattern, Hole) and not pattern.constant)


def _match(pattern: Pattern, expression: Expression, found: Found) -> bool:
    if isinstance(pattern, Shape):
        return (
            isinstance(expression, Call)
            and pattern.operation is expression.operation
            and _match_all(pattern.arguments, expression.arguments, found)
        )
    if isinstance(pattern, Number):
        return pattern == expression
    if pattern.constant and not isinstance(expression, Number):
        return False
    return found.setdefault(pattern.name, expression) == expression


def _match_all(patterns: Sequence[Pattern], expressions: Sequence[Expression], found: Found) -> bool:
    return all(map(_match, patterns, expressions, repeat(found)))


def _build(pattern: Pattern, found: Found, make: Make) -> Expression:
    match pattern:
        case Number():
            return pattern
        case Hole(name):
            return found[name]
        case Shape(operation, arguments):
            return make(operation, tuple([_build(argument, found, make) for argument in arguments]))
