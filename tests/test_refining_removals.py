"""What can be left out: always a simpler controller of the same kind for the same actions."""

import pytest
from hypothesis import given

from clearloop.controllers import Equation, Fuzzy, Linear, from_json, to_json
from clearloop.expression import Expression, complexity, to_text
from clearloop.refining import removals
from tests.controllers.kinds import KINDS
from tests.expression.strategies import expressions, tame_numbers


def left_of(formula: str) -> dict[str, str]:
    return {
        removal.what: removal.controller.summary for removal in removals(Equation(outputs={"u": formula}))
    }


def test_terms_factors_and_cases_of_a_formula() -> None:
    assert left_of("3*x - y") == {
        "drop the term y": "3*x",
        "drop the term 3*x": "-y",
        "drop the factor 3": "x - y",
        "drop the factor x": "3 - y",
    }
    assert left_of("if(x > 1, tanh(y), 2)") == {
        "tanh(y) becomes y": "if(x > 1, y, 2)",
        "if(x > 1, tanh(y), 2) becomes tanh(y)": "tanh(y)",
        "if(x > 1, tanh(y), 2) becomes 2": "2",
    }
    assert left_of("x/(2 + y)")["drop the term 2"] == "x/y"
    assert left_of("x") == {}


@given(expressions("number", 3, constants=tame_numbers))
def test_every_removal_is_simpler_and_can_be_read(formula: Expression) -> None:
    given_one = Equation.model_construct(outputs={"u": to_text(formula)})
    for removal in removals(given_one):
        assert isinstance(removal.controller, Equation)
        assert complexity(removal.controller.formula("u")) < complexity(formula)


@pytest.mark.parametrize("kind", ["linear", "pid", "fuzzy"])
def test_what_is_left_is_a_valid_file(kind: str) -> None:
    found = removals(KINDS[kind])
    assert found
    for removal in found:
        again = from_json(to_json(removal.controller))
        assert again.complexity < KINDS[kind].complexity
        assert again.actions == KINDS[kind].actions


def test_the_last_gain_stays() -> None:
    assert removals(Linear(gains={"u": {"x": 2.0}})) == []


def test_a_loop_loses_gains_or_goes_as_a_whole() -> None:
    words = [removal.what for removal in removals(KINDS["pid"])]
    assert words[:4] == [
        "drop the loop on theta", "drop kp of the loop on theta", "drop ki of the loop on theta",
        "drop kd of the loop on theta",
    ]  # fmt: skip


def test_rules_that_mirror_each_other_go_together() -> None:
    text = """{"clearloop": 1, "kind": "fuzzy", "outputs": {"u": {"scale": 10, "alpha": 3, "rules": [
        {"if": {"x": {"center": 0.2, "width": 0.4}, "y": {"center": 0.5, "width": 1}}, "then": 0.9},
        {"if": {"x": {"center": -0.2, "width": 0.4}, "y": {"center": -0.5, "width": 1}}, "then": -0.9},
        {"if": {"x": {"center": 1, "width": 2}}, "then": 0.1}]}}}"""
    found = {removal.what: removal.controller for removal in removals(from_json(text))}
    assert list(found) == [
        "drop rules 1 and 2", "rules 1 and 2 no longer look at x", "rules 1 and 2 no longer look at y",
        "drop rule 3",
    ]  # fmt: skip
    less = found["rules 1 and 2 no longer look at y"]
    assert isinstance(less, Fuzzy)
    assert [list(rule.premise) for rule in less.outputs["u"].rules] == [["x"], ["x"], ["x"]]
