"""A task made ready to be played: how it is drawn, the range of each state, what a push does, the pace."""

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

# Where a task fails and where it is content, along each state: for lines on the floor.
#
# They are found by trying, so that a reward may be written in any way: one state is moved away from the
# setpoint, all others stay there, at rest.

FARTHEST = 1e4
ROUNDS = 60  # of bisection

Bounds = tuple[float, float]


def limits_of(task: Task) -> dict[str, Bounds]:
    """Of the states that alone can make it fail, to both sides."""
    condition = task.failure_condition
    return {} if condition is None else _bounds(task, condition, lambda value: value == 0)


def goal_of(task: Task) -> dict[str, Bounds]:
    """Where the reward is as at the setpoint, if it goes down in steps."""
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
    """Where it ceases to hold, going one way from the setpoint; None if it does not, or never holds."""
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


# What comes from outside in one episode, without end: drawn in pieces, as far as it is looked at.

_PIECE = 4_096  # steps


class Outside(NamedTuple):
    aims: Floats
    """[2, S] setpoints now, and after the step"""
    script: Floats
    """[1, 2, D] what comes from outside, now and after the step; empty if nothing does"""


class SharedCourse:
    """The same for the same generator: two plants that follow it start alike and are disturbed alike."""

    def __init__(self, task: Task, point: Floats, rng: np.random.Generator) -> None:
        """`point`: [S], where the episode starts, of the task unveiled."""
        self._task, self._point, self._rng = task, point, rng
        self._piece, self._number = self._draw(), 0
        self.start: Floats = self._piece.starts[0]
        """[S] with what sensors show of it"""

    def _draw(self) -> Scenarios:
        return Scenarios.explored(self._task, self._point[None], self._rng, _PIECE, made_up_aims(self._task))

    def at(self, step: int) -> Outside:
        """Steps are asked for in their order."""
        number, now = divmod(step, _PIECE)
        if number > self._number:
            self._piece, self._number = self._draw(), number
        aims = self._piece.setpoints[0, now : now + 2]
        return Outside(np.vstack([aims, aims[-1:]])[:2], self._piece.script[:, now : now + 2])


def made_up_aims(task: Task) -> dict[str, float]:
    """0 for setpoints that are a log column, if no signal of the task stands in for it."""
    aims = task.setpoints.items()
    return {name: 0.0 for name, aim in aims if isinstance(aim, str) and aim not in task.signals}


# How far the states of a plant go: a sample of episodes under random actions.

EPISODES = 64
CORE = 0.98  # of the sample, between the bounds


def sample_states(task: Task) -> dict[str, tuple[float, float]]:
    """Of each state of the task unveiled, where it mostly is. The same at every call."""
    plan, names = task.exploration or Exploration(steps=task.horizon), task.unveiled.state_names
    box, rng = make_box(plan.starts or task.starts, names), np.random.default_rng(0)
    assert box is not None  # noqa: S101  else it is not played
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
    rounded = significant(np.floor(low / unit) * unit, 9), significant(np.ceil(high / unit) * unit, 9)
    return rounded if rounded[0] < rounded[1] else (rounded[0] - 1.0, rounded[1] + 1.0)
