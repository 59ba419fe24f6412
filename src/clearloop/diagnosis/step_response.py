"""How a setpoint that jumps is followed: overshoot, rise, settling, and the integral of the absolute error.

All are measured against the step itself, from the old setpoint (0 %) to the new one (100 %), so that a loop
that stops short of its setpoint does not look settled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.data.cells import Floats
from clearloop.diagnosis.rounding import rounded
from clearloop.evaluation import SetpointChange, simulate
from clearloop.plants.setpoints import setpoint_table
from clearloop.surrogate import Surrogate
from clearloop.task import Task

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
        return {name: rounded(value) for name, value in vars(self).items()}

    def __repr__(self) -> str:
        settled = (
            "does not settle" if self.settling_time is None else f"settles in {self.settling_time:.3g} s"
        )
        return (
            f"step of {self.state} by {self.size:g} {self.unit}".rstrip()
            + f": {settled}, overshoot {self.overshoot:.3g} %"
        )


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
