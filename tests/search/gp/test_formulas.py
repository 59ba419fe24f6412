import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from clearloop.expression import (
    OPERATIONS,
    Call,
    Expression,
    Number,
    Variable,
    complexity,
    parse,
    to_sympy,
    to_text,
)
from clearloop.search.gp.formulas import cancel

ORDER = [Variable(name) for name in "abcd"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a + 5.25*(2*b) + 20*a + c - 0.5*c", "21*a + 10.5*b + 0.5*c"),
        ("7*(2*b + 5*tanh(c + 0.5*d)) + 117*a", "117*a + 14*b + 35*tanh(c + 0.5*d)"),
        ("5*(a + b)", "5*(a + b)"),
        ("(2*a)*(3*b)/(4*c)", "1.5*(a*b/c)"),
        ("clip(3*(a + a), -1 - 2, 3) - -2", "clip(6*a, -3, 3) + 2"),
        ("if(2*(2*a) < b, a - a, -(b))", "if(4*a < b, 0, -b)"),
        ("b - b", "0"),
        ("d + c + b + a", "a + b + c + d"),
        ("a*(3 - 3)", "0"),
        ("1 + 2*a", "2*a + 1"),
    ],
)
def test_gathers_as_on_paper(before: str, after: str) -> None:
    assert to_text(cancel(parse(before), ORDER)) == after


# With at most six of them no factor has more than the three digits that constants are rounded to.
numbers = st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0]).map(Number)


def calls(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    names = st.sampled_from(["add", "sub", "mul"])
    pairs = st.tuples(names, children, children).map(lambda t: Call(OPERATIONS[t[0]], t[1:]))
    return pairs | children.map(lambda child: Call(OPERATIONS["neg"], (child,)))


formulas = st.recursive(numbers | st.sampled_from(ORDER), calls, max_leaves=6)


@given(formulas)
def test_keeps_the_function_and_never_adds_complexity(formula: Expression) -> None:
    gathered = cancel(formula, ORDER)
    assert complexity(gathered) <= complexity(formula)
    assert sympy.expand((to_sympy(formula) - to_sympy(gathered)).doit()) == 0


@given(formulas)
def test_doing_it_again_changes_nothing(formula: Expression) -> None:
    once = cancel(formula, ORDER)
    assert cancel(once, ORDER) == once
