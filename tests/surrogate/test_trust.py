"""The verdict on a model before the search: exact, useless, worse than linear, in other units."""

from dataclasses import replace

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.data.findings import Finding
from clearloop.surrogate import Surrogate, examine, examine_model
from clearloop.surrogate.trust import compare
from tests.surrogate.models import SLIDER, slider_log, slider_model


def exact(gains: Floats) -> tuple[Floats, float]:
    return gains, 0.0


def of(log: Batch, model: Surrogate) -> tuple[Batch, Surrogate]:
    return log, replace(model, batch=log.fingerprint())


def findings(log: Batch, model: Surrogate) -> dict[str, Finding]:
    return {finding.code: finding for finding in examine_model(SLIDER, *of(log, model))}


def test_an_exact_model_is_trusted() -> None:
    log, model = of(slider_log(episodes=100), slider_model(exact, exact))
    found = compare(model, *model.split(log))
    assert found.ahead == (1, 3, 10)
    assert np.max(found.model) < 1e-9
    assert np.max(found.linear) < 1e-9
    assert np.min(found.still) > 0.01
    assert not examine(SLIDER, log, model).refusals


@pytest.mark.parametrize(
    ("horizon", "ahead"), [(10, (1, 3, 10)), (9, (1, 3)), (99, (1, 3, 10, 30)), (100, (1, 3, 10, 30, 100))]
)
def test_predictions_go_up_to_the_horizon(horizon: int, ahead: tuple[int, ...]) -> None:
    log = slider_log(episodes=100, rows=101)
    calm = replace(log, states=0.01 * log.states, actions=0.01 * log.actions)  # so that none fails
    log, model = of(calm, slider_model(exact))
    shorter = replace(model, task=SLIDER.model_copy(update={"horizon": horizon}))
    assert compare(shorter, *model.split(log)).ahead == ahead


def test_a_model_in_which_nothing_changes_predicts_nothing() -> None:
    place, _ = examine_model(SLIDER, *of(slider_log(), slider_model(lambda gains: (0 * gains, 0.0))))
    assert (place.severity, place.code) == ("problem", "unpredictable")  # the reward depends on the place
    assert "place cannot be predicted" in place.message


def test_a_state_that_the_reward_does_not_need_may_be_unpredictable() -> None:
    model = slider_model(lambda gains: (gains, 0.0) if gains[2] == 0 else (0 * gains, 5.0))
    findings = examine_model(SLIDER, *of(slider_log(), model))
    speed = [finding for finding in findings if finding.numbers.get("name") == "speed"]
    assert [(finding.severity, finding.code) for finding in speed] == [("warning", "unpredictable")]


def test_a_linear_model_that_is_better_tells_of_too_little_data() -> None:
    found = findings(slider_log(), slider_model(lambda gains: (gains, 0.01)))
    assert found["worse-than-linear"].severity == "warning"


def test_a_log_in_other_units_fails_all_the_time() -> None:
    log = slider_log()
    found = findings(replace(log, states=1000 * log.states), slider_model(exact))
    assert found["beyond-limits"].severity == "problem"


@pytest.mark.parametrize(("share", "refused"), [(0.45, False), (0.5, False), (0.55, True)])
def test_a_model_is_refused_if_more_than_half_of_the_steps_fail(share: float, refused: bool) -> None:
    """The episodes are alike, so that every split has the same share of failing steps."""
    log = slider_log(rows=21)
    states = log.states.reshape(-1, 21, 2).copy()
    states[:, 1 : 1 + round(20 * share), 0] = 6.0  # beyond the limit of 5
    found = findings(replace(log, states=states.reshape(-1, 2)), slider_model(exact))
    assert ("beyond-limits" in found) == refused
    if refused:
        assert found["beyond-limits"].numbers["share"] == pytest.approx(share)


def test_weak_regions_are_found() -> None:
    log = slider_log(episodes=400)
    states = log.states.copy()
    states[:, 1] += np.where(states[:, 0] > 2.5, 0.3, 0.0) * np.random.default_rng(0).normal(size=len(states))
    found = findings(replace(log, states=states), slider_model(exact))
    assert found["weak-region"].severity == "note"
    assert found["weak-region"].numbers["where"] == "place"
    assert found["weak-region"].numbers["low"] == pytest.approx(2.5, abs=0.6)
