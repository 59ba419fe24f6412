"""The columns of a log that nobody has explained yet: what can be seen by looking."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clearloop.data.cells import Floats, numbers, seconds
from clearloop.data.headers import Header, split_header

if TYPE_CHECKING:
    import polars as pl

MOST_ROWS = 1_000_000  # that are looked at
MOST_STEPS = 1_000  # from the smallest to the largest whole number, up to which they are worth a word
HOLDS = 0.1  # share of rows with a new value, up to which a signal is held for many rows at a time

Kind = Literal["number", "date", "text", "empty"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    name: str
    kind: Kind
    values: Floats
    """[rows], NaN where there is none; seconds for dates."""
    low: float
    high: float
    changes: float
    """The share of rows with another value than the row before."""
    distinct: int
    """How many different values there are."""

    @property
    def header(self) -> Header:
        return split_header(self.name)

    @property
    def constant(self) -> bool:
        return self.low == self.high

    @property
    def held(self) -> bool:
        """Steps, and long stretches in which nothing changes."""
        return not self.constant and self.changes <= HOLDS

    @property
    def step(self) -> float | None:
        """Between values, where there are only two, or only whole numbers, and not many."""
        if self.distinct == 2:
            return self.high - self.low
        whole = bool(np.all(self.values[np.isfinite(self.values)] % 1 == 0))
        return 1.0 if self.distinct > 2 and whole and self.high - self.low <= MOST_STEPS else None

    @property
    def rising(self) -> bool:
        """From row to row, but for some that begin anew."""
        steps = np.diff(self.values)
        return len(steps) > 0 and float((steps > 0).mean()) > 0.9

    @property
    def range(self) -> str:
        """`0 … 100`, or `23`."""
        if self.kind in ("text", "empty"):
            return self.kind
        return f"{self.low:.4g}" if self.constant else f"{self.low:.4g} … {self.high:.4g}"


def survey(frame: "pl.DataFrame") -> tuple[Column, ...]:
    return tuple(_column(frame[name]) for name in frame.head(MOST_ROWS).columns)


def _column(column: "pl.Series") -> Column:
    column = column.head(MOST_ROWS)
    kind, values = _values(column)
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
    changes = float(np.mean(known[1:] != known[:-1])) if len(known) > 1 else 0.0
    distinct = len(np.unique(known))
    return Column(
        name=column.name, kind=kind, values=values, low=low, high=high, changes=changes, distinct=distinct
    )


def _values(column: "pl.Series") -> tuple[Kind, Floats]:
    may_be_empty = np.ones(len(column), dtype=np.bool_)
    values, faults = numbers(column, may_be_empty)
    if np.isfinite(values).any() and not faults:
        return "number", values
    if column.null_count() == len(column):
        return "empty", values
    dates, faults = seconds(column)
    if not any(fault.code == "text" for fault in faults) and np.isfinite(dates).any():
        return "date", dates
    return "text", values
