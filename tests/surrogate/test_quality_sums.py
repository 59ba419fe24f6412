"""The sums of the quality report, against the same sums in plain NumPy: no model is trained."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.data import Batch
from clearloop.surrogate import quality
from clearloop.surrogate.quality import OpenLoop, RewardErrors, StateErrors, grade_model
from clearloop.surrogate.steps import Steps

from .models import SLIDER, slider_log, slider_model


def exact(gains: Floats) -> tuple[Floats, float]:
    return gains, 0.0


@pytest.fixture(scope="module")
def steps() -> Steps:
    """Some of them fail: places beyond ±5."""
    found = Steps.of(SLIDER, slider_log(reach=5.4))
    assert 10 < found.failing.sum() < len(found) / 2
    return found


def test_errors_of_a_step_are_those_of_ordinary_and_of_failing_steps(steps: Steps) -> None:
    off = np.random.default_rng(0).normal(size=(3, len(steps), 2)) * [0.001, 0.02]
    off[:, steps.failing] *= 3
    found = quality.state_errors(steps, steps.next + off)
    for errors, chosen in ((found.rmse, ~steps.failing), (found.failing, steps.failing)):
        assert errors == pytest.approx(np.sqrt(np.square(off[:, chosen]).mean(axis=(0, 1))), rel=1e-12)
    ordinary = steps.change[~steps.failing]
    assert found.r_squared == pytest.approx(1 - found.rmse**2 / ordinary.var(axis=0), rel=1e-9)
    assert found.r_squared.max() < 0.99999


def test_a_state_that_never_changes_has_no_share(steps: Steps) -> None:
    still = replace(steps, next=np.column_stack([steps.next[:, 0], steps.window[:, 1]]))
    assert np.isnan(quality.state_errors(still, still.next[None]).r_squared).tolist() == [False, True]


def test_shares_of_nothing() -> None:
    assert quality._share(np.zeros(0, np.bool_)) is None
    assert quality._share(np.array([True, False, False, False])) == 0.25
    assert quality._r_squared(np.ones(3), np.zeros(3)) == 0.0  # there is nothing to explain
    assert quality._r_squared(np.array([0.0, 4.0]), np.array([0.0, 2.0])) == 0.5


def uneven(lengths: list[int]) -> Batch:
    """Episodes of these numbers of steps, cut from a log of the slider."""
    log = slider_log(episodes=len(lengths))
    kept = np.concatenate([np.arange(25 * e, 25 * e + n + 1) for e, n in enumerate(lengths)])
    return replace(
        log,
        states=log.states[kept],
        actions=log.actions[kept],
        episodes=log.episodes[kept],
        terminal=log.terminal[kept],
    )


@pytest.mark.parametrize(
    ("lengths", "horizon", "replays"),
    [
        ([5] * 3 + [2] * 5, 2, [8, 8]),  # three of eight last longer: fewer than half
        ([5] * 4 + [2] * 4, 5, [8, 8, 4, 4, 4]),
        ([3] * 10 + [1] * 20, 3, [30, 10, 10]),  # ten are always enough
        ([3] * 9 + [1] * 21, 1, [30]),
    ],
)
def test_errors_count_as_long_as_enough_replays_last(
    lengths: list[int], horizon: int, replays: list[int]
) -> None:
    log = uneven(lengths)
    found = quality.replay(slider_model(exact), log, Steps.of(SLIDER, log))
    assert found.replays.tolist() == replays
    assert found.median.shape == found.ninety.shape == (horizon, 2)
    assert found.spread == pytest.approx(log.states.std(axis=0))


def test_replays_begin_again_after_a_horizon_and_end_at_a_failure(steps: Steps) -> None:
    episode = slider_log(reach=5.4).transitions().episode
    begins, lengths = quality.segments(episode, steps, 7)
    for begin, length in zip(begins, lengths, strict=True):
        assert (begin % 24) % 7 == 0  # 24 steps in each episode
        most = min(7, 24 - begin % 24)
        assert 0 < length <= most
        assert not steps.failing[begin : begin + length].any()
        assert length == most or steps.failing[begin + length]
    assert len(begins) == sum(not steps.failing[at] for at in range(len(steps)) if (at % 24) % 7 == 0)


def test_a_replay_hands_on_what_it_predicted_and_what_was_logged(steps: Steps) -> None:
    """A model that adds 1 to each state: its window is its own course, with the logged actions."""
    seen: list[tuple[Any, ...]] = []

    class Adding:
        def predict(self, window: Floats, member: int, *, after: Any, setpoints: Any) -> Floats:
            seen.append((window.copy(), member, after, setpoints))
            return window[:, :2] + 1.0

    begins = np.array([0, 24, len(steps) - 2])
    steps = replace(steps, aims=np.random.default_rng(0).normal(size=steps.aims.shape))
    errors = quality.errors_of(Adding(), 4, SLIDER, steps, begins, 3)
    for k, (window, member, after, setpoints) in enumerate(seen):
        at = np.minimum(begins + k, len(steps) - 1)
        assert member == 4
        np.testing.assert_array_equal(after, steps.next[at])
        np.testing.assert_array_equal(setpoints, steps.aims[at])
        np.testing.assert_array_equal(window[:, 2], steps.window[at, 2])
        np.testing.assert_allclose(window[:, :2], steps.window[begins, :2] + k, rtol=0, atol=1e-12)
        np.testing.assert_allclose(errors[:, k], np.abs(steps.window[begins, :2] + k + 1 - steps.next[at]))
    assert len(seen) == 3


def test_windows_are_stretched_from_the_middle_and_only_those_outside_are_kept() -> None:
    model = replace(slider_model(exact, exact), region=np.array([[0.0, 4.0], [-1.0, 1.0], [-1.0, 1.0]]))
    window = np.array([[2.0, 0.0, 1.0], [3.5, 0.0, -1.0], [2.0, -0.9, 0.5], [3.0, 0.5, 1.0]])
    expected = [[4.25, 0.0, -1.0], [2.0, -1.35, 0.5]]  # the place from 2, the speed from 0, the push stays
    np.testing.assert_allclose(quality._stretched(model, window), expected)


def test_a_deviation_of_no_steps_is_unknown() -> None:
    assert np.isnan(quality._deviation(np.zeros((2, 0, 3)))).tolist() == [True] * 3
    assert quality._deviation(np.array([[[1.0], [2.0]], [[3.0], [2.0]]])) == pytest.approx([1.0])


def test_the_reasons_are_those_of_the_worst_criteria_each_once() -> None:
    errors = np.array([[0.0, 0.05]] * 4)
    known = RewardErrors(np.zeros(2), np.eye(2, dtype=np.int64), score=1.0, found=None, false_alarms=None)
    grade, reasons = grade_model(
        SLIDER, StateErrors(np.zeros(2), np.ones(2), np.zeros(2)),
        OpenLoop(errors, errors, np.full(4, 10), np.ones(2)), known,
    )  # fmt: skip
    assert grade == "good"
    assert [reason.split(",")[0] for reason in reasons] == [
        "one step ahead", "4 steps ahead", "100 % of the rewards are predicted",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "grade"), [(0.1, "good"), (0.11, "fair"), (0.3, "fair"), (0.31, "poor"), (np.nan, "poor")]
)
def test_a_limit_belongs_to_the_better_grade(value: float, grade: str) -> None:
    assert quality._grade(value, (0.1, 0.3)) == grade


def test_the_report_as_json() -> None:
    table = quality.assess(slider_model(exact, exact), slider_log()).to_dict()
    assert json.loads(json.dumps(table, allow_nan=False)) == table
    assert table["disagreement"] == {part: {"place": 0.0, "speed": 0.0} for part in ("inside", "outside")}
    assert table["one_step"]["rmse_failing"] == {"place": None, "speed": None}
    assert list(table["open_loop"]["median"]) == ["place", "speed"]
