"""The robustness of a controller: its penalty under noise, delay and a wrong gain; its starts; its coverage.

Every disturbance starts from the same states with the same random numbers as all others, so that differences
are due to the disturbance alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from clearloop.arrays import Flags, Floats
from clearloop.controllers import Controller, encode
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.evaluation import evaluate
from clearloop.evaluation.rollouts import make_job, make_system, window
from clearloop.kernels.engine import roll_out
from clearloop.numbers import estimate, json_values, percent, signed_estimate
from clearloop.plants.scenarios import Disturbance, Scenarios
from clearloop.surrogate import Surrogate
from clearloop.task import Task

_NOTHING = Disturbance("undisturbed")
DISTURBANCES = (
    Disturbance("sensor noise 1 %", noise=0.01),
    Disturbance("sensor noise 5 %", noise=0.05),
    Disturbance("delay of one step", late=1),
    Disturbance("gain -20 %", gain=0.8),
    Disturbance("gain +20 %", gain=1.2),
)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """The effect of one disturbance; all numbers are means over starts and members."""

    name: str
    penalty: float
    change: float
    """the penalty less the undisturbed penalty"""
    standard_error: float
    """of the change, over the starts, which are paired"""
    failures: float
    """share of the starts that end in failure"""


@dataclass(frozen=True, eq=False, repr=False)
class Robustness:
    """The penalty of a controller without disturbances and with each of them."""

    starts: int
    """number of starts"""
    penalty: float
    """undisturbed"""
    failures: float
    """share of the starts that end in failure, undisturbed"""
    disturbed: tuple[Sensitivity, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the robustness as JSON values."""
        return {
            "starts": self.starts,
            "penalty": json_values(self.penalty),
            "failures": json_values(self.failures),
            "disturbed": [
                {name: json_values(value) for name, value in vars(one).items()} for one in self.disturbed
            ],
        }

    def __repr__(self) -> str:
        lines = [f"undisturbed: penalty {estimate(self.penalty)}, {percent(self.failures)} failures"]
        lines += [
            f"{one.name}: {signed_estimate(one.change, one.standard_error)}, {percent(one.failures)} failures"
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
    """Run a controller under each disturbance.

    Args:
        controller: The controller to examine.
        task: The task that it controls.
        spread: [S] the standard deviation of each state in the log.
        starts: [N, S] the starts, the same for every disturbance.
        rng: The random numbers of the noise.
        surrogate: The model that stands for the plant; without it, the task's plant is used.
        members: The members of the surrogate that are run; without them, all.
        disturbances: The disturbances.
    """
    cases, n = (_NOTHING, *disturbances), len(starts)
    controller = controller.for_task(task)
    calm = Scenarios.at(task, starts, controller.setpoint)
    drawn = rng.standard_normal((task.horizon, starts.shape[1], n))
    scores = [
        evaluate(
            controller,
            task,
            surrogate=surrogate,
            members=members,
            starts=calm.disturbed(task, [case], spread=spread, drawn=drawn),
        )
        for case in cases
    ]
    penalties = np.array([score.penalties.mean(axis=0) for score in scores])
    changes = penalties - penalties[0]
    errors = changes.std(axis=1, ddof=min(1, n - 1)) / np.sqrt(n)
    rows = zip(
        (case.name for case in cases),
        penalties.mean(axis=1),
        changes.mean(axis=1),
        errors,
        (score.failures for score in scores),
        strict=True,
    )
    plain, *others = (Sensitivity(name, *map(float, row)) for name, *row in rows)
    return Robustness(n, plain.penalty, plain.failures, tuple(others))


# The map of start states: from which of them the loop fails, and the penalty of each.

CELLS = 33  # along each axis; odd, so that the middle is one of them


@dataclass(frozen=True, eq=False, repr=False)
class StartMap:
    """The outcome from each of N starts. On a grid they are in rows, and the second axis runs first."""

    task: Task
    axes: dict[str, Floats]
    """the middles of the cells of the grid for one or two states; empty if the starts are no grid"""
    starts: Floats
    """[N, S]"""
    failed: Flags
    """[N] True if the plant, or most of the model's members, end in failure"""
    penalties: Floats
    """[N] means over members"""

    @property
    def lost(self) -> float:
        """The share of the starts that end in failure."""
        return float(self.failed.mean())

    def to_dict(self) -> dict[str, Any]:
        """Return the map as JSON values."""
        where = {"axes": {name: json_values(values) for name, values in self.axes.items()}}
        if not self.axes:
            where |= {"starts": json_values(self.starts)}
        return where | {
            "lost": json_values(self.lost),
            "failed": self.failed.astype(int).tolist(),
            "penalties": json_values(self.penalties),
        }

    def __repr__(self) -> str:
        return f"loses {self.failed.sum():,} of {len(self.failed):,} starts"


def map_starts(
    controller: Controller,
    task: Task,
    *,
    surrogate: Surrogate | None = None,
    members: Sequence[int] | None = None,
    starts: Floats | None = None,
    cells: int = CELLS,
) -> StartMap:
    """Run a controller from many starts.

    Args:
        controller: The controller to examine.
        task: The task that it controls.
        surrogate: The model that stands for the plant; without it, the task's plant is used.
        members: The members of the surrogate that are run; without them, all.
        starts: [N, S] the starts. Without them, they are a grid over the first two states that have a start
            interval; further such states are in the middle of theirs.
        cells: The number of cells along each axis of the grid.

    Raises:
        ClearloopError: The task takes its starts from the batch, and none are given.
    """
    axes: dict[str, Floats] = {}
    if starts is None:
        axes, starts = make_grid(task, cells)
    scores = evaluate(controller, task, surrogate=surrogate, members=members, starts=starts)
    return StartMap(task, axes, starts, scores.failed.mean(axis=0) > 0.5, scores.penalties.mean(axis=0))


def make_grid(task: Task, cells: int = CELLS) -> tuple[dict[str, Floats], Floats]:
    """Return the axes of the grid by state name, and its starts [N, S]."""
    box = task.start_box
    if box is None:
        raise ClearloopError(f"task {task.name}: its starts come from the batch: give the starts to map")
    free = np.flatnonzero(box[:, 0] < box[:, 1])[:2]
    middles = (np.arange(cells) + 0.5) / cells
    values = [low + (high - low) * middles for low, high in box[free]]
    points = np.array(list(product(*values)))
    starts = np.tile(box.mean(axis=1), (len(points), 1))
    starts[:, free] = points
    return {task.state_names[j]: line for j, line in zip(free, values, strict=True)}, starts


# Coverage: does a controller stay in the logged region? Elsewhere, the prediction of a model is a guess.
#
# Part of the log is held out. A state is *outside* the logged region if its nearest logged state is farther
# away than that of 99 % of the held-out states; distances are in standard deviations of the log. A controller
# that stays where the log was has therefore about 1 % of its states outside, whatever the number of states
# and the size of the log. A box around the data would count its empty corners as known.

HELD_OUT = 0.1  # share of the log, in whole episodes, that shows how far apart logged states are
USUAL = 0.99  # share of the held-out states that count as inside


@dataclass(frozen=True, eq=False, repr=False)
class Coverage:
    """The share of the states that a controller visits outside the logged region."""

    task: Task
    visited: int
    """number of visited states, over all trajectories and members, up to failure or success"""
    outside: float
    """share of the visited states that lie outside the logged region"""
    courses: float
    """share of the trajectories that leave the logged region at some time"""
    distance: float
    """the distance to the nearest logged state beyond which a state is outside, in standard deviations"""
    farthest: float
    """the largest such distance of all visited states"""
    beyond: Floats
    """[S, 2] share of the visited states below and above the logged range, for each state alone"""

    def to_dict(self) -> dict[str, Any]:
        """Return the coverage as JSON values."""
        return {
            "visited": self.visited,
            "outside": json_values(self.outside),
            "courses": json_values(self.courses),
            "distance": json_values(self.distance),
            "farthest": json_values(self.farthest),
            "beyond": dict(zip(self.task.state_names, json_values(self.beyond), strict=True)),
        }

    def __repr__(self) -> str:
        return f"{percent(self.outside)} of {self.visited:,} visited states are outside the logged region"


class Region:
    """The region of states that a log covers."""

    def __init__(self, task: Task, batch: Batch, *, rng: np.random.Generator) -> None:
        """Take the region from a log; `rng` chooses the episodes that are held out.

        If the plant is symmetric, the mirror image of a logged state is known as well.
        """
        from scipy.spatial import KDTree

        known, held_out = (_acted_on(part) for part in batch.split(HELD_OUT, rng))
        if task.symmetric:
            known = np.concatenate([known, -known])
        self.range = np.stack([known.min(axis=0), known.max(axis=0)], axis=1)
        """[S, 2] the lowest and the highest logged value of each state"""
        spread = known.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)
        self._tree = KDTree(known / self._scale)
        self.distance = float(np.quantile(self.distances(held_out), USUAL))

    def distances(self, states: Floats) -> Floats:
        """Return the distances [n] of states [n, S] from the nearest logged state, in standard deviations."""
        found: Floats = self._tree.query(states / self._scale)[0]
        return found


def _acted_on(batch: Batch) -> Floats:
    """Return the states from which a step was logged; nothing is known about what follows a failed state."""
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
    """Run a controller and compare the states that it visits with the logged region.

    Args:
        controller: The controller to examine.
        task: The task that it controls.
        region: The logged region.
        starts: The situations to start from, or states [N, S].
        surrogate: The model that stands for the plant; without it, the task's plant is used.
        members: The members of the surrogate that are run; without them, all.
    """
    controller = controller.for_task(task)
    rows = window(task, [controller])
    view = task.unveiled if surrogate is None else task
    job = make_job(task, controller, starts, surrogate, rows)
    system = make_system(task, surrogate, rows, members)
    rollout = roll_out(encode([controller], view, history=rows), system, job, trajectories=True)
    courses = np.asarray(rollout.states)[:, 0, :, :, : len(task.states)]
    states = courses[:, :, :-1]  # [M, N, T, S]
    ended = rollout.failed | np.asarray(rollout.succeeded)
    stopped = ended[:, 0, :, None] & system.dynamics.absorbing
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
    """Return flags […, T] for trajectories […, T + 1, S]: True where no state changes any more."""
    moves = (np.diff(states, axis=-2) != 0).any(axis=-1)
    later: Flags = np.logical_or.accumulate(moves[..., ::-1], axis=-1)[..., ::-1]
    return ~later
