"""A bench carries out its experiments here, and writes the paper's table."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from clearloop.arrays import Floats
from clearloop.bench.engines import Call, Engine, Failure
from clearloop.bench.experiment import Store, Work, experiment, prepare
from clearloop.controllers import from_json, save
from clearloop.errors import ClearloopError
from clearloop.files import whole_file
from clearloop.methods import BUDGETS, Method
from clearloop.methods.method import Column, find_method
from clearloop.numbers import estimate, percent, signed_estimate
from clearloop.registry import METHODS
from clearloop.runs import Request, RunDirectory
from clearloop.runs.directory import settings_of, write_table
from clearloop.surrogate import TRACKS
from clearloop.task import Task


@dataclass(frozen=True)
class Row:
    """A row of `table.csv`. Unknown figures are empty, and so are all figures of a failed experiment."""

    method: str
    track: str
    seed: int
    penalty_model: float | None = None
    penalty_system: float | None = None
    failures_system: float | None = None
    complexity: int | None = None


class Scores(NamedTuple):
    """The scores of the controller that one experiment found."""

    row: Row
    model: Floats
    """penalties by start on the model, [N]"""
    system: Floats | None
    """penalties by start on the plant, [N]"""


def read_scores(outcome: Mapping[str, Any], track: str, seed: int) -> list[Scores]:
    """Read the scores in what `experiment` returned.

    Args:
        outcome: What `experiment` returned.
        track: The track of the experiment.
        seed: Its seed in the table.
    """
    found = []
    for method, score in outcome["scores"].items():
        model = np.array(score["model"])
        system = None if score["system"] is None else np.array(score["system"])
        row = Row(
            method,
            track,
            seed,
            float(model.mean()),
            None if system is None else float(system.mean()),
            score["failures"],
            score["complexity"],
        )
        found.append(Scores(row, model, system))
    return found


class Mean(NamedTuple):
    """A mean over experiments."""

    mean: float
    error: float
    """the standard error of the mean; NaN for one experiment"""

    @classmethod
    def of(cls, values: Sequence[float | None]) -> "Mean":
        """Compute the mean of the values that are known; it is NaN if there are none."""
        known = np.array([value for value in values if value is not None])
        if not known.size:
            return cls(np.nan, np.nan)
        error = known.std(ddof=1) / np.sqrt(known.size) if known.size > 1 else np.nan
        return cls(float(known.mean()), float(error))

    def __str__(self) -> str:
        if np.isnan(self.mean):
            return ""
        return estimate(self.mean, self.error)


class Difference(NamedTuple):
    """The difference between the penalties of two methods, from the same starts."""

    mean: float
    half_width: float
    """half the width of the 95 % interval of the difference"""

    @classmethod
    def of(cls, worse: Sequence[Floats], better: Sequence[Floats]) -> "Difference":
        """Compare two methods.

        The variance has two parts: which starts were drawn, and how the searches went.

        Args:
            worse: The penalties by start, [N], of each experiment of one method.
            better: Those of the other method. If one was scored from fewer starts, only these are used.
        """
        n = min(len(costs) for costs in (*worse, *better))
        one, other = (np.stack([costs[:n] for costs in some]) for some in (worse, better))
        by_start = one.mean(axis=0) - other.mean(axis=0)
        variance = by_start.var(ddof=1) / n
        variance += sum(_variance_of_searches(costs) for costs in (one, other))
        return cls(float(by_start.mean()), 1.96 * float(np.sqrt(variance)))

    @property
    def certain(self) -> bool:
        """True if the 95 % interval does not contain 0."""
        return abs(self.mean) > self.half_width

    def __str__(self) -> str:
        return signed_estimate(self.mean, self.half_width)


def _variance_of_searches(costs: Floats) -> float:
    """Compute the variance of the mean over experiments; the costs are [E, N]."""
    means = costs.mean(axis=1)
    return float(means.var(ddof=1) / means.size) if means.size > 1 else 0.0


def columns(names: Iterable[str] = ()) -> dict[str, Column]:
    """Return the columns of the table by name, in the order of the paper's table; others come after those.

    Args:
        names: Names of further columns, which no method need describe.
    """
    found = [column for method in METHODS.working() for column in method.columns]
    known = {column.name: column for column in sorted(found, key=lambda one: one.place or len(found) + 1)}
    return {name: Column(name, name.upper()) for name in names} | known


def paper_methods() -> list[str]:
    """Return the methods of the paper's table, from the left."""
    names = {column: method.name for method in METHODS.working() for column in method.columns}
    return list(dict.fromkeys(names[column] for column in columns().values() if column.place))


def ordered(methods: Sequence[str]) -> list[str]:
    """Sort names of columns as in the paper's table; others come after those."""
    known = list(columns())
    place = {name: number for number, name in enumerate(known)}
    return sorted(dict.fromkeys(methods), key=lambda name: place.get(name, len(known)))


class Comparison(NamedTuple):
    """A method compared with the next better one."""

    method: str
    better: str
    """the next better method"""
    difference: Difference


def ranking(scores: Sequence[Scores]) -> list[Comparison]:
    """Compare each method with the next better one, on the plant if there is one; the best come first."""
    costs: dict[str, list[Floats]] = {}
    for one in scores:
        costs.setdefault(one.row.method, []).append(one.model if one.system is None else one.system)
    means = {method: np.mean([cost.mean() for cost in some]) for method, some in costs.items()}
    names = sorted(costs, key=means.__getitem__)
    return [
        Comparison(worse, better, Difference.of(costs[worse], costs[better]))
        for better, worse in pairwise(names)
    ]


# The document for people, `table.md`.


def document(
    title: str,
    tracks: Mapping[str, Sequence[Scores]],
    published: Mapping[str, Sequence[Scores]],
    failed: Mapping[str, Failure],
    *,
    in_paper: bool,
) -> str:
    """Write the results of a bench as Markdown.

    Args:
        title: The title of the document.
        tracks: The scores of the experiments of each track.
        published: The scores of the paper's controllers on our models, of each track.
        failed: What was given up, by the key of the work.
        in_paper: Show the figures of the paper, too.
    """
    parts = [f"# {title}", ""]
    for track, scores in tracks.items():
        parts += [f"## Track {track}", ""]
        if scores:
            parts += [*_table(scores, in_paper), "", *_starts(scores), "", *_ranking(scores), ""]
        else:
            parts += ["No experiment was finished.", ""]
        if published[track]:
            parts += ["Published controllers, from the same starts:", "", *_published(published[track]), ""]
    if failed:
        parts += ["## What failed", ""]
        parts += [f"- {key}, {failure.reason}" for key, failure in failed.items()] + [""]
    return "\n".join(parts)


def _table(scores: Sequence[Scores], in_paper: bool) -> Iterable[str]:
    # A column for each method, and the model above the plant, as in the paper.
    methods = ordered([one.row.method for one in scores])
    known = columns(methods)
    rows = {method: [one.row for one in scores if one.row.method == method] for method in methods}

    def line(name: str, cells: Iterable[str]) -> str:
        return f"| {name} | {' | '.join(cells)} |"

    yield line("penalty", (known[method].title for method in methods))
    yield line("---", ("---" for _ in methods))
    yield line("model", (str(Mean.of([row.penalty_model for row in rows[method]])) for method in methods))
    if in_paper:
        yield line("model, paper", (known[method].model for method in methods))
    yield line("plant", (str(Mean.of([row.penalty_system for row in rows[method]])) for method in methods))
    if in_paper:
        yield line("plant, paper", (known[method].system for method in methods))
    failures = (Mean.of([row.failures_system for row in rows[method]]).mean for method in methods)
    yield line("failures", ("" if np.isnan(share) else percent(share) for share in failures))
    complexities = (np.mean([row.complexity for row in rows[method]]) for method in methods)
    yield line("complexity", (f"{size:.0f}" for size in complexities))
    yield line("experiments", (str(len(rows[method])) for method in methods))


def _starts(scores: Sequence[Scores]) -> Iterable[str]:
    counts = sorted({len(one.model) for one in scores})
    yield (
        "Means ± standard errors over experiments. Penalties are means over the first"
        f" {counts[-1]:,} points of the scoring set."
    )
    if len(counts) > 1:
        few = ", ".join(ordered([one.row.method for one in scores if len(one.model) == counts[0]]))
        yield f"Those of {few} are means over the first {counts[0]}. From these starts, on the plant:"
        yield ""
        yield "| method | plant |"
        yield "|---|---|"
        for method in ordered([one.row.method for one in scores]):
            costs = [one.system for one in scores if one.row.method == method]
            yield f"| {method} | {Mean.of([None if c is None else c[: counts[0]].mean() for c in costs])} |"


def _ranking(scores: Sequence[Scores]) -> Iterable[str]:
    compared = ranking(scores)
    if not compared:
        return
    yield "The methods from the best to the worst, each with the 95 % interval of its difference to the next"
    yield "better one, from the same starts:"
    yield ""
    yield "| method | costs more than | by | certain |"
    yield "|---|---|---|---|"
    for one in compared:
        certain = "yes" if one.difference.certain else "no"
        yield f"| {one.method} | {one.better} | {one.difference} | {certain} |"


def _published(scores: Sequence[Scores]) -> Iterable[str]:
    yield "| controller | model | plant | failures |"
    yield "|---|---|---|---|"
    for title in dict.fromkeys(one.row.method for one in scores):
        rows = [one.row for one in scores if one.row.method == title]
        model = Mean.of([row.penalty_model for row in rows])
        system, failures = rows[0].penalty_system, rows[0].failures_system
        yield f"| {title} | {model} | {system or 0:.3f} | {percent(failures or 0)} |"


# The work of a bench, and how far it is.

OF_MODEL = 0.5  # minutes of one core for a model, in the unit of `Method.effort`

Tell = Callable[[str, Any], None]
"""Called with the key of a piece of work and its outcome."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A request for experiments with several methods, on one track or on both."""

    request: Request
    seeds: int
    """the number of experiments of each method"""
    fresh: bool
    """True if each experiment has its own batch and model; otherwise all share one, as in the paper"""

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON values."""
        more = {"seeds": self.seeds, "batch": "fresh" if self.fresh else "shared"}
        return self.request.to_dict() | more

    @classmethod
    def from_dict(cls, asked: dict[str, Any]) -> Self:
        """Make a bench from what `to_dict` returned.

        Raises:
            ClearloopError: Something is missing or wrong.
        """
        request = Request.from_dict(asked)
        seeds, batch = asked.get("seeds"), asked.get("batch")
        known = batch in ("shared", "fresh") and request.track in ("both", *TRACKS)
        if not (isinstance(seeds, int) and seeds > 0 and known):
            raise ClearloopError("run.json: damaged: it does not say what was asked")
        return cls(request=request, seeds=seeds, fresh=batch == "fresh")

    @property
    def tracks(self) -> tuple[str, ...]:
        """The names of the tracks."""
        return tuple(TRACKS) if self.request.track == "both" else (self.request.track,)

    def models(self, task: Task) -> list[Work]:
        """Return the work that prepares the batches and models."""
        table = task.model_dump(mode="json", exclude_none=True)
        first = self.request.seed
        return [
            Work(task=table, track=track, seed=seed, settings={}, budget=self.request.budget)
            for track in self.tracks
            for seed in range(first, first + (self.seeds if self.fresh else 1))
        ]

    def experiments(self, task: Task) -> list[Work]:
        """Return the work of the experiments, track by track.

        The slowest methods come first, so that none of them is left working alone at the end.
        """
        budget = self.request.budget
        methods = sorted(self.request.methods, key=lambda method: effort(type(method), budget), reverse=True)
        models = self.models(task)
        return [
            replace(
                model,
                method=method.name,
                settings={**settings_of(method), **method.tabled},
                robust=self.request.robust,
                number=number,
            )
            for track in self.tracks
            for method in methods
            for model in models
            if model.track == track
            for number in range(1 if self.fresh else self.seeds)
        ]


def effort(method: type[Method], budget: int) -> float:
    """Estimate how long a search takes, compared with others."""
    return method.effort * (budget / BUDGETS["standard"] if method.grows else 1.0)


@dataclass(frozen=True)
class Course:
    """A bench under way: its pieces of work, and which of them are done."""

    bench: Bench
    task: Task
    store: Store
    failed: dict[str, Failure] = field(default_factory=dict)
    """the pieces of work that were given up since the program was started, by their keys"""

    @property
    def total(self) -> int:
        """The number of pieces of work."""
        return len(self._works)

    @cached_property
    def _works(self) -> list[Work]:
        return [*self.bench.models(self.task), *self.bench.experiments(self.task)]

    @property
    def done(self) -> int:
        """The number of pieces of work that are done."""
        return sum(self.store.has(work.key) for work in self._works)

    @property
    def share(self) -> float:
        """The share of the whole effort that is done or given up, from 0 to 1."""
        efforts = {
            work.key: effort(find_method(work.method), work.budget) if work.method else OF_MODEL
            for work in self._works
        }
        over = [one for key, one in efforts.items() if self.store.has(key) or key in self.failed]
        return sum(over) / sum(efforts.values())

    def go(self, engine: Engine, tell: Tell) -> None:
        """Do all work that is not done yet: first the models, then the searches on them."""
        models = [work for work in self.bench.models(self.task) if not self.store.has(work.key)]
        self._do({work.key: Call(prepare, (work,)) for work in models}, engine, tell)
        calls, parcel = {}, cache(self.store.model)
        for work in self.bench.experiments(self.task):
            model = work.of_model.key
            if model in self.failed:
                self.failed[work.key] = Failure(f"no model: {self.failed[model].reason}")
            elif not self.store.has(work.key):
                calls[work.key] = Call(experiment, (work, parcel(model)))
        self._do(calls, engine, tell)

    def _do(self, calls: dict[str, Call], engine: Engine, tell: Tell) -> None:
        for key, outcome in engine.run(calls):
            if isinstance(outcome, Failure):
                self.failed[key] = outcome
            else:
                self.store.keep(key, outcome)
            tell(key, outcome)

    def scores(self) -> Iterator[Scores]:
        """Yield the scores of the experiments that are done."""
        for work in self.bench.experiments(self.task):
            if self.store.has(work.key):
                yield from read_scores(self.store.scores(work.key), work.track, work.seed + work.number)

    def published(self) -> Iterator[Scores]:
        """Yield the scores of the paper's controllers on each model."""
        for work in self.bench.models(self.task):
            for known in self.store.published(work.key) if self.store.has(work.key) else []:
                scores = {known["title"]: {**known, "complexity": None}}
                yield from read_scores({"scores": scores}, work.track, work.seed)

    def rows(self) -> list[Row]:
        """Return the rows of `table.csv`, sorted by track, method and seed."""
        rows = [one.row for one in self.scores()]
        rows += [
            Row(work.method, work.track, work.seed + work.number)
            for work in self.bench.experiments(self.task)
            if work.key in self.failed
        ]
        methods = ordered([row.method for row in rows])
        return sorted(rows, key=lambda row: (row.track, methods.index(row.method), row.seed))


# The files that a bench writes.


@dataclass(frozen=True)
class Timing:
    """A row of a bench's `timing.csv`."""

    method: str
    track: str
    seed: int
    seconds: float
    steps: int
    """steps of the model"""


def write_tables(run: RunDirectory, course: Course) -> None:
    """Write `table.csv`, `table.md`, `timing.csv` and the controllers that were found."""
    write_table(run.path / "table.csv", Row, course.rows())
    timing, folder = [], run.folder("controllers")
    for work in course.bench.experiments(course.task):
        if not course.store.has(work.key):
            continue
        outcome = course.store.scores(work.key)
        seed = work.seed + work.number
        timing.append(Timing(work.method, work.track, seed, outcome["seconds"], outcome["steps"]))
        for name, score in outcome["scores"].items():
            controller = from_json(score["controller"])
            if controller.plans:  # whose model is not beside it, as in a run
                controller = controller.model_copy(update={"run": f"../models/{work.of_model.key}"})
            save(controller, folder / f"{work.track}-{name}-{seed}.json")
    write_table(run.path / "timing.csv", Timing, timing)
    _write(run.path / "table.md", _document(course))


def _document(course: Course) -> str:
    found, known = list(course.scores()), list(course.published())
    tracks = course.bench.tracks
    return document(
        f"{course.task.name}: {course.bench.seeds} experiments of each method",
        {track: [one for one in found if one.row.track == track] for track in tracks},
        {track: [one for one in known if one.row.track == track] for track in tracks},
        course.failed,
        in_paper=bool(known),
    )


def _write(path: Path, text: str) -> None:
    with whole_file(path) as file:
        file.write(text.encode())
