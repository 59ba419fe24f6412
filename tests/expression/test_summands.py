"""A formula as a sum: what is added up comes to the same."""

import math

import pytest
from hypothesis import assume, given, settings

from clearloop.expression import Expression, Variable, evaluate, parse, to_text, variables
from clearloop.expression.summands import Choice, Term, signed_summands, split_terms, summands
from tests.expression.strategies import expressions, tame_numbers

SUMS = expressions(operations=("add", "sub", "neg", "mul", "sin"), constants=tame_numbers)


@given(formula=SUMS)
@settings(max_examples=200)
def test_summands_add_up_to_the_formula(formula: Expression) -> None:
    values = {variable: 0.5 + 0.25 * number for number, variable in enumerate(variables(formula))}
    parts = [evaluate(part, values) for part in summands(formula)]
    assume(all(abs(part) < 1e6 for part in parts))
    assert sum(parts) == pytest.approx(evaluate(formula, values), abs=1e-6)


@pytest.mark.parametrize(
    ("formula", "parts"),
    [
        ("70*theta + 20*theta_dot - 3*rho", ["70*theta", "20*theta_dot", "-3*rho"]),
        ("a - (b - c) - -d", ["a", "-b", "c", "d"]),
        ("-(a + 2)", ["-a", "-2"]),
        ("2*(a + b)", ["2*(a + b)"]),
        ("if(a > 0, b + c, d)", ["if(a > 0, b + c, d)"]),
    ],
)
def test_a_sum_falls_apart_at_its_signs(formula: str, parts: list[str]) -> None:
    assert [to_text(part) for part in summands(parse(formula))] == parts


@pytest.mark.parametrize(
    ("formula", "parts"),
    [
        ("a - (b - c) + -d", ["+a", "-b - c", "+-d"]),
        ("-a + b", ["+-a", "+b"]),
        ("2*(a + b)", ["+2*(a + b)"]),
    ],
)
def test_as_it_is_printed_a_bracket_is_one_summand(formula: str, parts: list[str]) -> None:
    found = signed_summands(parse(formula), brackets=True)
    assert ["-+"[not negative] + to_text(part) for negative, part in found] == parts


TERMS = ("add", "sub", "mul", "neg", "if", "tanh", "lt")


def total(parts: tuple[Term | Choice, ...], values: dict[Variable, float]) -> float:
    added = 0.0
    for part in parts:
        if isinstance(part, Choice):
            added += total(part.then if evaluate(part.condition, values) else part.otherwise, values)
        else:
            added += part.factor * evaluate(part.core, values)
    return added


@given(expressions("number", 4, TERMS, tame_numbers))
def test_terms_add_up_to_the_formula(formula: Expression) -> None:
    values = {variable: math.sin(1 + n) for n, variable in enumerate(variables(formula))}
    assert total(split_terms(formula), values) == pytest.approx(evaluate(formula, values), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("2*(3*x - y) + 4", ["6*x", "-2*y", "8/2"]),
        ("-(x + tanh(y))/4", ["-0.25*x", "-0.25*tanh(y)"]),
        ("x*y*2 - 0*x", ["2*(x*y)"]),
        ("(x + y)/-4", ["-0.25*x", "-0.25*y"]),
        ("(x + y)/0.00015", ["6666.666666666667*x", "6666.666666666667*y"]),
        ("(x + y)/0.0001", ["(x + y)/0.0001"]),  # a tiny divisor stays one
        ("(x + y)/-5e-05", ["(x + y)/-5e-05"]),
    ],
)
def test_constants_are_multiplied_out(formula: str, terms: list[str]) -> None:
    found = [to_text(part.formula) for part in split_terms(parse(formula)) if isinstance(part, Term)]
    assert found == [term.replace("8/2", "4") for term in terms]


def test_a_choice_is_split_in_both_of_its_cases() -> None:
    (choice,) = split_terms(parse("3*if(x > 1, 2 + y, -x)"))
    assert isinstance(choice, Choice)
    assert [part.factor for part in choice.then if isinstance(part, Term)] == [6, 3]
    assert choice.otherwise == (Term(-3.0, Variable("x")),)
