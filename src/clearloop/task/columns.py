"""How a log's columns map onto a task: each name's own column, unless [data] says otherwise."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from clearloop.errors import did_you_mean, quoted
from clearloop.task.faults import Fault

ROLES = ("time", "episode", "reward", "terminal")


class Columns(NamedTuple):
    """The log's own names for what a task needs from it."""

    states: tuple[str, ...]
    actions: tuple[str, ...]
    setpoints: tuple[str, ...]
    """Of the states whose setpoint is logged, in state order."""
    time: str
    episode: str
    reward: str
    terminal: str
    needed: tuple[str, ...]
    """Columns that a log must have; the others are read where they are there."""


def map_columns(
    data: Mapping[str, str],
    states: Sequence[str],
    actions: Sequence[str],
    setpoints: Mapping[str, float | str],
    reward: str | None,
    derived: Collection[str] = (),
) -> Columns:
    """`reward`: the column that the reward is learned from, which then must be there.

    What is `derived` need not be there.
    """
    role = {name: data.get(name, name) for name in (*states, *actions, *ROLES)}
    if reward is not None:
        role["reward"] = reward
    logged = tuple(column for column in setpoints.values() if isinstance(column, str))
    read = [name for name in states if name not in derived]
    needed = [*read, *actions, *data] + ["reward"] * (reward is not None)
    return Columns(
        states=tuple(role[name] for name in states),
        actions=tuple(role[name] for name in actions),
        setpoints=logged,
        **{name: role[name] for name in ROLES},
        needed=tuple(dict.fromkeys([*(role[name] for name in needed), *logged])),
    )


def data_faults(data: Mapping[str, str], names: Sequence[str], reward: str | None) -> Iterator[Fault]:
    """`names`: of states and actions."""
    known = (*names, *ROLES)
    for key in data:
        if key not in known:
            hint = did_you_mean(key, known) or f"; expected a state, an action, {', '.join(ROLES)}"
            yield Fault(("data",), f"unknown key {quoted(key)}{hint}")
    if reward is not None and data.get("reward", reward) != reward:
        what = f"[reward] column already says {quoted(reward)}; remove one of the two"
        yield Fault(("data", "reward"), what)
    reader: dict[str, str] = {}
    for name in known:
        column = (reward if name == "reward" else None) or data.get(name, name)
        if reader.setdefault(column, name) != name:
            where = ("data", name) if name in data else ("data", reader[column])
            yield Fault(where, f"column {quoted(column)} is read as {reader[column]} and as {name}")
