"""How a run goes: `progress.csv`, `candidates.csv` while it searches, `timing.csv` when a phase is over."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from time import perf_counter

from clearloop.methods import Candidate
from clearloop.runs.directory import RunDirectory
from clearloop.runs.tables import read_table, write_table


@dataclass(frozen=True)
class Progress:
    """A row of `progress.csv`."""

    method: str
    steps: int
    """of the model, so far"""
    best: float
    """the lowest penalty so far, as the search sees it"""
    latest: float | None
    """the penalty of what the last round found, where that may be higher"""
    front: int
    """how many controllers there are from the simplest to the best"""
    seconds: float
    """of search, so far"""


@dataclass(frozen=True)
class Found:
    """A row of `candidates.csv`: what a search has found so far. The file is gone when it is over."""

    method: str
    complexity: int
    penalty: float
    """as the search sees it"""
    formula: str


@dataclass(frozen=True)
class Timing:
    """A row of `timing.csv`."""

    phase: str
    method: str | None
    seconds: float
    steps: int | None
    """of the model, where they are counted"""


class Ledger:
    """Both tables; they go on where an interrupted run stopped."""

    def __init__(self, run: RunDirectory) -> None:
        self._progress_file, self._timing_file = run.path / "progress.csv", run.path / "timing.csv"
        self._candidates_file = run.path / "candidates.csv"
        self._found: dict[str, list[Found]] = {}
        self.progress: list[Progress] = []
        self.timing: list[Timing] = []
        if self._progress_file.exists():
            self.progress += read_table(self._progress_file, Progress)
        if self._timing_file.exists():
            self.timing += read_table(self._timing_file, Timing)

    def go_back(self, method: str, steps: int) -> None:
        """Forget what is not in the checkpoint, and will happen again."""
        self.progress = [row for row in self.progress if row.method != method or row.steps <= steps]

    def write_progress(self) -> None:
        write_table(self._progress_file, Progress, self.progress)

    def write_candidates(self, method: str, candidates: Sequence[Candidate]) -> None:
        found = [(one.controller, one.penalty) for one in candidates if math.isfinite(one.penalty)]
        self._found[method] = [Found(method, one.complexity, cost, one.summary) for one, cost in found]
        write_table(self._candidates_file, Found, chain.from_iterable(self._found.values()))

    def took(
        self, phase: str, seconds: float, *, method: str | None = None, steps: int | None = None
    ) -> None:
        self.timing = [row for row in self.timing if (row.phase, row.method) != (phase, method)]
        self.timing.append(Timing(phase, method, seconds, steps))
        write_table(self._timing_file, Timing, self.timing)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begun = perf_counter()
        yield
        self.took(name, perf_counter() - begun)
