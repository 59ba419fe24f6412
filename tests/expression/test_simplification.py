import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.expression import (
    OPERATIONS,
    Call,
    Expression,
    Number,
    Variable,
    complexity,
    evaluate,
    parse,
    simplify,
    substitute,
    to_text,
    variables,
)
from clearloop.expression.nodes import MAX_DEPTH, Kind
from clearloop.expression.simplification import CONDITION_LAWS, NUMBER_LAWS, Identity, rewrite
from tests.expression.strategies import LARGEST, any_kind, values_for

X = Variable("x")
EDGES = tuple(map(Number, (0, 1, -1, 0.3, -7.7, 5e-324, -1e-160, 1e160, -LARGEST)))
TRUTHS = Number(-1), Number(1)


@pytest.mark.parametrize(
    ("formula", "simple"),
    [
        ("2*3 + x", "6 + x"),
        ("x + 0*y", "x"),
        ("x*2", "2*x"),
        ("x - x + 3", "3"),
        ("x/x", "x/x"),
        ("x + 1 + 2", "x + 1 + 2"),
        ("a + -b", "a - b"),
        ("x + -3", "x - 3"),
        ("x - -3", "x + 3"),
        ("x + -3*y", "x - 3*y"),
        ("x + y/-3", "x - y/3"),
        ("-3*x + y", "-3*x + y"),
        ("a + x*(-2*y)*z", "a - x*(2*y)*z"),
        ("-a*b", "-(a*b)"),
        ("-a*-b", "a*b"),
        ("-1*x", "-x"),
        ("-(3*x + y - 2)", "2 - (3*x + y)"),
        ("-(3*x + y)", "-3*x - y"),
        ("-(x*(a - b))", "x*(b - a)"),
        ("x + x", "2*x"),
        ("abs(-abs(-3*x))", "abs(3*x)"),
        ("(-x)**2", "x**2"),
        ("(-x)**3", "(-x)**3"),
        ("x**1 + x**0", "x + 1"),
        ("min(min(x, 3), 2)", "min(x, 2)"),
        ("max(max(x, 3), 4)", "max(x, 4)"),
        ("max(1, min(2, x))", "clip(x, 1, 2)"),
        ("min(max(x, 2), 1)", "1"),
        ("clip(clip(x, -3, 3), -1, 5)", "clip(x, -1, 3)"),
        ("clip(max(x, 7), -1, 5)", "5"),
        ("min(max(x, y), z)", "clip(x, y, z)"),
        ("clip(x, 2, 1)", "1"),
        ("if(x < y, a, a)", "a"),
        ("if(not x < y, a, b)", "if(x >= y, a, b)"),
        ("if(not (x < y and a > b), 1, 2)", "if(x >= y or a <= b, 1, 2)"),
        ("if(x < y and 1 < 2, a, b)", "if(x < y, a, b)"),
        ("if(x < y and x >= y, a, b)", "b"),
        ("if(x < y or x >= y, a, b)", "a"),
        ("if(3 < x, a, b)", "if(x > 3, a, b)"),
        ("if(-x < 3, a, b)", "if(x > -3, a, b)"),
        ("if(x - y <= 0, a, b)", "if(x <= y, a, b)"),
        ("if(x > 3, 3, x)", "min(x, 3)"),
        ("if(x < 0, -x, x)", "abs(x)"),
        ("if(x < y, if(x < y, a, b), c)", "if(x < y, a, c)"),
        ("exp(log(x))", "exp(log(x))"),
        ("sqrt(x**2)", "sqrt(x**2)"),
    ],
)
def test_what_becomes_simpler_and_what_must_not(formula: str, simple: str) -> None:
    assert to_text(simplify(parse(formula))) == simple


@given(st.data(), any_kind(5))
def test_the_meaning_stays_to_the_last_bit(data: st.DataObject, expression: Expression) -> None:
    simple = simplify(expression)
    for _ in range(3):
        values = data.draw(values_for(expression))
        assert evaluate(simple, values) == evaluate(expression, values)


@given(any_kind(5))
def test_complexity_never_grows_and_twice_is_once(expression: Expression) -> None:
    simple = simplify(expression)
    assert simple.kind == expression.kind
    assert complexity(simple) <= complexity(expression)
    assert simplify(simple) == simple


ALL_LAWS: list[tuple[Identity, Kind]] = [(law, "number") for law in NUMBER_LAWS]
ALL_LAWS += [(law, "condition") for law in CONDITION_LAWS]
each_law = pytest.mark.parametrize(("law", "kind"), ALL_LAWS, ids=[" → ".join(law) for law, _ in ALL_LAWS])


def both_sides(law: Identity, kind: Kind) -> list[Expression]:
    """A law's conditions p and q become comparisons of numbers p and q."""
    return [parse(re.sub(r"\b([pq])\b", r"(\1 < 0)", side), kind=kind) for side in law]


@each_law
def test_each_law_holds_at_all_edges(law: Identity, kind: Kind) -> None:
    left, right = both_sides(law, kind)
    choices = [TRUTHS if variable.name in "pq" else EDGES for variable in variables(left)]
    for numbers in product(*choices):
        holes = dict(zip(variables(left), numbers, strict=True))
        assert evaluate(substitute(left, holes), {}) == evaluate(substitute(right, holes), {})


@each_law
def test_each_law_is_applied(law: Identity, kind: Kind) -> None:
    left, right = (substitute(side, {Variable("c"): Number(7)}) for side in both_sides(law, kind))
    assert simplify(left) == simplify(right)
    assert simplify(left) != left


def test_a_formula_that_would_get_too_deep_stays_as_it_is() -> None:
    tree: Expression = X
    while tree.depth < MAX_DEPTH:
        assert simplify(tree).depth >= tree.depth  # tanh(-a*tanh(-a*x)) → tanh(-(a*tanh(-(a*x))))
        tree = Call(OPERATIONS["tanh"], (Call(OPERATIONS["mul"], (parse("-a"), tree)),))
    assert tree.depth == MAX_DEPTH
    assert simplify(tree) == tree


def test_the_constant_of_a_law_is_a_number() -> None:
    law = rewrite(("x*c", "c*x"), "number")
    assert law.apply((X, Number(2)), Call) == Call(OPERATIONS["mul"], (Number(2), X))
    assert law.apply((Number(2), X), Call) is None
