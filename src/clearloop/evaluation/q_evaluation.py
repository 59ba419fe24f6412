"""Fitted Q evaluation: what a controller costs, from the batch alone (Eqs. 1 and 2 of the paper).

From q₀ = 0, after as many iterations as the horizon has steps, q(s, a) is the return of the horizon's steps:
minus the penalty that rollouts would give, as far as the approximator can tell. In iteration k a failing step
is worth its reward k times, because failure lasts; what q is in failed states is never asked.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from clearloop.controllers import Controller, encode
from clearloop.controllers.pid import PID
from clearloop.controllers.planner import Planner
from clearloop.data import Batch
from clearloop.data.cells import Floats
from clearloop.errors import ClearloopError
from clearloop.evaluation.approximators import Approximator, Fit, Networks
from clearloop.evaluation.decisions import decisions
from clearloop.evaluation.experience import Experience, experience, total, with_mirror_image
from clearloop.plants.setpoints import setpoint_table
from clearloop.surrogate.formulas import judge
from clearloop.surrogate.steps import Steps
from clearloop.task import Task

Progress = Callable[[float], None]
"""is told the share of the work that is done"""


@dataclass(frozen=True, eq=False)
class FittedQ:
    """Estimates of one controller's penalties from N starts, by the M members of an ensemble."""

    task: str
    penalties: Floats
    """[M, N]"""

    @property
    def penalty(self) -> float:
        return float(self.penalties.mean())

    @property
    def standard_error(self) -> float:
        """Over members: what chance did in the fits, not what the batch does not show."""
        means = self.penalties.mean(axis=1)
        return float(means.std(ddof=1) / np.sqrt(means.size)) if means.size > 1 else float("nan")

    def to_dict(self) -> dict[str, Any]:
        error = self.standard_error
        return {
            "task": self.task,
            "on": "batch",
            "starts": self.penalties.shape[1],
            "penalty": {"mean": self.penalty, "se": error if np.isfinite(error) else None},
            "failures": None,
        }

    @property
    def summary(self) -> str:
        """`penalty   2.952 ± 0.028   (from the batch alone, 1,024 starts)`"""
        members, starts = self.penalties.shape
        se = f" ± {self.standard_error:.3f}" if members > 1 else ""
        return f"penalty   {self.penalty:.3f}{se}   (from the batch alone, {starts:,} starts)"

    def __repr__(self) -> str:
        return f"{self.task}: {self.summary}"


def fitted_q(
    controller: Controller,
    task: Task,
    batch: Batch,
    *,
    starts: Floats | int = 1024,
    approximator: Approximator | None = None,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> FittedQ:
    """Evaluate a controller that decides by what it sees, without a plant and without a model.

    `starts`: [N, S] states, or how many points of the task's scoring set. `approximator`: networks, if it is
    not given.
    """
    controller = controller.for_task(task)
    check_memory(controller, task)
    points = _scoring_starts(task, batch, starts) if isinstance(starts, int) else starts
    aims = setpoint_table(task, 1, controller.setpoint)
    steps = possible_experience(task, batch, aims[0])
    views = np.concatenate([steps.after, first_view(task, points)])
    asked = asked_points(controller, task, views, aims)
    fit = (approximator or Networks()).begin(steps.pairs, asked, rng=rng)
    returns = iterate(steps, len(asked), fit, task, progress)
    return FittedQ(task.name, -returns[:, len(steps.reward) :])  # Eq. (2)


def iterate(steps: Experience, asked: int, fit: Fit, task: Task, progress: Progress | None = None) -> Floats:
    """[M, asked] returns of the horizon's steps at the points asked for, the first of them the next ones."""
    n, returns = len(steps.reward), np.zeros((1, asked))
    low, high = bounds(steps, task)
    for k in range(1, task.horizon + 1):
        targets = _targets(steps, returns[:, :n].mean(axis=0), task.discount, k)
        returns = low + (high - low) * fit((targets - low) / (high - low))  # Eq. (1)
        if progress:
            progress(k / task.horizon)
    return returns


def bounds(steps: Experience, task: Task) -> tuple[float, float]:
    """Of returns: the lowest and the highest reward of the batch, from the first step to the last."""
    low, high = min(0.0, float(steps.reward.min())), max(0.0, float(steps.reward.max()))
    times = total(task.discount, task.horizon)
    return times * low, times * (high if high > low else 1.0)


def asked_points(controller: Controller, task: Task, views: Floats, setpoints: Floats) -> Floats:
    """[n, R + A] what is seen, and what the controller does then."""
    policies = encode([controller], task, history=task.history)
    return np.hstack([views, decisions(policies, task, views, setpoints)[0]])


def _targets(steps: Experience, goes_on: Floats, discount: float, k: int) -> Floats:
    """[n] of iteration k: r + γ q(s′, π(s′)), q being the mean of the members."""
    lasting = total(discount, k) * steps.reward
    targets: Floats = np.where(steps.failing, lasting, steps.reward + discount * goes_on)
    return targets


def check_memory(controller: Controller, task: Task) -> None:
    if isinstance(controller, PID | Planner):
        raise ClearloopError(
            f"fitted Q evaluation: a {controller.kind} remembers more than it sees:"
            " evaluate it on a model or on the system"
        )
    if controller.history > task.history:
        raise ClearloopError(
            f"fitted Q evaluation: the controller looks back further than history = {task.history} of task"
            f" '{task.name}': give the task a history of {controller.history}"
        )


def possible_experience(task: Task, batch: Batch, aims: Floats) -> Experience:
    """The batch as if these setpoints [S] had been aimed at; of a symmetric plant with its mirror image."""
    steps = Steps.of(task, batch)
    known = task.reward_expression is not None
    if not known and (steps.setpoints != aims).any():
        raise ClearloopError(
            f"task {task.name}: the logged rewards are for other setpoints than the controller's: give the"
            " task a formula for its reward, or the controller these setpoints"
        )
    if task.symmetric and (known or not aims.any()):
        steps = with_mirror_image(steps)
    if known:
        setpoints = np.tile(aims, (len(steps), 1))
        reward, _ = judge(task, np.hstack([steps.next, steps.window, setpoints]))
        steps = replace(steps, setpoints=setpoints, reward=reward)
    return experience(task, steps)


def _scoring_starts(task: Task, batch: Batch, n: int) -> Floats:
    """[n, S] those of the task; where they come from the batch, its rows from the first to the last."""
    if task.start_box is not None:
        return task.scoring_starts(n)
    rows = np.flatnonzero(~batch.terminal)
    points: Floats = batch.states[rows[np.linspace(0, len(rows) - 1, n).astype(int)]]
    return points


def first_view(task: Task, starts: Floats) -> Floats:
    """[N, R] what a controller sees first: the start, also in the past, and past actions of 0."""
    past = np.hstack([starts, np.zeros((len(starts), len(task.actions)))])
    return np.hstack([starts, *[past] * (task.history - 1)])
