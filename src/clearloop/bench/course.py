"""A bench under way: which pieces of work there are, and which are still to be done."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Self

from clearloop.bench.engines import Call, Engine, Failure
from clearloop.bench.experiment import Work, experiment, prepare
from clearloop.bench.store import Store
from clearloop.bench.table import Row, Scores, ordered, read_scores
from clearloop.errors import ClearloopError
from clearloop.methods import BUDGETS
from clearloop.runs import Request
from clearloop.runs.request import settings_of
from clearloop.surrogate import TRACKS
from clearloop.task import Task

# Minutes of one core, on the cart-pole: what grows with the budget, here for `standard`, and what does not.
SEARCHING = {"fgprl": 6.5, "fpsrl": 4.0, "gprl": 4.0, "psonn": 3.5}
FIXED = {"model": 0.5, "nfq": 3.0, "pso-p": 1.6, "pid": 0.3, "lqr": 0.1}

Tell = Callable[[str, Any], None]
"""Called with the key of a piece of work, and what it gave."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Methods × experiments, on one track or on both."""

    request: Request
    seeds: int
    """experiments of each method"""
    fresh: bool
    """each experiment has its own batch and model; if not, all share one, as in the paper"""

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        more = {"seeds": self.seeds, "batch": "fresh" if self.fresh else "shared"}
        return self.request.to_dict() | more

    @classmethod
    def from_dict(cls, asked: dict[str, Any]) -> Self:
        """What `to_dict` gave."""
        request = Request.from_dict(asked)
        seeds, batch = asked.get("seeds"), asked.get("batch")
        known = batch in ("shared", "fresh") and request.track in ("both", *TRACKS)
        if not (isinstance(seeds, int) and seeds > 0 and known):
            raise ClearloopError("run.json: damaged: it does not say what was asked")
        return cls(request=request, seeds=seeds, fresh=batch == "fresh")

    @property
    def tracks(self) -> tuple[str, ...]:
        return tuple(TRACKS) if self.request.track == "both" else (self.request.track,)

    def models(self, task: Task) -> list[Work]:
        table = task.model_dump(mode="json", exclude_none=True)
        first = self.request.seed
        return [
            Work(task=table, track=track, seed=seed, settings={}, budget=self.request.budget)
            for track in self.tracks
            for seed in range(first, first + (self.seeds if self.fresh else 1))
        ]

    def experiments(self, task: Task) -> list[Work]:
        """Track by track, the slowest methods first: none works alone at the end."""
        budget = self.request.budget
        methods = sorted(self.request.methods, key=lambda method: effort(method.name, budget), reverse=True)
        models = self.models(task)
        return [
            replace(model, method=method.name, settings=settings_of(method), number=number)
            for track in self.tracks
            for method in methods
            for model in models
            if model.track == track
            for number in range(1 if self.fresh else self.seeds)
        ]


def effort(method: str, budget: int) -> float:
    """About how long it takes, compared with others."""
    return FIXED.get(method) or SEARCHING.get(method, SEARCHING["gprl"]) * budget / BUDGETS["standard"]


@dataclass(frozen=True)
class Course:
    bench: Bench
    task: Task
    store: Store
    failed: dict[str, Failure] = field(default_factory=dict)
    """what was given up, in this sitting"""

    @property
    def total(self) -> int:
        """Pieces of work."""
        return len(self._works)

    @cached_property
    def _works(self) -> list[Work]:
        return [*self.bench.models(self.task), *self.bench.experiments(self.task)]

    @property
    def done(self) -> int:
        return sum(self.store.has(work.key) for work in self._works)

    @property
    def share(self) -> float:
        """Of all effort that is over, from 0 to 1."""
        efforts = {work.key: effort(work.method or "model", work.budget) for work in self._works}
        over = [one for key, one in efforts.items() if self.store.has(key) or key in self.failed]
        return sum(over) / sum(efforts.values())

    def go(self, engine: Engine, tell: Tell) -> None:
        """All that is not done yet: first the models, then the searches on them."""
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
        for work in self.bench.experiments(self.task):
            if self.store.has(work.key):
                yield from read_scores(self.store.scores(work.key), work.track, work.seed + work.number)

    def published(self) -> Iterator[Scores]:
        """The controllers of the paper, on each model."""
        for work in self.bench.models(self.task):
            for known in self.store.published(work.key) if self.store.has(work.key) else []:
                scores = {known["title"]: {**known, "complexity": None}}
                yield from read_scores({"scores": scores}, work.track, work.seed)

    def rows(self) -> list[Row]:
        """Of `table.csv`: by track, method and seed."""
        rows = [one.row for one in self.scores()]
        rows += [
            Row(work.method, work.track, work.seed + work.number)
            for work in self.bench.experiments(self.task)
            if work.key in self.failed
        ]
        methods = ordered([row.method for row in rows])
        return sorted(rows, key=lambda row: (row.track, methods.index(row.method), row.seed))
