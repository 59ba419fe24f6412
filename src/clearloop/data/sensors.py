"""Sensors that do not say what happens: stuck, coarse, repeated, or called by another one's name."""

from collections.abc import Iterator

import numpy as np

from clearloop.data.cells import Floats, Ints
from clearloop.data.episodes import last_rows
from clearloop.data.log import Log
from clearloop.data.report import Finding
from clearloop.task import Task

LONG = 30  # rows of the same value
FINE = (
    0.01  # share of rows with the value of the row before, up to which a sensor never stands still by itself
)
JUMP = 3.0  # times the largest of a hundred usual changes: what a coarse sensor does when it comes loose
AS_USUAL = 0.25  # of the usual movement: what others do meanwhile
MUCH = 0.05  # share of the rows
FEW_LEVELS = 16
REPEATED = 0.01  # share of the rows
MOST_ROWS = 1_000_000


def check_sensors(log: Log, task: Task) -> Iterator[Finding]:
    states, actions, episodes = log.states[:MOST_ROWS], log.actions[:MOST_ROWS], log.episodes[:MOST_ROWS]
    for name in task.predicted:
        j = task.state_names.index(name)
        values = states[:, j] / max(np.abs(states[:, j]).max(), 1e-300)  # so that no difference overflows
        if np.isfinite(values).all() and np.ptp(values) > 0:
            others = np.hstack([np.delete(states, j, axis=1), actions])
            yield from _stuck(name, values, others, episodes)
            yield from _coarse(name, values)
    yield from _repeated(np.hstack([states, actions]), episodes)


def _stuck(name: str, values: Floats, others: Floats, episodes: Ints) -> Iterator[Finding]:
    begins, lengths = _runs(values, episodes)
    changes = np.abs(np.diff(values))
    short = np.repeat(lengths < LONG, lengths)[1:]
    fine = np.mean(changes[short] == 0) < FINE if short.any() else True
    large = JUMP * np.quantile(changes[short], 0.99) if short.any() else 0.0
    ends = begins + lengths
    jumps = np.append(np.where(episodes[1:] == episodes[:-1], changes, 0.0), 0.0)[ends - 1]
    loose = (jumps > large) | ((ends == len(values)) & (lengths > MUCH * len(values)))
    long = np.flatnonzero((lengths >= LONG) & (fine | loose))
    usual = _movement(others) if len(long) else np.zeros(0)
    stuck = [k for k in long if _moving(others[begins[k] : ends[k]], usual)]
    if not stuck:
        return
    count = int(lengths[stuck].sum())
    first, last = int(begins[stuck[0]]), int(begins[stuck[-1]] + lengths[stuck[-1]])
    what = (
        f"{name} stands still in {count:,} rows, first in row {first + 1:,}, while others move: the sensor "
        "was stuck; leave those rows out and begin a new episode after them"
    )
    numbers = {"name": name, "count": count, "first_row": first + 1, "last_row": last}
    yield Finding("problem" if count > MUCH * len(values) else "warning", "frozen-sensor", what, numbers)


def _runs(values: Floats, episodes: Ints) -> tuple[Ints, Ints]:
    """Where stretches of one value begin, and their lengths."""
    changes = (values[1:] != values[:-1]) | (episodes[1:] != episodes[:-1])
    begins = np.append(0, np.flatnonzero(changes) + 1)
    return begins, np.diff(np.append(begins, len(values)))


def _moving(others: Floats, usual: Floats) -> bool:
    """Whether another signal moves as much as it usually does."""
    return bool(np.any((_movement(others) > AS_USUAL * usual) & (usual > 0)))


def _movement(signals: Floats) -> Floats:
    """[columns] how much each changes from row to row."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.nanstd(np.diff(signals, axis=0), axis=0))


def _coarse(name: str, values: Floats) -> Iterator[Finding]:
    levels = len(np.unique(values))
    if levels < FEW_LEVELS:
        what = f"{name} takes only {levels} different values: log it with a finer resolution"
        yield Finding("warning", "coarse-sensor", what, {"name": name, "levels": levels})


def _repeated(rows: Floats, episodes: Ints) -> Iterator[Finding]:
    same = (rows[1:] == rows[:-1]).all(axis=1) & ~last_rows(episodes)[:-1]
    # Alone between rows that move: a plant at rest stays there for longer.
    alone = same.copy()
    alone[1:] &= ~same[:-1]
    alone[:-1] &= ~same[1:]
    share = float(alone.mean()) if len(alone) else 0.0
    if share > REPEATED:
        what = (
            f"{100 * share:.2g} % of the rows repeat the row before; drop them if they were logged twice, or "
            "choose a dt at which all sensors are read anew"
        )
        yield Finding("warning", "repeated-rows", what, {"share": share})
