"""`learn` turns a batch into a front of controllers: it searches until the budget is spent, then judges.

The judgement uses models and starts that the search never saw.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from clearloop.arrays import Floats
from clearloop.controllers import Controller, Equation
from clearloop.data import Batch
from clearloop.data.findings import refuse
from clearloop.errors import ClearloopError
from clearloop.evaluation import Evaluation, evaluate, fitted_q
from clearloop.evaluation.promise import Interval, promise_interval
from clearloop.evaluation.q_evaluation import NETWORK_SETTINGS, LinearQ
from clearloop.evaluation.replays import Replays, replay_log
from clearloop.explanation import explain
from clearloop.methods.lqr import LQR, design
from clearloop.methods.method import Candidate, Method, Problem, Search, State
from clearloop.methods.robust import Kept, disturbances, keeps
from clearloop.methods.staying import Staying
from clearloop.plants.scenarios import Scenarios
from clearloop.showing import Shown, notebook_progress
from clearloop.surrogate import BEST, PUBLISHED, Surrogate, Track, examine
from clearloop.task import Task

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Point:
    """A controller of the front and its penalties."""

    controller: Controller
    judged: Evaluation
    """penalties that the front was chosen by: on the judging members or from the batch, on new starts"""
    model: Evaluation
    """penalties on the judging members from the starts of the scoring set: what the controller promises"""
    system: Evaluation | None
    """penalties on the plant from the starts of the scoring set; None if the task has no plant"""
    interval: Interval | None = None
    """the interval that holds the true penalty in 95 of 100 cases; None in results of version 0.1"""
    disturbed: float | None = None
    """mean penalty on the judging members under the disturbances of the task; None for planners and in
    version 0.1"""
    kept: Kept = field(default_factory=Kept)
    """the margins on the judging members, and whether they are those that the task asks for"""
    asked: bool = False
    """whether the search asked for robustness, so that only a robust controller is picked if there is one"""


@dataclass(frozen=True, eq=False)
class Result(Shown):
    """The front that a method found, sorted by complexity; each point is judged better than all before it."""

    method: str
    """name of the method"""
    points: tuple[Point, ...]
    steps: int
    """steps of the model that the search took"""
    beside: tuple[Point, ...] = ()
    """named controllers that are not part of the front but are compared with it"""

    @property
    def best(self) -> Controller:
        """The controller with the lowest judged penalty, of the robust ones if they were asked for."""
        return self.best_point.controller

    @property
    def best_point(self) -> Point:
        """The point of the best controller."""
        fit = [point for point in self.points if point.asked and point.kept.robust] or self.points
        return min(fit, key=lambda point: point.judged.penalty)

    @property
    def front(self) -> "pl.DataFrame":
        """The front as a table: a row for each point, with the columns of `front.csv`."""
        import polars as pl

        rows = [_row(self.method, number, point) for number, point in enumerate(self.points, 1)]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")

    def __repr__(self) -> str:
        best = self.best_point
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
    "penalty_low": float,
    "penalty_high": float,
    "penalty_disturbed": float,
    "phase_margin": float,
    "gain_margin": float,
    "delay_margin": float,
    "ms": float,
    "robust": bool,
}


def _row(method: str, number: int, point: Point) -> tuple[object, ...]:
    system = point.system
    return (
        f"{number:03d}", method, point.controller.complexity,
        point.model.penalty, point.model.standard_error,
        system and system.penalty, system and system.standard_error, system and system.failures,
        point.controller.summary,
        *(point.interval or (None, None)), point.disturbed,
        point.kept.phase, point.kept.gain, point.kept.delay, point.kept.ms, point.kept.robust,
    )  # fmt: skip


BUDGETS = {"quick": 1_500_000_000, "standard": 6_000_000_000, "full": 45_000_000_000}
"""The named budgets, in steps of the model, so that they mean the same on every machine."""

VALUES = ("model", "batch")
"""Where penalties may come from."""

_Watch = Callable[[Search, Problem], None]  # is called after every round


def learn(
    task: Task,
    batch: Batch | Any,
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
    robust: bool = True,
    stay: float = 0.0,
) -> Result:
    """Learn controllers for a task with one method, on a surrogate of the batch.

    A notebook shows a progress bar meanwhile.

    Args:
        task: The task, which says what is rewarded and what fails.
        batch: The logged episodes, as a batch or as a dataframe with the columns of a log.
        method: The method with its settings, such as `GPRL()`.
        rng: The generator of all random numbers; equal generators give equal results.
        budget: The steps of the model that the search may take, or the name of a usual budget.
        track: The way in which the surrogate is learned.
        value: Where the penalties come from that the search minimises and the front is chosen by: "model"
            takes the penalties on the surrogate, "batch" takes those that fitted Q evaluation finds in the
            batch alone; the front then still lists the penalties on the model.
        surrogate: The model of the plant; None learns it from the batch.
        watch: A function that is called after every round with the search and the problem.
        resume: What `snapshot` returned in an earlier call of `watch`. If all other arguments are the same,
            the result is the same as without the interruption.
        force: Whether to search although the data, or the model learned from it, cannot support a controller.
        robust: Whether to search for controllers that bear what the task asks for in `[robust]`. The
            published track never does.
        stay: How near to the log controllers must stay, from 0, which does not ask, to 1, the log itself. The
            front is then chosen by the blend of penalty and distance that the search minimises.

    Returns:
        The front of controllers, from the simplest to the best, with their penalties.

    Raises:
        ClearloopError: The data or the model cannot support a controller, the method does not suit the task,
            or an argument is wrong.
    """
    if value not in VALUES:
        raise ClearloopError(f"value {value}: expected {' or '.join(VALUES)}")
    if not 0 <= stay <= 1:
        raise ClearloopError(f"stay {stay:g}: expected a number from 0 to 1")
    if not isinstance(batch, Batch):
        batch = Batch.from_frame(batch, task)
    model_rng, search_rng, judge_rng = streams(rng)
    if surrogate is None:
        surrogate = _learn_model(task, batch, track, model_rng, force=force)
    with threadpool_limits(limits=1, user_api="blas"):  # more threads add up in another order
        (value_rng,) = rng.spawn(1)
        from_batch = batch_value(task, batch, rng=value_rng) if value == "batch" else None
        robust = robust and surrogate.track.name != PUBLISHED.name
        problem = Problem(
            task,
            batch,
            surrogate,
            budget=read_budget(budget),
            rng=search_rng,
            value=from_batch,
            robust=robust,
            stay=stay,
        )
        search = method.begin(problem, rng=search_rng)
        if resume is not None:
            problem.spent = resume["spent"]
            search.restore(resume["search"])
        _advance(search, problem, f"Searching, {method.name}", watch)
        found, score = search.candidates(), None
        if from_batch is not None:
            found, score = best_few(found), batch_score(task, batch, rng=value_rng)
        return judge(
            method.name,
            found,
            task,
            batch,
            surrogate,
            steps=problem.spent,
            rng=judge_rng,
            score=score,
            robust=robust,
            staying=problem.staying,
        )


def _learn_model(
    task: Task, batch: Batch, track: Track, rng: np.random.Generator, *, force: bool
) -> Surrogate:
    """Learn the model, and refuse one that cannot support a controller, unless `force` is True."""
    tell = notebook_progress("Learning the model")
    surrogate = Surrogate.fit(task, batch, track=track, rng=rng, progress=lambda share, _: tell(share, ""))
    tell(1.0, "")
    surrogate, _ = repeat_log(task, batch, surrogate)
    if not force and (reasons := examine(task, batch, surrogate).refusals):
        raise refuse(f"task {task.name}", reasons)
    return surrogate


def _advance(search: Search, problem: Problem, title: str, watch: _Watch | None) -> None:
    """Search until the budget is spent, or there is nothing more to search."""
    tell = notebook_progress(title)
    while not search.done and problem.spent < problem.budget:
        search.advance()
        tell(problem.share, f"best {search.best:.3g}")
        if watch is not None:
            watch(search, problem)
    tell(1.0, f"best {search.best:.3g}")


EXPLAINED = 0.5  # share of an action that a law must explain to answer for it in replays


def repeat_log(task: Task, batch: Batch, surrogate: Surrogate) -> tuple[Surrogate, Replays | None]:
    """Replay the log on all members, with the law that explains its actions, if there is one.

    Args:
        task: The task.
        batch: The log that the surrogate was learned from.
        surrogate: The model as it was learned.

    Returns:
        The surrogate without the members that do not repeat the log, and the replays. The surrogate stays as
        it is, and there are no replays, if its track does not ask for them or the log is too short.
    """
    if not surrogate.track.repeats:
        return surrogate, None
    replays = replay_log(task, batch, surrogate, _law(task, batch))
    return surrogate if replays is None else replace(surrogate, repetition=replays.summary), replays


def _law(task: Task, batch: Batch) -> Controller | None:
    try:
        found = explain(task, batch)
        law = found.controller()
    except ClearloopError:
        return None
    explained = [account.law.explained for account in found.accounts if account.chosen == "law"]
    return law if min(explained, default=0.0) >= EXPLAINED else None


class Streams(NamedTuple):
    """The generators that the three parts of `learn` draw from."""

    model: np.random.Generator
    search: np.random.Generator
    judge: np.random.Generator


def streams(rng: np.random.Generator) -> Streams:
    """Spawn a generator for each part of `learn`."""
    return Streams(*rng.spawn(3))


def snapshot(search: Search, problem: Problem) -> State:
    """Return the state of a search that `learn` can resume from."""
    return {"spent": problem.spent, "search": search.state()}


def read_budget(budget: str | int) -> int:
    """Return a budget in steps of the model, which may be given by its name."""
    if isinstance(budget, int):
        return budget
    if budget not in BUDGETS:
        raise ClearloopError(f"budget {budget}: expected {', '.join(BUDGETS)}, or a number of model steps")
    return BUDGETS[budget]


# The judgement.

JUDGED_STARTS = 1024
DISTURBED_STARTS = 256  # the first of them, for each disturbance
PLANNED_STARTS = 128  # the first of them, on one member: planners take a thousand times as long as others

_Score = Callable[[Controller, Floats], Floats]  # penalties [N] of a controller from starts [N, S]


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
    robust: bool = False,
    staying: Staying | None = None,
) -> Result:
    """Score candidates on the judging members and new starts, and drop those that a simpler one beats.

    If robustness was asked for, a robust candidate is dropped only if a simpler robust one beats it.

    Args:
        method: The name of the method that found the candidates.
        candidates: What the search found, in any order.
        task: The task.
        batch: The batch, which new starts are drawn from if the task does not say where it starts.
        surrogate: The model; only members that the search did not use judge.
        steps: Steps of the model that the search took, for the result.
        rng: The generator that draws the starts.
        score: A function that gives the penalties instead of the members, if any.
        robust: Whether the search asked for robustness.
        staying: The part that the distance from the log has in the penalties that choose the front, if any.
    """
    starts = Scenarios.drawn(task, batch, JUDGED_STARTS, rng)
    found: list[_Judgement] = []
    beside: list[_Judgement] = []
    for candidate in sorted(candidates, key=lambda candidate: candidate.controller.complexity):
        controller = candidate.controller
        n, judges = _affordable(controller, surrogate)
        if score is None:
            judged = evaluate(controller, task, surrogate=surrogate, members=judges, starts=starts[:n])
        else:
            penalties = score(controller, starts[:n].starts[:, : len(task.states)])[None]
            judged = Evaluation(task.name, "batch", penalties, np.zeros(penalties.shape, np.bool_))
        if staying is not None:
            judged = staying.judge(controller, judged)
        (beside if candidate.compared else found).append(
            _Judgement(controller, judged, keeps(controller, task, batch, surrogate))
        )
    front = _front(found)
    if robust:
        fit = _front([one for one in found if one.kept.robust])
        front += [one for one in fit if not any(one is other for other in front)]
        front.sort(key=lambda one: (one.controller.complexity, -one.judged.penalty))
    scoring = starts if task.start_box is None else Scenarios.scoring(task)

    def make_point(controller: Controller, judged: Evaluation, kept: Kept) -> Point:
        n, judges = _affordable(controller, surrogate)
        model = evaluate(controller, task, surrogate=surrogate, members=judges, starts=scoring[:n])
        system = evaluate(controller, task, starts=n) if task.scorable else None
        interval = promise_interval(model.penalties, surrogate)
        disturbed = _disturbed(controller, task, batch, surrogate, scoring)
        return Point(controller, judged, model, system, interval, disturbed, kept, robust)

    return Result(method, tuple(starmap(make_point, front)), steps, tuple(starmap(make_point, beside)))


class _Judgement(NamedTuple):
    controller: Controller
    judged: Evaluation
    kept: Kept


def _front(found: Sequence[_Judgement]) -> list[_Judgement]:
    """Return those that no simpler one beats; `found` is sorted by complexity."""
    front: list[_Judgement] = []
    for one in found:
        same = front and front[-1].controller.complexity == one.controller.complexity
        if same and one.judged.penalty < front[-1].judged.penalty:
            front.pop()
        if not front or one.judged.penalty < front[-1].judged.penalty:
            front.append(one)
    return front


def _disturbed(
    controller: Controller, task: Task, batch: Batch, surrogate: Surrogate, starts: Scenarios
) -> float | None:
    """Return the mean penalty on the judging members under the disturbances of the task.

    It is None for planners, and if the task names no disturbances.
    """
    cases = disturbances(task.robust)
    if controller.plans or not cases:
        return None
    members, some, spread = surrogate.judge_members, starts[:DISTURBED_STARTS], batch.states.std(axis=0)
    shape = some.steps, len(spread), len(some)
    drawn = np.random.default_rng(0).standard_normal(shape)  # the same for all controllers
    scores = [
        evaluate(
            controller,
            task,
            surrogate=surrogate,
            members=members,
            starts=some.veiled(task).disturbed(task, [case], spread=spread, drawn=drawn),
        )
        for case in cases
    ]
    return float(np.mean([score.penalty for score in scores]))


def _affordable(controller: Controller, surrogate: Surrogate) -> tuple[int, Sequence[int]]:
    """Return the number of starts to judge a controller from, and the members to judge it with."""
    members = surrogate.judge_members
    return (PLANNED_STARTS, members[:1]) if controller.plans else (JUDGED_STARTS, members)


# With `value="batch"`, fitted Q evaluation gives the penalties that the search minimises and the front is
# chosen by. The search uses a fast one, which is linear in features that networks learned by evaluating a
# reference controller: LQR from the same batch, or no action if LQR finds no gains. The best candidates are
# then judged by the slow one, which trains networks for each of them.

JUDGED = 8  # controllers, each of which takes as long as a thousand candidates of the search


def batch_value(task: Task, batch: Batch, *, rng: np.random.Generator) -> LinearQ:
    """Return the fast fitted Q evaluation, for the search."""
    return LinearQ.learn(task, batch, _reference(task, batch), rng=rng)


def batch_score(task: Task, batch: Batch, *, rng: np.random.Generator) -> _Score:
    """Return the slow fitted Q evaluation, for the judgement, with the same seed for every controller."""
    seed = int(rng.integers(2**63))

    def score(controller: Controller, starts: Floats) -> Floats:
        same = np.random.default_rng(seed)
        value = fitted_q(controller, task, batch, starts=starts, approximator=NETWORK_SETTINGS, rng=same)
        return np.asarray(value.penalties.mean(axis=0))

    return score


def best_few(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that no simpler one beats, by the search's penalties: at most the best few."""
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
