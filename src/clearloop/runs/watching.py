"""Watching one method's search: news for people, progress for tables, checkpoints for tomorrow."""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from clearloop.methods import Candidate, Problem, Search, State, snapshot
from clearloop.runs.checkpoint import write_state
from clearloop.runs.interruption import Interruption
from clearloop.runs.ledger import Ledger, Progress

CHECKPOINT_SECONDS = 10.0
PROGRESS_ROWS = 200  # for a whole budget


class News(NamedTuple):
    method: str
    share: float
    """of the budget that is spent"""
    best: float
    """the lowest penalty so far, as the search sees it"""
    candidates: Sequence[Candidate]
    """as of the last row of `progress.csv`"""
    over: bool
    """the search is; the judgement begins"""


Tell = Callable[[News], None]


class Watcher:
    """Called after every round. After the last one it has always kept a checkpoint."""

    def __init__(
        self,
        method: str,
        checkpoint: Path,
        ledger: Ledger,
        *,
        tell: Tell,
        interruption: Interruption,
        begun: State,
        budget: int,
    ) -> None:
        """`begun`: the checkpoint of an earlier sitting, or nothing."""
        self.method, self.checkpoint, self.ledger = method, checkpoint, ledger
        self.tell, self.interruption = tell, interruption
        spent = begun["learning"]["spent"] if begun else -1
        ledger.go_back(method, spent)
        self._row = PROGRESS_ROWS * spent // budget
        self._candidates: Sequence[Candidate] = ()
        self._saved = perf_counter()
        self._started: float = self._saved - begun.get("seconds", 0.0)
        self.ended = self._saved
        """when the search was over"""

    def __call__(self, search: Search, problem: Problem) -> None:
        over = search.done or problem.spent >= problem.budget
        self._note(search, problem, over)
        share = 1.0 if over else problem.share
        self.tell(News(self.method, share, search.best, self._candidates, over))
        if over or self.interruption.asked or perf_counter() - self._saved >= CHECKPOINT_SECONDS:
            self._keep(search, problem)
        if over:
            self.ledger.took("search", self._seconds, method=self.method, steps=problem.spent)
            self.ended = perf_counter()
        if self.interruption.asked:
            raise KeyboardInterrupt

    @property
    def _seconds(self) -> float:
        """Of search, in all sittings."""
        return perf_counter() - self._started

    def _note(self, search: Search, problem: Problem, over: bool) -> None:
        row = PROGRESS_ROWS * problem.spent // problem.budget
        if row > self._row or over:
            self._row = row
            self._candidates = [one for one in search.candidates() if not one.compared]
            self.ledger.write_candidates(self.method, self._candidates)
            front = len(self._candidates)
            self.ledger.progress.append(
                Progress(self.method, problem.spent, search.best, search.latest, front, self._seconds)
            )

    def _keep(self, search: Search, problem: Problem) -> None:
        write_state({"learning": snapshot(search, problem), "seconds": self._seconds}, self.checkpoint)
        self.ledger.write_progress()
        self._saved = perf_counter()
