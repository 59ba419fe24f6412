"""Where states lie on a sheet, networks learn the way back to it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from clearloop.data import Batch
from clearloop.networks import Training
from clearloop.plants.exploration import make_batch
from clearloop.surrogate import BEST, Surrogate
from clearloop.surrogate.sheets import steps_beside
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


def test_past_states_lie_on_the_sheet_as_well(batch: Batch) -> None:
    task = Task.from_dict(PENDULUM.model_dump(mode="json", exclude_none=True) | {"history": 2})
    steps = Steps.of(task, batch)
    beside = steps_beside(task, steps, np.random.default_rng(1))
    assert beside is not None
    for lag in (0, 4):
        assert 0.01 < np.median(distance(beside.window[:, lag : lag + 3])) < 0.5


def test_too_few_steps_tell_nothing(batch: Batch) -> None:
    steps = Steps.of(PENDULUM, batch)
    assert steps_beside(PENDULUM, steps[np.arange(len(steps)) < 100], np.random.default_rng(1)) is None
