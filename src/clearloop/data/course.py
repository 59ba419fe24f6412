"""A log as signals in time: scaled columns, and how far back each row can look without a break."""

from dataclasses import dataclass

import numpy as np

from clearloop.data.cells import Floats, Ints
from clearloop.data.log import Log

MOST_ROWS = 12_000  # more would not change the answers
BLOCK = 2_000  # rows in a piece, where there are more


@dataclass(frozen=True, eq=False)
class Course:
    """n rows: those of a log, or evenly spaced pieces of a long one. Columns have mean 0 and deviation 1."""

    states: Floats
    """[n, S]"""
    actions: Floats
    """[n, A]; 0 where none is known"""
    setpoints: Floats
    """[n, P]"""
    age: Ints
    """[n] rows of the same unbroken stretch before this one"""

    @classmethod
    def of(cls, log: Log) -> "Course":
        chosen = _pieces(len(log.states))
        states, actions, setpoints = (array[chosen] for array in (log.states, log.actions, _setpoints(log)))
        episodes, terminal = log.episodes[chosen], log.terminal[chosen]
        acted = np.asarray(np.isfinite(actions).all(axis=1))
        # What failure leaves behind says nothing of the dynamics.
        known = ~terminal
        known &= np.isfinite(np.hstack([states, setpoints])).all(axis=1)
        begins = np.ones(len(states), np.bool_)
        begins[1:] = (episodes[1:] != episodes[:-1]) | (np.diff(chosen) != 1) | ~acted[:-1] | ~known[:-1]
        age = np.arange(len(states)) - np.maximum.accumulate(np.where(begins, np.arange(len(states)), 0))
        age[~known] = -1
        return cls(scaled(states), scaled(actions), scaled(setpoints), age)

    def __len__(self) -> int:
        return len(self.age)

    @property
    def length(self) -> int:
        """Of a typical stretch: half of the rows are in longer ones."""
        ends = np.append(self.age[1:] <= 0, True) & (self.age >= 0)
        lengths = np.sort(self.age[ends] + 1)
        if not len(lengths):
            return 0
        return int(lengths[np.searchsorted(np.cumsum(lengths), lengths.sum() / 2)])

    def rows(self, back: int) -> Ints:
        """Rows that have so many before them."""
        return np.flatnonzero(self.age >= back)


def scaled(values: Floats) -> Floats:
    """Each column with mean 0 and deviation 1, or all 0; cells without a finite number are 0."""
    known = np.isfinite(values)
    cells = np.where(known, values, 0.0)
    largest = np.abs(cells).max(axis=0, initial=0.0)  # first to -1 … 1, so that no square overflows
    cells = cells / np.where(largest > 0, largest, 1.0)
    count = np.maximum(known.sum(axis=0), 1)
    cells = np.where(known, cells - cells.sum(axis=0) / count, 0.0)
    spread = np.sqrt(np.square(cells).sum(axis=0) / count)
    return np.asarray(cells / np.where(spread > 1e-12, spread, np.inf))


def lagged(values: Floats, rows: Ints, lags: range) -> Floats:
    """[rows, lags × columns]: the values so many rows earlier."""
    return np.concatenate([values[rows - lag] for lag in lags] or [np.zeros((len(rows), 0))], axis=1)


def _setpoints(log: Log) -> Floats:
    return np.zeros((len(log.states), 0)) if log.setpoints is None else log.setpoints


def _pieces(rows: int) -> Ints:
    if rows <= MOST_ROWS:
        return np.arange(rows)
    begins = np.linspace(0, rows - BLOCK, MOST_ROWS // BLOCK).astype(np.int64)
    return np.unique(begins[:, None] + np.arange(BLOCK))
