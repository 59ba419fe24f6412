"""The front of a run lists the controllers of all its methods, what each costs, and which one to take.

A planner shows what the model makes possible, at a thousand times the cost of deciding. Planners are
therefore scored from fewer starts, and so are all other controllers beside them (`planned.csv`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from pydantic import TypeAdapter, ValidationError

from clearloop.arrays import Floats, Ints
from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.diagnosis.robustness import Region, cover
from clearloop.errors import ClearloopError, quoted
from clearloop.evaluation import Evaluation, evaluate
from clearloop.evaluation.rollouts import LoggedCost, standard_error_of
from clearloop.explanation import explain
from clearloop.methods import Point, Result
from clearloop.methods.learning import JUDGED_STARTS, PLANNED_STARTS, streams
from clearloop.methods.staying import LoggedActions, departure
from clearloop.numbers import percent, rough_percent
from clearloop.plants.scenarios import Scenarios
from clearloop.published import Published, published_for
from clearloop.runs.directory import RunDirectory, read_table, write_table
from clearloop.surrogate import Surrogate
from clearloop.task import Task


@dataclass(frozen=True)
class Beside:
    """A row of `planned.csv`: what a controller costs from the starts that planners are scored from."""

    controller: str
    planner: bool
    starts: int
    """how many starts were used: the first ones of the scoring set"""
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
        """Take the scores of a search result; `number` is the controller's number in the front."""
        return cls(number, point.controller.plans, point.model, point.system)


def beside_planners(scored: Iterable[Scored]) -> tuple[Beside, ...]:
    """Return the rows of `planned.csv`, or nothing if there is no planner."""
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
    penalty_low: float | None = None
    penalty_high: float | None = None
    """the interval that holds the true penalty in 95 of 100 cases"""
    penalty_disturbed: float | None = None
    """the mean penalty on the model under the disturbances that the task names"""
    phase_margin: float | None = None
    """in degrees; this and the next three are the worst on the models that judge; infinite: no change of this
    kind destabilises; empty: nothing can be said"""
    gain_margin: float | None = None
    """the factor by which the gain may rise"""
    delay_margin: float | None = None
    """in steps"""
    ms: float | None = None
    """the largest sensitivity"""
    robust: bool | None = None
    """whether these are the margins that the task asks for; empty: nothing can be said"""


MARGINS = ("phase_margin", "gain_margin", "delay_margin", "ms")
"""Columns that may be infinite."""


@dataclass(frozen=True)
class Judged:
    """A row of `judged.csv`: what the front was chosen by, on starts and models that the search never saw."""

    controller: str
    penalty: float
    penalty_se: float | None
    extra: float
    """how much more it costs than the best readable controller, from the same starts"""
    extra_se: float | None
    readable: bool = True
    """False for networks and planners: they are never the pick if there is a readable controller"""
    fit: bool | None = None
    """whether it has the margins that were asked for; others are never the pick if a readable one has them.
    Empty: none were asked for"""


@dataclass(frozen=True)
class PublishedEntry:
    """A row of `published.csv`: a controller that others have published for this plant."""

    controller: str
    title: str
    penalty_model: float
    penalty_system: float
    failures_system: float
    in_paper: bool
    """True if the paper says what it costs"""


@dataclass(frozen=True)
class Front:
    """The controllers that a run found, with their scores."""

    entries: tuple[Entry, ...]
    """method by method, each from the simplest to the best"""
    judged: tuple[Judged, ...]
    """how each entry was judged, in the same order"""
    published: tuple[PublishedEntry, ...] = ()
    """controllers that others have published for the plant"""
    planned: tuple[Beside, ...] = ()
    """if there are planners: every entry and every published controller, from the planners' starts"""

    @classmethod
    def of(
        cls,
        results: Sequence[Result],
        published: Sequence[PublishedEntry] = (),
        others: Sequence[Scored] = (),
    ) -> Self:
        """Number the controllers and judge them.

        Args:
            results: The result of each method.
            published: Controllers that others have published.
            others: The scores of these published controllers.

        Raises:
            ClearloopError: No method found a controller.
        """
        rows = [row for result in results for row in result.front.rows()]
        numbered = [Entry(f"{number:03d}", *row[1:]) for number, row in enumerate(rows, 1)]
        points = [point for result in results for point in result.points]
        scored = [Scored.of(entry.controller, point) for entry, point in zip(numbered, points, strict=True)]
        return cls(tuple(numbered), _judge(points), tuple(published), beside_planners([*scored, *others]))

    @property
    def planners(self) -> list[int]:
        """The positions of the planners among the entries."""
        names = {row.controller for row in self.planned if row.planner}
        return [i for i, entry in enumerate(self.entries) if entry.controller in names]

    @property
    def asked(self) -> bool:
        """Whether a search asked for robustness."""
        return any(row.fit is not None for row in self.judged)

    @property
    def shown(self) -> list[int]:
        """The positions of the entries to show first: those that are fit to be picked, or all if none is."""
        every = range(len(self.judged))
        return [i for i in every if self.judged[i].fit is not False] or list(every)

    @property
    def _eligible(self) -> list[int]:
        """The positions of the readable entries with the margins that were asked for.

        If no readable one has them, those of all readable entries; if none is readable, of all.
        """
        readable = [i for i, row in enumerate(self.judged) if row.readable]
        return (
            [i for i in readable if self.judged[i].fit is not False]
            or readable
            or list(range(len(self.judged)))
        )

    @property
    def best(self) -> int:
        """The position of the readable entry that is judged to cost least, of those fit to be picked."""
        return min(self._eligible, key=lambda i: self.judged[i].penalty)

    @property
    def simplest(self) -> int:
        """The position of the simplest readable entry, of those fit to be picked."""
        return min(self._eligible, key=self._simplicity)

    @property
    def pick(self) -> int:
        """The simplest fit entry that costs at most one standard error more than the best."""
        return min(self._close, key=self._simplicity)

    @property
    def _close(self) -> list[int]:
        return [i for i in self._eligible if self.judged[i].extra <= (self.judged[i].extra_se or 0.0)]

    def _simplicity(self, i: int) -> tuple[int, float]:
        # Of two entries that are equally simple, the better one comes first.
        return self.entries[i].complexity, self.judged[i].penalty

    def reason(self, judges: str) -> str:
        """Say why the pick was chosen; `judges` says what the front was judged on."""
        best, pick = self.entries[self.best], self.entries[self.pick]
        which = " robust one" if self.entries[self.pick].robust and self.asked else ""
        if pick == best:
            return f"the best{which} on {judges}; every simpler one costs more there than chance explains"
        row = self.judged[self.pick]
        return (
            f"the simplest{which} that cannot be told from the best, {best.controller}:"
            f" on {judges} it costs {row.extra:.2g} ± {row.extra_se or 0.0:.2g} more"
        )

    def write(self, run: RunDirectory) -> None:
        """Write the tables of the front into a run; `front.csv` comes last."""
        if self.published:
            write_table(run.path / "published.csv", PublishedEntry, self.published)
        if self.planned:
            write_table(run.path / "planned.csv", Beside, self.planned)
        write_table(run.path / "judged.csv", Judged, self.judged)
        write_table(run.path / "front.csv", Entry, self.entries)

    @classmethod
    def read(cls, run: RunDirectory) -> Self:
        """Read what `write` wrote.

        Raises:
            ClearloopError: A table is missing or damaged.
        """
        entries = read_table(run.path / "front.csv", Entry, infinite=MARGINS)
        judged = read_table(run.path / "judged.csv", Judged)
        if not entries:
            raise ClearloopError(f"{run.path / 'front.csv'}: damaged: it has no rows")
        if [row.controller for row in entries] != [row.controller for row in judged]:
            raise ClearloopError(f"{run.path}: damaged: front.csv and judged.csv name different controllers")
        published, planned = run.path / "published.csv", run.path / "planned.csv"
        front = cls(
            entries,
            judged,
            read_table(published, PublishedEntry) if published.exists() else (),
            read_table(planned, Beside) if planned.exists() else (),
        )
        if not front._close:
            raise ClearloopError(f"{run.path / 'judged.csv'}: damaged: no controller is close to the best")
        scored = {row.controller for row in front.planned}
        named = [row.controller for row in entries] + [row.controller for row in front.published]
        if scored and not scored.issuperset(named):
            raise ClearloopError(f"{planned}: damaged: it does not name every controller")
        return front


def _judge(points: Sequence[Point]) -> tuple[Judged, ...]:
    # All points were judged from the same starts, because every method's generator has the same seed;
    # planners only from the first of them.
    if not points:
        raise ClearloopError("the search found no controller: give it a larger --budget")
    costs = [point.judged.penalties.mean(axis=0) for point in points]  # [N], over members
    readable = [point.controller.readable for point in points]
    fit = [point.kept.robust is True if point.asked else None for point in points]
    eligible = [
        cost for cost, reads, fits in zip(costs, readable, fit, strict=True) if reads and fits is not False
    ]
    eligible = eligible or [cost for cost, reads in zip(costs, readable, strict=True) if reads] or costs
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
                fit[number - 1],
            )
        )
    return tuple(rows)


def score_published(task: Task, surrogate: Surrogate) -> Iterator[tuple[Published, Evaluation, Evaluation]]:
    """Score the controllers that others have published for a plant, on the scoring set like a front.

    Yields:
        Each controller, its score by the judging members of the surrogate, and its score on the plant.
    """
    for known in published_for(task):
        controller = known.load()
        model = evaluate(controller, task, surrogate=surrogate, members=surrogate.judge_members)
        yield known, model, evaluate(controller, task)


# Trust: how far to believe the promise of each controller (`trust.csv`, and "before" in `run.json`). It
# depends on where the controller takes the plant, how far the models differ, and how it compares to the log.

STARTS = 256
_FEWEST = 30  # rows of the log that a comparison with it needs
_SEED = 0  # of the starts and of the region: the same for all controllers

_OUTSIDE = 0.1  # share of the path outside the logged region that gives a warning; 0.01 is usual
_APART = 0.1  # deviation between models that gives a warning, as a share of the promise


@dataclass(frozen=True)
class Trusted:
    """A row of `trust.csv`: how far to believe the promise of one controller."""

    controller: str
    promise: float
    """the penalty on the model, as in the front"""
    outside: float | None
    """the share of its expected path that is outside the logged region"""
    spread: float | None
    """the standard deviation of the promise over the models that judge"""
    from_log: float | None
    """the penalty on the model from rows of the log"""
    margins: str | None = None
    """what it lacks of the margins that the task asks for, or why nothing can be said about them"""
    departure: float | None = None
    """the mean squared difference of its actions from the logged ones, in variances of these; empty for
    planners, and in older runs"""

    @property
    def warnings(self) -> list[str]:
        """Sentences that say why to doubt the promise."""
        found = []
        if self.outside is not None and self.outside > _OUTSIDE:
            found.append(f"{percent(self.outside, 0)} of its path is outside the logged region")
        if self.spread is not None and self.spread > _APART * abs(self.promise):
            found.append(f"the models' estimates of its cost differ by {self.spread:.2g}")
        return found


@dataclass(frozen=True)
class Before:
    """The control before: the log itself, or the law that its actions seem to follow."""

    kind: str
    """"log": the rewards of the log; "law": the law that explains the log, on the model; "none": unknown"""
    penalty: float | None = None
    starts: int = 0
    text: str = ""
    """what the penalty is, in words"""


def examine_front(
    run: RunDirectory, task: Task, batch: Batch, surrogate: Surrogate, points: Sequence[Point]
) -> None:
    """Write `trust.csv`, and into `run.json` what the control before cost.

    Args:
        run: The run, which is marked as running.
        task: The task.
        batch: The data that the run learned from.
        surrogate: The model of the run.
        points: The controllers of the front, in its order.
    """
    logged = LoggedCost(task, batch)
    chosen = _evenly(len(logged.rows))
    compared = Scenarios.logged(task, batch, logged.rows[chosen]) if len(chosen) else None
    rng = np.random.default_rng(_SEED)
    region = Region(task, batch, rng=rng)
    starts = Scenarios.drawn(task, batch, STARTS, rng)
    actions = LoggedActions(task, batch)
    found = []
    for number, point in enumerate(points, 1):
        outside, promise = None, None
        if not point.controller.plans:
            members = surrogate.judge_members
            path = cover(point.controller, task, region, starts=starts, surrogate=surrogate, members=members)
            outside = path.outside
            promise = _on_model(point.controller, task, surrogate, compared) if compared else None
        found.append(
            Trusted(
                f"{number:03d}",
                point.model.penalty,
                outside,
                _spread(point.model),
                promise,
                point.kept.why or None,
                departure(point.controller, actions),
            )
        )
    write_table(run.path / "trust.csv", Trusted, found)
    run.mark("running", before=asdict(_before(task, batch, surrogate, logged.penalties(chosen))))


def read_trust(run: RunDirectory, description: dict[str, Any]) -> tuple[tuple[Trusted, ...], Before]:
    """Read what `examine_front` wrote; older runs have nothing of it.

    Args:
        run: The run.
        description: The content of its `run.json`.

    Raises:
        ClearloopError: A file is damaged.
    """
    file = run.path / "trust.csv"
    try:
        before = TypeAdapter(Before).validate_python(description.get("before", {"kind": "none"}))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(("before", *map(str, problem["loc"])))
        raise ClearloopError(
            f"{run.path / 'run.json'}: damaged: {quoted(place)}: {problem['msg']}"
        ) from error
    return (read_table(file, Trusted) if file.exists() else ()), before


def _evenly(count: int) -> Ints:
    """Choose evenly spaced ones of `count` rows; none if there are too few."""
    if count < _FEWEST:
        return np.zeros(0, np.int64)
    return np.linspace(0, count - 1, min(STARTS, count)).astype(np.int64)


def _before(task: Task, batch: Batch, surrogate: Surrogate, penalties: Floats) -> Before:
    # `penalties` are those of the log, from rows that can be compared.
    if len(penalties):
        text = f"the cost of the logged actions, from {len(penalties)} rows of the log"
        return Before("log", float(penalties.mean()), len(penalties), text)
    too_short = "no stretch of the log is as long as the horizon"
    try:
        explained = explain(task, batch)
        law = explained.controller()
    except ClearloopError:
        text = f"{too_short}, and no law explains its actions, so there is nothing to compare with"
        return Before("none", text=text)
    scoring = Scenarios.drawn(task, batch, STARTS, np.random.default_rng(_SEED))
    if task.start_box is not None:
        scoring = Scenarios.scoring(task)
    penalty = _on_model(law, task, surrogate, scoring)
    shares = ", ".join(
        f"{rough_percent(account.law.explained)} of {account.action}" for account in explained.accounts
    )
    return Before(
        "law", penalty, len(scoring), f"the law that explains the log ({shares}), on the model; {too_short}"
    )


def _on_model(controller: Controller, task: Task, surrogate: Surrogate, starts: Scenarios) -> float:
    members = surrogate.judge_members
    return evaluate(controller, task, surrogate=surrogate, members=members, starts=starts).penalty


def _spread(found: Evaluation) -> float | None:
    means: Floats = found.penalties.mean(axis=1)
    return float(means.std(ddof=1)) if len(means) > 1 else None


def method_rng(seed: int) -> np.random.Generator:
    """Return the generator of every method of a run; `[seed]` drew the batch, `[seed, 1]` the model."""
    return np.random.default_rng([seed, 2])


def judging_starts(run: RunDirectory, task: Task, batch: Batch, n: int = JUDGED_STARTS) -> Scenarios:
    """Return the starts that judged the front of a run, to judge another controller in the same way.

    Args:
        run: The run.
        task: Its task.
        batch: Its batch.
        n: How many starts to draw. No search saw them.
    """
    seed = run.describe()["asked"].get("seed", 0)
    return Scenarios.drawn(task, batch, n, streams(method_rng(seed)).judge)
