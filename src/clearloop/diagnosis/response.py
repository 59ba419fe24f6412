"""The step response of a closed loop: overshoot, rise and settling time, integral of the absolute error.

All are measured against the step itself, from the old setpoint (0 %) to the new one (100 %), so that a loop
that stops short of its setpoint does not look settled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.evaluation import SetpointChange, simulate
from clearloop.numbers import amount, json_values, plain
from clearloop.plants.scenarios import setpoint_table
from clearloop.surrogate import Surrogate
from clearloop.task import Task

SHARE = 0.1  # size of the step, of the extent of the start box, or if it has none, of the range in the log
BAND = 0.05  # of the step: the error that counts as settled
LOW, HIGH = 0.1, 0.9  # of the step: the rise time lies between them
BEFORE = 10  # steps before the jump
HORIZONS = 4  # the length of the response, in horizons of the task


@dataclass(frozen=True, eq=False, repr=False)
class StepResponse:
    """The response of one state to a jump of its setpoint, on M members of a model or on one plant.

    All single numbers are medians over the members.
    """

    state: str
    unit: str
    size: float
    """the height of the step, in the unit of the state"""
    overshoot: float
    """the farthest point beyond the new setpoint, in % of the step"""
    undershoot: float
    """the farthest point in the wrong direction, in % of the step"""
    rise_time: float | None
    """seconds from 10 % to 90 % of the step; None if it never gets there"""
    settling_time: float | None
    """seconds from the jump until the error stays within 5 % of the step; None if it never does"""
    integral_error: float
    """∫ |error| dt from the jump on, in the unit of the state times seconds"""
    final_error: float
    """the absolute error at the end, in the unit of the state"""
    times: Floats
    """[T + 1] seconds, 0 at the jump"""
    setpoints: Floats
    """[T + 1]"""
    values: Floats
    """[M, T + 1] of the state"""
    actions: Floats
    """[M, T, A]"""

    def to_dict(self) -> dict[str, Any]:
        """Return the step response as JSON values."""
        return {name: json_values(value) for name, value in vars(self).items()}

    @property
    def words(self) -> str:
        """A phrase such as `settles in 3.23 s, overshoot 17.5 %`."""
        time = self.settling_time
        settled = "does not settle" if time is None else f"settles in {plain(time)} s"
        return f"{settled}, overshoot {plain(round(self.overshoot, 1))} %"

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
    """Simulate a step of the setpoint of each state that has one.

    Args:
        controller: The controller that closes the loop.
        task: The task that it controls.
        batch: The log, whose range sets the size of the step where the task has no start box.
        surrogate: The model that stands for the plant; without it, the task's plant is used.
        members: The members of the surrogate that are run; without them, all.
        start: [S] the steady state from which the step is made; without it, the setpoints.
    """
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
    """Return the height of the step for the state with this number, in its unit."""
    extent = 0.0 if task.start_box is None else float(np.ptp(task.start_box[state]))
    return SHARE * (extent or float(np.ptp(batch.states[:, state])) or 1.0)


def measure(task: Task, state: int, old: float, size: float, values: Floats, actions: Floats) -> StepResponse:
    """Measure the step response of a state whose setpoint jumps after BEFORE steps.

    Args:
        task: The task, which gives the names, the units and the time step.
        state: The number of the state.
        old: The setpoint before the jump.
        size: The height of the jump.
        values: [M, T + 1] the state on each member.
        actions: [M, T, A] the actions on each member.
    """
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
    """Return the median; of an even number of members, the larger of the two in the middle."""
    return float(sorted(members)[len(members) // 2])


def _known(time: float) -> float | None:
    return time if np.isfinite(time) else None


def _rise(times: Floats, progress: Floats) -> float:
    """Return the time between the first crossings of LOW and HIGH, or infinity if there are none.

    Between two samples the response is taken for a straight line.
    """
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
    """Return the time from which on all samples are within the band, or infinity."""
    outside = np.flatnonzero(errors > BAND)
    first = int(outside[-1]) + 1 if outside.size else 0
    return float(times[first]) if first < len(times) else np.inf
