"""Fixed actions: each lane follows its own, within the limits."""

from typing import Any

import numpy as np
import pytest

from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import SEQUENCE
from tests.kernels.rig import Rig, policies_of

LIMITS = [[-1.0, 1.0], [-0.5, 2.0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("population", "starts"), [(1, 1), (1, 300), (3, 100), (300, 1)])
def test_each_lane_follows_its_own_actions(population: int, starts: int, dtype: Any) -> None:
    rig, steps = Rig(("x", "y"), ("u", "w"), dtype=dtype), 5
    rng = np.random.default_rng(starts)
    numbers = rng.normal(0, 2, (population * starts, steps * 2)).astype(dtype)
    begin = rng.normal(0, 1, (starts, 2)).astype(dtype)
    policies = policies_of(SEQUENCE, numbers, LIMITS, dtype)
    rollout = roll_out(policies, rig.plant(["u", "w"]), rig.job(begin, steps), trajectories=True)
    low, high = np.array(LIMITS, dtype).T
    expected = np.clip(numbers.reshape(population, starts, steps, 2), low, high)
    assert rollout.actions is not None
    assert rollout.states is not None
    assert (rollout.actions[0] == expected).all()
    moved = begin[None, :, None] + np.cumsum(expected.astype(float), axis=2)
    np.testing.assert_allclose(rollout.states[0, :, :, 1:], moved, atol=1e-5)
    assert (rollout.states[0, :, :, 0] == begin).all()
