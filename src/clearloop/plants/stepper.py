"""The plant of a task, one control interval at a time."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import Job
from clearloop.plants.lowering import lower_plant, task_window
from clearloop.plants.sequences import fixed_actions
from clearloop.task import Task
from clearloop.task.levels import to_levels

Floats = NDArray[np.float64]


class Step(NamedTuple):
    action: Floats
    """[A] as it was applied: limited, and rounded to what the task allows"""
    reward: float
    failed: bool


class Stepper:
    """Remembers as much of an episode as the plant and its reward look back on."""

    def __init__(self, task: Task) -> None:
        self.task, self._states = task, len(task.unveiled.states)
        self._history = task_window(task)
        self._system = lower_plant(task, history=self._history)

    def begin(self, start: Floats) -> None:
        """From a state [S] of the task unveiled; before it the same, past actions 0."""
        row = np.concatenate([start, np.zeros(len(self.task.actions))])
        self._window = np.tile(row, (self._history, 1))

    @property
    def state(self) -> Floats:
        """[S] of the task unveiled: what sensors show, and what they do not."""
        return self._window[0, : self._states].copy()

    def push(self, name: str, amount: float) -> None:
        """Add to a state that the plant moves. What sensors show of it follows in the next step."""
        self._window[0, self.task.unveiled.state_names.index(name)] += amount

    def step(self, action: Floats, aims: Floats, script: Floats) -> Step:
        """`action`: [A]; `aims`: [2, S], setpoints now and after it; `script`: [1, 2, D], as in a `Job`."""
        chosen: Floats = to_levels(action, self.task.action_limits, self.task.action_counts)
        self._window[0, self._states :] = chosen
        flat = self._window.reshape(1, -1)
        job = Job(flat, aims, self.task.discount, self._history, script, steps=1)
        policies = fixed_actions(chosen[None, None], self.task)
        moved = roll_out(policies, self._system, job, trajectories=True, workers=1)
        row = np.concatenate([np.asarray(moved.states)[0, 0, 0, 1], np.zeros_like(chosen)])
        self._window = np.vstack([row, self._window[:-1]])
        return Step(chosen, float(np.asarray(moved.rewards)[0, 0, 0, 0]), bool(moved.failed[0, 0, 0]))
