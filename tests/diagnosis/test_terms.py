"""What a formula adds up: the terms come to the same, and say what a unit of each variable does."""

import math

import numpy as np
import pytest
from hypothesis import given

from clearloop.diagnosis.terms import Choice, Experience, Part, Term, split_terms
from clearloop.expression import Expression, Variable, evaluate, parse, to_text, variables
from tests.expression.strategies import expressions, tame_numbers
from tests.surrogate.models import CARTPOLE, cartpole_log

SUMS = ("add", "sub", "mul", "neg", "if", "tanh", "lt")


def total(parts: tuple[Part, ...], values: dict[Variable, float]) -> float:
    added = 0.0
    for part in parts:
        if isinstance(part, Choice):
            added += total(part.then if evaluate(part.condition, values) else part.otherwise, values)
        else:
            added += part.factor * evaluate(part.core, values)
    return added


@given(expressions("number", 4, SUMS, tame_numbers))
def test_terms_add_up_to_the_formula(formula: Expression) -> None:
    values = {variable: math.sin(1 + n) for n, variable in enumerate(variables(formula))}
    assert total(split_terms(formula), values) == pytest.approx(evaluate(formula, values), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("formula", "terms"),
    [
        ("2*(3*x - y) + 4", ["6*x", "-2*y", "8/2"]),
        ("-(x + tanh(y))/4", ["-0.25*x", "-0.25*tanh(y)"]),
        ("x*y*2 - 0*x", ["2*(x*y)"]),
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


@pytest.fixture(scope="module")
def experience() -> Experience:
    rest = np.array([0.1, 0.0, 0.5, 0.0])
    return Experience(CARTPOLE, cartpole_log(400), rest, np.zeros(1), np.array([0.0, 0.0, 0.5, 0.0]))


def test_slopes_are_those_where_the_loop_rests(experience: Experience) -> None:
    slopes = experience.slopes(parse("3*theta*theta + 2*tanh(rho) + rho.setpoint*rho_dot"))
    assert slopes[Variable("theta")] == pytest.approx(0.6, rel=1e-6)
    assert slopes[Variable("rho")] == pytest.approx(2.0, rel=1e-6)  # rho stands for its distance
    assert slopes[Variable("rho_dot")] == pytest.approx(0.5, rel=1e-6)


def test_the_usual_range_holds_nine_of_ten_rows(experience: Experience) -> None:
    low, high = experience.range(parse("-10*theta"))
    values = -10 * cartpole_log(400).states[:, 0]
    assert np.mean((values >= low) & (values <= high)) == pytest.approx(0.9, abs=0.01)
    assert experience.range(parse("4")) == (4.0, 4.0)
