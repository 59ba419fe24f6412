"""The penalty of a controller: minus the mean discounted return over a set of starts (Eqs. 6 and 7)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from clearloop.controllers import Controller, encode
from clearloop.errors import ClearloopError
from clearloop.evaluation.planning import pilot_of, with_model
from clearloop.evaluation.setup import make_job, make_system, window
from clearloop.evaluation.stepping import Progress, step_through
from clearloop.kernels.engine import roll_out
from clearloop.plants.gym import make_environment, run_episode
from clearloop.plants.scenarios import Scenarios
from clearloop.plants.setpoints import setpoint_table
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

    def first(self, starts: int) -> Self:
        """From the first so many starts alone."""
        return replace(self, penalties=self.penalties[:, :starts], failed=self.failed[:, :starts])

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
        se = f" ± {self.standard_error:.3f}" if starts > 1 else ""
        return (
            f"penalty {self.penalty:.3f}{se}, {self.failures:.1%} failures "
            f"({self.task}, on the {self.on}, {starts:,} starts)"
        )


def evaluate(
    controller: Controller,
    task: Task,
    *,
    surrogate: Surrogate | None = None,
    members: Sequence[int] | None = None,
    starts: Scenarios | NDArray[np.float64] | int = 1024,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Score a controller in double precision on the plant, or on a surrogate: all `members`, or some.

    `starts`: situations, or [N, S] states, or how many points of the task's scoring set. `progress`: for
    planners, which take their time.
    """
    controller = with_model(controller.for_task(task), task)
    if surrogate is None and task.gymnasium is not None:
        return _evaluate_environment(controller, task, starts)
    history = window(task, [controller])
    view = task.unveiled if surrogate is None else task
    job = make_job(task, controller, starts, surrogate, history)
    if (pilot := pilot_of(controller)) is not None:
        rollout = step_through(pilot, job, surrogate, members, workers=workers, progress=progress)
    else:
        system = make_system(task, surrogate, history, members)
        rollout = roll_out(encode([controller], view, history=history), system, job, workers=workers)
    on = "system" if surrogate is None else "model"
    return Evaluation(task.name, on, -rollout.returns[:, 0], rollout.failed[:, 0])


def _evaluate_environment(
    controller: Controller, task: Task, starts: Scenarios | NDArray[np.float64] | int
) -> Evaluation:
    """Start n is the environment's reset with seed n."""
    if not isinstance(starts, int):
        raise ClearloopError(f"task '{task.name}': its environment chooses the starts: say only how many")
    setpoints = setpoint_table(task, task.horizon, controller.setpoint)
    environment = make_environment(task, task.horizon)
    try:
        episodes = [run_episode(environment, controller, task, setpoints, seed) for seed in range(starts)]
    finally:
        environment.close()
    discounts = task.discount ** np.arange(task.horizon)
    penalties = np.array([-(episode.rewards @ discounts) for episode in episodes])
    return Evaluation(task.name, "system", penalties[None], np.array([[e.failed for e in episodes]]))
