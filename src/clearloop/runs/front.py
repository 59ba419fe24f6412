"""The front of a run: controllers of all its methods, what each costs, and which one to take."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from clearloop.errors import ClearloopError
from clearloop.methods import Point, Result
from clearloop.runs.directory import RunDirectory
from clearloop.runs.planned import Beside, Scored, beside_planners
from clearloop.runs.tables import read_table, write_table


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
class Known:
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
    published: tuple[Known, ...] = ()
    planned: tuple[Beside, ...] = ()
    """where there are planners: all of the front, and what was published, from the planners' starts"""

    @classmethod
    def of(
        cls, results: Sequence[Result], published: Sequence[Known] = (), others: Sequence[Scored] = ()
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
            write_table(run.path / "published.csv", Known, self.published)
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
            read_table(published, Known) if published.exists() else (),
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
        se = float(extra.std(ddof=1) / np.sqrt(n)) if n > 1 else None
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
