import pytest
from hypothesis import given

from clearloop.expression import Expression, parse, to_text
from tests.expression.strategies import any_kind

AS_WRITTEN = [
    "69.8*theta + 20*theta_dot + 10*rho + 9.4*rho_dot",
    "25*theta[t] - theta[t-9]/(0.65 + theta_dot[t-8]) + rho[t-7] + rho_dot[t-1]",
    "a - (b - c) - (d + e)",
    "a/(b/c)/(d*e)",
    "(a + b)*-c",
    "-3*x",
    "-(3)*x",
    "--3",
    "---x",
    "-x**2",
    "(-x)**2",
    "(-3)**2",
    "-3**2",
    "-(-3)**2",
    "x**-3",
    "x**-(3)",
    "x**-y**2",
    "(x**y)**z",
    "x**y**z",
    "-(x*y)",
    "-x*y",
    "x - -3",
    "x + -y",
    "1e-30*x + 1e+22",
    "0.1*x + 100000",
    "if(not (a < b and c < d) or not e < f, clip(x, -1, 1), rho.error[t-2])",
    "if(a < b and (c < d and e < f), 1, 0)",
    "if(a < b or c < d and e < f, 1, 0)",
    "if((a < b or c < d) and e < f, 1, 0)",
    "if(not not a == b, 1, 0)",
]


@pytest.mark.parametrize("text", AS_WRITTEN)
def test_no_needless_parentheses(text: str) -> None:
    assert to_text(parse(text)) == text


@given(any_kind(5))
def test_text_parses_back_to_the_same_tree(expression: Expression) -> None:
    again = parse(to_text(expression), kind=expression.kind)
    assert again == expression
    assert repr(again) == repr(expression)
