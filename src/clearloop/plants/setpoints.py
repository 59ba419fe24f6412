"""What is aimed at in a rollout: a setpoint for each state at each step."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError
from clearloop.task import Task


def setpoint_table(task: Task, steps: int, changed: Mapping[str, float] | None = None) -> NDArray[np.float64]:
    """[steps, S]: the task's setpoints where they are not `changed`; 0 for states without one."""
    aims = {**task.setpoints, **(changed or {})}
    for name, aim in aims.items():
        if isinstance(aim, str):
            raise ClearloopError(
                f"task '{task.name}': the setpoint of '{name}' is the log column '{aim}';"
                ' without a log it needs a number, in the task or as the "setpoint" of the controller'
            )
    return np.tile([float(aims.get(name, 0.0)) for name in task.state_names], (steps, 1))
