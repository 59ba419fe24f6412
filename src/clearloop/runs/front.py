"""The front of a run: controllers of all its methods, what each costs, and which one to take."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from clearloop.arrays import Floats, Ints
from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.diagnosis.robustness import Region, cover
from clearloop.errors import ClearloopError
from clearloop.evaluation import Evaluation, evaluate
from clearloop.evaluation.rollouts import LoggedCost, standard_error_of
from clearloop.explanation import explain
from clearloop.methods import Point, Result
from clearloop.methods.learning import JUDGED_STARTS, PLANNED_STARTS, streams
from clearloop.numbers import percent, rough_percent
from clearloop.plants.scenarios import Scenarios
from clearloop.published import Published, published_for
from clearloop.runs.directory import RunDirectory, read_table, write_table
from clearloop.surrogate import Surrogate
from clearloop.task import Task

# Planners among the controllers of a run: they are scored from fewer starts, and all others beside them.
#
# A planner shows what the model makes possible, at a thousand times the cost of deciding.


@dataclass(frozen=True)
class Beside:
    """A row of `planned.csv`: what a controller costs from the starts that planners are scored from."""

    controller: str
    planner: bool
    starts: int
    """the first so many of the scoring set"""
    penalty_model: float
    penalty_system: float | None
    failures_system: float | None


class Scored(NamedTuple):
    """A controller with all of its scores."""

    controller: str
    planner: bool
    model: Evaluation
    system: Evaluation | None

    @classmethod
    def of(cls, number: str, point: Point) -> "Scored":
        return cls(number, point.controller.plans, point.model, point.system)


def beside_planners(scored: Iterable[Scored]) -> tuple[Beside, ...]:
    """Nothing where there is no planner."""
    rows = list(scored)
    if not any(row.planner for row in rows):
        return ()
    return tuple(_row(*row) for row in rows)


def _row(controller: str, planner: bool, model: Evaluation, system: Evaluation | None) -> Beside:
    model, system = model.first(PLANNED_STARTS), system and system.first(PLANNED_STARTS)
    starts = model.penalties.shape[1]
    if system is None:
        return Beside(controller, planner, starts, model.penalty, None, None)
    return Beside(controller, planner, starts, model.penalty, system.penalty, system.failures)


@dataclass(frozen=True)
class Entry:
    """A row of `front.csv`."""

    controller: str
    method: str
    complexity: int
    penalty_model: float
    penalty_model_se: float | None
    penalty_system: float | None
    penalty_system_se: float | None
    failures_system: float | None
    formula: str


@dataclass(frozen=True)
class Judged:
    """A row of `judged.csv`: what the front was chosen by, on starts and models that the search never saw."""

    controller: str
    penalty: float
    penalty_se: float | None
    extra: float
    """than the best costs that can be read, from the same starts"""
    extra_se: float | None
    readable: bool = True
    """others are for comparison: networks and planners are never the pick, if there is anything to read"""


@dataclass(frozen=True)
class PublishedEntry:
    """A row of `published.csv`: a controller that others have published for this plant."""

    controller: str
    title: str
    penalty_model: float
    penalty_system: float
    failures_system: float
    in_paper: bool
    """whether the paper says what it costs"""


@dataclass(frozen=True)
class Front:
    entries: tuple[Entry, ...]
    """method by method, each from the simplest to the best"""
    judged: tuple[Judged, ...]
    """in the same order"""
    published: tuple[PublishedEntry, ...] = ()
    planned: tuple[Beside, ...] = ()
    """where there are planners: all of the front, and what was published, from the planners' starts"""

    @classmethod
    def of(
        cls,
        results: Sequence[Result],
        published: Sequence[PublishedEntry] = (),
        others: Sequence[Scored] = (),
    ) -> Self:
        """`others`: the scores of what was published."""
        rows = [row for result in results for row in result.front.rows()]
        numbered = [Entry(f"{number:03d}", *row[1:]) for number, row in enumerate(rows, 1)]
        points = [point for result in results for point in result.points]
        scored = [Scored.of(entry.controller, point) for entry, point in zip(numbered, points, strict=True)]
        return cls(tuple(numbered), _judge(points), tuple(published), beside_planners([*scored, *others]))

    @property
    def planners(self) -> list[int]:
        names = {row.controller for row in self.planned if row.planner}
        return [i for i, entry in enumerate(self.entries) if entry.controller in names]

    @property
    def _eligible(self) -> list[int]:
        """What can be read; where there is nothing, all."""
        return [i for i, row in enumerate(self.judged) if row.readable] or list(range(len(self.judged)))

    @property
    def best(self) -> int:
        """Which of the entries that can be read is judged to cost least."""
        return min(self._eligible, key=lambda i: self.judged[i].penalty)

    @property
    def simplest(self) -> int:
        return min(self._eligible, key=self._simplicity)

    @property
    def pick(self) -> int:
        """The simplest that cannot be told from the best: it costs at most a standard error more."""
        close = [i for i in self._eligible if self.judged[i].extra <= (self.judged[i].extra_se or 0.0)]
        return min(close, key=self._simplicity)

    def _simplicity(self, i: int) -> tuple[int, float]:
        """Of two that are equally simple, the better one comes first."""
        return self.entries[i].complexity, self.judged[i].penalty

    def reason(self, judges: str) -> str:
        """Why the pick. `judges`: what the front was judged on."""
        best, pick = self.entries[self.best], self.entries[self.pick]
        if pick == best:
            return f"the best on {judges}; whatever is simpler costs more there than chance explains"
        row = self.judged[self.pick]
        return (
            f"the simplest that cannot be told from the best, {best.controller}:"
            f" on {judges} it costs {row.extra:.2g} ± {row.extra_se or 0.0:.2g} more"
        )

    def write(self, run: RunDirectory) -> None:
        if self.published:
            write_table(run.path / "published.csv", PublishedEntry, self.published)
        if self.planned:
            write_table(run.path / "planned.csv", Beside, self.planned)
        write_table(run.path / "judged.csv", Judged, self.judged)
        write_table(run.path / "front.csv", Entry, self.entries)

    @classmethod
    def read(cls, run: RunDirectory) -> Self:
        entries = read_table(run.path / "front.csv", Entry)
        judged = read_table(run.path / "judged.csv", Judged)
        if not entries or [row.controller for row in entries] != [row.controller for row in judged]:
            raise ClearloopError(f"{run.path}: damaged: front.csv and judged.csv name different controllers")
        published, planned = run.path / "published.csv", run.path / "planned.csv"
        return cls(
            entries,
            judged,
            read_table(published, PublishedEntry) if published.exists() else (),
            read_table(planned, Beside) if planned.exists() else (),
        )


def _judge(points: Sequence[Point]) -> tuple[Judged, ...]:
    """All were judged from the same starts: every method's generator has the same seed. Planners from the
    first of them only.
    """
    if not points:
        raise ClearloopError("the search found no controller: give it a larger --budget")
    costs = [point.judged.penalties.mean(axis=0) for point in points]  # [N], over members
    readable = [point.controller.readable for point in points]
    eligible = [cost for cost, reads in zip(costs, readable, strict=True) if reads] or costs
    best = min(eligible, key=lambda cost: float(cost.mean()))
    rows = []
    for number, (point, cost) in enumerate(zip(points, costs, strict=True), 1):
        n = min(cost.size, best.size)
        extra = cost[:n] - best[:n]
        se = standard_error_of(extra) if n > 1 else None
        judged = point.judged
        rows.append(
            Judged(
                f"{number:03d}",
                judged.penalty,
                judged.standard_error,
                float(extra.mean()),
                se,
                point.controller.readable,
            )
        )
    return tuple(rows)


# What others have published for a plant, on the scoring set, like a front.


def score_published(task: Task, surrogate: Surrogate) -> Iterator[tuple[Published, Evaluation, Evaluation]]:
    """Each controller, by the judging members and by the plant."""
    for known in published_for(task):
        controller = known.load()
        model = evaluate(controller, task, surrogate=surrogate, members=surrogate.judge_members)
        yield known, model, evaluate(controller, task)


# How far to believe each controller of a front: where it goes, how far models differ, what was before it.

STARTS = 256
_FEWEST = 30  # rows of the log to compare with it
_SEED = 0  # of the starts and of the region: the same for all controllers

_OUTSIDE = 0.1  # share of the path outside the logged region, from which on to beware; 0.01 is usual
_APART = 0.1  # deviation between models, as a share of the promise


@dataclass(frozen=True)
class Trusted:
    """A row of `trust.csv`."""

    controller: str
    promise: float
    """of the front: the penalty on the model"""
    outside: float | None
    """share of its expected path outside the logged region"""
    spread: float | None
    """standard deviation of the promise over the models that judge"""
    from_log: float | None
    """what it promises from the log's own rows"""

    @property
    def warnings(self) -> list[str]:
        found = []
        if self.outside is not None and self.outside > _OUTSIDE:
            found.append(f"{percent(self.outside, 0)} of its path is outside the logged region")
        if self.spread is not None and self.spread > _APART * abs(self.promise):
            found.append(f"the models differ by {self.spread:.2g} about what it costs")
        return found


@dataclass(frozen=True)
class Before:
    """What was there before: the log, or the law that it seems to follow."""

    kind: str
    """"log": its own rewards; "law": the law that explains it, on the model; "none" """
    penalty: float | None = None
    starts: int = 0
    text: str = ""
    """in words"""


def examine_front(
    run: RunDirectory, task: Task, batch: Batch, surrogate: Surrogate, points: Sequence[Point]
) -> None:
    """Leaves `trust.csv`, and in `run.json` what the log cost."""
    logged = LoggedCost(task, batch)
    chosen = _evenly(len(logged.rows))
    compared = Scenarios.logged(task, batch, logged.rows[chosen]) if len(chosen) else None
    rng = np.random.default_rng(_SEED)
    region = Region(task, batch, rng=rng)
    starts = Scenarios.drawn(task, batch, STARTS, rng)
    found = []
    for number, point in enumerate(points, 1):
        outside, promise = None, None
        if not point.controller.plans:
            members = surrogate.judge_members
            path = cover(point.controller, task, region, starts=starts, surrogate=surrogate, members=members)
            outside = path.outside
            promise = _on_model(point.controller, task, surrogate, compared) if compared else None
        found.append(Trusted(f"{number:03d}", point.model.penalty, outside, _spread(point.model), promise))
    write_table(run.path / "trust.csv", Trusted, found)
    run.mark("running", before=asdict(_before(task, batch, surrogate, logged.penalties(chosen))))


def read_trust(run: RunDirectory, description: dict[str, Any]) -> tuple[tuple[Trusted, ...], Before]:
    """What `examine_front` left; nothing of runs that have none."""
    file = run.path / "trust.csv"
    try:
        before = Before(**description.get("before", {"kind": "none"}))
    except TypeError as error:
        raise ClearloopError(f"{run.path / 'run.json'}: damaged: {error}") from error
    return (read_table(file, Trusted) if file.exists() else ()), before


def _evenly(count: int) -> Ints:
    """Of so many rows that can be compared, some, evenly spaced; none if there are too few."""
    if count < _FEWEST:
        return np.zeros(0, np.int64)
    return np.linspace(0, count - 1, min(STARTS, count)).astype(np.int64)


def _before(task: Task, batch: Batch, surrogate: Surrogate, penalties: Floats) -> Before:
    """`penalties`: of the log, from rows that can be compared."""
    if len(penalties):
        text = f"what was logged, from {len(penalties)} of its own rows"
        return Before("log", float(penalties.mean()), len(penalties), text)
    too_short = "no stretch of the log is as long as the horizon"
    try:
        explained = explain(task, batch)
        law = explained.controller()
    except ClearloopError:
        return Before("none", text=f"{too_short}, and no law explains its actions: nothing to compare with")
    scoring = Scenarios.drawn(task, batch, STARTS, np.random.default_rng(_SEED))
    if task.start_box is not None:
        scoring = Scenarios.scoring(task)
    penalty = _on_model(law, task, surrogate, scoring)
    shares = ", ".join(
        f"{rough_percent(account.law.explained)} of {account.action}" for account in explained.accounts
    )
    return Before("law", penalty, len(scoring), f"the law of the log ({shares}), on the model; {too_short}")


def _on_model(controller: Controller, task: Task, surrogate: Surrogate, starts: Scenarios) -> float:
    members = surrogate.judge_members
    return evaluate(controller, task, surrogate=surrogate, members=members, starts=starts).penalty


def _spread(found: Evaluation) -> float | None:
    means: Floats = found.penalties.mean(axis=1)
    return float(means.std(ddof=1)) if len(means) > 1 else None


# How a run judged its front, for whoever judges another controller in the same way.


def method_rng(seed: int) -> np.random.Generator:
    """Of every method of a run: [seed] drew the batch, [seed, 1] the model."""
    return np.random.default_rng([seed, 2])


def judging_starts(run: RunDirectory, task: Task, batch: Batch, n: int = JUDGED_STARTS) -> Scenarios:
    """The starts that the front of a run was chosen by, which no search saw; or so many like them."""
    seed = run.describe()["asked"].get("seed", 0)
    return Scenarios.drawn(task, batch, n, streams(method_rng(seed)).judge)
