"""The limits of the verdict before the search: from errors that are written down, not measured."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.surrogate import examine_model, trust
from clearloop.surrogate.quality import errors_of
from clearloop.surrogate.steps import Steps
from clearloop.surrogate.surrogate import Repetition
from clearloop.surrogate.trust import LinearPredictor, ReplayErrors, better
from clearloop.task import Task
from tests.surrogate.models import PUSHED, SLIDER, slider_log, slider_model

AHEAD = (1, 3, 10, 30)


def errors(
    model: float | list[float], *, still: float | list[float] = 1.0, linear: float | list[float] = 1.0
) -> ReplayErrors:
    """Errors of both states of the slider, for each number of steps or for all of them."""
    columns = [
        np.column_stack([np.broadcast_to(each, 4)] * 2).astype(float) for each in (model, still, linear)
    ]
    return ReplayErrors(AHEAD, *columns)


def found(monkeypatch: pytest.MonkeyPatch, known: ReplayErrors) -> list[tuple[str, str, object]]:
    """The findings on a model that has these errors."""
    monkeypatch.setattr(trust, "compare", lambda *_: known)
    log = slider_log()
    model = replace(slider_model(lambda gains: (gains, 0.0)), batch=log.fingerprint())
    return [(one.severity, one.code, one.numbers.get("name")) for one in examine_model(SLIDER, log, model)]


UNPREDICTABLE = [("problem", "unpredictable", "place"), ("warning", "unpredictable", "speed")]
WORSE = [("warning", "worse-than-linear", "place"), ("warning", "worse-than-linear", "speed")]


@pytest.mark.parametrize(
    ("model", "linear", "said"),
    [
        (0.94, 0.94, []),
        (0.95, 0.95, []),
        (0.96, 0.96, UNPREDICTABLE),
        ([0.96, 0.96, 0.96, 0.94], 0.96, []),  # at one distance it is better than no prediction
        (0.9, 0.62, []),
        (0.9, 0.58, WORSE),
        ([0.9, 0.9, 0.5, 0.9], 0.5, []),  # ten steps ahead count
        ([0.5, 0.5, 0.9, 0.5], 0.5, WORSE),
        (0.09, 0.01, []),  # both predict well
        (0.11, 0.01, WORSE),
    ],
)
def test_a_model_is_compared_with_no_change_and_with_a_linear_one(
    monkeypatch: pytest.MonkeyPatch,
    model: float | list[float],
    linear: float,
    said: list[tuple[str, str, object]],
) -> None:
    assert found(monkeypatch, errors(model, linear=linear)) == said


def test_the_share_is_that_of_the_best_distance() -> None:
    known = errors([0.8, 0.6, 0.9, 3.0], still=[1.0, 2.0, 1.0, 1.0])
    assert better(SLIDER, known) == pytest.approx([0.3, 0.3])
    assert better(SLIDER, errors(0.5, still=0.0)) == [0.0, 0.0]  # it rests, and there is nothing to predict
    nothing = ReplayErrors((), *(np.zeros((0, 2)) for _ in range(3)))
    assert better(SLIDER, nothing) == [0.0, 0.0]


def test_only_replays_that_last_are_compared() -> None:
    """The held-out episodes have 24 steps each, and a replay begins again after each three."""
    log = slider_log(episodes=100)
    model = replace(slider_model(lambda gains: (gains, 0.0)), batch=log.fingerprint())
    _, held_out = model.split(log)
    lengths: list[tuple[int, int]] = []

    def noting(original: Callable[..., object]) -> Callable[..., object]:
        def noted(*arguments: object) -> object:
            lengths.append((len(arguments[4]), int(arguments[5])))  # type: ignore[arg-type, call-overload]
            return original(*arguments)

        return noted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trust, "errors_of", noting(errors_of))
        trust.compare(model, log, held_out)
    episodes = len(held_out.transitions().episode) // 24
    per_length = {1: 24, 3: 8, 10: 2}  # of each episode
    assert lengths[:3] == [(episodes * count, steps) for steps, count in per_length.items()]


def test_a_linear_model_is_fitted_to_steps_that_do_not_fail() -> None:
    log = slider_log()
    states = log.states.copy()
    states[24::25, 0] = 7.0  # the last of each episode, beyond the limit of 5: no push moves it so far
    steps = Steps.of(SLIDER, replace(log, states=states))
    assert np.count_nonzero(steps.failing) == 30
    gains = LinearPredictor.fit(SLIDER, steps).gains
    assert gains == pytest.approx(np.vstack([PUSHED.T, np.zeros((1, 2))]), abs=1e-9)


def test_two_columns_that_are_almost_one_get_no_huge_gains() -> None:
    """A push that repeats the speed but for rounding: only their sum can be known."""
    steps = Steps.of(SLIDER, slider_log())
    rng = np.random.default_rng(0)
    window = steps.window.copy()
    window[:, 2] = window[:, 1] * (1 + 1e-13 * rng.normal(size=len(steps)))
    noisy = replace(steps, window=window, next=steps.next + 1e-3 * rng.normal(size=steps.next.shape))
    assert np.abs(LinearPredictor.fit(SLIDER, noisy).gains).max() < 1.0


def repetition(off: float, repeats: tuple[bool, ...], law: str = "", error: float = 0.0) -> Repetition:
    return Repetition(
        law=law,
        stretches=9,
        steps=15,
        bias=(off,) * len(repeats),
        bias_se=(error,) * len(repeats),
        repeats=repeats,
    )


@pytest.mark.parametrize(
    ("off", "repeats", "said"),
    [
        (0.25, 4, ""),
        (0.26, 4, "cost 26 % more than the log"),
        (-0.26, 4, "cost 26 % less than the log"),
        (1.5, 4, "cost 150 % more than the log"),
        (0.0, 3, ""),
        (0.0, 2, "only 2 of 5 models repeat the log"),
    ],
)
def test_models_that_do_not_repeat_the_log(off: float, repeats: int, said: str) -> None:
    model = slider_model(*[lambda gains: (gains, 0.0)] * 5)
    told = tuple(member < repeats for member in range(5))
    found = list(trust._repetition(replace(model, repetition=repetition(off, told))))
    assert [said in one.message for one in found] == ([True] if said else [])


@pytest.mark.parametrize(
    ("repeated", "enough"),
    [
        (repetition(0.2, (True,)), True),
        (repetition(0.3, (True,)), False),
        (repetition(0.6, (True,), "-2*place", 0.31), True),  # in closed loop, and within two standard errors
        (repetition(0.6, (True,), "-2*place", 0.29), False),
        (repetition(0.6, (True,), "", 0.31), False),  # no law held the plant
        (repetition(-0.6, (True,), "-2*place", 0.31), True),
    ],
)
def test_a_log_that_is_repeated_makes_up_for_a_state_that_cannot_be_predicted(
    monkeypatch: pytest.MonkeyPatch, repeated: Repetition, enough: bool
) -> None:
    monkeypatch.setattr(trust, "compare", lambda *_: errors(0.96))
    log = slider_log()
    model = replace(slider_model(lambda gains: (gains, 0.0)), batch=log.fingerprint(), repetition=repeated)
    found = [one.severity for one in examine_model(SLIDER, log, model) if one.code == "unpredictable"]
    assert found == (["warning", "warning"] if enough else ["problem", "warning"])


def test_linear_predictions_stay_within_the_limit_of_states() -> None:
    gains = np.vstack([np.eye(2) * 1e9, np.zeros((1, 2)), [[5.0, -5.0]]])
    window = np.array([[1e9, -1e9, 0.0], [0.0, 0.0, 1.0]])
    predicted = LinearPredictor(SLIDER, gains).predict(window, 0)
    assert predicted[0].tolist() == [STATE_LIMIT, -STATE_LIMIT]
    assert predicted[1].tolist() == [5.0, -5.0]


def test_external_states_are_not_predicted_but_known() -> None:
    task = Task.from_dict(
        SLIDER.model_dump(mode="json", exclude={"states"})
        | {"states": {"place": {}, "wind": {"external": True}}}
    )
    predictor = LinearPredictor(task, np.zeros((4, 2)))
    window = np.array([[1.0, 2.0, 0.0]])
    assert predictor.predict(window, 0).tolist() == [[1.0, 2.0]]
    assert predictor.predict(window, 0, after=np.array([[8.0, 9.0]])).tolist() == [[1.0, 9.0]]


def parts(ratio: float, rows: int = 1_000) -> tuple[float, float, float]:
    """Squared errors over a value from 0 to 1, of which the fourth fifth has errors that are larger."""
    values = np.linspace(0.0, 1.0, rows)
    sizes = np.where((values > 0.6) & (values < 0.8), 0.5 * ratio, 0.5)
    return trust._weakest(np.square(sizes), values)


def test_the_weakest_part_of_a_range() -> None:
    factor, low, high = parts(4.0)
    assert factor == pytest.approx(4.0, rel=0.02)
    assert (low, high) == pytest.approx((0.6, 0.8), abs=0.01)
    assert parts(4.0, rows=150)[0] > 3.5
    assert parts(4.0, rows=149) == (0.0, 0.0, 0.0)  # too few to tell
    assert trust._weakest(np.ones(1_000), np.zeros(1_000)) == (0.0, 0.0, 0.0)  # no range
    levels = np.repeat(np.arange(6.0), 200)  # a level between two parts belongs to the upper one
    assert trust._weakest(np.where(levels == 3, 16.0, 1.0), levels) == (4.0, 3.0, 4.0)
    half = np.maximum(np.linspace(-1.0, 1.0, 1_000), 0.0)
    assert trust._weakest(np.ones(1_000), half) == (0.0, 0.0, 0.0)  # parts without a range
    assert trust._weakest(np.zeros(1_000), np.linspace(0, 1, 1_000))[0] == 0.0  # no errors


@pytest.mark.parametrize(("many", "kept"), [(1_999, 1_999), (2_000, 1_000), (4_000, 1_334)])
def test_very_many_replays_are_thinned(many: int, kept: int) -> None:
    begins = np.arange(many + 1)
    lengths = np.full(many + 1, 10)
    lengths[-1] = 9  # too short by one step
    assert len(trust._replays(begins, lengths, 10)) == kept


@pytest.mark.parametrize(("left", "refused"), [(0.0, False), (0.94, False), (0.96, True), (1.3, True)])
def test_a_reward_that_does_not_follow_from_states_and_actions_is_refused(left: float, refused: bool) -> None:
    """`left` is the share of its variance that no model explains."""
    reward = np.linspace(-3.0, 3.0, 100)
    predicted = reward + np.sqrt(left * reward.var())
    asked: Any = SimpleNamespace(reward_expression=None)
    model: Any = SimpleNamespace(judge=lambda frame, _: (predicted, frame))
    steps: Any = SimpleNamespace(reward=reward, frame=None)
    found = list(trust._reward(asked, model, steps))
    assert [(one.severity, one.code) for one in found] == [("problem", "unpredictable-reward")] * refused
    if refused:
        assert found[0].numbers["unexplained"] == pytest.approx(left)
        assert f"(only {max(0.0, 100 * (1 - left)):.2g} % of its variance)" in found[0].message
    steps.reward, predicted = np.repeat(np.arange(5.0), 20), np.full(100, 9.0)  # classes, whatever they are
    assert not list(trust._reward(asked, model, steps))
