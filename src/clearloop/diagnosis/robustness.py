"""What a controller costs when things are not as it believes: noise, a delay, a wrong gain.

Every disturbance starts from the same states with the same random numbers as all others, so that differences
are those of the disturbance. Sensor noise alters what the controller sees, not the plant; a delay and a gain
alter what the plant gets, not what the controller remembers to have done. Actuators keep their limits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from clearloop.controllers import Controller
from clearloop.data.cells import Flags, Floats
from clearloop.diagnosis.law import Law, begun, moved_on
from clearloop.diagnosis.rounding import rounded
from clearloop.diagnosis.stepper import Stepper
from clearloop.surrogate import Surrogate
from clearloop.task import Task


class Disturbance(NamedTuple):
    name: str
    noise: float = 0.0
    """standard deviation of what is added to each observed state, as a share of its spread in the log"""
    delayed: bool = False
    """whether an action is applied one step late; in the first step, 0"""
    gain: float = 1.0
    """what the plant gets, as a share of what was chosen"""


NOTHING = Disturbance("undisturbed")
DISTURBANCES = (
    Disturbance("sensor noise 1 %", noise=0.01),
    Disturbance("sensor noise 5 %", noise=0.05),
    Disturbance("delay of one step", delayed=True),
    Disturbance("gain -20 %", gain=0.8),
    Disturbance("gain +20 %", gain=1.2),
)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """To one disturbance; means over starts and members."""

    name: str
    penalty: float
    change: float
    """against the undisturbed penalty"""
    standard_error: float
    """of the change, over the starts, which are paired"""
    failures: float
    """share"""


@dataclass(frozen=True, eq=False, repr=False)
class Robustness:
    starts: int
    penalty: float
    """undisturbed"""
    failures: float
    disturbed: tuple[Sensitivity, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "starts": self.starts,
            "penalty": rounded(self.penalty),
            "failures": rounded(self.failures),
            "disturbed": [
                {name: rounded(value) for name, value in vars(one).items()} for one in self.disturbed
            ],
        }

    def __repr__(self) -> str:
        lines = [f"undisturbed: penalty {self.penalty:.3f}, {self.failures:.1%} failures"]
        lines += [
            f"{one.name}: {one.change:+.3f} ± {one.standard_error:.3f}, {one.failures:.1%} failures"
            for one in self.disturbed
        ]
        return "\n".join(lines)


def disturb(
    controller: Controller,
    task: Task,
    *,
    spread: Floats,
    starts: Floats,
    rng: np.random.Generator,
    surrogate: Surrogate | None = None,
    members: Sequence[int] | None = None,
    disturbances: Sequence[Disturbance] = DISTURBANCES,
) -> Robustness:
    """From `starts` [N, S], on the plant or on members of a surrogate; `spread` [S]: of states in the log."""
    law = Law(controller, task, surrogate)
    stepper = Stepper(task, law.aims, surrogate, members)
    noise = spread * rng.standard_normal((task.horizon, *starts.shape))
    cases = (NOTHING, *disturbances)
    runs = [_run(law, stepper, member, starts, noise, cases) for member in range(stepper.members)]
    penalties = np.mean([run[0] for run in runs], axis=0)  # [cases, N]
    failures = np.mean([run[1] for run in runs], axis=(0, 2))
    changes = penalties - penalties[0]
    errors = changes.std(axis=1, ddof=min(1, len(starts) - 1)) / np.sqrt(len(starts))
    rows = zip(
        (case.name for case in cases),
        penalties.mean(axis=1),
        changes.mean(axis=1),
        errors,
        failures,
        strict=True,
    )
    plain, *others = (Sensitivity(name, *map(float, row)) for name, *row in rows)
    return Robustness(len(starts), plain.penalty, plain.failures, tuple(others))


def _run(
    law: Law, stepper: Stepper, member: int, starts: Floats, noise: Floats, cases: Sequence[Disturbance]
) -> tuple[Floats, Flags]:
    """Penalties and failures [cases, N]: all cases side by side. `noise` [T, N, S]: of one spread."""
    task, n_states, lanes = stepper.task, starts.shape[1], (len(cases), len(starts))
    share, delayed, gain = (
        np.repeat(column, len(starts))[:, None] for column in list(zip(*cases, strict=True))[1:]
    )
    states, late = np.tile(starts, (len(cases), 1)), np.zeros((lanes[0] * lanes[1], len(task.actions)))
    windows = begun(states, len(task.actions), stepper.history)
    observed = np.zeros((len(states), 0, 0))
    total, rewards, failed = np.zeros(len(states)), np.zeros(len(states)), np.zeros(len(states), np.bool_)
    for step in range(task.horizon):
        seen = states + share * np.tile(noise[step], (len(cases), 1))
        observed = (
            moved_on(observed, seen) if step else begun(seen, len(task.actions), law.rows(task.horizon))
        )
        chosen = law(observed, age=step + 1)
        observed[:, 0, n_states:] = chosen
        applied, late = np.where(delayed, late, chosen), chosen
        windows[:, 0, n_states:] = np.clip(gain * applied, *task.action_limits.T)
        moved = stepper(windows, member)
        stopped = failed & stepper.absorbing
        states = np.where(stopped[:, None], states, moved.states)
        rewards = np.where(stopped, rewards, moved.rewards)
        failed |= moved.failing
        total += task.discount**step * rewards
        windows = moved_on(windows, states)
    return -total.reshape(lanes), failed.reshape(lanes)
