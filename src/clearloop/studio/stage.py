"""A task prepared for live sessions: its drawing, the range of each state, pushes, and its pace."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.errors import ClearloopError
from clearloop.expression import (
    Expression,
    Variable,
    evaluate,
    variables,
)
from clearloop.kernels.engine import roll_out
from clearloop.numbers import significant
from clearloop.plants.plant import fixed_actions, lower_plant, task_window
from clearloop.plants.scenarios import Scenarios
from clearloop.task import Task
from clearloop.task.plant import make_box, uniform_starts
from clearloop.task.tables import Exploration, draw_levels

# The limits of each state and the region of the best reward, which the page marks.
#
# They are found by bisection, so that a reward may be written in any way: one state is moved away from its
# setpoint, while all others stay at theirs.

FARTHEST = 1e4  # the longest distance from a setpoint that is tried
ROUNDS = 60  # of bisection

Bounds = tuple[float, float]


def limits_of(task: Task) -> dict[str, Bounds]:
    """Return the limits beyond which the task fails, for each state that alone can make it fail."""
    condition = task.failure_condition
    return {} if condition is None else _bounds(task, condition, lambda value: value == 0)


def goal_of(task: Task) -> dict[str, Bounds]:
    """Return the region of each state in which the reward is best, if the reward has a few levels."""
    reward = task.reward_expression
    if reward is None or task.reward_levels is None:
        return {}
    best = max(task.reward_levels)
    return _bounds(task, reward, lambda value: value == best)


def _bounds(task: Task, formula: Expression, holds: Callable[[float], bool]) -> dict[str, Bounds]:
    used = variables(formula)
    aims = {name: aim if isinstance(aim, float) else 0.0 for name, aim in task.setpoints.items()}
    found = {}
    for name in task.states:
        low, high = (_edge(formula, used, aims, name, holds, sign) for sign in (-1.0, 1.0))
        if low is not None and high is not None:
            found[name] = (low, high)
    return found


def _edge(
    formula: Expression,
    used: tuple[Variable, ...],
    aims: dict[str, float],
    name: str,
    holds: Callable[[float], bool],
    sign: float,
) -> float | None:
    """Return the point at which a condition ceases to hold, in one direction from the setpoint.

    It is None if the condition does not hold at the setpoint, or holds as far as is tried.
    """
    middle = aims.get(name, 0.0)

    def good(distance: float) -> bool:
        values = {v: _value(v, aims, name, middle + sign * distance) for v in used}
        return holds(evaluate(formula, values))

    far = 1e-3
    if not good(0.0):
        return None
    while good(far):
        far *= 2
        if far > FARTHEST:
            return None
    near = 0.0
    for _ in range(ROUNDS):
        between = (near + far) / 2
        near, far = (between, far) if good(between) else (near, between)
    return significant(middle + sign * near, 9)


def _value(variable: Variable, aims: dict[str, float], moved: str, to: float) -> float:
    aim = aims.get(variable.name, 0.0)
    value = to if variable.name == moved else aim
    return aim if variable.part == "setpoint" else value - aim if variable.part == "error" else value


# The setpoints and external states of an episode without end, which are drawn in pieces as they are needed.

_PIECE = 4_096  # steps


class Outside(NamedTuple):
    """The setpoints and external states of one step."""

    aims: Floats
    """[2, S] setpoints now, and after the step"""
    script: Floats
    """[1, 2, D] external states now, and after the step; empty if there are none"""


class SharedCourse:
    """The start, setpoints and external states of an episode, which two plants share.

    The same generator gives the same course.
    """

    def __init__(self, task: Task, point: Floats, rng: np.random.Generator) -> None:
        """Begin a course at the state `point` [S], hidden states included."""
        self._task, self._point, self._rng = task, point, rng
        self._piece, self._number = self._draw(), 0
        self.start: Floats = self._piece.starts[0]
        """[S] the start, completed with the states that sensors show"""

    def _draw(self) -> Scenarios:
        return Scenarios.explored(self._task, self._point[None], self._rng, _PIECE, made_up_aims(self._task))

    def at(self, step: int) -> Outside:
        """Return the setpoints and external states of a step; steps must be asked for in order."""
        number, now = divmod(step, _PIECE)
        if number > self._number:
            self._piece, self._number = self._draw(), number
        aims = self._piece.setpoints[0, now : now + 2]
        return Outside(np.vstack([aims, aims[-1:]])[:2], self._piece.script[:, now : now + 2])


def made_up_aims(task: Task) -> dict[str, float]:
    """Return 0 for each setpoint that is a column of a log, unless the task has a signal for it."""
    aims = task.setpoints.items()
    return {name: 0.0 for name, aim in aims if isinstance(aim, str) and aim not in task.signals}


# The usual range of each state, from a sample of episodes under random actions.

EPISODES = 64
CORE = 0.98  # share of the sample between the bounds


def sample_states(task: Task) -> dict[str, tuple[float, float]]:
    """Return the usual range of each state, hidden ones included; it is the same at every call."""
    plan, names = task.exploration or Exploration(steps=task.horizon), task.unveiled.state_names
    box, rng = make_box(plan.starts or task.starts, names), np.random.default_rng(0)
    assert box is not None  # noqa: S101  a task without starts is not played
    points = uniform_starts(box, EPISODES, rng)
    actions = draw_levels(task.action_limits, task.action_counts, (EPISODES, plan.steps), rng)
    history = task_window(task)
    job = Scenarios.explored(task, points, rng, plan.steps, made_up_aims(task)).job(task, history)
    plant = lower_plant(task, history=history)
    rollout = roll_out(fixed_actions(actions, task), plant, job, trajectories=True)
    states = np.asarray(rollout.states)[0, 0].reshape(-1, len(names))
    bounds = np.quantile(states, [(1 - CORE) / 2, (1 + CORE) / 2], axis=0)
    return {name: (float(bounds[0, j]), float(bounds[1, j])) for j, name in enumerate(names)}


SLOWEST = 0.1  # seconds from step to step, for tasks whose own steps would be longer
PUSH = 0.25  # share of a state's range that a push of size 1 adds


class Drawing(NamedTuple):
    """A kind of picture of a plant."""

    name: str
    pose: dict[str, str]
    """the true states that it shows, by the names that the drawing gives them"""
    pushed: str
    """the state that a push adds to"""


# The first drawing that fits is used; those of true states come before those of states that sensors show.
DRAWINGS = (
    Drawing("cartpole", {"theta": "angle", "rho": "place"}, "turn"),
    Drawing("cartpole", {"theta": "theta", "rho": "rho"}, "theta_dot"),
    Drawing("pendulum", {"x": "x", "y": "y"}, "theta_dot"),
)


@dataclass(frozen=True, eq=False)
class Stage:
    """A task with all that a live session and the page need to know about it."""

    source: str
    """the task as `clearloop learn` takes it: a built-in name or a file"""
    task: Task

    @property
    def playable(self) -> bool:
        """True if the task has a plant that the engine runs, and starts."""
        return self.task.simulated and self.task.start_box is not None

    @property
    def pace(self) -> float:
        """The time from step to step at full speed, in seconds."""
        return min(self.task.dt, SLOWEST)

    @cached_property
    def drawing(self) -> Drawing:
        """The picture of the plant; bars if no other fits."""
        names = self.task.unveiled.state_names
        fitting = (
            one
            for one in DRAWINGS
            if {*one.pose, *one.pose.values()} <= {*names} and one.pushed in self._moved
        )
        return next(fitting, Drawing("bars", {}, self._moved[0]))

    @property
    def _moved(self) -> list[str]:
        """The states with equations of their own, which can be pushed; the last one comes first."""
        return list(reversed([*self.task.plant_derivatives, *self.task.plant_next]))

    @cached_property
    def ranges(self) -> dict[str, Bounds]:
        """The range of each state, hidden ones included: its limits, or its range in a sample."""
        went = sample_states(self.task)
        limits = limits_of(self.task)
        return {name: limits.get(name) or _rounded(went[name]) for name in went}

    @cached_property
    def spans(self) -> Floats:
        """The widths [S] of the ranges of the states that are not hidden."""
        return np.array([high - low for low, high in (self.ranges[name] for name in self.task.states)])

    def push(self, name: str | None, size: float) -> tuple[str, float]:
        """Return the state that a push moves, and the amount.

        Args:
            name: The state; without it, the one that the drawing names.
            size: The share of the largest push, from -1 to 1.

        Raises:
            ClearloopError: The state has no equation of its own.
        """
        pushed = name or self.drawing.pushed
        if pushed not in self._moved:
            raise ClearloopError(f"push: only {', '.join(self._moved)} can be pushed; give one of them")
        low, high = self.ranges[pushed]
        return pushed, size * PUSH * (high - low)

    def describe(self) -> dict[str, Any]:
        """Return the task as JSON values for the page."""
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
    """Round bounds outwards to two digits; if they contain 0, make them symmetric about it."""
    low, high = bounds
    if low < 0 < high:
        high = max(-low, high)
        low = -high
    digits = 1 - int(np.floor(np.log10(max(abs(low), abs(high)) or 1.0)))
    unit = 10.0**-digits
    rounded = significant(np.floor(low / unit) * unit, 9), significant(np.ceil(high / unit) * unit, 9)
    return rounded if rounded[0] < rounded[1] else (rounded[0] - 1.0, rounded[1] + 1.0)
