"""What a rollout of given controllers needs besides them: the system, the situations, the window."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers import Controller
from clearloop.errors import ClearloopError
from clearloop.kernels.engine import System
from clearloop.kernels.layout import Job
from clearloop.plants.lowering import lower_plant, task_window
from clearloop.plants.scenarios import Scenarios
from clearloop.surrogate import Surrogate
from clearloop.task import Task

Floats = NDArray[np.float64]


def window(task: Task, controllers: Sequence[Controller]) -> int:
    """Observations that the engine must keep for the task, its reward and the controllers."""
    return max(task_window(task), *(controller.history for controller in controllers))


def make_system(
    task: Task, surrogate: Surrogate | None, history: int, members: Sequence[int] | None = None
) -> System:
    """The task's plant, or the surrogate where one is given: all of its members, or some."""
    if surrogate is None:
        return lower_plant(task, np.float64, history)
    return surrogate.system(np.float64, members, history)


def make_job(
    task: Task,
    controller: Controller,
    starts: Scenarios | Floats | int,
    surrogate: Surrogate | None,
    history: int,
) -> Job:
    """Situations for the plant, or, with what chance adds, for a model of it."""
    scenarios = find_scenarios(task, controller, starts, surrogate is None)
    n, steps, luck = len(scenarios), scenarios.steps, scenarios.luck
    return scenarios.job(
        task, history, noise=None if surrogate is None else surrogate.noise.draw(n, steps, luck)
    )


def find_scenarios(
    task: Task, controller: Controller, starts: Scenarios | Floats | int, on_plant: bool
) -> Scenarios:
    """Situations as they are, or from states [N, S], or so many of the task's scoring set.

    With the setpoints of the controller, if it has any. For the plant of a task, or for a model.
    """
    if isinstance(starts, Scenarios):
        found = starts.aiming(task, controller.setpoint)
    elif isinstance(starts, int):
        found = Scenarios.scoring(task, starts, controller.setpoint)
    else:
        found = Scenarios.at(task, starts, controller.setpoint)
    if not on_plant:
        return found.veiled(task)
    if found.setpoints.shape[2] != len(task.unveiled.states):
        hidden = task.unveiled.state_names[len(task.states) :]
        raise ClearloopError(
            f"task '{task.name}': its plant has states that no sensor shows ({', '.join(hidden)}):"
            " say only how many starts"
        )
    return found
