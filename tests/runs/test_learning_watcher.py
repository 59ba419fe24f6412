"""The watcher of a search, round by round: what people see, what tables hold, when a checkpoint is kept."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearloop.controllers import Equation
from clearloop.methods import Candidate
from clearloop.runs import Interruption, Ledger, News, RunDirectory, learning
from clearloop.runs.directory import read_state, read_table, write_table
from clearloop.runs.learning import Found, PhaseTiming, ProgressRow, TrialRow, Watcher, read_tuning

X = Candidate(Equation(outputs={"u": "2*x"}), 3.0)


class Rounds:
    """A search and its problem, of which each round takes some steps and some seconds."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, budget: int = 1_000, begun: Any = None
    ) -> None:
        self.now, self.spent, self.budget, self.done = 100.0, 0, budget, False
        self.best, self.latest, self.found = 2.0, 2.5, [X]
        self.news: list[News] = []
        monkeypatch.setattr(learning, "perf_counter", lambda: self.now)
        monkeypatch.setattr(learning, "snapshot", lambda _, problem: {"spent": problem.spent})
        self.interruption = Interruption()
        self.ledger = Ledger(RunDirectory(folder))
        self.file = folder / "gprl.safetensors"
        self.watcher = Watcher(
            "gprl", self.file, self.ledger, tell=self.news.append, interruption=self.interruption,
            begun=begun or {}, budget=budget,
        )  # fmt: skip

    @property
    def share(self) -> float:
        return self.spent / self.budget

    def candidates(self) -> list[Candidate]:
        return self.found

    def round(self, spent: int, seconds: float = 0.0) -> None:
        self.spent, self.now = spent, self.now + seconds
        self.watcher(self, self)  # type: ignore[arg-type]

    @property
    def kept(self) -> Any:
        """The checkpoint that there is now."""
        return read_state(self.file)


@pytest.fixture
def rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rounds:
    return Rounds(tmp_path, monkeypatch)


def test_a_budget_has_two_hundred_rows_of_progress(tmp_path: Path, rounds: Rounds) -> None:
    """Rounds in between have none, and show the candidates of the last row."""
    for spent in (0, 4, 5, 6, 9, 12, 995, 996, 1_000):
        rounds.round(spent, seconds=0.5)
    assert [row.steps for row in rounds.ledger.progress] == [0, 5, 12, 995, 1_000]
    first, second = rounds.ledger.progress[:2]
    assert first == ProgressRow("gprl", 0, 2.0, 2.5, 1, 0.5)
    assert second.seconds == 1.5
    assert read_table(tmp_path / "progress.csv", ProgressRow) == tuple(rounds.ledger.progress)
    assert [news.share for news in rounds.news[:3]] == [0.0, 0.004, 0.005]
    assert [news.over for news in rounds.news] == [False] * 8 + [True]


def test_candidates_that_are_only_compared_are_not_shown(rounds: Rounds) -> None:
    rounds.found = [X, Candidate(Equation(outputs={"u": "x"}), 1.0, compared=True)]
    rounds.round(0)
    assert rounds.news[0].candidates == [X]
    assert rounds.ledger.progress[0].front == 1


def test_a_checkpoint_is_kept_every_ten_seconds(rounds: Rounds) -> None:
    rounds.round(10, seconds=9.9)
    assert not rounds.file.exists()
    rounds.round(20, seconds=0.1)
    assert rounds.kept == {"learning": {"spent": 20}, "seconds": 10.0}
    rounds.round(30, seconds=9.0)
    assert rounds.kept["learning"] == {"spent": 20}
    rounds.round(40, seconds=1.0)
    assert rounds.kept == {"learning": {"spent": 40}, "seconds": 20.0}


@pytest.mark.parametrize("done", [True, False])
def test_the_last_round_is_kept_and_timed(tmp_path: Path, rounds: Rounds, done: bool) -> None:
    rounds.done = done
    rounds.round(500 if done else 1_000, seconds=3.0)
    spent = 500 if done else 1_000
    assert rounds.kept == {"learning": {"spent": spent}, "seconds": 3.0}
    assert read_table(tmp_path / "timing.csv", PhaseTiming) == (PhaseTiming("search", "gprl", 3.0, spent),)
    assert rounds.watcher.ended == 103.0
    (news,) = rounds.news
    assert (news.share, news.over, news.best) == (1.0, True, 2.0)


def test_who_is_asked_to_stop_keeps_a_checkpoint_first(rounds: Rounds) -> None:
    rounds.interruption.asked = True
    with pytest.raises(KeyboardInterrupt):
        rounds.round(30, seconds=1.0)
    assert rounds.kept == {"learning": {"spent": 30}, "seconds": 1.0}
    assert rounds.ledger.timing == []  # the search is not over
    assert rounds.watcher.ended == 100.0


def test_a_search_that_goes_on_forgets_what_came_after_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Rounds(tmp_path, monkeypatch)
    before.ledger.progress.append(ProgressRow("lqr", 900, 1.0, 1.0, 1, 5.0))
    for spent in (100, 200, 300):
        before.round(spent)
    before.ledger.write_progress()
    after = Rounds(tmp_path, monkeypatch, begun={"learning": {"spent": 200}, "seconds": 7.0})
    steps = [(row.method, row.steps) for row in after.ledger.progress]
    assert steps == [("lqr", 900), ("gprl", 100), ("gprl", 200)]
    after.round(204, seconds=1.0)
    assert len(after.ledger.progress) == 3  # it has had the row of 200 steps
    after.round(205, seconds=1.0)
    assert after.ledger.progress[-1].seconds == 9.0


def test_a_search_that_begins_anew_forgets_all_of_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Rounds(tmp_path, monkeypatch)
    before.round(0)
    before.ledger.write_progress()
    assert Rounds(tmp_path, monkeypatch).ledger.progress == []


# The tables.


def test_candidates_stand_method_by_method(tmp_path: Path) -> None:
    ledger = Ledger(RunDirectory(tmp_path))
    lost = Candidate(Equation(outputs={"u": "x"}), np.inf)
    ledger.write_candidates("lqr", [X, lost])
    ledger.write_candidates("gprl", [X])
    ledger.write_candidates("lqr", [X, X])
    rows = read_table(tmp_path / "candidates.csv", Found)
    assert [row.method for row in rows] == ["lqr", "lqr", "gprl"]
    assert rows[0] == Found("lqr", X.controller.complexity, 3.0, X.controller.summary)


def test_a_phase_that_is_timed_again_stands_once(tmp_path: Path) -> None:
    ledger = Ledger(RunDirectory(tmp_path))
    ledger.took("search", 1.0, method="lqr", steps=5)
    ledger.took("search", 2.0, method="gprl")
    ledger.took("search", 3.0, method="lqr", steps=7)
    assert Ledger(RunDirectory(tmp_path)).timing == [
        PhaseTiming("search", "gprl", 2.0, None), PhaseTiming("search", "lqr", 3.0, 7),
    ]  # fmt: skip


def test_the_time_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((5.0, 7.5))
    monkeypatch.setattr(learning, "perf_counter", lambda: next(times))
    ledger = Ledger(RunDirectory(tmp_path))
    with ledger.phase("replays"):
        pass
    assert ledger.timing == [PhaseTiming("replays", None, 2.5, None)]


def test_trials_are_read_one_by_one(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    assert read_tuning(run) == []
    rows = [TrialRow(n, "x", "u", 2.0 + n, None, None, k, 1.0 * k, 10.0 * k) for n in (0, 1) for k in (0, 1)]
    write_table(tmp_path / "tuning.csv", TrialRow, rows)
    first, second = read_tuning(run)
    assert (first.first.gain, second.first.gain) == (2.0, 3.0)
    assert (second.errors.tolist(), second.actions.tolist()) == ([0.0, 1.0], [0.0, 10.0])
