"""The names of a task: which there may be, and what formulas may refer to."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from clearloop.errors import did_you_mean, quoted
from clearloop.expression import is_name
from clearloop.task.faults import Fault

MOST_STEPS_BACK = 1_000  # of any formula
KEYS = ("time", "episode", "reward", "terminal", "from")  # they mean something else in [data] and [starts]


class Scope(NamedTuple):
    states: tuple[str, ...]
    actions: tuple[str, ...]
    setpoints: Mapping[str, float | str]
    """Of the states that have one: a number, or a log column."""
    limits: Mapping[str, tuple[float, float]]
    """Of the actions."""
    dt: float
    """Seconds of a step."""
    history: int
    """Observations that models and controllers see, the present one included."""
    derived: tuple[str, ...] = ()
    """States that are computed from others."""
    external: tuple[str, ...] = ()
    """States that come from outside: neither predicted nor computed."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.states + self.actions


def name_faults(where: tuple[str, ...], names: Collection[str], taken: Collection[str]) -> Iterator[Fault]:
    """Of new names in a table."""
    for name in names:
        if not is_name(name) or name in KEYS:
            expected = "expected letters, digits and _, and no reserved word"
            yield Fault(where, f"{quoted(name)} cannot be a name: {expected}")
        elif name in taken:
            yield Fault(where, f"the name {quoted(name)} is taken already")


def state_faults(where: tuple[str, ...], names: Collection[str], states: Collection[str]) -> Iterator[Fault]:
    """Of keys that must be states."""
    for name in names:
        if name not in states:
            yield Fault(where, f"unknown state {quoted(name)}{did_you_mean(name, states)}")
