"""Formulas as mathematics that looks as the formula was written.

SymPy knows the letters. The rest is ours, because SymPy's printer sorts the arguments of min, max, and, or,
and shows -(3) as (-1) 3 even where nothing is evaluated.
"""

from collections.abc import Sequence

from clearloop.expression.nodes import Expression, Number, Variable, fold
from clearloop.expression.notation import ACCENTS, LATEX, TYPST, Notation
from clearloop.expression.operations import ATOM, NEGATION, POWER, PRODUCT, Operation

_Piece = tuple[str, int]  # what is typeset, and how tightly its outermost operation binds


def to_latex(expression: Expression) -> str:
    r"""The formula for a maths environment: `theta_dot[t-3]` is \dot{\theta}_{t-3}, `a/b` a fraction."""
    return _Typesetter(LATEX).typeset(expression)


def to_typst(expression: Expression) -> str:
    """The same for Typst: `theta_dot[t-3]` is dot(theta)_(t-3)."""
    return _Typesetter(TYPST).typeset(expression)


class _Typesetter:
    def __init__(self, notation: Notation) -> None:
        self.notation = notation

    def typeset(self, expression: Expression) -> str:
        text, _ = fold(expression, self._leaf, self._call)
        return text

    def _leaf(self, node: Number | Variable) -> _Piece:
        if isinstance(node, Variable):
            return self._variable(node), ATOM
        mantissa, _, exponent = str(node).partition("e")
        binds = NEGATION if node.value < 0 else PRODUCT if exponent else ATOM
        ten = f" {self.notation.times} {self.notation.power('10', str(int(exponent)))}" if exponent else ""
        return mantissa + ten, binds

    def _variable(self, variable: Variable) -> str:
        to, word = self.notation, self.notation.word
        first, *rest = variable.name.split("_")
        if not first:  # a leading underscore is part of the name
            first, rest = variable.name, []
        symbol = word(first)
        while rest and rest[0] in ACCENTS:
            symbol = to.accent(rest.pop(0), symbol)
        subscripts = [word(part) for part in rest if part]
        if variable.part != "value":
            subscripts.append(word(variable.part))
        if variable.lag is not None:
            subscripts.append(f"t-{variable.lag}" if variable.lag else "t")
        return to.subscript(symbol, ", ".join(subscripts)) if subscripts else symbol

    def _call(self, operation: Operation, arguments: Sequence[_Piece]) -> _Piece:
        to, texts = self.notation, [text for text, _ in arguments]
        match operation.name, texts:
            case "div", [x, y]:
                return to.fraction(x, y), POWER
            case "pow", [_, exponent]:
                return to.power(self._bracketed(arguments[0], ATOM), exponent), POWER
            case "abs", [x]:
                return to.size(x), ATOM
            case "sqrt", [x]:
                return to.root(x), ATOM
            case "if", [p, x, y]:
                return to.choice(p, x, y), 0
        if not operation.symbol:
            return to.function(operation.name) + to.brackets(", ".join(texts)), ATOM
        sign = to.signs.get(operation.symbol, operation.symbol)
        if operation.arity == 1:
            return sign + self._bracketed(arguments[0], operation.precedence + 1), operation.precedence
        return self._infix(operation, sign, *arguments), operation.precedence

    def _infix(self, operation: Operation, sign: str, left: _Piece, right: _Piece) -> str:
        after = self._bracketed(right, operation.precedence + 1)
        if after.startswith("-"):
            after = self.notation.brackets(after)
        if operation.name == "mul":
            sign = self.notation.times if after[0].isdigit() else self.notation.beside
        return f"{self._bracketed(left, operation.precedence)} {sign} {after}"

    def _bracketed(self, piece: _Piece, precedence: int) -> str:
        text, binds = piece
        return text if binds >= precedence else self.notation.brackets(text)
