"""The window: what programs and rewards see of the past, and of setpoints."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from clearloop.expression import parse
from clearloop.kernels.engine import Rollout, roll_out
from tests.kernels.rig import Rig

both = pytest.mark.parametrize("dtype", [np.float32, np.float64])

assert_close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)  # not the place to judge rounding

STEPS = 6
STARTS = [[1.0, -2.0], [0.5, 4.0], [-8.0, 0.25]]
AIMS = [[0.0, 1.0], [0.0, 1.0], [0.0, 3.0], [0.0, 3.0], [2.0, 3.0], [2.0, 3.0]]


def roll(actions: tuple[str, str], reward: str, dtype: Any, aims: Any = None, history: int = 4) -> Rollout:
    """x moves by u, y by w."""
    rig = Rig(("x", "y"), ("u", "w"), history, dtype)
    policies = rig.programs([[parse("0"), parse("0")], [parse(text) for text in actions]], limit=1e6)
    return roll_out(
        policies, rig.plant(["u", "w"], [reward]), rig.job(STARTS, STEPS, 1.0, aims), trajectories=True
    )


def past(series: Any, lag: int, before: Any) -> Any:
    """[N, T] the value `lag` steps ago, `before` where that is before the start."""
    return np.hstack([np.tile(before, (1, lag)), series])[:, :STEPS]


def of_second(rollout: Rollout) -> tuple[Any, Any, Any]:
    assert rollout.states is not None
    assert rollout.actions is not None
    assert rollout.rewards is not None
    return rollout.states[0, 1], rollout.actions[0, 1], rollout.rewards[0, 1]


@both
@pytest.mark.parametrize("lag", [1, 2, 3])
def test_a_program_sees_past_states_and_actions(lag: int, dtype: Any) -> None:
    states, actions, _ = of_second(roll((f"y[t-{lag}] + 1", f"u[t-{lag}] - w[t-{lag}]"), "0", dtype))
    first = np.array(STARTS)[:, 1:]  # the first observation repeated
    assert_close(actions[..., 0], past(states[..., 1], lag, first) + 1)
    nothing = np.zeros((3, 1))  # past actions 0
    assert_close(actions[..., 1], past(actions[..., 0] - actions[..., 1], lag, nothing))
    assert len(np.unique(actions[..., 1])) > 3


@both
def test_a_program_sees_errors_by_the_present_setpoint(dtype: Any) -> None:
    states, actions, _ = of_second(roll(("y[t-2]", "y.setpoint + 10*x.setpoint"), "0", dtype, AIMS))
    aims = np.array(AIMS)
    assert_close(actions[..., 0], past(states[..., 1], 2, np.array(STARTS)[:, 1:]) - aims[:, 1])
    assert_close(actions[..., 1], np.tile(aims[:, 1] + 10 * aims[:, 0], (3, 1)))


@both
def test_a_reward_sees_the_step_and_what_was_before(dtype: Any) -> None:
    moving = ("y[t-1] + 1", "x - u[t-1]")
    start_x, start_y, nothing = np.array(STARTS)[:, :1], np.array(STARTS)[:, 1:], np.zeros((3, 1))
    states, actions, _ = of_second(roll(moving, "0", dtype))
    x, y, u, w = states[..., 0], states[..., 1], actions[..., 0], actions[..., 1]
    sights = {
        "x": x[:, 1:],
        "x[t]": x[:, :-1],
        "y[t-1]": past(y, 1, start_y),
        "x[t-3]": past(x, 3, start_x),
        "u": u,
        "w": w,
        "u[t-1]": past(u, 1, nothing),
        "w[t-2]": past(w, 2, nothing),
    }
    for text, expected in sights.items():
        _, _, rewards = of_second(roll(moving, text, dtype))
        assert_close(rewards, expected, err_msg=text)
        assert len(np.unique(expected)) > 3, text


@both
def test_a_reward_sees_setpoints_and_errors(dtype: Any) -> None:
    moving, aims = ("y[t-1] + 1", "x.setpoint"), np.array(AIMS)
    states, _, rewards = of_second(roll(moving, "y.error + 100*x.setpoint", dtype, AIMS))
    assert_close(rewards, states[:, 1:, 1] - aims[:, 1] + 100 * aims[:, 0])
    states, _, rewards = of_second(roll(moving, "y[t-1]", dtype, AIMS))  # a plain state is not an error
    assert_close(rewards, past(states[..., 1], 1, np.array(STARTS)[:, 1:]))


@both
@pytest.mark.parametrize("history", [2, 3, 7])
def test_a_longer_window_changes_nothing(history: int, dtype: Any) -> None:
    law = ("x - 2*y", "tanh(x)*y")
    short, long = (of_second(roll(law, "x*u - y[t]", dtype, AIMS, n)) for n in (1, history))
    for a, b in zip(short, long, strict=True):
        assert_close(a, b)


@both
@pytest.mark.parametrize("aims", [None, AIMS], ids=["no setpoints", "setpoints"])
@pytest.mark.parametrize("n_starts", [3, 300])
def test_a_past_that_is_given_is_gone_on_from(n_starts: int, aims: Any, dtype: Any) -> None:
    """From its window after four steps, an episode goes on as if it had never been interrupted."""
    rig = Rig(("x", "y"), ("u", "w"), 4, dtype)
    law = ["tanh(y[t-1] - w[t-2]) + 0.5", "0.25*x[t-3] - u[t-1]"]
    policies = rig.programs([[parse(text) for text in law]], limit=1e6)
    plant = rig.plant(["u", "w"], ["x[t-2] - u[t-3]*w + y"])
    starts = np.random.default_rng(0).normal(0, 1, (n_starts, 2))
    aims = np.zeros((STEPS, 2)) if aims is None else np.array(aims)
    whole = roll_out(policies, plant, rig.job(starts, STEPS, 1.0, aims), trajectories=True)
    assert whole.states is not None
    assert whole.actions is not None
    assert whole.rewards is not None
    pairs = [(whole.states[0, 0, :, k], whole.actions[0, 0, :, k]) for k in (4, 3, 2, 1)]
    windows = np.hstack([part for pair in pairs for part in pair])
    windows[:, 2:4] = np.nan  # what is being chosen is not read
    job = rig.job(starts, 2, 1.0, aims[4:])._replace(starts=windows.astype(dtype))
    rest = roll_out(policies, plant, job, trajectories=True)
    np.testing.assert_array_equal(rest.states, whole.states[:, :, :, 4:])
    np.testing.assert_array_equal(rest.actions, whole.actions[:, :, :, 4:])
    np.testing.assert_array_equal(rest.rewards, whole.rewards[:, :, :, 4:])
