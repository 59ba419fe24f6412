"""Programs, and where what they read stands in the frame."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clearloop.errors import ClearloopError
from clearloop.expression import OPERATIONS, Call, Expression, Variable, encode, substitute, variables
from clearloop.task import Task


def lower_programs(
    formulas: Sequence[Expression | None], slot: Callable[[Variable], int], dtype: Any
) -> tuple[Any, Any, Any]:
    """All programs, one after the other: code, operand, and where each starts and the last one ends.

    Without a formula, a program is empty.
    """
    programs = [formula and encode(_spelled_out(formula), slot) for formula in formulas]
    code = np.concatenate([np.zeros(0, np.int32), *(program.code for program in programs if program)])
    operand = np.concatenate([np.zeros(0), *(program.operand for program in programs if program)])
    largest = np.finfo(dtype).max
    operand = np.clip(operand, -largest, largest).astype(dtype)
    return code, operand, np.cumsum([0, *(len(program.code) if program else 0 for program in programs)])


def _spelled_out(formula: Expression) -> Expression:
    """`rho.error` as `rho - rho.setpoint`."""
    errors = {v: _difference(v) for v in variables(formula) if v.part == "error"}
    return substitute(formula, errors)


def _difference(error: Variable) -> Expression:
    value, setpoint = Variable(error.name, lag=error.lag), Variable(error.name, "setpoint")
    return Call(OPERATIONS["sub"], (value, setpoint))


def frame_slot(task: Task, history: int | None = None) -> Callable[[Variable], int]:
    """Where a variable stands in the frame: a bare state in the next state, `theta[t]` in the present one."""
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
