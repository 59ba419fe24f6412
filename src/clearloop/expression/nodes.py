"""Formulas as trees: numbers, variables and calls of operations, well-formed by construction.

A tree is immutable, has the right number and kinds of arguments everywhere, and is at most MAX_DEPTH
levels deep, so that a recursive function over trees never exhausts Python's stack.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeVar

from clearloop.expression.error import FormulaError
from clearloop.expression.operations import Kind, Operation, is_name

MAX_DEPTH = 200
MAX_LAG = 1_000_000

Part = Literal["value", "error", "setpoint"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Number:
    """A constant: any finite double. Negative zero is zero."""

    value: float
    kind: ClassVar[Kind] = "number"
    depth: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise FormulaError(f"{self.value} is not a finite number")
        object.__setattr__(self, "value", float(self.value) + 0.0)

    def __str__(self) -> str:
        return repr(self.value).removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Variable:
    """A named quantity, its setpoint or its error; `lag` steps ago, None where no time is written."""

    name: str
    part: Part = "value"
    lag: int | None = None
    kind: ClassVar[Kind] = "number"
    depth: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise FormulaError(f"{self.name!r} cannot be a name in a formula")
        if self.lag is not None and not 0 <= self.lag <= MAX_LAG:
            raise FormulaError(f"a lag is a number of steps from 0 to {MAX_LAG}, not {self.lag}")

    def __str__(self) -> str:
        part = "" if self.part == "value" else f".{self.part}"
        time = "" if self.lag is None else f"[t-{self.lag}]" if self.lag else "[t]"
        return f"{self.name}{part}{time}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call:
    """An operation applied to arguments."""

    operation: Operation
    arguments: "tuple[Expression, ...]"
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        kinds = tuple([argument.kind for argument in self.arguments])
        if kinds != self.operation.kinds:
            raise FormulaError(
                f"{self.operation.name!r} takes {', '.join(self.operation.kinds)}, not {', '.join(kinds)}"
            )
        depth = 1 + max([argument.depth for argument in self.arguments])
        if depth > MAX_DEPTH:
            raise too_deep()
        object.__setattr__(self, "depth", depth)

    @property
    def kind(self) -> Kind:
        return self.operation.kind

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Call):
            return NotImplemented
        if self.operation is not other.operation or self.depth != other.depth:
            return False
        return self is other or _words(self) == _words(other)

    def __hash__(self) -> int:
        return hash(tuple(_words(self)))

    def __repr__(self) -> str:
        return fold(self, repr, lambda operation, parts: f"Call({operation}, ({', '.join(parts)},))")


Expression = Number | Variable | Call


def too_deep(column: int | None = None) -> FormulaError:
    return FormulaError(f"formula nested deeper than {MAX_DEPTH} levels", column, "split it into parts")


def postorder(expression: Expression) -> Iterator[Expression]:
    """All nodes, arguments before their call, from left to right: the order of a stack machine."""
    todo, reverse = [expression], []
    while todo:
        node = todo.pop()
        reverse.append(node)
        if isinstance(node, Call):
            todo.extend(node.arguments)
    return reversed(reverse)


def _words(expression: Expression) -> list[Number | Variable | Operation]:
    # Arities are fixed, so equal postfix words mean equal trees; no recursion for deep ones.
    return [node.operation if isinstance(node, Call) else node for node in postorder(expression)]


def fold(
    expression: Expression,
    leaf: Callable[[Number | Variable], T],
    call: Callable[[Operation, Sequence[T]], T],
) -> T:
    """Replaces every node by a value, from the leaves up. Nearly all that is done with formulas is a fold."""
    stack: list[T] = []
    for node in postorder(expression):
        if isinstance(node, Call):
            first = len(stack) - node.operation.arity
            stack[first:] = [call(node.operation, stack[first:])]
        else:
            stack.append(leaf(node))
    return stack.pop()


def variables(expression: Expression) -> tuple[Variable, ...]:
    """The distinct variables in the order in which they first appear."""
    return tuple(dict.fromkeys(node for node in postorder(expression) if isinstance(node, Variable)))


def substitute(expression: Expression, replacements: Mapping[Variable, Expression]) -> Expression:
    """The formula with some variables replaced, all at once; a variable without replacement stays."""

    def leaf(node: Number | Variable) -> Expression:
        return replacements.get(node, node) if isinstance(node, Variable) else node

    return fold(expression, leaf, lambda operation, arguments: Call(operation, tuple(arguments)))


def complexity(expression: Expression) -> int:
    """How hard the formula is to read: 1 for each leaf, and the weights of its operations."""
    return sum(node.operation.weight if isinstance(node, Call) else 1 for node in postorder(expression))
