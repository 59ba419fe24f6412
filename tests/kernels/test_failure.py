"""Failure: an absorbing plant stops there and goes on paying, another goes on."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from clearloop.expression import parse
from clearloop.kernels.engine import System, roll_out
from tests.kernels.rig import Rig

both = pytest.mark.parametrize("dtype", [np.float32, np.float64])
assert_close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)  # not the place to judge rounding
RISING = ["1", "u"]  # x grows by 1 in a step, v by u = 2
REWARD = ("-x", "x > 2.5")


def rising(rig: Rig, absorbing: bool, **on_failure: float) -> System:
    return rig.plant(RISING, REWARD, absorbing, on_failure)


def roll(rig: Rig, system: System, starts: Any, steps: int, trajectories: bool = True) -> Any:
    policies = rig.programs([[parse("2")], [parse("2 + 0*x")]], limit=5.0)
    job = rig.job(starts, steps, discount=0.5)
    return roll_out(policies, system, job, trajectories=trajectories)


@both
def test_an_absorbing_plant_stays_where_it_failed(dtype: Any) -> None:
    rig = Rig(("x", "v"), dtype=dtype)
    rollout = roll(rig, rising(rig, True), [[0.0, 0.0]], 5)
    assert_close(rollout.states[0, 0, 0], [[0, 0], [1, 2], [2, 4], [3, 6], [3, 6], [3, 6]])
    assert_close(rollout.rewards[0, 0, 0], [-1, -2, -3, -3, -3])
    assert_close(rollout.returns[0, 0, 0], -1 - 2 / 2 - 3 / 4 - 3 / 8 - 3 / 16)
    assert (rollout.states[0, 0, 0, 3:] == rollout.states[0, 0, 0, 3]).all()
    assert rollout.failed.all()


@both
def test_what_failure_does_to_states_does_not_change_what_it_costs(dtype: Any) -> None:
    rig = Rig(("x", "v"), dtype=dtype)
    rollout = roll(rig, rising(rig, True, x=-7.0), [[1.0, 0.0]], 4)
    assert_close(rollout.states[0, 0, 0], [[1, 0], [2, 2], [-7, 4], [-7, 4], [-7, 4]])
    assert_close(rollout.rewards[0, 0, 0], [-2, -3, -3, -3])


@both
def test_another_plant_goes_on(dtype: Any) -> None:
    rig = Rig(("x", "v"), dtype=dtype)
    rollout = roll(rig, rising(rig, False, x=-7.0), [[1.0, 0.0], [-9.0, 0.0]], 4)
    assert_close(rollout.states[0, 0, 0, :, 0], [1, 2, 3, 4, 5])
    assert_close(rollout.rewards[0, 0, 0], [-2, -3, -4, -5])
    assert rollout.failed[0].tolist() == [[True, False]] * 2


@both
def test_failure_is_remembered_where_it_passes(dtype: Any) -> None:
    rig = Rig(("x", "v"), dtype=dtype)
    system = rig.plant(RISING, ("x", "x > 1.5 and x < 2.5"), absorbing=False)
    rollout = roll(rig, system, [[0.0, 0.0], [5.0, 0.0]], 4)
    assert rollout.failed[0].tolist() == [[True, False]] * 2


@both
def test_a_lane_fails_alone(dtype: Any) -> None:
    """Lanes of one tile that fail at different steps, or never."""
    rig = Rig(("x", "v"), dtype=dtype)
    starts = np.stack([np.linspace(-50, 2, 300), np.zeros(300)], axis=1).astype(dtype)
    rollout = roll(rig, rising(rig, True, v=0.0), starts, 30)
    x = starts[:, 0].astype(float)
    until = np.ceil(np.maximum(2.5 - x, 0) + 1e-9)  # the step that fails
    expected = x + np.minimum(until, 30)
    assert (rollout.failed[0] == (until <= 30)).all()
    assert 0 < rollout.failed.mean() < 1
    assert_close(rollout.states[0, 0, :, -1, 0], expected)
    assert_close(rollout.states[0, 1, :, -1, 1], np.where(until <= 30, 0, 60))


@both
def test_after_success_nothing_more_is_paid(dtype: Any) -> None:
    """Failure, success and neither in one tile; what failure does to states, success does not."""
    rig = Rig(("x", "v"), dtype=dtype)
    reward = ("-x", "x > 9.5", "x > 2.5 and x < 4")
    system = rig.plant(RISING, reward, on_failure={"v": -7.0})
    rollout = roll(rig, system, [[0.0, 0.0], [8.0, 0.0], [-9.0, 0.0]], 5)
    assert_close(rollout.states[0, 0, :, -1], [[3, 6], [10, -7], [-4, 10]])
    assert_close(rollout.rewards[0, 0], [[-1, -2, -3, 0, 0], [-9, -10, -10, -10, -10], [8, 7, 6, 5, 4]])
    assert rollout.failed[0, 0].tolist() == [False, True, False]
    assert rollout.succeeded[0, 0].tolist() == [True, False, False]
    goes_on = roll(rig, rig.plant(RISING, reward, absorbing=False), [[0.0, 0.0], [8.0, 0.0]], 5)
    assert_close(goes_on.rewards[0, 0, 0], [-1, -2, -3, -4, -5])
    assert goes_on.failed[0, 0].tolist() == [False, True]


@both
@pytest.mark.parametrize("low", [-3.0, -50.0])
def test_returns_with_successes_are_the_same_without_a_record(low: float, dtype: Any) -> None:
    rig = Rig(("x", "v"), dtype=dtype)
    system = rig.plant(RISING, ("-x", "x > 2.5", "x < 1.5 and x > 0.5"))
    starts = np.random.default_rng(0).uniform(low, 2, (300, 2))
    recorded = roll(rig, system, starts, 40)
    plain = roll(rig, system, starts, 40, trajectories=False)
    for name in ("returns", "failed", "succeeded"):
        assert (getattr(plain, name) == getattr(recorded, name)).all()
    ended = plain.failed | plain.succeeded
    assert ended.all() == (low == -3.0)
    assert 0 < plain.succeeded.mean() < ended.mean()
    assert_close(plain.returns, recorded.rewards.astype(float) @ 0.5 ** np.arange(40))


@both
@pytest.mark.parametrize("absorbing", [True, False])
@pytest.mark.parametrize("low", [-3.0, -50.0])  # all fail early, or only some
def test_returns_are_the_same_without_a_record(low: float, absorbing: bool, dtype: Any) -> None:
    rig = Rig(("x", "v"), dtype=dtype)
    starts = np.random.default_rng(0).uniform(low, 2, (300, 2))
    recorded = roll(rig, rising(rig, absorbing), starts, 40)
    plain = roll(rig, rising(rig, absorbing), starts, 40, trajectories=False)
    assert (plain.returns == recorded.returns).all()
    assert (plain.failed == recorded.failed).all()
    assert plain.failed.all() == (low == -3.0)
    paid = recorded.rewards.astype(float) @ 0.5 ** np.arange(40)
    assert_close(plain.returns, paid)
