"""Which states failure alters, told from data; and what is learned from failing steps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.data import Batch
from clearloop.surrogate.dynamics import choose_examples
from clearloop.surrogate.steps import FEWEST_FAILURES, Lesson, Steps, find_alterations

from .models import CARTPOLE, CARTPOLE_BY_COLUMN, QUICK, QUICK_PUBLISHED


def made_up_steps(seed: int, n_failing: int = 30, noise: float = 0.02, reset: float | None = 0.0) -> Steps:
    """A place that moves with its speed, and a speed that failure beyond ±1 resets, or leaves alone."""
    rng = np.random.default_rng(seed)
    window = rng.uniform(-1, 1, (1000, 3)) * [0.9, 1.0, 1.0]
    window[:n_failing, :2] = rng.uniform(0.5, 1.0, (n_failing, 2)) * np.array([1.0, 2.0])
    after = np.column_stack([window[:, 0] + 0.5 * window[:, 1], 0.9 * window[:, 1] + 0.1 * window[:, 2]])
    after += noise * rng.normal(size=after.shape)
    failing = np.arange(1000) < n_failing
    if reset is not None:
        after[failing, 1] = reset
    return Steps(
        after,
        window,
        np.zeros((1000, 0)),
        np.zeros((1000, 2)),
        np.zeros((1000, 2)),
        np.where(failing, -1.0, 0.0),
        failing,
        np.zeros(1000, np.int64),
        np.zeros(1000, np.bool_),
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(FEWEST_FAILURES, 300), st.floats(0.0, 0.15))
def test_a_state_that_failure_sets_is_found(seed: int, n_failing: int, noise: float) -> None:
    failure = find_alterations(made_up_steps(seed, n_failing, noise))
    assert failure.altered.tolist() == [False, True]
    assert np.array_equal(failure.values, [np.nan, 0.0], equal_nan=True)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(FEWEST_FAILURES, 300), st.floats(0.001, 0.2))
def test_nothing_is_found_where_failure_sets_nothing(seed: int, n_failing: int, noise: float) -> None:
    assert not find_alterations(made_up_steps(seed, n_failing, noise, reset=None)).altered.any()


def test_a_reset_to_changing_values_is_found_without_a_value() -> None:
    steps = made_up_steps(0)
    steps.next[steps.failing, 1] = np.random.default_rng(1).normal(0, 0.05, 30)  # a noisy sensor at rest
    failure = find_alterations(steps)
    assert failure.altered.tolist() == [False, True]
    assert np.isnan(failure.values).all()


def test_a_reset_by_some_failures_only_is_found() -> None:
    steps = made_up_steps(0, n_failing=100, reset=None)
    steps.next[:20, 1] = 0.0
    assert find_alterations(steps).altered.tolist() == [False, True]


def test_a_constant_that_is_always_constant_is_no_alteration() -> None:
    steps = made_up_steps(0, reset=None)
    steps.next[:, 1] = steps.window[:, 1] = 3.0
    assert find_alterations(steps).altered.tolist() == [False, False]


def test_without_failing_steps_nothing_is_altered_and_with_no_others_everything() -> None:
    steps = made_up_steps(0)
    assert not find_alterations(steps[~steps.failing]).altered.any()
    assert find_alterations(steps[steps.failing]).altered.all()


def test_names_survive_a_dictionary() -> None:
    failure = find_alterations(made_up_steps(0))
    assert failure.to_dict(["place", "speed"]) == {"speed": 0.0}
    again = type(failure).from_dict({"speed": 0.0}, ["place", "speed"])
    assert np.array_equal(again.altered, failure.altered)
    assert np.array_equal(again.values, failure.values, equal_nan=True)


def test_failing_steps_are_found_without_marks(cartpole_batch: Batch) -> None:
    marked = Steps.of(CARTPOLE, cartpole_batch)
    unmarked = replace(cartpole_batch, terminal=np.zeros_like(cartpole_batch.terminal), rewards=None)
    found = Steps.of(CARTPOLE, unmarked)
    assert marked.failing.sum() > 50
    assert np.array_equal(found.failing, marked.failing)
    assert np.array_equal(found.reward, marked.reward)
    logged = cartpole_batch.transitions().reward
    assert logged is not None
    assert np.array_equal(found.reward, logged)


def test_the_rule_needs_no_plant(cartpole_batch: Batch) -> None:
    assert CARTPOLE_BY_COLUMN.plant is None
    steps = Steps.of(CARTPOLE_BY_COLUMN, cartpole_batch)
    assert find_alterations(steps).altered.tolist() == [False, True, False, True]


def test_few_failing_steps_are_left_out_entirely(cartpole_batch: Batch) -> None:
    failing = np.flatnonzero(cartpole_batch.terminal)
    kept = np.ones(len(cartpole_batch.episodes), np.bool_)
    kept[failing[FEWEST_FAILURES - 1 :]] = False
    batch = replace(
        cartpole_batch,
        **{
            name: getattr(cartpole_batch, name)[kept]
            for name in ("states", "actions", "episodes", "terminal", "rewards", "times")
        },
    )
    lesson = Lesson.of(CARTPOLE, batch, QUICK, seed=0)
    assert not lesson.training.failing.any()
    assert not lesson.held_out.failing.any()
    assert not lesson.failure.altered.any()


def test_published_dynamics_do_without_failing_steps_and_the_reward_does_not(cartpole_batch: Batch) -> None:
    lesson = Lesson.of(CARTPOLE, cartpole_batch, QUICK_PUBLISHED, seed=0)
    assert lesson.failure.altered.all()
    assert lesson.training.failing.any()


@pytest.mark.parametrize(("states", "failing"), [([0, 2], True), ([1, 3], False)])
def test_failing_steps_teach_only_the_states_that_they_do_not_alter(
    cartpole_batch: Batch, states: list[int], failing: bool
) -> None:
    lesson = Lesson.of(CARTPOLE, cartpole_batch, QUICK, seed=0)
    steps = lesson.training if failing else lesson.training[~lesson.training.failing]
    window, changes, _ = choose_examples(lesson.training, np.array(states), lesson.failure.altered)
    assert np.array_equal(window, steps.window)
    assert np.array_equal(changes[:, :, 0].T, steps.change[:, states])


def test_mirrored_examples(cartpole_batch: Batch) -> None:
    lesson = Lesson.of(CARTPOLE, cartpole_batch, QUICK, seed=0)
    inputs, targets = lesson.mirrored(np.array([[1.0, -2.0]]), np.array([[[3.0]]]), sign=-1.0)
    assert inputs.tolist() == [[1.0, -2.0], [-1.0, 2.0]]
    assert targets.tolist() == [[[3.0], [-3.0]]]
    plain = replace(lesson, track=replace(QUICK, mirrored=False))
    assert len(plain.mirrored(inputs, targets, sign=-1.0)[0]) == 2
