"""The trials of a tuning, as an engineer would want to see them: `tuning.csv`, a row for each step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from clearloop.data.cells import Floats
from clearloop.methods.trial import Trial
from clearloop.runs.directory import RunDirectory
from clearloop.runs.tables import read_table, write_table

FILE = "tuning.csv"


@dataclass(frozen=True)
class Row:
    trial: int
    input: str
    action: str
    gain: float
    """action = gain · (setpoint - state)"""
    period: float | None
    """in steps; empty where it does not oscillate"""
    ratio: float | None
    """of a swing to the one a period before: 1 is sustained"""
    step: int
    error: float
    """setpoint - state"""
    value: float
    """of the action"""


class Course(NamedTuple):
    """One trial, read back: its first row, and [T] errors and actions."""

    first: Row
    errors: Floats
    actions: Floats


def write_tuning(run: RunDirectory, trials: Sequence[Trial]) -> None:
    write_table(run.path / FILE, Row, _rows(trials))


def read_tuning(run: RunDirectory) -> list[Course]:
    """Nothing where nothing was tuned."""
    if not (run.path / FILE).exists():
        return []
    groups = (list(rows) for _, rows in groupby(read_table(run.path / FILE, Row), key=lambda row: row.trial))
    return [
        Course(rows[0], np.array([row.error for row in rows]), np.array([row.value for row in rows]))
        for rows in groups
    ]


def _rows(trials: Sequence[Trial]) -> Iterator[Row]:
    for number, trial in enumerate(trials):
        for step, (error, value) in enumerate(zip(trial.errors, trial.actions, strict=False)):
            yield Row(
                number, trial.input, trial.action, trial.gain, trial.period, trial.ratio, step,
                float(error), float(value),
            )  # fmt: skip
