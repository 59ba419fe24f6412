"""The engine on a surrogate equals plain NumPy, for every kind of reward, with history and setpoints."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clearloop.arrays import Floats
from clearloop.kernels.engine import Rollout, roll_out
from clearloop.kernels.layout import LINEAR, Job, Policies
from clearloop.networks import Activation
from clearloop.surrogate import Surrogate

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}


def gains_of(surrogate: Surrogate) -> Floats:
    """[A, S] of a controller that looks at the present."""
    task = surrogate.task
    return np.linspace(-0.5, 1.5, len(task.actions) * len(task.states)).reshape(len(task.actions), -1)


def roll(surrogate: Surrogate, starts: Floats, aims: Floats, steps: int, history: int, dtype: Any) -> Rollout:
    task = surrogate.task
    n_states, width = len(task.states), len(task.scope.names)
    numbers = np.zeros((len(task.actions), 1 + history * width + n_states))
    numbers[:, 1 : 1 + n_states] = gains_of(surrogate)
    policies = Policies(
        kind=LINEAR,
        numbers=numbers.reshape(1, -1).astype(dtype),
        sizes=np.zeros(0, np.int64),
        code=np.zeros(0, np.int32),
        operand=np.zeros(0, dtype),
        spans=np.zeros((1, 2), np.int64),
        limits=task.action_limits.astype(dtype),
        counts=task.action_counts,
    )
    job = Job(starts.astype(dtype), np.tile(aims, (steps, 1)).astype(dtype), task.discount, history)
    return roll_out(policies, surrogate.system(dtype, history=history), job, trajectories=True)


def twin(
    surrogate: Surrogate, member: int, starts: Floats, aims: Floats, steps: int
) -> tuple[Floats, Floats, Floats]:
    """States [N, steps + 1, S], rewards [N, steps] and returns [N], in double precision."""
    task = surrogate.task
    n_states, width = len(task.states), len(task.scope.names)
    low, high = task.action_limits.T
    blank = np.zeros((len(starts), width - n_states))
    window = np.hstack([np.hstack([starts, blank])] * task.history)
    frozen, held = np.zeros(len(starts), np.bool_), np.zeros(len(starts))
    states, rewards = [starts], []
    for _ in range(steps):
        now = window[:, :n_states]
        window[:, n_states:width] = np.clip((now - aims) @ gains_of(surrogate).T, low, high)
        after = surrogate.predict(window, member)
        reward, fails = surrogate.judge(np.hstack([after, window, np.tile(aims, (len(now), 1))]), member)
        if surrogate.track.absorbing:
            landing = np.where(np.isnan(surrogate.failure.values), after, surrogate.failure.values)
            after = np.where(frozen[:, None], now, np.where(fails[:, None], landing, after))
            reward = np.where(frozen, held, reward)
            frozen, held = frozen | fails, reward
        states.append(after)
        rewards.append(reward)
        window = np.hstack([after, blank, window[:, :-width]])
    paid = np.stack(rewards, axis=1)
    return np.stack(states, axis=1), paid, paid @ task.discount ** np.arange(steps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("more", [0, 2])
def test_one_step_equals_numpy(surrogate: Surrogate, more: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    n_states = len(surrogate.task.states)
    low, high = surrogate.region[:n_states].T
    starts, aims = rng.uniform(low, high, (300, n_states)), np.full(n_states, 0.25)
    starts = starts.astype(dtype).astype(float)
    rollout = roll(surrogate, starts, aims, 1, surrogate.task.history + more, dtype)
    for member in range(surrogate.members):
        states, rewards, _ = twin(surrogate, member, starts, aims, 1)
        assert rollout.states is not None
        assert rollout.rewards is not None
        np.testing.assert_allclose(
            rollout.states[member, 0], states, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
        )
        close = np.isclose(rollout.rewards[member, 0], rewards, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
        # In single precision a state may fall on the other side of a limit, or of two equal classes.
        assert close.mean() >= (1.0 if dtype == np.float64 else 0.99)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
def test_other_activations_equal_numpy(best: Surrogate, activation: Activation) -> None:
    members = tuple(tuple(replace(network, activation=activation) for network in m) for m in best.dynamics)
    surrogate = replace(best, dynamics=members)
    starts = np.random.default_rng(2).uniform(-0.5, 0.5, (50, 4))
    rollout = roll(surrogate, starts, np.zeros(4), 1, 1, np.float64)
    assert rollout.states is not None
    for member in range(best.members):
        states, _, _ = twin(surrogate, member, starts, np.zeros(4), 1)
        np.testing.assert_allclose(rollout.states[member, 0], states, rtol=1e-12, atol=1e-12)


def test_forty_steps_equal_numpy_past_failure(surrogate: Surrogate) -> None:
    rng = np.random.default_rng(1)
    n_states = len(surrogate.task.states)
    starts = rng.uniform(-0.5, 0.5, (50, n_states))
    rollout = roll(surrogate, starts, np.zeros(n_states), 40, surrogate.task.history, np.float64)
    for member in range(surrogate.members):
        states, _, returns = twin(surrogate, member, starts, np.zeros(n_states), 40)
        assert rollout.states is not None
        np.testing.assert_allclose(rollout.states[member, 0], states, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(rollout.returns[member, 0], returns, rtol=1e-9)


def test_some_of_those_starts_fail(best: Surrogate) -> None:
    starts = np.random.default_rng(1).uniform(-0.5, 0.5, (50, 4))
    rollout = roll(best, starts, np.zeros(4), 40, 1, np.float64)
    assert rollout.failed.any()
