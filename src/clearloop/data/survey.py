"""A survey of a log whose columns nobody has explained yet: what each looks like, and what it may be for."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clearloop.arrays import Floats
from clearloop.data.cells import Header, numbers, seconds, split_header
from clearloop.numbers import significant
from clearloop.task.tables import SECONDS

if TYPE_CHECKING:
    import polars as pl

_MOST_ROWS = 1_000_000  # that are looked at
_MOST_STEPS = 1_000  # between the smallest and the largest whole number, up to which they count as steps
HOLDS = 0.1  # share of rows with a new value, up to which a signal counts as held

_Kind = Literal["number", "date", "text", "empty"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """A column of a log, and what can be seen by looking at it."""

    name: str
    kind: _Kind
    values: Floats
    """[rows], NaN where there is no number; seconds for dates."""
    low: float
    high: float
    changes: float
    """The share of rows with another value than the row before."""
    distinct: int
    """How many different values there are."""

    @property
    def header(self) -> Header:
        """The name, split into name and unit."""
        return split_header(self.name)

    @property
    def constant(self) -> bool:
        """True if there is only one value."""
        return self.low == self.high

    @property
    def held(self) -> bool:
        """True if the signal moves in steps, with long stretches in which it does not change."""
        return not self.constant and self.changes <= HOLDS

    @property
    def step(self) -> float | None:
        """The distance between values, if there are only two or only a few whole numbers; else None."""
        if self.distinct == 2:
            return self.high - self.low
        whole = bool(np.all(self.values[np.isfinite(self.values)] % 1 == 0))
        return 1.0 if self.distinct > 2 and whole and self.high - self.low <= _MOST_STEPS else None

    @property
    def rising(self) -> bool:
        """True if values rise from row to row, but for a few rows that begin anew."""
        steps = np.diff(self.values)
        return len(steps) > 0 and float((steps > 0).mean()) > 0.9

    @property
    def range(self) -> str:
        """The range in words: `0 … 100`, or `23`."""
        if self.kind in ("text", "empty"):
            return self.kind
        return f"{self.low:.4g}" if self.constant else f"{self.low:.4g} … {self.high:.4g}"


def survey(frame: "pl.DataFrame") -> tuple[Column, ...]:
    """Look at each column of a log."""
    return tuple(_column(frame[name]) for name in frame.head(_MOST_ROWS).columns)


def _column(column: "pl.Series") -> Column:
    column = column.head(_MOST_ROWS)
    kind, values = _values(column)
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
    changes = float(np.mean(known[1:] != known[:-1])) if len(known) > 1 else 0.0
    distinct = len(np.unique(known))
    return Column(
        name=column.name, kind=kind, values=values, low=low, high=high, changes=changes, distinct=distinct
    )


def _values(column: "pl.Series") -> tuple[_Kind, Floats]:
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


# Roles: what each column may be for, guessed from its name, its unit and its course.

Role = Literal["time", "episode", "reward", "terminal", "state", "action", "setpoint", "external", "ignored"]

_TIMES = {
    "time",
    "t",
    "timestamp",
    "date",
    "datetime",
    "tempo",
    "zeit",
    "temps",
    "tiempo",
    "clock",
    "seconds",
}
_EPISODES = {"episode", "run", "trial", "experiment", "segment", "cycle"}
TERMINALS = {"terminal", "terminated", "done", "failed", "failure"}
SETPOINTS = {
    "setpoint", "sp", "target", "reference", "ref", "referencia", "referenz", "soll", "sollwert", "desired",
    "demand", "goal", "consigne", "consigna", "wanted",
}  # fmt: skip
_OUTSIDE = {"ambient", "outdoor", "outside", "weather", "disturbance", "load", "external"}
NO_USE = {
    "saturation",
    "saturated",
    "feedforward",
    "source",
    "status",
    "mode",
    "quality",
    "index",
    "row",
    "id",
}
_DEVICES = (
    "control command cmd heater valve pump voltage volt pwm force torque throttle duty power motor fan "
    "damper burner stellgroesse ventil pumpe heizung"
)
ACTIONS = dict.fromkeys(_DEVICES.split(), 2)
ACTIONS |= {"u": 4, "action": 4, "actions": 4, "manipulated": 4, "input": 3, "actuator": 3}
"""Words in the names of actions, and how strongly each points to an action."""


@dataclass(frozen=True)
class Guess:
    """The role that a column seems to have."""

    column: Column
    role: Role
    why: str
    """The reason, for people."""
    of: Column | None = None
    """The state that a setpoint belongs to; None for other roles."""


def guess_roles(columns: Sequence[Column]) -> tuple[Guess, ...]:
    """Guess the role of each column; the guesses are in the order of the columns."""
    guesses: dict[str, Guess] = {}

    def take(column: Column | None, role: Role, why: str, of: Column | None = None) -> None:
        if column is not None and column.name not in guesses:
            guesses[column.name] = Guess(column, role, why, of)

    def left() -> list[Column]:
        return [column for column in columns if column.name not in guesses]

    take(*_time(columns))
    for column in left():
        take(*_plain(column))
    setpoints = [column for column in left() if _is_setpoint(column)]
    for column, why in _actions([column for column in left() if column not in setpoints]):
        take(column, "action", why)
    for column in left():
        if _action_score(column) >= 2 and column not in setpoints:
            take(column, "ignored", "resembles an action, but another column resembles one more")
    states = [column for column in left() if column not in setpoints and not column.constant]
    for column in setpoints:
        of = _state_of(column, states)
        why = (
            f"named like a setpoint{' and constant' * column.constant}{', held between steps' * column.held}"
        )
        take(column, "setpoint" if of else "ignored", why + ("" if of else "; its state is not known"), of)
    for column in left():
        constant = "never changes"
        take(column, "ignored" if column.constant else "state", constant if column.constant else "measured")
    return tuple(guesses[column.name] for column in columns)


def words(column: Column) -> set[str]:
    """Return the words of a column's name: `plantInput_1` has plant, input and 1."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", column.header.name)
    return {word.casefold() for word in re.findall(r"[^\W\d_]+|\d+", apart)}


def _time(columns: Sequence[Column]) -> tuple[Column | None, Role, str]:
    for column in columns:
        if column.kind == "date":
            return column, "time", "dates"
    for column in columns:
        if words(column) & _TIMES and column.kind == "number" and column.rising:
            return column, "time", "named like a time, and rising"
    return None, "time", ""


def _plain(column: Column) -> tuple[Column | None, Role, str]:
    """Guess a role from the name and the type of the cells alone; no column if they do not tell."""
    named = words(column)
    if column.kind in ("text", "empty", "date"):
        role: Role = "episode" if named & _EPISODES and column.kind == "text" else "ignored"
        return column, role, column.kind if role == "ignored" else "named like an episode"
    if named & _EPISODES and (column.held or column.constant):
        return column, "episode", "named like an episode, and held"
    if named & TERMINALS and set(column.values[column.values == column.values]) <= {0.0, 1.0}:
        return column, "terminal", "named like the end of an episode, and 0 or 1"
    if "reward" in named:
        return column, "reward", "named like a reward"
    if named & NO_USE:
        return column, "ignored", "named like something that a controller need not see"
    if named & _OUTSIDE:
        return column, "external", "named like something that comes from outside"
    return None, "ignored", ""


def _is_setpoint(column: Column) -> bool:
    return bool(words(column) & SETPOINTS) or {"set", "point"} <= words(column)


def _actions(columns: Sequence[Column]) -> list[tuple[Column, str]]:
    """Return the column that looks most like an action, and its siblings with other numbers."""
    scores = {column.name: _action_score(column) for column in columns}
    best = max(scores.values(), default=0)
    if best < 2:
        return []
    first = next(column for column in columns if scores.get(column.name) == best)
    stem = re.sub(r"\d+", "", first.name)
    siblings = [column for column in columns if re.sub(r"\d+", "", column.name) == stem]
    return [(column, _action_reason(column)) for column in siblings if not column.constant]


def _action_score(column: Column) -> int:
    score = max((ACTIONS.get(word, 0) for word in words(column)), default=0)
    in_percent = column.header.unit == "%" and column.low >= -100 and column.high <= 100
    return score + in_percent + column.held if not column.constant else 0


def _action_reason(column: Column) -> str:
    reasons = ["named like an action"] * any(word in ACTIONS for word in words(column))
    reasons += ["in %"] * (column.header.unit == "%") + ["held between steps"] * column.held
    return ", ".join(reasons)


def _state_of(setpoint: Column, states: Sequence[Column]) -> Column | None:
    """Return the state that shares most words and the unit with a setpoint, or the only state."""
    bare = words(setpoint) - SETPOINTS - {"set", "point"}

    def score(state: Column) -> float:
        same_unit = state.header.unit == setpoint.header.unit != ""
        inside = state.low <= setpoint.high and setpoint.low <= state.high
        return 3 * len(bare & words(state)) + 2 * same_unit + inside

    best = max(states, key=score, default=None)
    if best is None or (len(states) > 1 and score(best) < 2):
        return None
    return best


# Time scales: how fast a log was sampled, and how fast its signals are.

_NEARLY = 0.75
FORGOTTEN = math.exp(-1)
MOST_TIMING_ROWS = 50_000  # for the time scale
EPOCHS = {"ns": 1e17, "us": 1e14, "ms": 1e11}
"""Times beyond these numbers count from 1970, in that unit."""


def time_unit(column: Column) -> str:
    """Return the unit of a time column, from its header or from the size of its numbers; else seconds."""
    if column.kind == "date":
        return "s"
    if column.header.unit in SECONDS:
        return column.header.unit
    return next((unit for unit, least in EPOCHS.items() if column.low > least), "s")


def intervals(times: Floats) -> Floats:
    """Return the intervals between rows, without those that go back."""
    steps = np.diff(times)
    return steps[(steps > 0) & np.isfinite(steps)]


def sensible(value: float, tolerance: float = 0.02) -> float:
    """Return the number with the fewest digits that is within a tolerance: 0.01 for 0.01007."""
    if value == 0 or not math.isfinite(value):
        return value
    for digits in range(1, 15):
        rounded = significant(value, digits)
        if abs(rounded - value) <= tolerance * abs(value):
            return rounded
    return value


def outward(low: float, high: float) -> tuple[float, float]:
    """Return limits of few digits around a range; symmetric ones if the range is nearly symmetric."""
    if low < 0 < high and _NEARLY * max(-low, high) <= min(-low, high):
        low, high = -max(-low, high), max(-low, high)
    unit = 10.0 ** math.floor(math.log10(max(high - low, 1e-300))) / 10
    ends = math.floor(low / unit + 1e-9) * unit, math.ceil(high / unit - 1e-9) * unit
    return min(significant(ends[0], 12), low), max(significant(ends[1], 12), high)


def memory(signals: Sequence[Floats]) -> float:
    """Return the rows after which the autocorrelation of the slowest signal is below 1/e."""
    return max((_memory(values[:MOST_TIMING_ROWS]) for values in signals), default=0.0)


def _memory(values: Floats) -> float:
    values = values[np.isfinite(values)]
    if len(values) < 10 or values.min() == values.max():
        return 0.0
    values = (values - values.mean()) / max(float(np.abs(values).max()), 1e-300)
    spectrum = np.abs(np.fft.rfft(values, 2 * len(values))) ** 2
    correlation = np.fft.irfft(spectrum)[: len(values)]
    below = np.flatnonzero(correlation < FORGOTTEN * correlation[0])
    return float(below[0]) if len(below) else float(len(values))
