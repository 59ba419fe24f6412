"""What the log itself cost: its own rewards over the next `horizon` rows, from rows that have as many."""

import numpy as np

from clearloop.data import Batch
from clearloop.data.cells import Floats, Ints
from clearloop.data.episodes import first_rows, last_rows
from clearloop.surrogate.steps import Steps
from clearloop.task import Task


def comparable_rows(task: Task, batch: Batch) -> Ints:
    """Rows from which the log shows a whole horizon, or a failure before.

    Only as long after an episode's start as some episode goes on for a horizon: of what begins later, the log
    shows the failures alone.
    """
    acting = np.flatnonzero(~last_rows(batch.episodes))
    age = acting - first_rows(batch.episodes)[acting]
    known = np.isfinite(logged_penalties(task, batch, acting))
    rows: Ints = acting[known & (age + task.horizon <= age.max() + 1)]
    return rows


def logged_penalties(task: Task, batch: Batch, rows: Ints) -> Floats:
    """[n] minus the discounted return from rows of the batch on; NaN where too little follows.

    What has failed goes on paying, as on the models.
    """
    steps = Steps.of(task, batch)
    reward, failing = steps.reward, np.flatnonzero(steps.failing)
    episode = batch.episodes[rows]
    first = rows - episode  # of the steps: each episode before has one row more than steps
    ends = np.flatnonzero(last_rows(batch.episodes))[episode] - episode - 1
    fails = np.append(failing, len(reward))[np.searchsorted(failing, first)]
    failed = fails <= ends
    stops = np.where(failed, fails, ends)
    penalties = np.zeros(len(rows))
    for step in range(task.horizon):  # not a table of [n, horizon], which may be large
        penalties -= task.discount**step * reward[np.minimum(first + step, stops)]
    known = (first <= ends) & (failed | (first + task.horizon - 1 <= ends))
    return np.where(known, penalties, np.nan)
