"""A formula is split into summands with their signs; for people, into terms with constants multiplied out."""

from collections.abc import Iterator
from dataclasses import dataclass

from clearloop.expression.nodes import OPERATIONS, Call, Expression, Number
from clearloop.expression.simplification import simplify

_ADD, _SUBTRACT, _NEGATE, _MULTIPLY = (OPERATIONS[name] for name in ("add", "sub", "neg", "mul"))
SMALLEST_DIVISOR = 1e-4  # division by less is protected, so it is no product with the reciprocal


def signed_summands(formula: Expression, *, brackets: bool = False) -> Iterator[tuple[bool, Expression]]:
    """Yield the summands from left to right, each after the flag that it is subtracted.

    Args:
        formula: Any formula; one that is no sum is its own only summand.
        brackets: Whether a sum in brackets stays one summand, as it is printed: `a - (b + c)` then gives a
            and b + c, and otherwise a, b and c.
    """
    todo = [(False, formula, False)]
    while todo:
        negative, node, whole = todo.pop()
        match node:
            case Call(operation, (first, second)) if operation in (_ADD, _SUBTRACT) and not whole:
                todo += [(negative != (operation is _SUBTRACT), second, brackets), (negative, first, False)]
            case Call(operation, (negated,)) if operation is _NEGATE and not brackets:
                todo.append((not negative, negated, False))
            case _:
                yield negative, node


def summands(formula: Expression) -> list[Expression]:
    """Return the parts that add up to the formula, with their signs: `a - (b + c)` gives a, -b and -c."""
    return [_negated(part) if negative else part for negative, part in signed_summands(formula)]


def _negated(part: Expression) -> Expression:
    match part:
        case Number(value):
            return Number(-value)
        case Call(operation, (Number(value), other)) if operation is _MULTIPLY:
            return Call(_MULTIPLY, (Number(-value), other))
    return Call(_NEGATE, (part,))


# For people, constants are multiplied out. The formula is not evaluated like this, but the result is the same
# up to rounding.


@dataclass(frozen=True)
class Term:
    """A summand: a constant factor times the rest."""

    factor: float
    core: Expression
    """what the factor is multiplied by; 1 for a constant"""

    @property
    def formula(self) -> Expression:
        """The term as a formula."""
        return simplify(Call(_MULTIPLY, (Number(self.factor), self.core)))


@dataclass(frozen=True)
class Choice:
    """A summand that is one of two sums, by a condition."""

    condition: Expression
    then: "tuple[Term | Choice, ...]"
    otherwise: "tuple[Term | Choice, ...]"


def split_terms(formula: Expression, factor: float = 1.0) -> tuple[Term | Choice, ...]:
    """Return the terms that add up to the formula times a factor, without those that are 0."""
    parts = signed_summands(formula)
    return tuple(term for negative, part in parts for term in _split(part, -factor if negative else factor))


def _split(summand: Expression, factor: float) -> tuple[Term | Choice, ...]:
    match summand:
        case Number(value):
            return (Term(factor * value, Number(1.0)),) if value * factor else ()
        case Call(operation, (Number(value), x) | (x, Number(value))) if operation is _MULTIPLY:
            return split_terms(x, factor * value)
        case Call(operation, (x, Number(value))) if operation.name == "div" and abs(value) > SMALLEST_DIVISOR:
            return split_terms(x, factor / value)
        case Call(operation, (p, x, y)) if operation.name == "if":
            return (Choice(p, split_terms(x, factor), split_terms(y, factor)),)
    return (Term(factor, summand),) if factor else ()
