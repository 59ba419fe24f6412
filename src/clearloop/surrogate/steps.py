"""Logged transitions as the engine sees a step: columns are the rows of its frame (`kernels/layout.py`)."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from clearloop.data import Batch
from clearloop.data.cells import Flags, Floats, Ints
from clearloop.data.episodes import last_rows
from clearloop.data.setpoints import setpoint_rows
from clearloop.errors import ClearloopError
from clearloop.plants.lowering import task_window
from clearloop.surrogate.formulas import judge
from clearloop.task import Task


@dataclass(frozen=True, eq=False)
class Steps:
    """n steps. S states, A actions, H rows of history."""

    next: Floats
    """[n, S] the states after the step"""
    window: Floats
    """[n, H (S + A)] states and actions of each lag, the present first: what networks see"""
    before: Floats
    """[n, …] the lags before the window that the task's formulas look back on"""
    setpoints: Floats
    """[n, S] during the step; 0 for states without one"""
    aims: Floats
    """[n, S] setpoints after the step"""
    reward: Floats
    """[n] by the task's formula, or as logged where it gives none"""
    failing: Flags
    """[n] marked terminal in the log, or a failure by the task's condition"""
    episode: Ints
    """[n]"""

    @classmethod
    def of(cls, task: Task, batch: Batch) -> Self:
        transitions = batch.transitions(task_window(task))
        acting = np.flatnonzero(~last_rows(batch.episodes))
        aims = setpoint_rows(task, batch.setpoints, len(batch.states))
        setpoints = aims[acting]
        reward, failing = transitions.reward, transitions.terminal
        if task.reward_expression is not None:
            reward, fails = judge(task, np.hstack([transitions.next, transitions.window, setpoints]))
            failing = failing | fails
        if reward is None:
            raise ClearloopError(
                f"task {task.name}: the reward is to be learned, but the batch has no column of it"
            )
        window, before = np.hsplit(transitions.window, [task.history * len(task.scope.names)])
        return cls(
            transitions.next,
            window,
            before,
            setpoints,
            aims[acting + 1],
            reward,
            failing,
            transitions.episode,
        )

    @property
    def change(self) -> Floats:
        """[n, S] of each state: the Δs of sec. 4.2, which the networks learn."""
        return self.next - self.window[:, : self.next.shape[1]]

    @property
    def frame(self) -> Floats:
        """[n, columns] with as much history as the task's formulas look back on"""
        return np.hstack([self.next, self.window, self.before, self.setpoints])

    @property
    def seen(self) -> Floats:
        """[n, S + H (S + A) + S] the frame as networks may see it"""
        return np.hstack([self.next, self.window, self.setpoints])

    def __getitem__(self, rows: Flags) -> "Steps":
        return Steps(*(array[rows] for array in vars(self).values()))

    def __add__(self, others: "Steps") -> "Steps":
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return Steps(*(np.concatenate(pair) for pair in pairs))

    def __len__(self) -> int:
        return len(self.next)
