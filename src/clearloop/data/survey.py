"""A survey of a log whose columns nobody has explained yet: what each looks like, and what it may be for."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clearloop.arrays import Floats
from clearloop.data.cells import Header, identifier, numbers, seconds, split_header
from clearloop.data.excitation import single_rows
from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.numbers import significant

if TYPE_CHECKING:
    import polars as pl

_MOST_ROWS = 1_000_000  # that are looked at
_MOST_STEPS = 1_000  # between the smallest and the largest whole number, up to which they count as steps
_MANY_ROWS = 200  # from which on single values may be left out
_NEAR = 0.1  # of the range: values that are nearer to the others stay
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
    def body(self) -> tuple[float, float]:
        """The range of the values without a few that lie far off, such as those of a startup."""
        known = np.sort(self.values[np.isfinite(self.values)])
        few = single_rows(len(known))
        if len(known) < _MANY_ROWS or self.distinct <= 2:
            return self.low, self.high
        low, high = float(known[few]), float(known[-1 - few])
        near = _NEAR * (high - low)
        inside = known[(known >= low - near) & (known <= high + near)]
        return float(inside[0]), float(inside[-1])

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


# Columns by the names that people use, and names that formulas can use.


def find(text: str, columns: Sequence[Column]) -> Column:
    """Find a column by its name, by its name without the unit, or by the name that a task would give it.

    Raises:
        ClearloopError: No column has that name, or several have.
    """
    for spelling in (lambda c: c.name, lambda c: c.header.name, lambda c: identifier(c.name)):
        found = [column for column in columns if spelling(column).casefold() == text.strip().casefold()]
        if len(found) == 1:
            return found[0]
    names = [column.name for column in columns] + [identifier(column.name) for column in columns]
    raise ClearloopError(
        f"no column {quoted(text)}{did_you_mean(text, names) or ';'} {list_columns(columns)}"
    )


def list_columns(columns: Sequence[Column]) -> str:
    """List the names of columns for an error message."""
    return "the columns are: " + ", ".join(quoted(column.name) for column in columns[:20])


def make_names(columns: Sequence[Column]) -> dict[str, str]:
    """Give each column a name that formulas can use; all names are different."""
    names: dict[str, str] = {}
    for column in columns:
        name, number = identifier(column.name), 2
        while name in names.values():
            name, number = f"{identifier(column.name)}_{number}", number + 1
        if names.setdefault(column.name, name) != name:
            raise ClearloopError(f"column {quoted(column.name)} has two roles: name it once")
    return names


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
    "elapsed",
    "stamp",
    "datum",
    "uhrzeit",
    "seconds",
    "minutes",
    "hours",
    "sec",
    "min",
    "hr",
}
_EPISODES = {"episode", "run", "trial", "experiment", "segment", "cycle"}
TERMINALS = {"terminal", "terminated", "done", "failed", "failure"}
SETPOINTS = {
    "setpoint", "sp", "target", "reference", "ref", "referencia", "referenz", "soll", "sollwert", "desired",
    "demand", "goal", "consigne", "consigna", "wanted", "setp", "spt", "aim", "fuehrungsgroesse", "sv", "sw",
}  # fmt: skip
_ABBREVIATED = ("setpoint", "target", "soll", "ref", "sp", "set", "des")
"""Begins or ends of words that hold a setpoint's state, too: `yref`, `Tsp`, `spT`, `levelset`."""
_BARE_SETPOINTS = {"r", "w"}  # the reference in textbooks, if it is held
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
    "control command cmd controller output heater valve pump voltage volt pwm force torque throttle duty "
    "power motor fan damper burner stellgroesse ventil pumpe heizung"
)
_DEVICES += " vanne valvula bomba chauffage calefactor opening stellgrad burner brenner"
ACTIONS = dict.fromkeys(_DEVICES.split(), 2)
ACTIONS |= {"u": 4, "action": 4, "actions": 4, "manipulated": 4, "mv": 4, "cv": 4, "input": 3, "actuator": 3}
ACTIONS |= {"op": 3}
ACTIONS |= {"q": 1, "tc": 1}
"""Words in the names of actions, and how strongly each points to an action."""
_COMPOUND = tuple(word for word in _DEVICES.split() if len(word) > 4)  # ends of words such as Gasventil


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
    setpoints = [column for column in left() if _is_setpoint(column, columns)] or _followed(left())
    others = [column for column in left() if column not in setpoints]
    for column, why in _actions(others) or _unpaired(others, setpoints):
        take(column, "action", why)
    for column in left():
        if _action_score(column) >= 2 and column not in setpoints:
            take(column, "ignored", "resembles an action, but another column resembles one more")
    states = [column for column in left() if column not in setpoints and not column.constant]
    for column in setpoints:
        of = _state_of(column, states)
        named = _is_setpoint(column, columns)
        why = "named like a setpoint" if named else "its unit is that of the state, which follows it"
        why += " and constant" * column.constant + ", held between steps" * column.held
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


def _is_setpoint(column: Column, columns: Sequence[Column]) -> bool:
    named = words(column)
    if named & SETPOINTS or {"set", "point"} <= named:
        return True
    if named <= _BARE_SETPOINTS and (column.held or column.constant):
        return True
    others = set().union(*(words(other) for other in columns if other is not column))
    return any(rest in others for word in named for rest in _abbreviated(word))


def _followed(columns: Sequence[Column]) -> list[Column]:
    """Return held columns that one of the same unit follows, if another column is named like an action."""
    return [
        column
        for column in columns
        if column.held
        and not _named_like_an_action(column)
        and _actions([other for other in columns if other is not column])
        and any(
            not other.held and other.header.unit == column.header.unit != "" and _tracks(other, column)
            for other in columns
            if other is not column and other.kind == "number"
        )
    ]


def _abbreviated(word: str) -> list[str]:
    """Return what is left of a word without `ref`, `sp` or the like at its begin or end."""
    found = [word.removesuffix(mark) for mark in _ABBREVIATED if word.endswith(mark)]
    found += [word.removeprefix(mark) for mark in _ABBREVIATED if word.startswith(mark)]
    return [rest for rest in found if rest]


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


_WITH_STEPS = 0.5  # share of the setpoint's steps at which a controller's output jumps
_JUMP = 5.0  # times the usual change of a column: a jump


def _unpaired(columns: Sequence[Column], setpoints: Sequence[Column]) -> list[tuple[Column, str]]:
    """Return the columns without a setpoint that move as an action does."""
    moving = [column for column in columns if not column.constant and column.kind == "number"]
    followed = [_state_of(setpoint, moving) for setpoint in setpoints]
    rest = [column for column in moving if column not in followed]
    if not rest:
        return []
    if not any(followed):
        held = [column for column in rest if column.held]
        return [(column, "held between steps") for column in held] if len(held) < len(rest) else []
    jumping = [column for column in rest if any(_jumps(column, setpoint) for setpoint in setpoints)]
    if jumping:
        return [(column, "has no setpoint, and jumps when one changes") for column in jumping]
    held = [column for column in rest if column.held]
    if held:
        return [(column, "has no setpoint, held between steps") for column in held]
    return [(rest[0], "the only column without a setpoint")] if len(rest) == 1 else []


def _jumps(column: Column, setpoint: Column) -> bool:
    """Return True if a column jumps in the rows in which a setpoint changes, or in the next ones."""
    steps = np.flatnonzero(np.diff(setpoint.values)) + 1
    changes = np.abs(np.diff(column.values, prepend=column.values[:1]))
    steps = steps[steps < len(changes) - 2]
    if not 2 <= len(steps) <= len(changes) // 10:
        return False
    usual = float(np.nanmedian(np.delete(changes, steps)))
    largest = np.max([changes[steps + later] for later in range(3)], axis=0)
    return float(np.mean(largest > _JUMP * usual)) >= _WITH_STEPS and float(np.nanmax(largest)) > 0


def _named_like_an_action(column: Column) -> int:
    """Return how strongly the name of a column points to an action; 0 if it does not."""
    return max((ACTIONS.get(word) or int(word.endswith(_COMPOUND)) for word in words(column)), default=0)


def _action_score(column: Column) -> int:
    score = _named_like_an_action(column)
    in_percent = column.header.unit == "%" and column.low >= -100 and column.high <= 100
    return score + in_percent + column.held if not column.constant else 0


def _action_reason(column: Column) -> str:
    reasons = ["named like an action"] * (_named_like_an_action(column) > 0)
    reasons += ["in %"] * (column.header.unit == "%") + ["held between steps"] * column.held
    return ", ".join(reasons)


def _state_of(setpoint: Column, states: Sequence[Column]) -> Column | None:
    """Return the state that shares most words and the unit with a setpoint, or the only state."""
    bare = words(setpoint) - SETPOINTS - {"set", "point"}
    bare |= {rest for word in bare for rest in _abbreviated(word)}

    def score(state: Column) -> float:
        same_unit = state.header.unit == setpoint.header.unit != ""
        inside = state.low <= setpoint.high and setpoint.low <= state.high
        return 3 * len(bare & words(state)) + 2 * same_unit + 2 * _tracks(state, setpoint) + inside

    best = max(states, key=score, default=None)
    if best is None or (len(states) > 1 and score(best) < 2):
        return None
    return best


def _tracks(state: Column, setpoint: Column) -> bool:
    """Return True if a state follows a setpoint that moves."""
    known = np.isfinite(state.values) & np.isfinite(setpoint.values)
    values, aims = (  # to -1 … 1, so that no square overflows
        column.values[known] / max(abs(column.low), abs(column.high), 1e-300) for column in (state, setpoint)
    )
    if len(values) < 10 or not np.ptp(values) or not np.ptp(aims):
        return False
    return float(np.corrcoef(values, aims)[0, 1]) > _TRACKED


_TRACKED = 0.7  # correlation of a state with its setpoint


# Time scales: how fast a log was sampled, and how fast its signals are.

_NEARLY = 0.75
FORGOTTEN = math.exp(-1)
MOST_TIMING_ROWS = 50_000  # for the time scale
EPOCHS = {"ns": 1e17, "us": 1e14, "ms": 1e11}
"""Times beyond these numbers count from 1970, in that unit."""


_TIME_WORDS = {
    word: unit
    for unit, spellings in {
        "ns": "ns nanoseconds", "us": "us µs microseconds", "ms": "ms msec millis milliseconds",
        "s": "s sec secs second seconds sekunden segundos",
        "min": "min mins minute minutes minuten minutos", "h": "h hr hrs hour hours std stunden horas heures",
    }.items()
    for word in spellings.split()
}  # fmt: skip


def time_unit(column: Column) -> str:
    """Return the unit of a time column, from its header or from the size of its numbers; else seconds."""
    if column.kind == "date":
        return "s"
    said = [column.header.unit.casefold().rstrip("."), *sorted(words(column))]
    for word in said:
        if word in _TIME_WORDS:
            return _TIME_WORDS[word]
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
