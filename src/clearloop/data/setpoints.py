"""What was aimed at in each row of a log."""

import numpy as np

from clearloop.data.cells import Floats
from clearloop.task import Task


def setpoint_rows(task: Task, logged: Floats | None, n: int) -> Floats:
    """[n, S], 0 for states without one; `logged`: [n, P] the columns of the P setpoints that it has."""
    columns = iter([] if logged is None else logged.T)
    table = np.zeros((n, len(task.states)))
    for j, name in enumerate(task.state_names):
        aim = task.setpoints.get(name, 0.0)
        table[:, j] = next(columns) if isinstance(aim, str) else aim
    return table
