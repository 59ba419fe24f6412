"""How far to believe each controller of a front: where it goes, how far models differ, what was before it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from clearloop.controllers import Controller, Planner
from clearloop.data import Batch
from clearloop.data.cells import Floats, Ints
from clearloop.diagnosis.coverage import Region, cover
from clearloop.errors import ClearloopError
from clearloop.evaluation import Evaluation, evaluate
from clearloop.evaluation.logged import LoggedCost
from clearloop.explanation import explain
from clearloop.methods import Point
from clearloop.plants.scenarios import Scenarios
from clearloop.runs.directory import RunDirectory
from clearloop.runs.tables import read_table, write_table
from clearloop.surrogate import Surrogate
from clearloop.task import Task

STARTS = 256
FEWEST = 30  # rows of the log to compare with it
SEED = 0  # of the starts and of the region: the same for all controllers

OUTSIDE = 0.1  # share of the path outside the logged region, from which on to beware; 0.01 is usual
APART = 0.1  # deviation between models, as a share of the promise


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
        if self.outside is not None and self.outside > OUTSIDE:
            found.append(f"{100 * self.outside:.0f} % of its path is outside the logged region")
        if self.spread is not None and self.spread > APART * abs(self.promise):
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
    rng = np.random.default_rng(SEED)
    region = Region(task, batch, rng=rng)
    starts = Scenarios.drawn(task, batch, STARTS, rng)
    found = []
    for number, point in enumerate(points, 1):
        outside, promise = None, None
        if not isinstance(point.controller, Planner):
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
    if count < FEWEST:
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
    scoring = Scenarios.drawn(task, batch, STARTS, np.random.default_rng(SEED))
    if task.start_box is not None:
        scoring = Scenarios.scoring(task)
    penalty = _on_model(law, task, surrogate, scoring)
    shares = ", ".join(
        f"{100 * account.law.explained:.3g} % of {account.action}" for account in explained.accounts
    )
    return Before("law", penalty, len(scoring), f"the law of the log ({shares}), on the model; {too_short}")


def _on_model(controller: Controller, task: Task, surrogate: Surrogate, starts: Scenarios) -> float:
    members = surrogate.judge_members
    return evaluate(controller, task, surrogate=surrogate, members=members, starts=starts).penalty


def _spread(found: Evaluation) -> float | None:
    means: Floats = found.penalties.mean(axis=1)
    return float(means.std(ddof=1)) if len(means) > 1 else None
