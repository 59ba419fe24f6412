"""A task made ready to be played: how it is drawn, the range of each state, what a push does, the pace."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.controllers.controller import Memory
from clearloop.controllers.equation import Equation
from clearloop.controllers.linear import Linear
from clearloop.controllers.pid import PID, Loop, loop_parts
from clearloop.errors import ClearloopError
from clearloop.expression import (
    OPERATIONS,
    Call,
    Expression,
    Number,
    Variable,
    evaluate,
    parse,
    to_text,
    variables,
)
from clearloop.expression import variables as variables_of
from clearloop.kernels.engine import roll_out
from clearloop.numbers import shorten_numbers, significant
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


# What a controller is thinking: the summands of its formula, with what each is worth at this step.

NEGATE, PLUS, MINUS, TIMES = (OPERATIONS[name] for name in ("neg", "add", "sub", "mul"))

LONGEST = 120  # characters of a term, as it is shown


class Term(NamedTuple):
    action: str
    text: str
    """as it is shown"""
    worth: Callable[[Memory], float]
    """at the step that a memory has just been through"""


def terms_of(controller: Controller) -> tuple[Term, ...]:
    """Those of equations, gains and loops, which add up to the action before it is limited; else none."""
    if isinstance(controller, Equation):
        formulas = {name: controller.formula(name) for name in controller.actions}
        return tuple(
            Term(
                name,
                shortened(shorten_numbers(to_text(summand))),
                partial(value_of, summand, controller.actions),
            )
            for name, formula in formulas.items()
            for summand in summands(formula)
        )
    if isinstance(controller, Linear):
        return tuple(
            Term(name, f"{gain:.3g}*{feature}", partial(value_of, product, controller.actions))
            for name, row in controller.gains.items()
            for feature, gain in row.items()
            for product in [Call(TIMES, (Number(gain), parse(feature)))]
        )
    return tuple(_loop_terms(controller)) if isinstance(controller, PID) else ()


def _loop_terms(controller: PID) -> Iterator[Term]:
    for action, output in controller.outputs.items():
        for loop in output.loops:
            for number, gain in enumerate((loop.kp, loop.ki, loop.kd)):
                if gain:
                    part = partial(_part_of, loop, output.scale * loop.weight, number)
                    yield Term(action, f"{'PID'[number]} of {loop.input}", part)
        if bias := output.bias:
            yield Term(action, f"{bias:.3g}", partial(value_of, Number(bias), controller.actions))


def _part_of(loop: Loop, weight: float, number: int, memory: Memory) -> float:
    return weight * loop_parts(loop, memory)[number]


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def summands(formula: Expression) -> list[Expression]:
    """`a - (b + c)` is a, -b and -c."""
    return [_negated(part) if negative else part for negative, part in _parts(formula)]


def _parts(formula: Expression) -> Iterator[tuple[bool, Expression]]:
    """From left to right; with whether it is subtracted."""
    todo = [(False, formula)]
    while todo:
        negative, node = todo.pop()
        operation = node.operation if isinstance(node, Call) else None
        if isinstance(node, Call) and operation in (PLUS, MINUS):
            first, second = node.arguments
            todo += [(negative != (operation is MINUS), second), (negative, first)]
        elif isinstance(node, Call) and operation is NEGATE:
            todo.append((not negative, node.arguments[0]))
        else:
            yield negative, node


def _negated(part: Expression) -> Expression:
    if isinstance(part, Number):
        return Number(-part.value)
    if isinstance(part, Call) and part.operation is TIMES and isinstance(part.arguments[0], Number):
        return Call(TIMES, (Number(-part.arguments[0].value), part.arguments[1]))
    return Call(NEGATE, (part,))


def value_of(summand: Expression, actions: tuple[str, ...], memory: Memory) -> float:
    """The memory's latest action is the one that was chosen by it."""

    def read(variable: Variable) -> float:
        if variable.name in actions:
            return memory.value(variable.name, (variable.lag or 0) + 1)
        return memory.error(variable)

    return evaluate(summand, {variable: read(variable) for variable in variables_of(summand)})
