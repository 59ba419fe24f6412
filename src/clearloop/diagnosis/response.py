"""How a setpoint that jumps is followed: overshoot, rise, settling, and the integral of the absolute error.

All are measured against the step itself, from the old setpoint (0 %) to the new one (100 %), so that a loop
that stops short of its setpoint does not look settled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Flags, Floats
from clearloop.controllers import Controller, encode
from clearloop.controllers.memory import Memory
from clearloop.data import Batch
from clearloop.data.log import first_windows
from clearloop.evaluation import SetpointChange, simulate
from clearloop.evaluation.rollouts import make_system, window
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import Job
from clearloop.kernels.rollout import STATE_LIMIT
from clearloop.numbers import amount, json_values
from clearloop.plants.plant import fixed_actions, task_window
from clearloop.plants.scenarios import setpoint_table
from clearloop.surrogate import Surrogate
from clearloop.task import Task
from clearloop.task.tables import to_levels

SHARE = 0.1  # of the start box's extent, or where that has none, of the range in the log
BAND = 0.05  # of the step: the error that counts as settled
LOW, HIGH = 0.1, 0.9  # of the step: rise
BEFORE = 10  # steps before the jump
HORIZONS = 4  # that are watched after it


@dataclass(frozen=True, eq=False, repr=False)
class StepResponse:
    """Of one state, with M members of a model, or one plant; figures are medians over members."""

    state: str
    unit: str
    size: float
    """of the step"""
    overshoot: float
    """farthest beyond the new setpoint, in % of the step"""
    undershoot: float
    """farthest the wrong way, in % of the step"""
    rise_time: float | None
    """s from 10 % to 90 % of the step; None: never"""
    settling_time: float | None
    """s from the jump until the error stays within 5 % of the step; None: not within what was watched"""
    integral_error: float
    """∫ |error| dt from the jump on, in the state's unit times s"""
    final_error: float
    """at the end, in the state's unit"""
    times: Floats
    """[T + 1] s, 0 at the jump"""
    setpoints: Floats
    """[T + 1]"""
    values: Floats
    """[M, T + 1] of the state"""
    actions: Floats
    """[M, T, A]"""

    def to_dict(self) -> dict[str, Any]:
        return {name: json_values(value) for name, value in vars(self).items()}

    @property
    def words(self) -> str:
        """`settles in 3.23 s, overshoot 17.5 %`."""
        time = self.settling_time
        settled = "does not settle" if time is None else f"settles in {time:.3g} s"
        return f"{settled}, overshoot {self.overshoot:.3g} %"

    def __repr__(self) -> str:
        return f"step of {self.state} by {amount(self.size, self.unit, 6)}: {self.words}"


def step_responses(
    controller: Controller,
    task: Task,
    *,
    batch: Batch,
    surrogate: Surrogate | None = None,
    members: Sequence[int] | None = None,
    start: Floats | None = None,
) -> tuple[StepResponse, ...]:
    """One for each state with a setpoint. `start` [S]: where the loop rests; without it, the setpoints."""
    controller = controller.for_task(task)
    aims = setpoint_table(task, 1, controller.setpoint)[0]
    begin = dict(zip(task.state_names, map(float, aims if start is None else start), strict=True))
    responses = []
    for name in task.setpoints:
        j = task.state_names.index(name)
        size = step_size(task, batch, j)
        run = simulate(
            controller,
            task,
            surrogate=surrogate,
            start=begin,
            setpoints=[SetpointChange(name, aims[j] + size, BEFORE)],
            steps=BEFORE + HORIZONS * task.horizon,
        )
        some = slice(None) if surrogate is None or members is None else list(members)
        responses.append(measure(task, j, aims[j], size, run.states[some, :, j], run.actions[some]))
    return tuple(responses)


def step_size(task: Task, batch: Batch, state: int) -> float:
    """Of the state with this number."""
    extent = 0.0 if task.start_box is None else float(np.ptp(task.start_box[state]))
    return SHARE * (extent or float(np.ptp(batch.states[:, state])) or 1.0)


def measure(task: Task, state: int, old: float, size: float, values: Floats, actions: Floats) -> StepResponse:
    """Of courses [M, T + 1] of a state whose setpoint jumps after BEFORE steps, from `old` by `size`."""
    name = task.state_names[state]
    times: Floats = task.dt * np.arange(-BEFORE, values.shape[1] - BEFORE, dtype=np.float64)
    progress = (values[:, BEFORE:] - old) / size  # 0 … 1
    after, errors = times[BEFORE:], np.abs(1 - progress)
    return StepResponse(
        state=name,
        unit=task.states[name].unit,
        size=size,
        overshoot=100 * _middle(np.maximum(0.0, progress.max(axis=1) - 1)),
        undershoot=100 * _middle(np.maximum(0.0, -progress.min(axis=1))),
        rise_time=_known(_middle([_rise(after, course) for course in progress])),
        settling_time=_known(_middle([_settling(after, course) for course in errors])),
        integral_error=size * _middle(np.trapezoid(errors, after, axis=1)),
        final_error=size * _middle(errors[:, -1]),
        times=times,
        setpoints=np.where(times >= 0, old + size, old),
        values=values,
        actions=actions,
    )


def _middle(members: Sequence[float] | Floats) -> float:
    """Of an even number, the worse of the two in the middle."""
    return float(sorted(members)[len(members) // 2])


def _known(time: float) -> float | None:
    return time if np.isfinite(time) else None


def _rise(times: Floats, progress: Floats) -> float:
    """Between the first crossings; between samples, in a straight line; infinite if there are none."""
    return _crossing(times, progress, HIGH) - min(_crossing(times, progress, LOW), float(times[-1]))


def _crossing(times: Floats, progress: Floats, level: float) -> float:
    over = np.flatnonzero(progress >= level)
    if not over.size:
        return np.inf
    k = int(over[0])
    if k == 0:
        return float(times[0])
    return float(np.interp(level, progress[k - 1 : k + 1], times[k - 1 : k + 1]))


def _settling(times: Floats, errors: Floats) -> float:
    """The first sample of those that are all within the band; infinite if there are none."""
    outside = np.flatnonzero(errors > BAND)
    first = int(outside[-1]) + 1 if outside.size else 0
    return float(times[first]) if first < len(times) else np.inf


# A system one step at a time, under actions that are given, for many plants at once.


class Moved(NamedTuple):
    """Of N plants, after a step."""

    states: Floats
    """[N, S]"""
    rewards: Floats
    """[N]"""
    failing: Flags
    """[N]"""


class Stepper:
    """The task's plant, or members of a surrogate; in double precision."""

    def __init__(
        self,
        task: Task,
        aims: Floats,
        surrogate: Surrogate | None = None,
        members: Sequence[int] | None = None,
        *,
        bare: bool = False,
    ) -> None:
        """`aims` [1, S]: setpoints. `bare`: limits do not limit, and failure does not stop."""
        self.task, self.aims = task, aims
        self.history = task_window(task)
        chosen = [0] if surrogate is None else range(surrogate.members) if members is None else members
        self._systems = [make_system(task, surrogate, self.history, [member]) for member in chosen]
        if bare:
            self._systems = [s._replace(dynamics=s.dynamics._replace(absorbing=False)) for s in self._systems]
        reach = np.tile([-STATE_LIMIT, STATE_LIMIT], (len(task.actions), 1))
        self._limits = reach if bare else task.action_limits
        self._counts = np.zeros(len(task.actions)) if bare else task.action_counts

    @property
    def members(self) -> int:
        return len(self._systems)

    @property
    def absorbing(self) -> bool:
        """Whether what fails stays where it is, and goes on paying."""
        return bool(self._systems[0].dynamics.absorbing)

    def __call__(self, windows: Floats, member: int) -> Moved:
        """`windows` [N, H, S + A]: the present first, with the actions that are applied now."""
        actions = windows[:, :1, len(self.task.states) :]
        policies = fixed_actions(np.ascontiguousarray(actions), self.task)
        policies = policies._replace(limits=self._limits, counts=self._counts)
        flat = np.ascontiguousarray(windows.reshape(len(windows), -1))
        job = Job(flat, self.aims, self.task.discount, self.history)
        step = roll_out(policies, self._systems[member], job, trajectories=True)
        states, rewards = np.asarray(step.states)[0, 0, :, 1], np.asarray(step.rewards)[0, 0, :, 0]
        return Moved(states, rewards, step.failed[0, 0])


# A controller as a function of what it has seen, for many plants at once: what `act` does for one.


class Law:
    """Windows [N, H, S + A] in, actions [N, A] out: a row for each lag, the present first.

    The present row's actions are those that are being chosen; they are not read. Setpoints stay as they are.
    """

    def __init__(
        self, controller: Controller, task: Task, surrogate: Surrogate | None = None, *, smooth: bool = False
    ) -> None:
        """`surrogate`: only where the task has no plant, because the engine cannot go without a system.

        `smooth`: actions that take only some values are not rounded to them.
        """
        self.task, self.controller = task, controller.for_task(task)
        self.aims = setpoint_table(task, 1, self.controller.setpoint)
        """[1, S]"""
        rows = window(task, [self.controller])
        self.history = rows if self.controller.windowed else self.controller.depth
        """H: rows that it looks back on"""
        self._policies = encode([self.controller], task, history=rows)
        if smooth:
            self._policies = self._policies._replace(counts=np.zeros(len(task.actions)))
        system = make_system(task, surrogate, rows, None if surrogate is None else [0])
        self._system = system._replace(
            dynamics=system.dynamics._replace(substeps=1)
        )  # where it goes is unused

    def rows(self, steps: int) -> int:
        """H as far as an episode of so many steps needs it."""
        return self.history if self.controller.windowed else min(self.history, steps)

    def __call__(self, windows: Floats, age: int | None = None) -> Floats:
        """`age`: observations since the start, which is what a PID sums up; None: more than it looks at."""
        if not self.controller.windowed:
            return self._in_plain_python(windows[:, :age])
        flat = np.ascontiguousarray(windows.reshape(len(windows), -1))
        job = Job(flat, self.aims, self.task.discount, self.history)
        # The kernels of a PID keep its sums themselves; all others see the window, and one step tells.
        step = roll_out(self._policies, self._system, job, trajectories=True)
        chosen: Floats = np.asarray(step.actions)[0, 0, :, 0]
        return chosen

    def _in_plain_python(self, windows: Floats) -> Floats:
        memory = Memory.of_windows(windows, self.task.scope.names, self.aims[0])
        answer = self.controller.respond(memory)
        chosen = [np.broadcast_to(answer[name], len(windows)) for name in self.task.action_names]
        return to_levels(np.stack(chosen, axis=1), self._policies.limits, self._policies.counts)


def begun(states: Floats, actions: int, history: int) -> Floats:
    """Windows [N, H, S + A] at the start, of plants in these states [N, S]."""
    return first_windows(states, actions, history).reshape(len(states), history, -1)


def moved_on(windows: Floats, states: Floats) -> Floats:
    """The windows of the next step, with the present actions still to be chosen."""
    return np.concatenate([begun(states, windows.shape[2] - states.shape[1], 1), windows[:, :-1]], axis=1)
