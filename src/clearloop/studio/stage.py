"""A task prepared for live sessions: its drawing, the range of each state, pushes, and its pace."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.diagnosis import find_margins, linearise
from clearloop.errors import ClearloopError
from clearloop.expression import (
    Expression,
    Variable,
    evaluate,
    variables,
)
from clearloop.kernels.engine import roll_out
from clearloop.numbers import significant
from clearloop.plants.plant import PlantStepper, fixed_actions, lower_plant, task_window
from clearloop.plants.scenarios import Scenarios
from clearloop.studio.course import Course, SharedCourse, made_up_aims
from clearloop.studio.models import Models
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
FASTEST = 0.025  # seconds from step to step of models, several of which are stepped at once
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
    models: Models | None = None
    """the models that stand for the plant, if the task has none and a run has learned some"""

    @property
    def playable(self) -> bool:
        """True if there are models, or a plant that the engine runs and that has starts."""
        return self.models is not None or (self.task.simulated and self.task.start_box is not None)

    @property
    def pace(self) -> float:
        """The time from step to step at full speed, in seconds."""
        return min(max(self.task.dt, FASTEST if self.models else 0.0), SLOWEST)

    def plants(self) -> list[PlantStepper]:
        """Return the plant, or each model that stands for it, the best one first."""
        return [PlantStepper(self.task)] if self.models is None else self.models.plants()

    def course(self, spread: float, rng: np.random.Generator) -> Course:
        """Return the course of a new episode.

        Args:
            spread: The share of the start box that is used, from 0, its middle, to 1. Models start in the
                log.
            rng: The source of the start, of signals and of noise.
        """
        if self.models is not None:
            return self.models.course(rng)
        full = self.task.unveiled
        assert full.start_box is not None  # noqa: S101  a stage that is played has one
        middle = full.start_box.mean(axis=1)
        return SharedCourse(self.task, middle + spread * (full.random_starts(1, rng)[0] - middle), rng)

    @cached_property
    def drawing(self) -> Drawing:
        """The picture of the plant; a strip chart of all signals if no other fits."""
        names = self.task.unveiled.state_names
        fitting = (
            one
            for one in DRAWINGS
            if {*one.pose, *one.pose.values()} <= {*names} and one.pushed in self._moved
        )
        return next(fitting, Drawing("strip", {}, self._moved[0]))

    @property
    def _moved(self) -> list[str]:
        """The states with equations of their own, which can be pushed; the last one comes first."""
        if self.models is not None:
            return list(reversed(self.task.predicted))
        return list(reversed([*self.task.plant_derivatives, *self.task.plant_next]))

    @cached_property
    def ranges(self) -> dict[str, Bounds]:
        """The range of each state, hidden ones included: its limits, or its range in a sample."""
        went = sample_states(self.task) if self.models is None else self.models.ranges()
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

    def margins(self, controller: Controller) -> dict[str, Any]:
        """Return how far the loop of a controller is from instability, as JSON values.

        Returns:
            `known`, and if so: `phase` in degrees, `gain` as a factor, `delay` in steps and `ms`, each the
            least, and None if no such change destabilises; `robust`, whether the task's own demands are met,
            and `why` not, or why nothing is known.
        """
        if self.models is not None:
            return self.models.margins(controller)
        if self.task.unveiled is not self.task:
            return unknown_margins("the plant has states that no sensor shows")
        linear = linearise(controller, self.task, spread=self.spans / 4)
        found = None if linear is None else find_margins(linear)
        if found is None:
            return unknown_margins("the loop does not rest, or the controller switches there")
        if not found.stable:
            return {**unknown_margins("its loop is unstable at its steady state"), "robust": False}
        least = {
            "phase": min((one.phase for one in found.actions if one.phase is not None), default=None),
            "gain": min((one.gain_up for one in found.actions if one.gain_up is not None), default=None),
            "delay": min(
                (one.delay / self.task.dt for one in found.actions if one.delay is not None), default=None
            ),
        }
        return {**least, "ms": None, "robust": None, "known": True, "why": ""}

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
            "models": self.models and {"run": self.models.run, "members": len(self.models.members)},
        }


def unknown_margins(why: str) -> dict[str, Any]:
    """Return margins that are not known, as JSON values."""
    return {**dict.fromkeys(("phase", "gain", "delay", "ms", "robust")), "known": False, "why": why}


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
