"""What the log itself cost: its own rewards over the next `horizon` rows, from rows that have as many."""

import numpy as np

from clearloop.data import Batch
from clearloop.data.cells import Floats, Ints
from clearloop.data.episodes import first_rows, last_rows
from clearloop.surrogate.steps import Steps
from clearloop.task import Task


class LoggedCost:
    """Of a batch, whose rewards are found once."""

    def __init__(self, task: Task, batch: Batch) -> None:
        self.task = task
        steps = Steps.of(task, batch)
        self._reward = steps.reward
        acting = np.flatnonzero(~last_rows(batch.episodes))
        episode = batch.episodes[acting]
        ends = np.flatnonzero(last_rows(batch.episodes))[episode] - episode - 1  # of the steps: one less
        failing = np.flatnonzero(steps.failing)
        first = np.arange(len(acting))
        fails = np.append(failing, len(acting))[np.searchsorted(failing, first)]
        failed = fails <= ends
        self._stops = np.where(failed, fails, ends)
        """[steps] the last one that is logged after it"""
        age = acting - first_rows(batch.episodes)[acting]
        shown = (failed | (first + task.horizon - 1 <= ends)) & (age + task.horizon <= age.max() + 1)
        self._first = first[shown]
        self.rows: Ints = acting[shown]
        """from which the log shows a whole horizon, or a failure before; only as long after an episode's
        start as some episode goes on for a horizon: of what begins later, it shows the failures alone"""

    def penalties(self, chosen: Ints) -> Floats:
        """[n] minus the discounted return from `rows[chosen]` on. What failed goes on paying."""
        first = self._first[chosen]
        penalties = np.zeros(len(first))
        for step in range(self.task.horizon):  # not a table of [n, horizon], which may be large
            penalties -= self.task.discount**step * self._reward[np.minimum(first + step, self._stops[first])]
        return penalties
