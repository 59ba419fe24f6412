"""What a controller could have read when it chose an action, and what it could have made of it over time."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from clearloop.data import Batch
from clearloop.data.cells import Flags, Floats, Ints
from clearloop.data.episodes import first_rows
from clearloop.data.setpoints import setpoint_rows
from clearloop.expression.meanings import READ_LIMIT
from clearloop.task import Task


@dataclass(frozen=True, eq=False)
class Signals:
    """n rows of a log, in time order. S states."""

    task: Task
    states: Floats
    """[n, S]"""
    aims: Floats
    """[n, S] setpoints; 0 for states without one"""
    episodes: Ints
    """[n]"""
    first: Ints
    """[n] the row in which the row's episode begins"""
    chosen: Flags
    """[n] whether an action was chosen in this row: not where the episode had ended"""

    @classmethod
    def of(cls, task: Task, batch: Batch) -> Self:
        aims = setpoint_rows(task, batch.setpoints, len(batch.states))
        states, aims = (np.clip(values, -READ_LIMIT, READ_LIMIT) for values in (batch.states, aims))
        chosen = np.isfinite(batch.actions).all(axis=1) & ~batch.terminal
        return cls(task, states, aims, batch.episodes, first_rows(batch.episodes), chosen)

    def of_episodes(self, wanted: Ints) -> tuple[Self, Ints]:
        """Some episodes alone, and the rows that they were."""
        rows = np.flatnonzero(np.isin(self.episodes, wanted))
        numbers = np.searchsorted(np.sort(wanted), self.episodes[rows])
        parts = self.states[rows], self.aims[rows], numbers, first_rows(numbers), self.chosen[rows]
        return type(self)(self.task, *parts), rows

    @property
    def age(self) -> Ints:
        """[n] steps since the episode's start."""
        return np.arange(len(self.first)) - self.first

    @property
    def errors(self) -> Floats:
        """[n, S] value − setpoint: what a bare name means in a controller file."""
        return self.states - self.aims

    @property
    def moving(self) -> Flags:
        """[S] whether the setpoint changes in this log."""
        changing: Flags = np.ptp(self.aims, axis=0) > 0
        return changing

    def delayed(self, values: Floats, steps: int) -> Floats:
        """[n] as they were some steps ago; before an episode's start stands its first value."""
        return values[np.maximum(np.arange(len(values)) - steps, self.first)] if steps else values

    def summed(self, values: Floats, window: int) -> Floats:
        """[n] over the last `window` rows, the present one included; 0: since the episode's start."""
        total = np.cumsum(values)
        before = np.append(0.0, total)
        begin = self.first if not window else np.maximum(self.first, np.arange(len(values)) + 1 - window)
        sums: Floats = total - before[begin]
        return sums

    def filtered_change(self, values: Floats, pole: float, from_zero: bool) -> Floats:
        """[n] d[t] = a d[t-1] + (1 − a) (x[t] − x[t-1]), with d = 0 before the episode's start.

        The value before the start is the first one, or 0.
        """
        change = np.diff(values, prepend=0.0)
        begins = self.age == 0
        change[begins] = values[begins] if from_zero else 0.0
        return self.smoothed(change, pole)

    def smoothed(self, values: Floats, pole: float) -> Floats:
        """[n] y[t] = a y[t-1] + (1 − a) x[t], 0 before each episode, by sums over 2, 4, 8, … rows."""
        smoothed, age, reach = (1 - pole) * values, self.age, 1
        while pole**reach > np.finfo(np.float64).eps and reach < len(values):
            before = np.where(age[reach:] >= reach, smoothed[:-reach], 0.0)
            smoothed = np.append(smoothed[:reach], smoothed[reach:] + pole**reach * before)
            reach *= 2
        return smoothed
