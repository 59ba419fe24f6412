"""What a rollout of given controllers needs besides them: the system, the window, the setpoints."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clearloop.controllers import Controller
from clearloop.errors import ClearloopError
from clearloop.expression import variables
from clearloop.kernels.engine import System
from clearloop.plants.lowering import lower_plant
from clearloop.surrogate import Surrogate
from clearloop.task import Task


def window(task: Task, controllers: Sequence[Controller]) -> int:
    """Observations that the engine must keep for the task, its reward and the controllers."""
    formulas = [f for f in (task.reward_expression, task.failure_condition) if f is not None]
    lags = [v.lag or 0 for formula in formulas for v in variables(formula)]
    return max(task.history, *(c.history for c in controllers), *(1 + lag for lag in lags), 1)


def make_system(task: Task, surrogate: Surrogate | None, history: int, dtype: Any = np.float64) -> System:
    """The task's plant, or the surrogate where one is given."""
    return lower_plant(task, dtype, history) if surrogate is None else surrogate.system(dtype, history=history)


def setpoint_table(task: Task, controller: Controller, steps: int, override: dict[str, float] | None = None) -> Any:
    """[steps, S]: the override's setpoints, then the controller's, then the task's; 0 for states without one."""
    aims = {**task.setpoints, **controller.setpoint, **(override or {})}
    for name, aim in aims.items():
        if isinstance(aim, str):
            raise ClearloopError(
                f"the setpoint of '{name}' is the log column '{aim}': give the controller file a \"setpoint\" for it"
            )
    row = [float(aims.get(name, 0.0)) for name in task.state_names]
    return np.tile(np.array(row), (steps, 1))
