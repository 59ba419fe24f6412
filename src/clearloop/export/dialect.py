"""How a target writes formulas: a table of operations, and one printer for all of them.

A row has two forms: the plain one, where interval analysis shows that no special case can occur, and the one
with the special case (a division by 0, an overflow), mostly a small function that the export brings along.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from clearloop.export.precision import Precision
from clearloop.export.spans import Span, found, of_number
from clearloop.expression import Expression, Number, Variable, fold
from clearloop.expression.meanings import READ_LIMIT
from clearloop.expression.operations import AND, ATOM, NEGATION, OR, Operation

COMPARISONS = ("lt", "le", "gt", "ge")

# What most languages write alike. `saturated`, `divided` and so on are functions that they bring along.
PLAIN = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0}*{1}",
    "div": "{0}/{1}",
    "neg": "-{0}",
    "sign": "sign({0})",
    "clip": "{0}",
    "wrap": "{0}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "and": "{0} && {1}",
    "or": "{0} || {1}",
    "not": "!({0})",
    "if": "({0} ? {1} : {2})",
}
SPECIAL = {
    "add": "saturated({plain})",
    "sub": "saturated({plain})",
    "mul": "saturated({plain})",
    "div": "divided({0}, {1})",
    "pow": "power({0}, {1})",
    "exp": "saturated({plain})",
    "atan2": "angle({0}, {1})",
    "clip": "clip({0}, {1}, {2})",
    "wrap": "wrap({0})",
    "read": "limited({0})",
}


@dataclass(frozen=True, kw_only=True)
class Dialect:
    plain: Mapping[str, str]
    """Of every operation: `{0} + {1}` (bound as in the formula language), or `sin({0})`."""
    special: Mapping[str, str]
    """Of operations with a special case; `{plain}` is the plain form. Each is a call, or in brackets.

    `read` is a clip to ±1e12, as inputs are read."""
    helpers: Mapping[str, str] = field(default_factory=dict)
    """The small functions that the forms above call, by name; one may call those before it."""
    number: Callable[[float, Precision], str]

    def helpers_in(self, text: str) -> list[str]:
        """The helpers that a text calls, and those that they call, in the order of the table."""
        needed: set[str] = set()
        for name in reversed(list(self.helpers)):
            if re.search(rf"\b{name}\(", text) or any(
                re.search(rf"\b{name}\(", self.helpers[user]) for user in needed
            ):
                needed.add(name)
        return [name for name in self.helpers if name in needed]


class Piece(NamedTuple):
    text: str
    binds: int
    """How tightly its outermost operation binds."""
    span: Span
    value: float | None = None
    """Of a constant."""


@dataclass(frozen=True)
class Printer:
    """Prints formulas in a dialect, in some precision, with the names and spans that a routine has so far."""

    dialect: Dialect
    precision: Precision
    leaf: Callable[[Variable], tuple[str, Span]]

    def text(self, tree: Expression) -> str:
        return self.piece(tree).text

    def piece(self, tree: Expression) -> Piece:
        return fold(tree, self._leaf, self._call)

    def _leaf(self, node: Number | Variable) -> Piece:
        if isinstance(node, Variable):
            text, span = self.leaf(node)
            return Piece(text, ATOM, span)
        return self._number(node.value)

    def _number(self, value: float) -> Piece:
        text = self.dialect.number(value, self.precision)
        return Piece(text, NEGATION if value < 0 else ATOM, of_number(value, self.precision), value)

    def _call(self, operation: Operation, arguments: Sequence[Piece]) -> Piece:
        name = operation.name
        if name in COMPARISONS:
            arguments = self._exact(name, *arguments)
        span, special = found(name, [piece.span for piece in arguments], self.precision)
        values = [piece.value for piece in arguments if piece.value is not None]
        value = operation.meaning(*values) if len(values) == len(arguments) else None
        if special and value is not None:
            return self._number(value)
        form = self.dialect.plain[name]
        if form == "{0}" and not special:
            return Piece(arguments[0].text, arguments[0].binds, span, value)
        infix = not form.endswith(")")
        texts = [piece.text for piece in arguments]
        text = form.format(*(_operands(operation, arguments) if infix else texts))
        if special:
            reading = name == "clip" and (values == [-READ_LIMIT, READ_LIMIT])
            special_form = self.dialect.special["read" if reading else name]
            return Piece(special_form.format(*texts, plain=text), ATOM, span)
        return Piece(text, operation.precedence if infix else ATOM, span, value)

    def _exact(self, name: str, left: Piece, right: Piece) -> list[Piece]:
        """A number x is above 0.1 just when it is above the largest number that is not above 0.1."""
        pieces = []
        for piece, greater in ((left, name in ("gt", "le")), (right, name in ("lt", "ge"))):
            if piece.value is None:
                pieces.append(piece)
            else:
                round_it = self.precision.above if greater else self.precision.below
                pieces.append(self._number(round_it(piece.value)))
        return pieces


def _operands(operation: Operation, pieces: Sequence[Piece]) -> list[str]:
    """With brackets where the binding asks for them, and where readers would like to see some."""
    single = len(pieces) == 1
    texts = []
    for number, piece in enumerate(pieces):
        loose = piece.binds < operation.precedence + (number > 0 or single)
        signs = piece.text.startswith("-") and (number > 0 or single)
        mixed = (operation.precedence, piece.binds) == (OR, AND)
        texts.append(f"({piece.text})" if loose or signs or mixed else piece.text)
    return texts
