"""A frame seen through a task: arrays, and every problem that forbids to learn from them.

`Batch` refuses a log at its first problem; `check` lists them all.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clearloop.data.cells import Flags, Floats, Ints, flags, numbers, seconds
from clearloop.data.episodes import last_rows, number_runs
from clearloop.data.headers import identifier
from clearloop.data.report import Finding
from clearloop.errors import did_you_mean, quoted
from clearloop.task import Columns

if TYPE_CHECKING:
    import polars as pl

MOST_COLUMNS_LISTED = 20
SORT = "sort the rows by episode and time"


@dataclass(frozen=True)
class Log:
    """Arrays as in `Batch`. A cell that is no finite number is NaN, and so is all of a missing column."""

    states: Floats
    actions: Floats
    setpoints: Floats | None
    rewards: Floats | None
    times: Floats | None
    episodes: Ints
    terminal: Flags
    problems: tuple[Finding, ...]
    done: tuple[Finding, ...] = ()
    """What was made of it by resampling."""


def read_log(frame: "pl.DataFrame", columns: Columns) -> Log:
    missing = [_missing(name, frame.columns) for name in columns.needed if name not in frame.columns]
    twice = [_twice(name) for name in columns.needed if f"{name}_duplicated_0" in frame.columns]
    terminal, odd_flags = _terminal(frame, columns.terminal)
    episodes, torn = _episodes(frame, columns.episode, terminal)
    cells, odd_cells = _cells(frame, columns, last_rows(episodes))

    def stack(names: tuple[str, ...]) -> Floats:
        stacked = np.full((len(frame), len(names)), np.nan)
        for index, name in enumerate(names):
            stacked[:, index] = cells.get(name, np.nan)
        return stacked

    times = cells.get(columns.time)
    disorder = [] if times is None else _disorder(times, episodes, columns.time)
    return Log(
        states=stack(columns.states),
        actions=stack(columns.actions),
        setpoints=stack(columns.setpoints) if columns.setpoints else None,
        rewards=cells.get(columns.reward),
        times=times,
        episodes=episodes,
        terminal=terminal,
        problems=(*missing, *twice, *_size(episodes), *odd_flags, *torn, *odd_cells, *disorder),
    )


def _missing(name: str, there: list[str]) -> Finding:
    listed = ", ".join(quoted(column) for column in there[:MOST_COLUMNS_LISTED])
    listed += ", …" * (len(there) > MOST_COLUMNS_LISTED)
    hint = _same_but_unit(name, there) or did_you_mean(name, there) or ";"
    message = f"no column {quoted(name)}{hint} the columns are: {listed}; the task's [data] can rename them"
    return Finding("problem", "missing-column", message, {"column": name, "columns": there})


def _same_but_unit(name: str, there: list[str]) -> str:
    """`Temperature 1 (degC)` for `temperature_1`."""
    same = (column for column in there if identifier(column).casefold() == identifier(name).casefold())
    return next((f"; did you mean {quoted(column)}?" for column in same), "")


def _twice(name: str) -> Finding:
    what = f"two columns are called {quoted(name)}; rename one of them"
    return Finding("problem", "missing-column", what, {"column": name})


def _size(episodes: Ints) -> list[Finding]:
    if len(episodes) > 1 and not last_rows(episodes)[:-1].all():
        return []
    message = f"no two rows follow each other in one episode ({len(episodes):,} rows): log more"
    return [Finding("problem", "no-transitions", message, {"rows": len(episodes)})]


def _terminal(frame: "pl.DataFrame", name: str) -> tuple[Flags, list[Finding]]:
    return flags(frame[name]) if name in frame.columns else (np.zeros(len(frame), dtype=np.bool_), [])


def _episodes(frame: "pl.DataFrame", name: str, terminal: Flags) -> tuple[Ints, list[Finding]]:
    """Without an episode column all rows are one, cut after terminal rows."""
    if name not in frame.columns:
        return number_runs(np.zeros(len(frame)), terminal), []
    labels = frame[name]
    runs = labels.rle_id().to_numpy()
    begins = np.flatnonzero(np.diff(runs, prepend=-1))
    again = begins[~labels.gather(begins).is_first_distinct().to_numpy()]
    findings = []
    if len(again):
        row = int(again[0])
        label = quoted(str(labels[row]))
        what = f"episode {label} begins again in row {row + 1:,}; {SORT}, or number its parts apart"
        findings = [Finding("problem", "torn-episode", what, {"count": len(again), "first_row": row + 1})]
    return number_runs(runs, terminal), findings


def _cells(frame: "pl.DataFrame", columns: Columns, last: Flags) -> tuple[dict[str, Floats], list[Finding]]:
    """An episode's last row needs neither an action nor a reward: no step follows."""
    never = np.zeros(len(frame), dtype=np.bool_)
    read = [name for name in columns.states if name in columns.needed]  # the others are derived
    may_be_empty = dict.fromkeys((*read, *columns.setpoints), never)
    may_be_empty |= dict.fromkeys((*columns.actions, columns.reward), last)
    cells, findings = {}, []
    for name in (name for name in may_be_empty if name in frame.columns):
        cells[name], found = numbers(frame[name], may_be_empty[name])
        findings += found
    if columns.time in frame.columns:
        cells[columns.time], found = seconds(frame[columns.time], columns.time_unit)
        findings += found
    return cells, findings


def _disorder(times: Floats, episodes: Ints, name: str) -> list[Finding]:
    backwards = np.flatnonzero((times[1:] < times[:-1]) & ~last_rows(episodes)[:-1]) + 2
    if not len(backwards):
        return []
    places = f"{len(backwards):,} place{'s' * (len(backwards) > 1)}"
    what = f"column {quoted(name)} runs backwards in {places}, first in row {backwards[0]:,}; {SORT}"
    where = {"count": len(backwards), "first_row": int(backwards[0])}
    return [Finding("problem", "unsorted-times", what, where)]
