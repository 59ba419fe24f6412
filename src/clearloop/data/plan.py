"""What a person says about a log, and what a task file for it is to hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clearloop.data.survey import Column


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a person says; columns by their own name, or by the one that the task gives them."""

    states: Sequence[str] = ()
    actions: Sequence[str] = ()
    external: Sequence[str] = ()
    setpoints: Mapping[str, str] = field(default_factory=dict)
    """Of states: a column, or a number."""
    velocities: Mapping[str, float | None] = field(default_factory=dict)
    """Of states: seconds of the filter, None for the usual ones."""
    integrals: Sequence[str] = ()
    """States whose errors are to be added up."""
    tolerances: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    time: str | None = None
    episode: str | None = None
    dt: float | None = None
    """Seconds."""


@dataclass(frozen=True, kw_only=True)
class StatePlan:
    name: str
    column: Column
    setpoint: float | str | None = None
    """A number, or a column."""
    tolerance: float | None = None
    """Of the goal; none: no goal for this state."""
    external: bool = False
    filter: float | None = None
    """Share of the last velocity that stays from step to step; none: no velocity is derived."""
    most: float | None = None
    """Of the sum of its errors, in its unit times seconds; none: they are not added up."""


@dataclass(frozen=True, kw_only=True)
class ActionPlan:
    name: str
    column: Column
    limits: tuple[float, float]
    step: float | None = None
    """Between the values that it takes; none: it takes any."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    states: tuple[StatePlan, ...]
    actions: tuple[ActionPlan, ...]
    time: Column | None
    unit: str
    """Of the time column."""
    episode: str | None
    reward: str | None
    terminal: str | None
    dt: float
    spacing: tuple[float, float, float] | None
    """Seconds between rows: the least, the usual and the most."""
    memory: float
    """Seconds after which what is to be held is no longer like itself."""
    horizon: int
    discount: float
    history: int
    """Rows that a controller sees."""
    remembers: str = ""
    """Why so many, if more than usual."""

    def role(self, name: str, guessed: str) -> str:
        """Of a column; states and actions that were guessed and not taken are ignored."""
        roles = {state.column.name: "external" if state.external else "state" for state in self.states}
        roles |= {action.column.name: "action" for action in self.actions}
        if self.time is not None:
            roles[self.time.name] = "time"
        if self.episode is not None:
            roles[self.episode] = "episode"
        roles |= {state.setpoint: "setpoint" for state in self.states if isinstance(state.setpoint, str)}
        taken = ("state", "action", "external", "time", "episode")
        return roles.get(name, "ignored" if guessed in taken else guessed)
