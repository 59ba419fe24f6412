"""The states that a task computes from others, along a log."""

import numpy as np

from clearloop.data.cells import Floats
from clearloop.data.episodes import first_rows
from clearloop.data.log import Log
from clearloop.data.setpoints import setpoint_rows
from clearloop.task import Task


def derive(log: Log, task: Task) -> dict[str, Floats]:
    """`states` [rows, S] with them, if there are any."""
    if not task.derived:
        return {}
    from clearloop.programs import derive_rows

    seen = np.nan_to_num(log.states, nan=0.0)
    aims = setpoint_rows(task, log.setpoints, len(seen))
    first = first_rows(log.episodes)
    return {"states": derive_rows(task, task.derived, seen, log.actions, aims, first, task.history)}
