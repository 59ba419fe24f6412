"""The formulas of a task as programs that the engine runs over its frame (`kernels/layout.py`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats, Ints
from clearloop.errors import ClearloopError
from clearloop.expression import OPERATIONS, Call, Expression, Variable, encode, substitute, variables
from clearloop.kernels.filtering import filter_rows
from clearloop.kernels.interpreter import run
from clearloop.kernels.layout import DERIVED, DRIVEN, LANES, MOVED
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.kernels.vectors import aligned
from clearloop.task import Task
from clearloop.task.plant import one_step_on


def lower_programs(
    formulas: Sequence[Expression | None], slot: Callable[[Variable], int], dtype: Any
) -> tuple[Any, Any, Any]:
    """Encode formulas as programs, one after the other.

    Args:
        formulas: The formulas; None gives an empty program.
        slot: The function that gives the row of a variable.
        dtype: The type of the operands.

    Returns:
        The code, the operands, and where each program starts and the last one ends.
    """
    programs = [formula and encode(_spelled_out(formula), slot) for formula in formulas]
    code = np.concatenate([np.zeros(0, np.int32), *(program.code for program in programs if program)])
    operand = np.concatenate([np.zeros(0), *(program.operand for program in programs if program)])
    largest = np.finfo(dtype).max
    operand = np.clip(operand, -largest, largest).astype(dtype)
    return code, operand, np.cumsum([0, *(len(program.code) if program else 0 for program in programs)])


def _spelled_out(formula: Expression) -> Expression:
    """Replace `rho.error` by `rho - rho.setpoint`."""
    errors = {v: _difference(v) for v in variables(formula) if v.part == "error"}
    return substitute(formula, errors)


def _difference(error: Variable) -> Expression:
    value, setpoint = Variable(error.name, lag=error.lag), Variable(error.name, "setpoint")
    return Call(OPERATIONS["sub"], (value, setpoint))


def frame_slot(task: Task, history: int | None = None) -> Callable[[Variable], int]:
    """Return the function that gives the row of a variable in the frame.

    A bare state stands for the next state, `theta[t]` for the present one.

    Args:
        task: The task, whose states and actions the frame has.
        history: The number of observations in the frame; by default that of the task.
    """
    states, actions = task.state_names, task.action_names
    width, lags = len(states) + len(actions), history or task.history

    def slot(variable: Variable) -> int:
        if (variable.lag or 0) >= lags:
            what = f"'{variable}' looks back further than history = {lags}"
            raise ClearloopError(
                f"task '{task.name}': {what}: give it a history of {(variable.lag or 0) + 1}"
            )
        if variable.part == "setpoint":
            return len(states) + lags * width + states.index(variable.name)
        if variable.name in states and variable.lag is None:
            return states.index(variable.name)
        return len(states) + (variable.lag or 0) * width + (*states, *actions).index(variable.name)

    return slot


def unbounded(n_states: int) -> NDArray[np.float64]:
    """Return bounds [S, 2] for states that are not limited, except by what the engine can represent."""
    return np.tile([-STATE_LIMIT, STATE_LIMIT], (n_states, 1))


def lower_ways(
    task: Task,
    moved: Mapping[str, Expression | None],
    derived: Mapping[str, Expression],
    dtype: Any,
    history: int | None,
) -> dict[str, Any]:
    """Encode how each state gets its next value: it is moved, derived or driven by a script.

    Args:
        task: The task.
        moved: The formulas of states that a plant or a model moves; None for a model's.
        derived: The formulas of derived states; states in neither table are driven.
        dtype: The type of the operands.
        history: The number of observations in the frame.

    Returns:
        Fields of `Dynamics`: `ways`, `order`, `code`, `operand` and `spans`.
    """
    ways = [DERIVED if name in derived else MOVED if name in moved else DRIVEN for name in task.state_names]
    ahead = {name: one_step_on(formula) for name, formula in derived.items()}
    formulas = [ahead.get(name) or moved.get(name) for name in task.state_names]
    code, operand, spans = lower_programs(formulas, frame_slot(task, history), dtype)
    order = np.array([task.state_names.index(name) for name in derived], np.int64)
    return {"ways": np.array(ways), "order": order, "code": code, "operand": operand, "spans": spans}


def derive_rows(
    task: Task,
    derived: Mapping[str, Expression],
    states: Floats,
    actions: Floats,
    setpoints: Floats,
    first: Ints,
    history: int,
) -> Floats:
    """Compute the derived states along the rows of a log.

    Args:
        task: The task.
        derived: The formulas, of the task or of its plant.
        states: [n, S] the states.
        actions: [n, A] the actions; NaN counts as 0.
        setpoints: [n, S] the setpoints.
        first: [n] the row in which each row's episode begins.
        history: The number of rows that formulas may look back.

    Returns:
        The states [n, S] with the derived ones filled in.
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
        task.action_starts,
        n_states,
        history,
        STATE_LIMIT,
        rows,
    )
    return table[:, :n_states].copy()


def derive_after(task: Task, frame: Floats) -> None:
    """Compute the derived states after a step, in place, in a frame [n, S + H (S + A) + S]."""
    programs = lower_ways(task, {}, task.derived, np.float64, task.history)
    n, columns = frame.shape
    code, operand, spans = programs["code"], programs["operand"], programs["spans"]
    rows = np.empty((columns + int(np.diff(spans).max(initial=0)), n))
    rows[:columns] = frame.T
    for j in programs["order"]:
        run(code, operand, spans[j], spans[j + 1], rows, 0, columns, 0, n)
        frame[:, j] = rows[j] = np.clip(rows[columns], -STATE_LIMIT, STATE_LIMIT)


@dataclass(frozen=True)
class Features:
    """The engine's features of a controller (`kernels/layout.py`).

    They are, for each lag, the states and actions of that time, then the setpoints of the states.

    Attributes:
        states: The names of the states.
        actions: The names of the actions.
        history: The number of lags, the present included.
    """

    states: tuple[str, ...]
    actions: tuple[str, ...]
    history: int

    @property
    def count(self) -> int:
        """The number of features."""
        return len(self.states) + self.history * (len(self.states) + len(self.actions))

    def slot(self, variable: Variable) -> int:
        """Return the number of the feature that a variable stands for."""
        if variable.part == "setpoint":
            return self.count - len(self.states) + self.states.index(variable.name)
        names = (*self.states, *self.actions)
        return (variable.lag or 0) * len(names) + names.index(variable.name)
