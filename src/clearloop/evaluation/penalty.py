"""The penalty of a controller: minus the mean discounted return over a set of starts (Eqs. 6 and 7)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers import Controller, encode
from clearloop.evaluation.setup import make_system, setpoint_table, window
from clearloop.kernels.engine import roll_out
from clearloop.kernels.layout import Job
from clearloop.plants.gym import roll_out_environment
from clearloop.surrogate import Surrogate
from clearloop.task import Task


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of one controller from N starts, on the plant or on M members of a surrogate."""

    task: str
    on: str
    penalties: NDArray[np.float64]
    """[M, N]"""
    failed: NDArray[np.bool_]
    """[M, N]"""

    @property
    def penalty(self) -> float:
        return float(self.penalties.mean())

    @property
    def standard_error(self) -> float:
        """Over starts, each the mean of its members."""
        starts = self.penalties.mean(axis=0)
        return float(starts.std(ddof=1) / np.sqrt(starts.size)) if starts.size > 1 else float("nan")

    @property
    def failures(self) -> float:
        """The share of starts that reach failure."""
        return float(self.failed.mean())

    def to_dict(self) -> dict[str, Any]:
        error = self.standard_error
        return {
            "task": self.task,
            "on": self.on,
            "starts": self.penalties.shape[1],
            "penalty": {"mean": self.penalty, "se": error if np.isfinite(error) else None},
            "failures": self.failures,
        }

    def __repr__(self) -> str:
        starts = self.penalties.shape[1]
        return (
            f"penalty {self.penalty:.3f} ± {self.standard_error:.3f}, {self.failures:.1%} failures "
            f"({self.task}, on the {self.on}, {starts:,} starts)"
        )


def evaluate(
    controller: Controller,
    task: Task,
    *,
    surrogate: Surrogate | None = None,
    starts: NDArray[np.float64] | int = 1024,
    workers: int | None = None,
) -> Evaluation:
    """Score a controller in double precision on the plant, or on all members of a surrogate.

    `starts`: [N, S] states, or how many points of the task's scoring set.
    """
    controller = controller.for_task(task)
    on = "system" if surrogate is None else "model"
    if surrogate is None and task.gymnasium is not None:
        count = starts if isinstance(starts, int) else len(starts)
        returns, failed = roll_out_environment(controller, task, count)
        return Evaluation(task.name, on, -returns[None], failed[None])
    history = window(task, [controller])
    table = setpoint_table(task, controller, task.horizon)
    points = task.scoring_starts(starts) if isinstance(starts, int) else np.ascontiguousarray(starts, np.float64)
    job = Job(points, table, task.discount, history)
    system = make_system(task, surrogate, history)
    rollout = roll_out(encode([controller], task, history=history), system, job, workers=workers)
    return Evaluation(task.name, on, -rollout.returns[:, 0], rollout.failed[:, 0])
