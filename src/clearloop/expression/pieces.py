"""An equation consists of pieces between which lines may break, in LaTeX, in Typst, and as text."""

from collections.abc import Iterable
from dataclasses import dataclass

from clearloop.expression.nodes import OPERATIONS, Call, Expression, Number, Variable
from clearloop.expression.printing import to_latex, to_text, to_typst
from clearloop.expression.summands import signed_summands


@dataclass(frozen=True)
class Piece:
    """A piece of mathematics, in the languages of pages and of PDFs, and as text."""

    latex: str
    typst: str
    text: str

    @classmethod
    def of(cls, expression: Expression) -> "Piece":
        """Return a formula as one piece."""
        return cls(to_latex(expression), to_typst(expression), to_text(expression))

    @classmethod
    def name(cls, action: str) -> "Piece":
        """Return the left side of an equation: `force =`."""
        name = cls.of(Variable(action))
        return cls(f"{name.latex} =", f"{name.typst} =", f"{action} =")

    @classmethod
    def signed(cls, negative: bool, term: Expression) -> "Piece":
        """Return a term with its sign, as it is set after another term."""
        whole = cls.of(Call(OPERATIONS["sub" if negative else "add"], (Variable("x"), term)))
        latex, typst, text = (text.removeprefix("x ") for text in (whole.latex, whole.typst, whole.text))
        return cls(
            f"{{}} {latex}", f'"" {typst}', text
        )  # an empty term before the sign sets it as an operator

    def times(self, factor: float, *, first: bool) -> "Piece":
        """Return this times a factor of four digits, with its sign; `first`: no term is before it."""
        sign, size = ("-" if factor < 0 else "" if first else "+"), f"{abs(factor):.4g}"
        latex, typst = ("", "") if first else ("{} ", '"" ')
        return Piece(
            rf"{latex}{sign} {size} \, {self.latex}",
            f"{typst}{sign} {size} thin {self.typst}",
            f"{sign} {size} {self.text}".strip(),
        )


Pieces = tuple[Piece, ...]
"""An equation, on one line or on several."""


def equation(action: str, formula: Expression) -> Pieces:
    """Return the equation of an action: `force =`, then a piece for each summand with its sign."""
    (_, first), *others = signed_summands(formula, brackets=True)
    return (Piece.name(action), Piece.of(first), *(Piece.signed(minus, term) for minus, term in others))


def latex_number(value: float) -> str:
    """Return a number as LaTeX."""
    return to_latex(Number(value))


def aligned(rows: Iterable[tuple[str, str]]) -> str:
    """Return LaTeX equations of left and right sides, one below the other."""
    return (
        "\\begin{align*}\n"
        + " \\\\\n".join(f"  {left} &= {right}" for left, right in rows)
        + "\n\\end{align*}"
    )
