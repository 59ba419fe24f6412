"""Whether a controller goes where the log has been: elsewhere, a model is a guess.

A state is *outside* the logged region if the nearest logged state is farther away than that of all but 1 % of
logged states that were held out; distances are in standard deviations of the log. So a controller that stays
where the log was has about 1 % of its states outside, whatever the number of states and the size of the log.
A box around the data would call its empty corners known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clearloop.controllers import Controller, encode
from clearloop.data import Batch
from clearloop.data.cells import Flags, Floats
from clearloop.diagnosis.rounding import rounded
from clearloop.evaluation.setup import make_job, make_system, window
from clearloop.kernels.engine import roll_out
from clearloop.plants.scenarios import Scenarios
from clearloop.surrogate import Surrogate
from clearloop.task import Task

HELD_OUT = 0.1  # of the log, in whole episodes, to learn from how far apart logged states are
USUAL = 0.99  # share of them that count as inside


@dataclass(frozen=True, eq=False, repr=False)
class Coverage:
    task: Task
    visited: int
    """states, of all courses and members, up to failure"""
    outside: float
    """share of the visited states that lie outside the logged region"""
    courses: float
    """share of the courses that leave it at some time"""
    distance: float
    """to the nearest logged state beyond which a state is outside, in standard deviations"""
    farthest: float
    """of all visited states, in the same"""
    beyond: Floats
    """[S, 2] share of the visited states below and above all that was logged, for each state alone"""

    def to_dict(self) -> dict[str, Any]:
        return {
            "visited": self.visited,
            "outside": rounded(self.outside),
            "courses": rounded(self.courses),
            "distance": rounded(self.distance),
            "farthest": rounded(self.farthest),
            "beyond": dict(zip(self.task.state_names, rounded(self.beyond), strict=True)),
        }

    def __repr__(self) -> str:
        return f"{self.outside:.1%} of {self.visited:,} visited states are outside the logged region"


class Region:
    """Where the log has been."""

    def __init__(self, task: Task, batch: Batch, *, rng: np.random.Generator) -> None:
        """Of a symmetric plant, the mirror image of a logged state is known as well."""
        from scipy.spatial import KDTree

        known, held_out = (_acted_on(part) for part in batch.split(HELD_OUT, rng))
        if task.symmetric:
            known = np.concatenate([known, -known])
        self.range = np.stack([known.min(axis=0), known.max(axis=0)], axis=1)
        """[S, 2]"""
        spread = known.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)
        self._tree = KDTree(known / self._scale)
        self.distance = float(np.quantile(self.distances(held_out), USUAL))

    def distances(self, states: Floats) -> Floats:
        """[n] from the nearest logged state, of states [n, S]."""
        found: Floats = self._tree.query(states / self._scale)[0]
        return found


def _acted_on(batch: Batch) -> Floats:
    """States from which a step was logged: those that failure left behind say nothing of what follows."""
    return batch.transitions().window[:, : batch.states.shape[1]]


def cover(
    controller: Controller,
    task: Task,
    region: Region,
    *,
    starts: Scenarios | Floats,
    surrogate: Surrogate | None = None,
    members: Sequence[int] | None = None,
) -> Coverage:
    """On members of the model that the controller was found with, or on the plant.

    `starts`: situations, or states [N, S].
    """
    controller = controller.for_task(task)
    rows = window(task, [controller])
    view = task.unveiled if surrogate is None else task
    job = make_job(task, controller, starts, surrogate, rows)
    system = make_system(task, surrogate, rows, members)
    rollout = roll_out(encode([controller], view, history=rows), system, job, trajectories=True)
    courses = np.asarray(rollout.states)[:, 0, :, :, : len(task.states)]
    states = courses[:, :, :-1]  # [M, N, T, S]
    stopped = rollout.failed[:, 0, :, None] & system.dynamics.absorbing
    running = ~(_standing(courses) & stopped)
    visited = states[running]
    distances = np.zeros(running.shape)
    distances[running] = region.distances(visited)
    outside = distances > region.distance
    beyond = np.stack([visited < region.range[:, 0], visited > region.range[:, 1]], axis=-1).mean(axis=0)
    return Coverage(
        task=task,
        visited=len(visited),
        outside=float(outside.sum() / len(visited)),
        courses=float(outside.any(axis=-1).mean()),
        distance=region.distance,
        farthest=float(distances.max()),
        beyond=beyond,
    )


def _standing(states: Floats) -> Flags:
    """[…, T] whether nothing changes any more from here on, of states […, T + 1, S]."""
    moves = (np.diff(states, axis=-2) != 0).any(axis=-1)
    later: Flags = np.logical_or.accumulate(moves[..., ::-1], axis=-1)[..., ::-1]
    return ~later
