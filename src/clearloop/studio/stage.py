"""A task made ready to be played: how it is drawn, the range of each state, what a push does, the pace."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from clearloop.errors import ClearloopError
from clearloop.plants.stepper import Floats
from clearloop.studio.bounds import Bounds, goal_of, limits_of
from clearloop.studio.sampling import sample_states
from clearloop.task import Task

SLOWEST = 0.1  # seconds from step to step, for tasks whose own steps would be longer
PUSH = 0.25  # of a state's range, for a push of size 1


class Drawing(NamedTuple):
    name: str
    pose: dict[str, str]
    """the true states that it is drawn from, by what the drawing calls them"""
    pushed: str
    """the state that a push adds to"""


# The first that fits; true states before those that sensors show.
DRAWINGS = (
    Drawing("cartpole", {"theta": "angle", "rho": "place"}, "turn"),
    Drawing("cartpole", {"theta": "theta", "rho": "rho"}, "theta_dot"),
    Drawing("pendulum", {"x": "x", "y": "y"}, "theta_dot"),
)


@dataclass(frozen=True, eq=False)
class Stage:
    source: str
    """what `clearloop learn` calls the task: a built-in name or a file"""
    task: Task

    @property
    def playable(self) -> bool:
        return self.task.simulated and self.task.start_box is not None

    @property
    def pace(self) -> float:
        """Seconds from step to step, at full speed."""
        return min(self.task.dt, SLOWEST)

    @cached_property
    def drawing(self) -> Drawing:
        names = self.task.unveiled.state_names
        fitting = (
            one
            for one in DRAWINGS
            if {*one.pose, *one.pose.values()} <= {*names} and one.pushed in self._moved
        )
        return next(fitting, Drawing("bars", {}, self._moved[0]))

    @property
    def _moved(self) -> list[str]:
        """What the plant moves, and can be pushed: its states with equations of their own, the last first."""
        return list(reversed([*self.task.plant_derivatives, *self.task.plant_next]))

    @cached_property
    def ranges(self) -> dict[str, Bounds]:
        """Of every state, hidden ones included: as far as it may go, or as far as it went in a sample."""
        went = sample_states(self.task)
        limits = limits_of(self.task)
        return {name: limits.get(name) or _rounded(went[name]) for name in went}

    @cached_property
    def spans(self) -> Floats:
        """[S] how wide they are, of the states that the task has."""
        return np.array([high - low for low, high in (self.ranges[name] for name in self.task.states)])

    def push(self, name: str | None, size: float) -> tuple[str, float]:
        """The state that is pushed, and by how much."""
        pushed = name or self.drawing.pushed
        if pushed not in self._moved:
            raise ClearloopError(f"push: the plant moves {', '.join(self._moved)}; give one of them")
        low, high = self.ranges[pushed]
        return pushed, size * PUSH * (high - low)

    def describe(self) -> dict[str, Any]:
        """JSON values."""
        about = {"name": self.task.name, "title": _title(self.task.name), "playable": self.playable}
        if not self.playable:
            return about
        limits, goal = limits_of(self.task), goal_of(self.task)
        aims, starts = self.task.setpoints, self.task.starts
        return about | {
            "states": [
                {
                    "name": name,
                    "unit": self.task.unveiled.states[name].unit,
                    "hidden": name not in self.task.states,
                    "box": starts.get(name),
                    "setpoint": aim if isinstance(aim := aims.get(name), float) else None,
                    "steerable": name in aims,
                    "range": self.ranges[name],
                    "limits": limits.get(name),
                    "goal": goal.get(name),
                }
                for name in self.task.unveiled.states
            ],
            "actions": [
                {"name": name, "unit": action.unit, "limits": action.limits}
                for name, action in self.task.actions.items()
            ],
            "dt": self.task.dt,
            "pace": self.pace,
            "drawing": self.drawing.name,
            "pose": self.drawing.pose,
            "push": self.drawing.pushed,
        }


def _title(name: str) -> str:
    return name.replace("-", " ").replace("_", " ").capitalize()


def _rounded(bounds: Bounds) -> Bounds:
    """Outwards, to two digits; about 0 where it goes to both sides."""
    low, high = bounds
    if low < 0 < high:
        high = max(-low, high)
        low = -high
    digits = 1 - int(np.floor(np.log10(max(abs(low), abs(high)) or 1.0)))
    unit = 10.0**-digits
    rounded = float(f"{np.floor(low / unit) * unit:.9g}"), float(f"{np.ceil(high / unit) * unit:.9g}")
    return rounded if rounded[0] < rounded[1] else (rounded[0] - 1.0, rounded[1] + 1.0)
