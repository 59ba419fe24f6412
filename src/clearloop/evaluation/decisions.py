"""What controllers do in given situations, for whole populations: one step on a plant that stands still."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearloop.data.cells import Floats
from clearloop.expression import Number
from clearloop.kernels.engine import System, roll_out
from clearloop.kernels.layout import DERIVATIVE, Dynamics, Job, Policies
from clearloop.plants.lowering import empty_networks, lower_judgements
from clearloop.programs import lower_ways, unbounded
from clearloop.task import Task


def decisions(policies: Policies, task: Task, views: NDArray[Any], setpoints: Floats) -> NDArray[Any]:
    """[P, n, A] the actions of P controllers in the precision of the views.

    `views`: [n, R], the states, then those and the actions of each lag. `setpoints`: [1, S].
    """
    windows = np.insert(views, [len(task.states)] * len(task.actions), 0.0, axis=1)
    job = Job(windows, setpoints.astype(views.dtype), task.discount, task.history)
    rollout = roll_out(policies, _standstill(task, views.dtype), job, trajectories=True)
    return np.asarray(rollout.actions)[0, :, :, 0]


def _standstill(task: Task, dtype: Any) -> System:
    n_states = len(task.states)
    dynamics = Dynamics(
        kind=DERIVATIVE,
        **lower_ways(task, {}, {}, dtype, None),
        networks=empty_networks(dtype),
        substeps=1,
        dt=task.dt,
        bounds=unbounded(len(task.states)),
        absorbing=False,
        on_failure=np.full(n_states, np.nan, dtype),
    )
    return System(dynamics, lower_judgements([Number(0.0)], task, dtype), members=1)
