"""What each column of a log may be for, guessed from its name, its unit and its course; with the reason."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from clearloop.data.survey import Column

Role = Literal["time", "episode", "reward", "terminal", "state", "action", "setpoint", "external", "ignored"]

TIMES = {"time", "t", "timestamp", "date", "datetime", "tempo", "zeit", "temps", "tiempo", "clock", "seconds"}
EPISODES = {"episode", "run", "trial", "experiment", "segment", "cycle"}
TERMINALS = {"terminal", "terminated", "done", "failed", "failure"}
SETPOINTS = {
    "setpoint", "sp", "target", "reference", "ref", "referencia", "referenz", "soll", "sollwert", "desired",
    "demand", "goal", "consigne", "consigna", "wanted",
}  # fmt: skip
OUTSIDE = {"ambient", "outdoor", "outside", "weather", "disturbance", "load", "external"}
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
"""Words, and how much each says."""


@dataclass(frozen=True)
class Guess:
    column: Column
    role: Role
    why: str
    of: Column | None = None
    """The state that a setpoint is for."""


def guess_roles(columns: Sequence[Column]) -> tuple[Guess, ...]:
    """In the order of the columns."""
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
            take(column, "ignored", "like an action, but another one is more so")
    states = [column for column in left() if column not in setpoints and not column.constant]
    for column in setpoints:
        of = _state_of(column, states)
        why = (
            f"named like a setpoint{' and constant' * column.constant}{', held between steps' * column.held}"
        )
        take(column, "setpoint" if of else "ignored", why + ("" if of else "; of which state?"), of)
    for column in left():
        constant = "never changes"
        take(column, "ignored" if column.constant else "state", constant if column.constant else "measured")
    return tuple(guesses[column.name] for column in columns)


def words(column: Column) -> set[str]:
    """`plantInput_1` has plant, input and 1."""
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", column.header.name)
    return {word.casefold() for word in re.findall(r"[^\W\d_]+|\d+", apart)}


def _time(columns: Sequence[Column]) -> tuple[Column | None, Role, str]:
    for column in columns:
        if column.kind == "date":
            return column, "time", "dates"
    for column in columns:
        if words(column) & TIMES and column.kind == "number" and column.rising:
            return column, "time", "named like a time, and rising"
    return None, "time", ""


def _plain(column: Column) -> tuple[Column | None, Role, str]:
    """What a name or an emptiness says at once."""
    named = words(column)
    if column.kind in ("text", "empty", "date"):
        role: Role = "episode" if named & EPISODES and column.kind == "text" else "ignored"
        return column, role, column.kind if role == "ignored" else "named like one"
    if named & EPISODES and (column.held or column.constant):
        return column, "episode", "named like one, and held"
    if named & TERMINALS and set(column.values[column.values == column.values]) <= {0.0, 1.0}:
        return column, "terminal", "named like one, and a flag"
    if "reward" in named:
        return column, "reward", "named like one"
    if named & NO_USE:
        return column, "ignored", "named like what a controller need not see"
    if named & OUTSIDE:
        return column, "external", "named like what comes from outside"
    return None, "ignored", ""


def _is_setpoint(column: Column) -> bool:
    return bool(words(column) & SETPOINTS) or {"set", "point"} <= words(column)


def _actions(columns: Sequence[Column]) -> list[tuple[Column, str]]:
    """The one that looks most like an action, and its siblings with other numbers."""
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
    """The state that shares most words, and the unit; where nothing tells, the only one there is."""
    bare = words(setpoint) - SETPOINTS - {"set", "point"}

    def score(state: Column) -> float:
        same_unit = state.header.unit == setpoint.header.unit != ""
        inside = state.low <= setpoint.high and setpoint.low <= state.high
        return 3 * len(bare & words(state)) + 2 * same_unit + inside

    best = max(states, key=score, default=None)
    if best is None or (len(states) > 1 and score(best) < 2):
        return None
    return best
