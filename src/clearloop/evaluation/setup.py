"""What a rollout of given controllers needs besides them: the system, and how far back to look."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clearloop.controllers import Controller
from clearloop.kernels.engine import System
from clearloop.plants.lowering import lower_plant, reward_window
from clearloop.surrogate import Surrogate
from clearloop.task import Task


def window(task: Task, controllers: Sequence[Controller]) -> int:
    """Observations that the engine must keep for the task, its reward and the controllers."""
    return max(task.history, reward_window(task), *(controller.history for controller in controllers))


def make_system(task: Task, surrogate: Surrogate | None, history: int, dtype: Any = np.float64) -> System:
    """The task's plant, or the surrogate where one is given."""
    return (
        lower_plant(task, dtype, history) if surrogate is None else surrogate.system(dtype, history=history)
    )
