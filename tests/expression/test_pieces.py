"""Equations in pieces: as LaTeX, as Typst and as text."""

from clearloop.expression import parse
from clearloop.expression.pieces import Piece, aligned, equation, latex_number


def test_an_equation_breaks_before_each_summand() -> None:
    pieces = equation("force", parse("2*theta - sin(rho) + 3"))
    assert [piece.text for piece in pieces] == ["force =", "2*theta", "- sin(rho)", "+ 3"]
    assert [piece.typst for piece in pieces] == ['"force" =', "2 thin theta", '"" - sin (rho)', '"" + 3']
    assert [piece.latex for piece in pieces] == [
        r"\mathrm{force} =", r"2 \, \theta", r"{} - \sin\left(\rho\right)", "{} + 3",
    ]  # fmt: skip


def test_a_factor_has_a_sign_if_a_term_is_before_it() -> None:
    x = Piece.of(parse("x"))
    assert x.times(2.5, first=True) == Piece(r" 2.5 \, x", " 2.5 thin x", "2.5 x")
    assert x.times(-2.5, first=True) == Piece(r"- 2.5 \, x", "- 2.5 thin x", "- 2.5 x")
    assert x.times(2.5, first=False) == Piece(r"{} + 2.5 \, x", '"" + 2.5 thin x', "+ 2.5 x")
    assert x.times(0.5, first=False).text == "+ 0.5 x"
    assert x.times(-1.23456, first=False).text == "- 1.235 x"


def test_equations_stand_below_each_other() -> None:
    assert aligned([("a", "b"), ("c", "d")]) == "\\begin{align*}\n  a &= b \\\\\n  c &= d\n\\end{align*}"
    assert latex_number(-0.5) == "-0.5"
