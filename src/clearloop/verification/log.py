"""The states of a log as test vectors."""

import numpy as np

from clearloop.data import Batch
from clearloop.data.cells import Floats
from clearloop.data.setpoints import setpoint_rows
from clearloop.export.routine import Routine
from clearloop.expression import Variable
from clearloop.task import Task
from clearloop.verification.vectors import Episode

MOST_ROWS = 2_000


def logged(routine: Routine, batch: Batch, task: Task) -> list[Episode]:
    """Episodes of the log, spread over it, of some thousand rows together."""
    aims = setpoint_rows(task, batch.setpoints, len(batch.states))
    every = max(len(batch.states) // MOST_ROWS, 1)
    episodes: list[Episode] = []
    for number in range(0, batch.episode_count, every):
        rows = np.flatnonzero(batch.episodes == number)[:MOST_ROWS]
        columns = {
            one.variable: _column(one.variable, batch.states[rows], aims[rows], task, one.default)
            for one in routine.inputs
        }
        episodes.append([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    return episodes


def _column(
    variable: Variable, states: Floats, aims: Floats, task: Task, default: float | None
) -> list[float]:
    """What an input was in each row; a constant setpoint is the controller's own."""
    table = states if variable.part == "value" else aims
    if variable.part == "setpoint" and default is not None:
        return [default] * len(states)
    column: list[float] = table[:, task.state_names.index(variable.name)].tolist()
    return column
