"""From a batch to a front of controllers: rounds of search until the budget is spent, then the judgement."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from clearloop.arrays import Floats
from clearloop.controllers import Controller, Equation
from clearloop.data import Batch
from clearloop.data.findings import refuse
from clearloop.errors import ClearloopError
from clearloop.evaluation import Evaluation, evaluate, fitted_q
from clearloop.evaluation.q_evaluation import NETWORK_SETTINGS, LinearQ
from clearloop.methods.lqr import LQR, design
from clearloop.methods.method import Candidate, Method, Problem, Search, State
from clearloop.plants.scenarios import Scenarios
from clearloop.surrogate import BEST, Surrogate, Track, examine
from clearloop.task import Task

if TYPE_CHECKING:
    import polars as pl


# What searches minimise, and fronts are chosen by, with `value="batch"`: fitted Q evaluation.
#
# A search sees the fast one, linear in features that networks learned by evaluating a reference: LQR from the
# same batch, or doing nothing where LQR finds no gains. The best of what it found are judged by the slow one,
# with networks of their own for each.

JUDGED = 8  # controllers, each of which takes as long as a thousand candidates of the search

_Score = Callable[[Controller, Floats], Floats]
"""[N] the penalties of a controller from starts [N, S]"""


def batch_value(task: Task, batch: Batch, *, rng: np.random.Generator) -> LinearQ:
    """For the search."""
    return LinearQ.learn(task, batch, _reference(task, batch), rng=rng)


def batch_score(task: Task, batch: Batch, *, rng: np.random.Generator) -> _Score:
    """For the judgement; all have the same luck."""
    seed = int(rng.integers(2**63))

    def score(controller: Controller, starts: Floats) -> Floats:
        luck = np.random.default_rng(seed)
        value = fitted_q(controller, task, batch, starts=starts, approximator=NETWORK_SETTINGS, rng=luck)
        return np.asarray(value.penalties.mean(axis=0))

    return score


def best_few(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that no simpler one beats, as the search saw them: the best of them."""
    front: list[Candidate] = []
    for one in sorted(candidates, key=lambda one: (one.controller.complexity, one.penalty)):
        if not front or one.penalty < front[-1].penalty:
            front.append(one)
    return front[-JUDGED:]


def _reference(task: Task, batch: Batch) -> Controller:
    try:
        return design(task, batch, LQR()).controller()
    except ClearloopError:
        return Equation(outputs=dict.fromkeys(task.action_names, "0"))


# What a method found: a front from the simplest to the best, judged by models and starts it never saw.

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
        tested = "" if best.system is None else f", {best.system.penalty:.3f} on the plant"
        return (
            f"{self.method}: {len(self.points)} controllers, the best promises {best.model.penalty:.3f}"
            f"{tested}: {best.controller.summary}"
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
    score: _Score | None = None,
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
    return (PLANNED_STARTS, members[:1]) if controller.plans else (JUDGED_STARTS, members)


BUDGETS = {"quick": 1_500_000_000, "standard": 6_000_000_000, "full": 45_000_000_000}
"""In steps of the model, so that they mean the same on every machine."""

VALUES = ("model", "batch")

_Watch = Callable[[Search, Problem], None]
"""Called after every round."""


def learn(
    task: Task,
    batch: Batch,
    method: Method,
    *,
    rng: np.random.Generator,
    budget: str | int = "standard",
    track: Track = BEST,
    value: str = "model",
    surrogate: Surrogate | None = None,
    watch: _Watch | None = None,
    resume: State | None = None,
    force: bool = False,
) -> Result:
    """Controllers for a task, found by one method on a surrogate of the batch; learned here if none is given.

    `budget`: steps of the model, or the name of a usual amount. `value`: what is minimised and what the front
    is chosen by: penalties on the "model", or those that fitted Q evaluation finds in the "batch" alone; the
    model then only says what it thinks of the front. `resume`: what `snapshot` gave in an earlier call of
    `watch`; with the same other arguments the result is the same as without the interruption. `force`: search
    even if the data, or the model that is learned here, cannot support a controller, which is an error else.
    """
    if value not in VALUES:
        raise ClearloopError(f"value {value}: expected {' or '.join(VALUES)}")
    model_rng, search_rng, judge_rng = streams(rng)
    if surrogate is None:
        surrogate = Surrogate.fit(task, batch, track=track, rng=model_rng)
        if not force and (reasons := examine(task, batch, surrogate).refusals):
            raise refuse(f"task {task.name}", reasons)
    with threadpool_limits(limits=1, user_api="blas"):  # more threads add up in another order
        (value_rng,) = rng.spawn(1)
        from_batch = batch_value(task, batch, rng=value_rng) if value == "batch" else None
        problem = Problem(
            task, batch, surrogate, budget=read_budget(budget), rng=search_rng, value=from_batch
        )
        search = method.begin(problem, rng=search_rng)
        if resume is not None:
            problem.spent = resume["spent"]
            search.restore(resume["search"])
        while not search.done and problem.spent < problem.budget:
            search.advance()
            if watch is not None:
                watch(search, problem)
        found, score = search.candidates(), None
        if from_batch is not None:
            found, score = best_few(found), batch_score(task, batch, rng=value_rng)
        return judge(
            method.name, found, task, batch, surrogate, steps=problem.spent, rng=judge_rng, score=score
        )


class Streams(NamedTuple):
    model: np.random.Generator
    search: np.random.Generator
    judge: np.random.Generator


def streams(rng: np.random.Generator) -> Streams:
    """What the parts of `learn` draw from."""
    return Streams(*rng.spawn(3))


def snapshot(search: Search, problem: Problem) -> State:
    """What `learn` can resume from."""
    return {"spent": problem.spent, "search": search.state()}


def read_budget(budget: str | int) -> int:
    if isinstance(budget, int):
        return budget
    if budget not in BUDGETS:
        raise ClearloopError(f"budget {budget}: expected {', '.join(BUDGETS)}, or a number of model steps")
    return BUDGETS[budget]
