"""What a rollout of given controllers needs besides them: the system, the job, the window."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers import Controller
from clearloop.errors import ClearloopError
from clearloop.kernels.engine import System
from clearloop.kernels.layout import Job
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.plants.lowering import formula_window, lower_plant
from clearloop.surrogate import Surrogate
from clearloop.task import Task


def window(task: Task, controllers: Sequence[Controller]) -> int:
    """Observations that the engine must keep for the task, its reward and the controllers."""
    return max(task.history, formula_window(task), *(controller.history for controller in controllers))


def make_system(
    task: Task, surrogate: Surrogate | None, history: int, members: Sequence[int] | None = None
) -> System:
    """The task's plant, or the surrogate where one is given: all of its members, or some."""
    if surrogate is None:
        return lower_plant(task, np.float64, history)
    return surrogate.system(np.float64, members, history)


def make_job(task: Task, starts: Any, setpoints: NDArray[np.float64], history: int) -> Job:
    """From `starts` [N, S], with `setpoints` [T, S]."""
    points = np.ascontiguousarray(starts, np.float64)
    if points.ndim != 2 or points.shape[1] != len(task.states) or not len(points):
        raise ClearloopError(f"starts: expected {len(task.states)} numbers for each, found {points.shape}")
    for what, numbers in (("starts", points), ("setpoints", setpoints)):
        if not (np.abs(numbers) <= STATE_LIMIT).all():
            raise ClearloopError(f"{what}: expected numbers from {-STATE_LIMIT:g} to {STATE_LIMIT:g}")
    return Job(points, setpoints, task.discount, history)
