"""What is aimed at in a rollout: a setpoint for each state at each step."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError
from clearloop.task import Task

Floats = NDArray[np.float64]


def setpoint_table(
    task: Task,
    steps: int,
    changed: Mapping[str, float] | None = None,
    signals: Mapping[str, Floats] | None = None,
) -> Floats:
    """[steps, S]: the task's setpoints where they are not `changed`; 0 for states without one.

    With `signals` [N, T], by log column, [N or 1, steps, S].
    """
    known = signals or {}
    aims = {**task.setpoints, **(changed or {})}
    for name, aim in aims.items():
        if isinstance(aim, str) and aim not in known:
            raise ClearloopError(
                f"task '{task.name}': the setpoint of '{name}' is the log column '{aim}';"
                ' without a log it needs a number, in the task or as the "setpoint" of the controller'
            )
    wanted = [aims.get(name, 0.0) for name in task.state_names]
    columns = [known[aim] if isinstance(aim, str) else np.full((1, steps), aim) for aim in wanted]
    count = max(len(column) for column in columns)
    table = np.stack([np.broadcast_to(c[:, :steps], (count, steps)) for c in columns], axis=2)
    return table if signals is not None else table[0]
