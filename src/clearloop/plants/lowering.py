"""A task's plant and reward for the engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from clearloop.errors import ClearloopError
from clearloop.expression import Expression, variables
from clearloop.kernels.engine import System
from clearloop.kernels.layout import DERIVATIVE, FORMULA, Dynamics, Networks, Reward
from clearloop.programs import frame_slot, lower_programs, lower_ways, unbounded
from clearloop.task import Task
from clearloop.task.derived import one_step_on


def task_window(task: Task) -> int:
    """Observations that the engine keeps for a task, the present one included.

    Its history, or more, if its own formulas look back further.
    """
    ahead = map(one_step_on, _derived(task).values())
    formulas = (*_judgements(task), *task.plant_derivatives.values(), *ahead)
    lags = (v.lag or 0 for formula in formulas for v in variables(formula))
    return max(task.history, 1 + max(lags, default=0))


def lower_plant(task: Task, dtype: Any = np.float64, history: int | None = None) -> System:
    """The plant of a task file, with its reward, over the states of the task unveiled.

    `history`: observations in the window.
    """
    if not task.simulated:
        raise ClearloopError(f"task '{task.name}' has no [plant] with equations")
    task = task.unveiled
    dynamics = Dynamics(
        kind=DERIVATIVE,
        **lower_ways(task, task.plant_derivatives, _derived(task), dtype, history),
        networks=empty_networks(dtype),
        substeps=task.substeps,
        dt=task.dt,
        bounds=unbounded(len(task.states)),
        absorbing=True,
        on_failure=np.array([task.on_failure.get(name, np.nan) for name in task.state_names], dtype),
    )
    return System(dynamics, lower_reward(task, dtype, history), members=1)


def _derived(task: Task) -> dict[str, Expression]:
    """Of the plant's states that are not integrated, in the order in which they follow from each other."""
    return task.plant_next | task.plant_observed | task.derived


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
