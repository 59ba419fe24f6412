"""A log is a dataframe as a task reads it: arrays, and every problem that forbids learning from them.

`Batch` refuses a log at its first problem; `check` lists them all.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from clearloop.arrays import Flags, Floats, Ints
from clearloop.data.cells import flags, identifier, numbers, seconds
from clearloop.data.findings import Finding
from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression.nodes import READ_LIMIT
from clearloop.numbers import counted, percent
from clearloop.task import Columns, Task

if TYPE_CHECKING:
    import polars as pl


# Episodes are runs of rows, numbered 0, 1, 2, … in file order. A terminal row ends its episode.


def number_runs(labels: ArrayLike, terminal: Flags) -> Ints:
    """Number episodes [rows]: a new one begins where the label changes, and after every terminal row."""
    labels = np.asarray(labels)
    begins = np.zeros(len(labels), dtype=np.bool_)
    begins[1:] = (labels[1:] != labels[:-1]) | terminal[:-1]
    numbers = np.cumsum(begins, dtype=np.int64)
    numbers.flags.writeable = False
    return numbers


def first_rows(episodes: Ints) -> Ints:
    """Return for each row the row in which its episode begins [rows]."""
    rows = np.arange(len(episodes))
    rows[1:][episodes[1:] == episodes[:-1]] = 0
    return np.maximum.accumulate(rows)


def last_rows(episodes: Ints) -> Flags:
    """Return True for the last row of each episode [rows]."""
    last = np.ones(len(episodes), dtype=np.bool_)
    last[:-1] = episodes[1:] != episodes[:-1]
    return last


def split_rows(episodes: Ints, share: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Split rows into those to train on and those to hold out, by whole episodes.

    About `share` of the transitions is held out. A single episode is split in time: its last part is held
    out, and the row at the cut is in both parts.
    """
    steps = np.bincount(episodes) - 1
    if not 0 < share < 1 or steps.sum() < 2:
        raise ClearloopError("split: expected a share between 0 and 1, and two transitions or more")
    wanted = share * steps.sum()
    drawn = rng.permutation(np.flatnonzero(steps))
    if len(drawn) == 1:
        rows = np.flatnonzero(episodes == drawn[0])
        cut = min(max(1, round(len(rows) - 1 - wanted)), len(rows) - 2)
        return rows[: cut + 1], rows[cut:]
    count = 1 + int(np.argmin(np.abs(np.cumsum(steps[drawn])[:-1] - wanted)))
    held_out = np.isin(episodes, drawn[:count])
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def pieces(rows: int, most: int, length: int) -> tuple[Ints, Ints]:
    """Choose evenly spaced pieces of a log.

    Args:
        rows: The number of rows of the log.
        most: The number of rows to choose, about.
        length: The rows of a piece.

    Returns:
        The chosen rows, and the number of the piece of each.
    """
    count = max(1, most // length)
    begins = np.linspace(0, max(rows - length, 0), count).astype(np.int64)
    chosen = np.unique(np.minimum(begins[:, None] + np.arange(length), rows - 1))
    return chosen, np.searchsorted(begins, chosen, side="right")


def count_failing(episodes: Ints, terminal: Flags) -> int:
    """Count the transitions that lead to a terminal state."""
    return int(np.count_nonzero(terminal[1:] & ~last_rows(episodes)[:-1]))


def summarize(transitions: int, episodes: int, failing: int, ends: str = "failing") -> str:
    """Write the size of a log: `10,000 transitions in 794 episodes, 5.9 % of them failing`."""
    share = percent(failing / transitions) if failing else "none"
    return f"{transitions:,} transitions in {counted(episodes, 'episode')}, {share} of them {ends}"


# The log itself.

MOST_COLUMNS_LISTED = 20
SORT = "sort the rows by episode and time"


@dataclass(frozen=True)
class Log:
    """The arrays of `Batch`, and the problems with them.

    A cell is NaN if it holds no number, or none that formulas can read (beyond ±1e12); so are all cells of a
    missing column.
    """

    states: Floats
    actions: Floats
    setpoints: Floats | None
    rewards: Floats | None
    times: Floats | None
    episodes: Ints
    terminal: Flags
    problems: tuple[Finding, ...]
    done: tuple[Finding, ...] = ()
    """What resampling has done to it."""


def read_log(frame: "pl.DataFrame", columns: Columns) -> Log:
    """Read the columns that a task needs, and list every problem."""
    missing = [missing_column(name, frame.columns) for name in columns.needed if name not in frame.columns]
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


def missing_column(name: str, there: list[str]) -> Finding:
    """Return the finding that a log has no column of this name.

    Args:
        name: The column that the task reads.
        there: The columns of the log.
    """
    listed = ", ".join(quoted(column) for column in there[:MOST_COLUMNS_LISTED])
    listed += ", …" * (len(there) > MOST_COLUMNS_LISTED)
    hint = _same_but_unit(name, there) or did_you_mean(name, there) or ";"
    message = f"no column {quoted(name)}{hint} the columns are: {listed}; the task's [data] can rename them"
    return Finding("problem", "missing-column", message, {"column": name, "columns": there})


def _same_but_unit(name: str, there: list[str]) -> str:
    """Suggest `Temperature 1 (degC)` for `Temperature_1`."""
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
    """Number episodes; without an episode column, all rows are one episode that terminal rows cut."""
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
    """Read cells. An episode's last row needs neither an action nor a reward, as no step follows."""
    never = np.zeros(len(frame), dtype=np.bool_)
    read = [name for name in columns.states if name in columns.needed]  # the others are derived
    may_be_empty = dict.fromkeys((*read, *columns.setpoints), never)
    may_be_empty |= dict.fromkeys((*columns.actions, columns.reward), last)
    cells, findings = {}, []
    for name in (name for name in may_be_empty if name in frame.columns):
        cells[name], found = numbers(frame[name], may_be_empty[name], READ_LIMIT)
        findings += found
    if columns.time in frame.columns:
        cells[columns.time], found = seconds(frame[columns.time], columns.time_unit)
        findings += found
    return cells, findings


def _disorder(times: Floats, episodes: Ints, name: str) -> list[Finding]:
    backwards = np.flatnonzero((times[1:] < times[:-1]) & ~last_rows(episodes)[:-1]) + 2
    if not len(backwards):
        return []
    places = counted(len(backwards), "place")
    what = f"column {quoted(name)} runs backwards in {places}, first in row {backwards[0]:,}; {SORT}"
    where = {"count": len(backwards), "first_row": int(backwards[0])}
    return [Finding("problem", "unsorted-times", what, where)]


# Archives and Minari datasets have numbered columns.


def name_columns(frame: "pl.DataFrame", columns: Columns) -> "pl.DataFrame":
    """Give numbered columns the names that a task reads.

    Observations are the measured states and then the logged setpoints, actions the actions, each in the
    task's order. Columns that the task names by their numbers, as in `[data] speed = "obs_3"`, stay.

    Raises:
        ClearloopError: The task and the archive have different numbers of observations or actions.
    """
    measured = [name for name in columns.states if name in columns.needed]
    wanted = {"obs": [*measured, *columns.setpoints], "action": list(columns.actions)}
    named: dict[str, str] = {}
    for stem, names in wanted.items():
        numbered = [f"{stem}_{i}" for i in range(len(frame.columns)) if f"{stem}_{i}" in frame.columns]
        if not numbered or any(name in frame.columns for name in names):
            continue
        if len(numbered) != len(names):
            what, these = ("observation", "states") if stem == "obs" else ("action", "actions")
            raise ClearloopError(
                f"{counted(len(numbered), what)} a row, but the task names {len(names)} {these}: list them "
                f'all in order, or map each in [data], as in {names[0]} = "{numbered[0]}"'
            )
        named |= dict(zip(numbered, names, strict=True))
    return frame.rename(named)


# Transitions: the states and actions before each step, and the states after it.


class Transitions(NamedTuple):
    """A table of n steps, each from a row to the next one of its episode; S states, A actions."""

    window: Floats
    """[n, history * (S + A)]: states and actions of the row (lag 0), then those of lag 1, and so on.
    Before an episode's start, the first observation is repeated and actions are 0, or as the task starts."""
    next: Floats
    """[n, S]: the states after the step."""
    reward: Floats | None
    """[n]"""
    terminal: Flags
    """[n]: true if the step led to a terminal state."""
    episode: Ints
    """[n]"""


def make_transitions(
    states: Floats,
    actions: Floats,
    rewards: Floats | None,
    terminal: Flags,
    episodes: Ints,
    history: int,
    before: Floats | None = None,
) -> Transitions:
    """Make the transitions of a log from its arrays, which are those of `Batch`.

    `before` [A] are the actions before an episode's start; None: 0.
    """
    rows = np.flatnonzero(~last_rows(episodes))
    return Transitions(
        window=_windows(states, actions, rows, first_rows(episodes)[rows], history, before),
        next=states[rows + 1],
        reward=None if rewards is None else rewards[rows],
        terminal=terminal[rows + 1],
        episode=episodes[rows],
    )


def first_windows(starts: Floats, actions: int, history: int, before: Floats | None = None) -> Floats:
    """Return the windows [N, history * (S + A)] of episodes that begin at `starts` [N, S].

    Args:
        starts: The first states.
        actions: The number of actions, A.
        history: Observations in a window.
        before: [A] the actions before the start; None: 0.
    """
    rows = np.arange(len(starts))
    return _windows(starts, np.zeros((len(starts), actions)), rows, rows, history, before)


def _windows(
    states: Floats, actions: Floats, rows: Ints, first: Ints, history: int, before: Floats | None
) -> Floats:
    """Stack lagged rows. Before row `first` [n] its observation is repeated, and actions are `before`."""
    earlier = np.zeros(actions.shape[1]) if before is None else before
    width = states.shape[1]
    window = np.empty((len(rows), history, width + actions.shape[1]))
    for lag in range(history):
        past = np.maximum(rows - lag, first)
        window[:, lag, :width] = states[past]
        window[:, lag, width:] = np.where((rows - lag >= first)[:, None], actions[past], earlier)
    return window.reshape(len(rows), -1)


# Setpoints.


def setpoint_rows(task: Task, logged: Floats | None, n: int) -> Floats:
    """Return the setpoint of each state in each row [n, S]; 0 for states without one.

    Args:
        task: The task whose states have setpoints.
        logged: The columns of the P setpoints that were logged [n, P].
        n: The number of rows.
    """
    columns = iter([] if logged is None else logged.T)
    table = np.zeros((n, len(task.states)))
    for j, name in enumerate(task.state_names):
        aim = task.setpoints.get(name, 0.0)
        table[:, j] = next(columns) if isinstance(aim, str) else aim
    return table


def usual_setpoints(task: Task, logged: Floats | None) -> dict[str, float]:
    """Return the median of each setpoint that is a column of the log, by state."""
    medians = [] if logged is None else np.median(logged, axis=0).tolist()
    return dict(zip(task.logged_setpoints, medians, strict=True))
