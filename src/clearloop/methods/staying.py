"""Staying near the log: how far the actions of a controller are from the logged ones, as part of its penalty.

Where a log shows little, a model is wrong, and a search finds out where. So a search may be asked to stay
near what was logged, as LION does it (Swazinna et al. 2023): with the share S of `--stay S`, it minimises

    (1 - S) · penalty + S · scale · departure.

The departure is the mean squared difference between the actions of a controller and the logged ones, from
logged rows with their past, in variances of the logged actions: 0 is the log itself, and its mean action
whatever happens has 1. The scale makes a cost of it: the deviation, over starts, of the usual action's cost.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from clearloop.arrays import Flags, Floats
from clearloop.controllers import Controller, Equation, encode
from clearloop.data import Batch
from clearloop.data.log import last_rows
from clearloop.evaluation import Evaluation
from clearloop.evaluation.rollouts import window
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import PID, Job, Policies
from clearloop.methods.robust import scripted
from clearloop.plants.scenarios import Scenarios
from clearloop.task import Task

_ROWS = 512  # of the log, evenly spaced
_COURSE = 32  # rows in a stretch, for controllers that add up what they see


@dataclass(frozen=True, eq=False)
class LoggedActions:
    """What was done in rows of a log, to compare controllers with."""

    task: Task
    batch: Batch
    _stretches: dict[tuple[int, int, Any], tuple[Job, Floats]] = field(default_factory=dict, repr=False)

    def usual_policies(self, history: int) -> Policies:
        """Return one controller, which always gives the usual action: the median of the log."""
        usual = np.nanmedian(self.batch.actions, axis=0).tolist()
        outputs = dict(zip(self.task.action_names, map(str, usual), strict=True))
        return encode([Equation(outputs=outputs)], self.task, history=history, dtype=np.float32)

    @cached_property
    def _spread(self) -> Floats:
        """[A] the deviation of each logged action; half of its range if it never changes."""
        spread = np.nanstd(self.batch.actions, axis=0)
        return np.asarray(np.where(spread > 0, spread, np.ptp(self.task.action_limits, axis=1) / 2))

    @cached_property
    def _acted(self) -> Flags:
        """[rows] whether the row has actions, and a row after it in its episode."""
        return np.asarray(np.isfinite(self.batch.actions).all(axis=1) & ~last_rows(self.batch.episodes))

    @property
    def _longest(self) -> int:
        """The rows of the longest stretch with actions."""
        breaks = np.flatnonzero(np.concatenate([[True], ~self._acted, [True]]))
        return int(np.diff(breaks).max()) - 1

    def departures(self, policies: Policies, history: int) -> Floats:
        """Return the mean squared difference of P controllers [P] from the log, in variances of its actions.

        Args:
            policies: The controllers.
            history: The rows of the window that they are encoded for.
        """
        steps = min(_COURSE, self._longest) if policies.kind == PID else 1
        key = steps, history, policies.numbers.dtype
        if key not in self._stretches:
            self._stretches[key] = self._cut(*key)
        job, done = self._stretches[key]
        rollout = roll_out(policies, scripted(self.task, history), job, trajectories=True)
        differences = (np.asarray(rollout.actions, np.float64)[0] - done) / self._spread
        return np.asarray(np.square(differences).mean(axis=(1, 2, 3)))

    def _cut(self, steps: int, history: int, dtype: Any) -> tuple[Job, Floats]:
        """Return stretches of the log as a job in which all states follow it, and the actions [N, T, A]."""
        batch = self.batch
        rows = np.flatnonzero(np.convolve(self._acted, np.ones(steps), "valid") == steps)
        rows = rows[np.linspace(0, len(rows) - 1, min(-(-_ROWS // steps), len(rows))).astype(np.intp)]
        course = rows[:, None] + np.arange(steps + 1)
        logged = replace(Scenarios.logged(self.task, batch, rows, steps), script=batch.states[course])
        return logged.job(self.task, history, dtype), batch.actions[course[:, :-1]]


def departure(controller: Controller, logged: LoggedActions) -> float | None:
    """Return the departure of one controller from a log; None for planners.

    Args:
        controller: The controller.
        logged: What was done.
    """
    if controller.plans:
        return None
    history = window(logged.task, [controller])
    return float(logged.departures(encode([controller], logged.task, history=history), history)[0])


@dataclass(frozen=True, eq=False)
class Staying:
    """The part that the departure from a log has in the penalty of a search."""

    logged: LoggedActions
    share: float
    """S, from 0 to 1"""
    scale: float
    """what a departure of 1 costs"""

    def blend(self, penalties: Floats, policies: Policies, history: int) -> Floats:
        """Return the penalties [P] that a search minimises.

        Args:
            penalties: [P] the penalties without it.
            policies: The controllers.
            history: The rows of the window that they are encoded for.
        """
        cost = self.scale * self.logged.departures(policies, history)
        return (1 - self.share) * penalties + self.share * cost

    def judge(self, controller: Controller, judged: Evaluation) -> Evaluation:
        """Return a judgement with the same blend; planners are judged without it."""
        far = departure(controller, self.logged)
        if far is None:
            return judged
        blended = (1 - self.share) * judged.penalties + self.share * self.scale * far
        return replace(judged, penalties=blended)
