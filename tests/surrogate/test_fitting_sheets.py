"""Where states lie on a sheet, networks learn the way back to it."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.signal import lfilter

from clearloop.data import Batch
from clearloop.networks import Training
from clearloop.plants.exploration import make_batch
from clearloop.surrogate import BEST, Surrogate
from clearloop.surrogate.fitting import steps_beside
from clearloop.surrogate.steps import Steps
from clearloop.task import Task

PENDULUM = Task.load("pendulum")  # shows the sine and the cosine of its angle
ENOUGH = Training(epochs=60)


@pytest.fixture(scope="module")
def batch() -> Batch:
    return make_batch(PENDULUM, rng=np.random.default_rng(0), size=4_000)


def distance(states: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of pendulums, from the circle."""
    return np.abs(np.hypot(states[..., 0], states[..., 1]) - 1.0)


def test_steps_are_shown_again_from_beside_the_sheet(batch: Batch) -> None:
    steps = Steps.of(PENDULUM, batch)
    beside = steps_beside(PENDULUM, steps, np.random.default_rng(1))
    assert beside is not None
    assert 0.01 < np.median(distance(beside.window)) < 0.5
    assert distance(beside.next).max() < 1e-9  # and lead back to it
    moved = beside.window - steps.window
    inward = moved[:, :2] * steps.window[:, :2]
    sideways = moved[:, 0] * steps.window[:, 1] - moved[:, 1] * steps.window[:, 0]
    assert np.abs(sideways).mean() < 0.1 * np.abs(inward.sum(axis=1)).mean()
    assert not moved[:, 3].any()  # the action
    assert distance(steps.window).max() < 1e-9


def test_rollouts_stay_on_the_sheet(batch: Batch) -> None:
    drifts = []
    for track in (BEST, replace(BEST, sheets=False)):
        few = replace(track, search=2, judge=0, training=ENOUGH)
        model = Surrogate.fit(PENDULUM, batch, track=few, rng=np.random.default_rng(2))
        drifts.append(np.mean([drift(model, member) for member in range(2)]))
    assert drifts[0] < 0.1 < drifts[1]


def drift(model: Surrogate, member: int) -> float:
    """The mean distance from the circle after 200 steps, with random torques."""
    rng = np.random.default_rng(3)
    angle = rng.uniform(-np.pi, np.pi, 100)
    states = np.stack([np.cos(angle), np.sin(angle), rng.uniform(-1, 1, 100)], axis=1)
    for _ in range(200):
        states = model.predict(np.hstack([states, rng.uniform(-2, 2, (100, 1))]), member)
    return float(distance(states).mean())


@pytest.mark.parametrize("name", ["cartpole", "motor", "tank", "cartpole-hardware"])
def test_other_plants_fill_their_space(name: str) -> None:
    """Also one whose sensors are coarse."""
    task = Task.load(name)
    steps = Steps.of(task, make_batch(task, rng=np.random.default_rng(0)))
    assert steps_beside(task, steps, np.random.default_rng(1)) is None


def signals(rows: int, memory: float, sensors: int) -> NDArray[np.float64]:
    """[rows, sensors] of random courses, each as smooth as a second-order lag of `memory` rows."""
    states = np.random.default_rng(5).standard_normal((rows, sensors))
    for _ in range(2):
        states = lfilter([1.0], [1.0, -np.exp(-1.0 / memory)], states, axis=0)
    return np.asarray(states / states.std(axis=0))


def steps_of(states: NDArray[np.float64]) -> tuple[Task, Steps]:
    names = [f"s{j}" for j in range(states.shape[1])]
    tables = {
        "name": "signals", "dt": 1.0, "discount": 0.9, "horizon": 10, "history": 2,
        "states": {name: {} for name in names},
        "actions": {"u": {"limits": [-1.0, 1.0]}},
        "reward": {"expression": "-abs(s0)"},
    }  # fmt: skip
    task = Task.from_dict(tables)
    columns = dict(zip(names, states.T, strict=True)) | {"u": np.zeros(len(states))}
    return task, Steps.of(task, Batch.from_frame(pl.DataFrame(columns), task))


@pytest.mark.parametrize("memory", [3.0, 30.0, 100.0, 1000.0])
def test_slow_courses_are_no_sheets(memory: float) -> None:
    assert steps_beside(*steps_of(signals(8_000, memory, 4)), np.random.default_rng(1)) is None


def test_wild_values_and_coarse_sensors_make_no_sheets() -> None:
    states = signals(8_000, 3.0, 4)
    states[17, 1] = -9999.0
    assert steps_beside(*steps_of(states), np.random.default_rng(1)) is None
    states[:, 2] = states[:, 2].round(1).astype(np.float32)
    states[:, 3] = states[:, 3] > 0
    assert steps_beside(*steps_of(states), np.random.default_rng(1)) is None


def test_two_sensors_of_one_thing_are_a_sheet() -> None:
    states = signals(8_000, 10.0, 3)
    states[:, 2] = 100.0 * (states[:, 0] + states[:, 1])
    states[:, 1] += 5.0
    task, steps = steps_of(states)
    beside = steps_beside(task, steps, np.random.default_rng(1))
    assert beside is not None
    for lag in (0, 4):  # the past is displaced with the present
        s0, s1, s2 = beside.window[:, lag : lag + 3].T
        apart = s2 - 100.0 * (s0 + s1 - 5.0)
        assert 2.0 < np.abs(apart).mean() < 30.0
    was, now = (taken.window[:, :3] - taken.window[:, 4:7] for taken in (steps, beside))
    np.testing.assert_allclose(now, was, atol=1e-9)


def test_too_few_steps_tell_nothing(batch: Batch) -> None:
    steps = Steps.of(PENDULUM, batch)
    assert steps_beside(PENDULUM, steps[np.arange(len(steps)) < 100], np.random.default_rng(1)) is None


def test_what_is_derived_would_tell_what_was_displaced(batch: Batch) -> None:
    tables = PENDULUM.model_dump(mode="json", exclude_none=True)
    tables["states"]["wide"] = {"formula": "2*x"}
    task = Task.from_dict(tables)
    assert steps_beside(task, Steps.of(PENDULUM, batch), np.random.default_rng(1)) is None
