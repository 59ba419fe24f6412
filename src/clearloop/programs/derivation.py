"""The states that are computed from others: along the rows of a log, and after a step."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from clearloop.expression import Expression
from clearloop.kernels.filtering import filter_rows
from clearloop.kernels.interpreter import run
from clearloop.kernels.layout import LANES
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.kernels.rows import aligned
from clearloop.programs.ways import lower_ways
from clearloop.task import Task

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def derive_rows(
    task: Task,
    derived: Mapping[str, Expression],
    states: Floats,
    actions: Floats,
    setpoints: Floats,
    first: Ints,
    history: int,
) -> Floats:
    """States [n, S] with the derived ones filled in.

    `derived`: the formulas, of the task or of its plant. `setpoints`: [n, S]. `first`: [n] the row in which
    each row's episode begins. `history`: rows that formulas may look back.
    """
    programs = lower_ways(task, {}, derived, np.float64, history)
    n_states, width = len(task.states), len(task.scope.names)
    longest = int(np.diff(programs["spans"]).max(initial=0))
    rows = aligned(2 * n_states + history * width + longest, LANES, dtype=np.float64)
    rows[:] = 0
    table = np.ascontiguousarray(np.hstack([states, np.nan_to_num(actions), setpoints]))
    filter_rows(
        programs["code"].astype(np.int64),
        programs["operand"],
        programs["spans"].astype(np.int64),
        programs["order"],
        np.array([name in derived for name in task.state_names]),
        table,
        np.ascontiguousarray(first, np.int64),
        n_states,
        history,
        STATE_LIMIT,
        rows,
    )
    return table[:, :n_states].copy()


def derive_after(task: Task, frame: Floats) -> None:
    """Fill in the derived states after a step, in a frame [n, S + H (S + A) + S]."""
    programs = lower_ways(task, {}, task.derived, np.float64, task.history)
    n, columns = frame.shape
    code, operand, spans = programs["code"], programs["operand"], programs["spans"]
    rows = np.empty((columns + int(np.diff(spans).max(initial=0)), n))
    rows[:columns] = frame.T
    for j in programs["order"]:
        run(code, operand, spans[j], spans[j + 1], rows, 0, columns, 0, n)
        frame[:, j] = rows[j] = np.clip(rows[columns], -STATE_LIMIT, STATE_LIMIT)
