"""The plant and the reward of a task, lowered for the engine, and a plant that runs step by step."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.arrays import Floats
from clearloop.data.log import first_windows
from clearloop.errors import ClearloopError
from clearloop.expression import Expression, variables
from clearloop.kernels.engine import System, roll_out
from clearloop.kernels.layout import (
    CALM,
    DERIVATIVE,
    FORMULA,
    SEQUENCE,
    Disturbances,
    Dynamics,
    Job,
    LoweredReward,
    Networks,
    Policies,
)
from clearloop.programs import frame_slot, lower_programs, lower_ways, unbounded
from clearloop.task import Task
from clearloop.task.plant import one_step_on
from clearloop.task.tables import to_levels


def task_window(task: Task) -> int:
    """Return the number of observations that the engine keeps for a task, the present one included.

    This is the task's history, or more if its own formulas look back further, or if rates of actions are
    limited, which takes the action before.
    """
    ahead = map(one_step_on, _derived(task).values())
    formulas = (*_judgements(task), *task.plant_derivatives.values(), *ahead)
    lags = (v.lag or 0 for formula in formulas for v in variables(formula))
    return max(task.history, 1 + max(lags, default=0), 2 if task.action_changes.size else 1)


def lower_plant(task: Task, dtype: Any = np.float64, history: int | None = None) -> System:
    """Lower the plant of a task, with its reward, for the engine.

    Args:
        task: A task with a plant of equations.
        dtype: The type of the numbers.
        history: The number of observations in the window; by default that of the task.

    Returns:
        The system, whose states are those of `task.unveiled`: hidden ones are states, too.

    Raises:
        ClearloopError: If the task has no such plant, or no formula for its reward.
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
    """Return the formulas of the plant's states that are not integrated, in the order of computation."""
    return task.plant_next | task.plant_observed | task.derived


def lower_reward(task: Task, dtype: Any, history: int | None = None) -> LoweredReward:
    """Lower the reward and the ends of a task, or raise a `ClearloopError` without a reward."""
    if task.reward_expression is None:
        what = "has no formula for its reward: learn the reward from a log"
        raise ClearloopError(f"task '{task.name}' {what}")
    return lower_judgements(_judgements(task), task, dtype, history)


def lower_judgements(
    formulas: Sequence[Expression], task: Task, dtype: Any, history: int | None = None
) -> LoweredReward:
    """Lower the formula of a reward and, if there is a second one, that of how a step ends an episode."""
    code, operand, spans = lower_programs(formulas, frame_slot(task, history), dtype)
    return LoweredReward(
        kind=FORMULA,
        code=code,
        operand=operand,
        spans=np.append(spans, spans[-1:])[:3],
        networks=empty_networks(dtype),
        levels=np.zeros(0, dtype),
        failing=np.zeros(0, np.bool_),
    )


def _judgements(task: Task) -> list[Expression]:
    return [formula for formula in (task.reward_expression, task.end_mark) if formula is not None]


def empty_networks(dtype: Any) -> Networks:
    """Return the networks of a system that has none."""
    none = np.zeros(0, np.int64)
    return Networks(numbers=np.zeros(0, dtype), total=1, sizes=none, activations=none)


def fixed_actions(actions: NDArray[np.floating], task: Task) -> Policies:
    """Return policies that play fixed actions [N, T, A], for each of N starts its own."""
    return Policies(
        kind=SEQUENCE,
        numbers=actions.reshape(len(actions), -1),
        sizes=np.zeros(0, np.int64),
        code=np.zeros(0, np.int32),
        operand=np.zeros(0),
        spans=np.zeros((1, 1), np.int64),
        limits=task.action_limits,
        counts=task.action_counts,
        rates=task.action_changes,
    )


class PlantStep(NamedTuple):
    """A step of a plant: the action [A] as chosen (within limits and rates), the reward and the end."""

    action: Floats
    reward: float
    failed: bool
    succeeded: bool


class ActionFault(NamedTuple):
    """What an actuator makes of an action: `gain` times the action, plus `offset` times half its range."""

    gain: float = 1.0
    offset: float = 0.0


SOUND = ActionFault()
QUIET: Floats = np.zeros((0, 0, 0))  # no noise


class PlantStepper:
    """The plant of a task, or one model of it, run one control interval at a time.

    It remembers as much of an episode as the plant and its reward look back.

    Args:
        task: A task; without `system`, with a plant of equations.
        system: One member of a model for `task_window(task)` observations; None: the plant.
    """

    def __init__(self, task: Task, system: System | None = None) -> None:
        self.task, self._states = task, len(task.unveiled.states)
        self._history = task_window(task)
        self._system = lower_plant(task, history=self._history) if system is None else system

    def begin(self, start: Floats) -> None:
        """Begin an episode at a state [S] of `task.unveiled`, or at a state with its past [H (S + A)]."""
        before = self.task.action_starts
        if len(start) == self._states:
            start = first_windows(start[None], len(before), self._history, before)[0]
        self._window = start.reshape(self._history, -1).copy()
        self._chosen = self._window[1, self._states :] if self._history > 1 else before

    @property
    def state(self) -> Floats:
        """The present state [S] of `task.unveiled`: what sensors show, and what they do not."""
        return self._window[0, : self._states].copy()

    def push(self, name: str, amount: float) -> None:
        """Add an amount to a state that the plant moves; what sensors show of it follows in the next step."""
        self._window[0, self.task.unveiled.state_names.index(name)] += amount

    def step(
        self,
        action: Floats,
        aims: Floats,
        script: Floats,
        noise: Floats = QUIET,
        fault: ActionFault = SOUND,
    ) -> PlantStep:
        """Run one control interval.

        Args:
            action: [A] the wanted action.
            aims: [2, S] the setpoints now and after the step.
            script: [1, 2, D] the driven states now and after the step, as in a `Job`.
            noise: [1, 1, K] what is added to the prediction of a model, as in a `Job`.
            fault: What the actuator makes of the action.
        """
        if (most := self.task.action_changes).size:
            action = np.clip(action, self._chosen - most, self._chosen + most)
        chosen: Floats = to_levels(action, self.task.action_limits, self.task.action_counts)
        self._window[0, self._states :] = self._chosen = chosen
        flat = self._window.reshape(1, -1)
        upset = CALM if fault == SOUND else self._upset(fault)
        job = Job(flat, aims, self.task.discount, self._history, script, noise, upset, steps=1)
        policies = fixed_actions(chosen[None, None], self.task)._replace(rates=np.zeros(0))
        moved = roll_out(policies, self._system, job, trajectories=True, workers=1)
        self._window[0, self._states :] = np.asarray(moved.actions)[0, 0, 0, 0]
        row = np.concatenate([np.asarray(moved.states)[0, 0, 0, 1], np.zeros_like(chosen)])
        self._window = np.vstack([row, self._window[:-1]])
        failed, succeeded = (bool(np.asarray(end)[0, 0, 0]) for end in (moved.failed, moved.succeeded))
        return PlantStep(chosen, float(np.asarray(moved.rewards)[0, 0, 0, 0]), failed, succeeded)

    def _upset(self, fault: ActionFault) -> Disturbances:
        half = np.ptp(self.task.action_limits, axis=1) / 2
        gain = np.full((1, len(half)), fault.gain)
        return Disturbances(np.zeros(1, np.int64), gain, fault.offset * half[None], QUIET)
