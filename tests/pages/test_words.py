"""What each part of a controller does, in words."""

import numpy as np
import pytest

from clearloop.controllers import Controller, Equation, from_json
from clearloop.diagnosis.terms import Experience
from clearloop.expression import Call, parse, to_text
from clearloop.pages.words import Said, condition_words, explain_parts
from tests.controllers.kinds import KINDS
from tests.surrogate.models import CARTPOLE, cartpole_log

EXPERIENCE = Experience(CARTPOLE, cartpole_log(300), np.zeros(4), np.zeros(1), np.zeros(4))


def said(controller: Controller) -> list[Said]:
    return list(explain_parts(controller.for_task(CARTPOLE), "force", EXPERIENCE))


def of_formula(formula: str) -> list[tuple[str, str, int]]:
    lines = said(Equation(outputs={"force": formula}))
    return [(w if isinstance(w := one.what, str) else to_text(w), one.does, one.level) for one in lines]


def test_a_sum_is_told_term_by_term() -> None:
    assert of_formula("77*theta - 2*(rho[t-3] + 4)") == [
        ("77*theta", "force rises by 77 N for each rad of theta", 0),
        ("-2*rho[t-3]", "force falls by 2 N for each m of rho 3 steps ago", 0),
        ("-8", "always adds \N{MINUS SIGN}8 N", 0),
    ]


def test_terms_that_bend_say_what_they_do_at_rest_and_where_they_end() -> None:
    ((_, does, _),) = of_formula("40*tanh(rho + 0.5*rho_dot)")
    assert does == (
        "at the operating point +40 N for each m of rho and +20 N for each m/s of rho_dot;"
        " never beyond ± 40 N"
    )
    ((_, does, _),) = of_formula("theta*theta_dot*rho")
    assert does == "small deviations have no effect, larger ones do"
    ((_, does, _),) = of_formula("-2*clip(3*rho, -1, 4)")
    assert does.endswith("; limited to \N{MINUS SIGN}8 … 2 N")


def test_conditions_stand_above_their_cases() -> None:
    lines = of_formula("if(abs(theta) > 0.12 and rho <= 1, 9, 66*theta)")
    assert lines == [
        ("", "if the absolute value of theta is more than 0.12 rad and rho is at most 1 m:", 0),
        ("9", "always adds 9 N", 1),
        ("", "otherwise:", 0),
        ("66*theta", "force rises by 66 N for each rad of theta", 1),
    ]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("theta_dot < rho", "theta_dot is less than rho"),
        ("not 2*theta >= 1", "it is not true that 2*theta is at least 1"),
        (
            "theta == 0 or (rho != 1 and rho[t-1] > 2)",
            "theta is exactly 0 rad or (rho is not 1 m and rho 1 step ago is more than 2 m)",
        ),
        ("theta > 1 and theta < 2 and rho > 3",
         "theta is more than 1 rad and theta is less than 2 rad and rho is more than 3 m"),
    ],
)  # fmt: skip
def test_conditions_in_words(condition: str, words: str) -> None:
    formula = parse(f"if({condition}, 1, 2)")
    assert isinstance(formula, Call)
    controller = Equation(outputs={"force": to_text(formula)}).for_task(CARTPOLE)
    assert condition_words(formula.arguments[0], controller) == words


def test_a_pid_counts_in_seconds() -> None:
    text = """{"clearloop": 1, "kind": "pid", "outputs": {"force": {"scale": 10, "bias": 0.5, "loops": [
        {"input": "rho", "weight": 0.5, "kp": -4, "ki": 0.1, "kd": 2, "window": 8}]}}}"""
    assert [(one.what, one.does) for one in said(from_json(text))] == [
        ("rho: P", "\N{MINUS SIGN}20 N for each m that rho is below its setpoint"),
        ("rho: I", "+20 N for each m below and each s below, summed over the last 0.2 s"),
        ("rho: D", "+0.25 N for each m/s that rho falls"),
        ("bias", "always adds 0.5 N"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_something_to_say(kind: str) -> None:
    lines = said(KINDS[kind])
    assert lines
    assert all(one.does for one in lines)
