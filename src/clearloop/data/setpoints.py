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


def usual_setpoints(task: Task, logged: Floats | None) -> dict[str, float]:
    """The medians of those that are columns of the log, by state."""
    names = [name for name, aim in task.setpoints.items() if isinstance(aim, str)]
    medians = [] if logged is None else np.median(logged, axis=0).tolist()
    return dict(zip(names, medians, strict=True))
