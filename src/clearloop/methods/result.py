"""What a method found: a front from the simplest to the best, judged by models and starts it never saw."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING

import numpy as np

from clearloop.controllers import Controller, Planner
from clearloop.data import Batch
from clearloop.evaluation import Evaluation, evaluate
from clearloop.methods.batch_value import Score
from clearloop.methods.method import Candidate
from clearloop.plants.scenarios import Scenarios
from clearloop.surrogate import Surrogate
from clearloop.task import Task

if TYPE_CHECKING:
    import polars as pl

JUDGED_STARTS = 1024
PLANNED_STARTS = 128  # the first of them, on one model: planners take a thousand times as long as others


@dataclass(frozen=True)
class Point:
    """A controller of the front, and what it is expected to cost."""

    controller: Controller
    judged: Evaluation
    """by the judging members, or from the batch, on starts of their own: what the front was chosen by"""
    model: Evaluation
    """by the judging members on the scoring set: the promise"""
    system: Evaluation | None
    """by the plant on the scoring set; None where there is no plant"""


@dataclass(frozen=True, eq=False)
class Result:
    """Points are sorted by complexity; each costs less, as judged, than all before it."""

    method: str
    points: tuple[Point, ...]
    steps: int
    """steps of the model that the search took"""
    beside: tuple[Point, ...] = ()
    """not of the front: to be compared with it, each with a name"""

    @property
    def best(self) -> Controller:
        """The one that is judged to cost least."""
        return self.points[-1].controller

    @property
    def front(self) -> "pl.DataFrame":
        """A row for each point, with the columns of `front.csv`."""
        import polars as pl

        rows = [_row(self.method, number, point) for number, point in enumerate(self.points, 1)]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")

    def __repr__(self) -> str:
        best = self.points[-1]
        system = "" if best.system is None else f", {best.system.penalty:.3f} on the system"
        return (
            f"{self.method}: {len(self.points)} controllers, the best promises {best.model.penalty:.3f}"
            f"{system}: {best.controller.summary}"
        )


SCHEMA = {
    "controller": str,
    "method": str,
    "complexity": int,
    "penalty_model": float,
    "penalty_model_se": float,
    "penalty_system": float,
    "penalty_system_se": float,
    "failures_system": float,
    "formula": str,
}


def _row(method: str, number: int, point: Point) -> tuple[object, ...]:
    system = point.system
    return (
        f"{number:03d}", method, point.controller.complexity,
        point.model.penalty, point.model.standard_error,
        system and system.penalty, system and system.standard_error, system and system.failures,
        point.controller.summary,
    )  # fmt: skip


def judge(
    method: str,
    candidates: Sequence[Candidate],
    task: Task,
    batch: Batch,
    surrogate: Surrogate,
    *,
    steps: int,
    rng: np.random.Generator,
    score: Score | None = None,
) -> Result:
    """Score candidates with the members that the search did not use, on new starts; drop the dominated.

    With a `score`, that is used instead of the members.
    """
    starts = Scenarios.drawn(task, batch, JUDGED_STARTS, rng)
    front: list[tuple[Controller, Evaluation]] = []
    beside: list[tuple[Controller, Evaluation]] = []
    for candidate in sorted(candidates, key=lambda candidate: candidate.controller.complexity):
        controller = candidate.controller
        n, judges = _affordable(controller, surrogate)
        if score is None:
            judged = evaluate(controller, task, surrogate=surrogate, members=judges, starts=starts[:n])
        else:
            penalties = score(controller, starts[:n].starts[:, : len(task.states)])[None]
            judged = Evaluation(task.name, "batch", penalties, np.zeros(penalties.shape, np.bool_))
        if candidate.compared:
            beside.append((controller, judged))
            continue
        if (
            front
            and front[-1][0].complexity == controller.complexity
            and judged.penalty < front[-1][1].penalty
        ):
            front.pop()
        if not front or judged.penalty < front[-1][1].penalty:
            front.append((controller, judged))
    scoring = starts if task.start_box is None else Scenarios.scoring(task)

    def make_point(controller: Controller, judged: Evaluation) -> Point:
        n, judges = _affordable(controller, surrogate)
        model = evaluate(controller, task, surrogate=surrogate, members=judges, starts=scoring[:n])
        system = evaluate(controller, task, starts=n) if task.scorable else None
        return Point(controller, judged, model, system)

    return Result(method, tuple(starmap(make_point, front)), steps, tuple(starmap(make_point, beside)))


def _affordable(controller: Controller, surrogate: Surrogate) -> tuple[int, Sequence[int]]:
    """How many starts to judge it from, and by which members."""
    members = surrogate.judge_members
    return (PLANNED_STARTS, members[:1]) if isinstance(controller, Planner) else (JUDGED_STARTS, members)
