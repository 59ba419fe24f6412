"""Simpler, and never dearer than allowed; scored as everything else is scored."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.controllers import Controller, Equation, Linear, to_json
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.plants.scenarios import Scenarios
from clearloop.refining import Judge, Refinement, Settings, refine
from tests.controllers.kinds import CARTPOLE, KINDS
from tests.surrogate.models import SLIDER, slider_model

BEST = {"x": 1.23456, "y": -2.34567, "z": 0.001}


def distance(controllers: Sequence[Controller]) -> Floats:
    """1 plus how far gains are from the best, from four starts that differ by constants."""
    costs = []
    for controller in controllers:
        assert isinstance(controller, Linear)
        gains = controller.gains["u"]
        costs.append(1 + sum((gains.get(name, 0.0) - best) ** 2 for name, best in BEST.items()))
    return np.asarray(np.array(costs)[:, None] + np.array([-0.3, -0.1, 0.1, 0.3]))


def refined(**settings: object) -> Refinement:
    return refine(Linear(gains={"u": dict(BEST)}), distance, replace(Settings(), **settings))  # type: ignore[arg-type]


def test_the_cheapest_goes_first_and_parts_before_digits() -> None:
    found = refined(drop=True)
    assert [step.what for step in found.steps] == [
        "drop 0.001*z",
        "1.23456 becomes 1.2",
        "2.34567 becomes 2.3",
    ]
    assert isinstance(found.controller, Linear)
    assert found.controller.gains == {"u": {"x": 1.2, "y": -2.3}}
    assert found.extra == pytest.approx(found.steps[-1].penalty - found.before)


@pytest.mark.parametrize("tolerance", [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.5])
@pytest.mark.parametrize("digits", [1, 2, 4])
def test_it_is_never_dearer_than_allowed(tolerance: float, digits: int) -> None:
    found = refined(tolerance=tolerance, digits=digits, drop=True)
    assert found.after <= found.before * (1 + tolerance) + 1e-12
    assert all(step.penalty <= found.before * (1 + tolerance) + 1e-12 for step in found.steps)


def test_where_few_digits_cost_too_much_it_takes_more() -> None:
    found = refined(tolerance=1e-5)
    assert isinstance(found.controller, Linear)
    assert found.controller.gains["u"] == {"x": 1.235, "y": -2.346, "z": 0.001}


def test_what_a_step_gains_is_not_given_away() -> None:
    """Without z it costs half; all that follows is counted from there."""

    def score(controllers: Sequence[Controller]) -> Floats:
        texts = [controller.summary for controller in controllers]
        return np.array([[1.0 if "x" not in text else 2.0 if "z" in text else 0.5] * 2 for text in texts])

    found = refine(Equation(outputs={"u": "x + y + z"}), score, Settings(drop=True, tolerance=0.5))
    assert found.controller.summary == "x"
    assert found.after == 0.5


def test_the_error_of_the_extra_penalty_is_that_of_paired_starts() -> None:
    """What differs from start to start alike for both controllers does not count."""
    extra = [0.001, 0.002, 0.006]

    def score(controllers: Sequence[Controller]) -> Floats:
        common = np.array([1.0, 5.0, 9.0])
        return np.array([common + (0.0 if "1.234" in each.summary else extra) for each in controllers])

    found = refine(Equation(outputs={"u": "1.234*x"}), score, Settings())
    assert found.extra == pytest.approx(0.003)
    assert found.extra_error == pytest.approx(np.sqrt(14e-6 / 2 / 3))  # squares of -2, -1, 3, by n - 1, by n


def test_networks_are_refused() -> None:
    with pytest.raises(ClearloopError, match="kind 'network' cannot be refined"):
        refine(KINDS["network"], distance, Settings())


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"digits": 0}, "--round 0: expected from 1 to 6 digits"), ({"tolerance": -0.1}, "--tolerance -0.1: ")],
)
def test_bad_settings(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ClearloopError, match=message):
        Settings(**settings)  # type: ignore[arg-type]


LAWS = (
    Equation(outputs={"push": "-0.512*place - 0.934*speed + 0.1*place*place"}),
    Linear(gains={"push": {"place": -0.512, "speed": -0.934}}),
)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_populations_cost_what_each_costs_alone(law: Controller) -> None:
    model = slider_model(lambda gains: (gains, 0.0), lambda gains: (1.1 * gains, 0.01))
    starts = Scenarios.at(SLIDER, np.random.default_rng(0).uniform(-4, 4, (50, 2)))
    judge = Judge(law, SLIDER, model, starts)
    others = [law, law.model_copy(update={"limits": law.limits})]
    alone = evaluate(law, SLIDER, surrogate=model, members=model.judge_members, starts=starts)
    np.testing.assert_array_equal(judge(others), [alone.penalties.mean(axis=0)] * 2)
    settings = Settings(drop=True, tolerance=0.05)
    first, again = (refine(law.for_task(SLIDER), judge, settings) for _ in range(2))
    assert to_json(first.controller) == to_json(again.controller)
    assert first.steps == again.steps
    checked = evaluate(first.controller, SLIDER, surrogate=model, members=model.judge_members, starts=starts)
    assert checked.penalty == pytest.approx(first.after, rel=1e-12)


def test_rules_of_different_numbers_are_scored_side_by_side() -> None:
    from clearloop.refining import removals
    from clearloop.surrogate import BEST as TRACK
    from tests.runs.guessing import linear_model
    from tests.surrogate.models import cartpole_log

    fuzzy = KINDS["fuzzy"].for_task(CARTPOLE)
    model = linear_model(CARTPOLE, cartpole_log(400), TRACK, 0)
    starts = Scenarios.scoring(CARTPOLE, 16)
    some = [fuzzy, *(removal.controller for removal in removals(fuzzy))]
    together = Judge(fuzzy, CARTPOLE, model, starts)(some)
    for controller, penalties in zip(some, together, strict=True):
        alone = evaluate(controller, CARTPOLE, surrogate=model, members=model.judge_members, starts=starts)
        np.testing.assert_array_equal(penalties, alone.penalties.mean(axis=0))
