"""Controllers of every kind on a surrogate: one step of the engine equals plain Python."""

from typing import Any

import numpy as np
import pytest

from clearloop.controllers import Controller, encode
from clearloop.evaluation.rollouts import window
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import Job
from clearloop.surrogate import Surrogate
from tests.controllers.kinds import KINDS


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("controller", KINDS.values(), ids=KINDS)
def test_one_step(best: Surrogate, controller: Controller, dtype: Any, tolerance: float) -> None:
    task = best.task
    controller = controller.for_task(task)
    history = window(task, [controller])
    starts = np.random.default_rng(1).uniform(-0.5, 0.5, (100, 4)).astype(dtype)
    aims = np.array([[controller.setpoint.get(name, 0.0) for name in task.state_names]], dtype)
    policies = encode([controller], task, history=history, dtype=dtype)
    rollout = roll_out(
        policies,
        best.system(dtype, history=history),
        Job(starts, aims, task.discount, history),
        trajectories=True,
    )
    assert rollout.states is not None
    assert rollout.actions is not None
    for start, states, actions in zip(starts, rollout.states[0, 0], rollout.actions[0, 0], strict=True):
        observation = dict(zip(task.state_names, start.tolist(), strict=True))
        action = controller.act(observation, controller.reset())["force"]
        after = best.predict(np.array([[*start, action]], float), 0)[0]
        assert actions[0, 0] == pytest.approx(action, rel=tolerance, abs=10 * tolerance)
        assert states[1] == pytest.approx(after, rel=tolerance, abs=tolerance)
