"""Automatic cancelation: formulas gathered as one would on paper, in real numbers.

Unlike `expression.simplify` it may change the last digits of a result, so what it gives is a new individual,
to be evaluated like any other.
"""

import math
from collections.abc import Sequence

from clearloop.expression import (
    OPERATIONS,
    Call,
    Expression,
    Number,
    Variable,
    complexity,
    encode,
    simplify,
)
from clearloop.search.gp.grammar import rounded

_ADD, _SUB, _MUL, _DIV, _NEG = (OPERATIONS[name] for name in ("add", "sub", "mul", "div", "neg"))
_ONE = Number(1.0)

Terms = dict[Expression, float]
"""A sum: the factor of each part; the part 1 is the constant."""


def cancel(formula: Expression, order: Sequence[Variable] = ()) -> Expression:
    """The same formula with its sums and constant factors gathered, if that is not more complex.

    `order` of variables: short terms come first, and among equals those of earlier variables.
    """
    gathered = simplify(_Gathering(order).gathered(formula))
    return gathered if complexity(gathered) <= complexity(formula) else formula


class _Gathering:
    def __init__(self, order: Sequence[Variable]) -> None:
        self._rank = {variable: number for number, variable in enumerate(order)}

    def gathered(self, formula: Expression) -> Expression:
        """Numbers as sums; conditions keep their operation and gather its arguments."""
        if isinstance(formula, Call) and formula.kind == "condition":
            return Call(formula.operation, tuple(self.gathered(argument) for argument in formula.arguments))
        return self._rebuilt(self._terms(formula))

    def _terms(self, formula: Expression) -> Terms:
        match formula:
            case Number(value):
                return {_ONE: value}
            case Call(operation, (left, right)) if operation in (_ADD, _SUB):
                return _sum(self._terms(left), self._terms(right), 1.0 if operation is _ADD else -1.0)
            case Call(operation, (inner,)) if operation is _NEG:
                return _sum({}, self._terms(inner), -1.0)
            case Call(operation, (left, right)) if operation is _MUL:
                return self._product(self._terms(left), self._terms(right))
            case Call(operation, (left, right)) if operation is _DIV:
                return self._quotient(self._terms(left), self._terms(right))
            case Call(operation, arguments):
                return {Call(operation, tuple(self.gathered(argument) for argument in arguments)): 1.0}
        return {formula: 1.0}

    def _product(self, first: Terms, second: Terms) -> Terms:
        for constant, other in ((first, second), (second, first)):
            if set(constant) <= {_ONE}:
                return self._scaled(other, constant.get(_ONE, 0.0))
        (left, a), (right, b) = self._factored(first), self._factored(second)
        return {Call(_MUL, (left, right)): a * b}

    def _quotient(self, first: Terms, second: Terms) -> Terms:
        if set(second) <= {_ONE} and second.get(_ONE):
            return self._scaled(first, 1.0 / second[_ONE])
        (left, a), (right, b) = self._factored(first), self._factored(second)
        return {Call(_DIV, (left, right)): a / b}

    def _scaled(self, terms: Terms, factor: float) -> Terms:
        """Multiplied out, unless it is simpler to leave the sum in brackets."""
        out = {part: value * factor for part, value in terms.items()}
        inner = self._rebuilt(terms)
        if len(terms) > 1 and complexity(inner) + 2 < complexity(self._rebuilt(out)):
            return {inner: factor}
        return out

    def _factored(self, terms: Terms) -> tuple[Expression, float]:
        """The sum as a product with a constant."""
        if len(terms) == 1:
            ((part, factor),) = terms.items()
            if factor:
                return part, factor
        return self._rebuilt(terms), 1.0

    def _rebuilt(self, terms: Terms) -> Expression:
        total: Expression | None = None
        for part in sorted(terms, key=self._place):
            size = rounded(abs(terms[part]))
            if not size or not math.isfinite(size):
                continue
            positive = terms[part] > 0
            if total is None:
                total = _times(size if positive else -size, part)
            else:
                total = Call(_ADD if positive else _SUB, (total, _times(size, part)))
        return Number(0.0) if total is None else total

    def _place(self, part: Expression) -> tuple[bool, int, list[int], list[float]]:
        """Where a term stands in a sum, whatever the names; the constant is the last."""
        words = encode(part, lambda variable: self._rank.setdefault(variable, len(self._rank)))
        return part == _ONE, complexity(part), words.code.tolist(), words.operand.tolist()


def _sum(first: Terms, second: Terms, sign: float) -> Terms:
    total = dict(first)
    for part, factor in second.items():
        total[part] = total.get(part, 0.0) + sign * factor
    return total


def _times(factor: float, part: Expression) -> Expression:
    if part == _ONE:
        return Number(factor)
    if factor == -1:
        return Call(_NEG, (part,))
    return part if factor == 1 else Call(_MUL, (Number(factor), part))
