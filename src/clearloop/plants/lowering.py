"""From a task's formulas to the programs that the engine runs over its frame (`kernels/layout.py`)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from clearloop.errors import ClearloopError
from clearloop.expression import OPERATIONS, Call, Expression, Variable, encode, substitute, variables
from clearloop.kernels.engine import System
from clearloop.kernels.layout import DERIVATIVE, FORMULA, Dynamics, Networks, Reward
from clearloop.task import Task


def reward_window(task: Task) -> int:
    """Observations that the task's reward and failure look back on, the present one included."""
    lags = [variable.lag or 0 for formula in _judgements(task) for variable in variables(formula)]
    return 1 + max(lags, default=0)


def lower_plant(task: Task, dtype: Any = np.float64, history: int | None = None) -> System:
    """The plant of a task file, with its reward; `history`: observations in the window."""
    if not task.derivatives:
        raise ClearloopError(f"task '{task.name}' has no [plant] with derivatives to integrate")
    code, operand, spans = lower_programs(task.derivatives, frame_slot(task, history), dtype)
    dynamics = Dynamics(
        kind=DERIVATIVE,
        networks=empty_networks(dtype),
        code=code,
        operand=operand,
        spans=spans,
        substeps=task.substeps,
        dt=task.dt,
        absorbing=True,
        on_failure=np.array([task.on_failure.get(name, np.nan) for name in task.state_names], dtype),
    )
    return System(dynamics, lower_reward(task, dtype, history), members=1)


def lower_reward(task: Task, dtype: Any, history: int | None = None) -> Reward:
    """The reward and the failure condition that a task file gives."""
    if task.reward_expression is None:
        what = "gives no formula for its reward: it has to be learned from a log"
        raise ClearloopError(f"task '{task.name}' {what}")
    return lower_judgements(_judgements(task), task, dtype, history)


def lower_judgements(
    formulas: Sequence[Expression], task: Task, dtype: Any, history: int | None = None
) -> Reward:
    """A reward and, if there are two formulas, when it fails."""
    code, operand, spans = lower_programs(formulas, frame_slot(task, history), dtype)
    return Reward(
        kind=FORMULA,
        code=code,
        operand=operand,
        spans=np.append(spans, spans[-1:])[:3],
        networks=empty_networks(dtype),
        levels=np.zeros(0, dtype),
        failing=np.zeros(0, np.bool_),
    )


def _judgements(task: Task) -> list[Expression]:
    return [formula for formula in (task.reward_expression, task.failure_condition) if formula is not None]


def empty_networks(dtype: Any) -> Networks:
    none = np.zeros(0, np.int64)
    return Networks(numbers=np.zeros(0, dtype), total=1, sizes=none, activations=none)


def lower_programs(
    formulas: Sequence[Expression], slot: Callable[[Variable], int], dtype: Any
) -> tuple[Any, Any, Any]:
    """All programs, one after the other: code, operand, and where each starts and the last one ends."""
    programs = [encode(_spelled_out(formula), slot) for formula in formulas]
    code = np.concatenate([np.zeros(0, np.int32), *(program.code for program in programs)])
    operand = np.concatenate([np.zeros(0), *(program.operand for program in programs)])
    largest = np.finfo(dtype).max
    operand = np.clip(operand, -largest, largest).astype(dtype)
    return code, operand, np.cumsum([0, *(len(program.code) for program in programs)])


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
