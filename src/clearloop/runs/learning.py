"""The methods of a run, one after the other: each from where it stopped, and none twice."""

import math
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import from_json, save, to_json
from clearloop.data import Batch
from clearloop.evaluation import Evaluation
from clearloop.methods import Candidate, Method, Point, Problem, Result, Search, State, learn, snapshot
from clearloop.methods.learning import JUDGED_STARTS
from clearloop.methods.method import Trial
from clearloop.runs.directory import RunDirectory, read_state, read_table, write_state, write_table
from clearloop.runs.front import Front, PublishedEntry, Scored, method_rng, score_published
from clearloop.surrogate import Surrogate
from clearloop.task import Task

# The result of a method as plain data, so that a run that goes on need not find it again.


def result_to_state(result: Result) -> State:
    return {
        "method": result.method,
        "steps": result.steps,
        "points": [_point_to_state(point) for point in result.points],
        "beside": [_point_to_state(point) for point in result.beside],
    }


def result_from_state(state: State) -> Result:
    points, beside = (tuple(map(_point_from_state, state[name])) for name in ("points", "beside"))
    return Result(state["method"], points, state["steps"], beside)


def _point_to_state(point: Point) -> State:
    return {
        "controller": to_json(point.controller),
        "judged": _evaluation_to_state(point.judged),
        "model": _evaluation_to_state(point.model),
        "system": point.system and _evaluation_to_state(point.system),
    }


def _point_from_state(state: State) -> Point:
    return Point(
        from_json(state["controller"]),
        Evaluation(**state["judged"]),
        Evaluation(**state["model"]),
        state["system"] and Evaluation(**state["system"]),
    )


def _evaluation_to_state(score: Evaluation) -> dict[str, Any]:
    return {"task": score.task, "on": score.on, "penalties": score.penalties, "failed": score.failed}


# The trials of a tuning, as an engineer would want to see them: `tuning.csv`, a row for each step.

FILE = "tuning.csv"


@dataclass(frozen=True)
class TrialRow:
    trial: int
    input: str
    action: str
    gain: float
    """action = gain · (setpoint - state)"""
    period: float | None
    """in steps; empty where it does not oscillate"""
    ratio: float | None
    """of a swing to the one a period before: 1 is sustained"""
    step: int
    error: float
    """setpoint - state"""
    value: float
    """of the action"""


class TrialCourse(NamedTuple):
    """One trial, read back: its first row, and [T] errors and actions."""

    first: TrialRow
    errors: Floats
    actions: Floats


def write_tuning(run: RunDirectory, trials: Sequence[Trial]) -> None:
    write_table(run.path / FILE, TrialRow, _rows(trials))


def read_tuning(run: RunDirectory) -> list[TrialCourse]:
    """Nothing where nothing was tuned."""
    if not (run.path / FILE).exists():
        return []
    groups = (
        list(rows) for _, rows in groupby(read_table(run.path / FILE, TrialRow), key=lambda row: row.trial)
    )
    return [
        TrialCourse(rows[0], np.array([row.error for row in rows]), np.array([row.value for row in rows]))
        for rows in groups
    ]


def _rows(trials: Sequence[Trial]) -> Iterator[TrialRow]:
    for number, trial in enumerate(trials):
        for step, (error, value) in enumerate(zip(trial.errors, trial.actions, strict=False)):
            yield TrialRow(
                number, trial.input, trial.action, trial.gain, trial.period, trial.ratio, step,
                float(error), float(value),
            )  # fmt: skip


# How a run goes: `progress.csv`, `candidates.csv` while it searches, `timing.csv` when a phase is over.


@dataclass(frozen=True)
class ProgressRow:
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
class PhaseTiming:
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
        self.progress: list[ProgressRow] = []
        self.timing: list[PhaseTiming] = []
        if self._progress_file.exists():
            self.progress += read_table(self._progress_file, ProgressRow)
        if self._timing_file.exists():
            self.timing += read_table(self._timing_file, PhaseTiming)

    def go_back(self, method: str, steps: int) -> None:
        """Forget what is not in the checkpoint, and will happen again."""
        self.progress = [row for row in self.progress if row.method != method or row.steps <= steps]

    def write_progress(self) -> None:
        write_table(self._progress_file, ProgressRow, self.progress)

    def write_candidates(self, method: str, candidates: Sequence[Candidate]) -> None:
        found = [(one.controller, one.penalty) for one in candidates if math.isfinite(one.penalty)]
        self._found[method] = [Found(method, one.complexity, cost, one.summary) for one, cost in found]
        write_table(self._candidates_file, Found, chain.from_iterable(self._found.values()))

    def took(
        self, phase: str, seconds: float, *, method: str | None = None, steps: int | None = None
    ) -> None:
        self.timing = [row for row in self.timing if (row.phase, row.method) != (phase, method)]
        self.timing.append(PhaseTiming(phase, method, seconds, steps))
        write_table(self._timing_file, PhaseTiming, self.timing)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begun = perf_counter()
        yield
        self.took(name, perf_counter() - begun)


# Ctrl-C in the middle of a search: it waits for the end of a round, so that nothing is lost.


class Interruption:
    """Whether somebody has asked to stop. Asked a second time, it stops at once."""

    asked = False

    def __call__(self, signal_number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def polite_interruption() -> Iterator[Interruption]:
    """While it lasts, Ctrl-C only asks. It does nothing where Ctrl-C does nothing."""
    interruption = Interruption()
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, interruption)
    try:
        yield interruption
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


# Watching one method's search: news for people, progress for tables, checkpoints for tomorrow.

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


TellNews = Callable[[News], None]


class Watcher:
    """Called after every round. After the last one it has always kept a checkpoint."""

    def __init__(
        self,
        method: str,
        checkpoint: Path,
        ledger: Ledger,
        *,
        tell: TellNews,
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
                ProgressRow(self.method, problem.spent, search.best, search.latest, front, self._seconds)
            )

    def _keep(self, search: Search, problem: Problem) -> None:
        write_state({"learning": snapshot(search, problem), "seconds": self._seconds}, self.checkpoint)
        self.ledger.write_progress()
        self._saved = perf_counter()


def run_method(
    run: RunDirectory,
    method: Method,
    task: Task,
    batch: Batch,
    surrogate: Surrogate,
    *,
    budget: int,
    value: str = "model",
    seed: int,
    ledger: Ledger,
    tell: TellNews,
    interruption: Interruption,
) -> Result:
    """What the method finds; from its checkpoint, if it was begun or even finished before."""
    checkpoint = run.folder("checkpoint") / f"{method.name}.safetensors"
    begun = read_state(checkpoint) if checkpoint.exists() else {}
    if "result" in begun:
        return result_from_state(begun["result"])
    watcher = Watcher(
        method.name, checkpoint, ledger, tell=tell, interruption=interruption, begun=begun, budget=budget
    )

    def watch(search: Search, problem: Problem) -> None:
        if search.trials and (search.done or problem.share >= 1):
            write_tuning(run, search.trials)
        watcher(search, problem)

    result = learn(
        task,
        batch,
        method,
        rng=method_rng(seed),
        budget=budget,
        value=value,
        surrogate=surrogate,
        watch=watch,
        resume=begun.get("learning"),
    )
    ledger.took("judgement", perf_counter() - watcher.ended, method=method.name)
    write_state({"result": result_to_state(result)}, checkpoint)
    if interruption.asked:
        raise KeyboardInterrupt
    return result


def finish(run: RunDirectory, task: Task, surrogate: Surrogate, results: Sequence[Result]) -> Front:
    """Write the controllers and the front; checkpoints are no longer needed."""
    front = Front.of(results, *_published(task, surrogate))
    folder = run.folder("controllers")
    points = [point for result in results for point in result.points]
    for entry, point in zip(front.entries, points, strict=True):
        save(point.controller.for_task(task), folder / f"{entry.controller}.json")
    for controller in (point.controller for result in results for point in result.beside):
        save(controller.for_task(task), folder / f"{controller.name}.json")
    front.write(run)
    judges = f"{JUDGED_STARTS:,} other starts"
    if any(point.judged.on == "batch" for point in points):
        judges += ", by fitted Q evaluation of the batch"
    elif surrogate.track.judge:
        judges += f" and {surrogate.track.judge} other models"
    pick = {"controller": front.entries[front.pick].controller, "reason": front.reason(judges)}
    run.mark("finished", pick=pick)
    (run.path / "candidates.csv").unlink(missing_ok=True)
    for checkpoint in run.path.glob("checkpoint/*.safetensors"):
        checkpoint.unlink()
    with suppress(OSError):  # not there, or somebody keeps more in it
        (run.path / "checkpoint").rmdir()
    return front


def _published(task: Task, surrogate: Surrogate) -> tuple[list[PublishedEntry], list[Scored]]:
    """On the scoring set, like the front."""
    rows, scores = [], []
    for known, model, system in score_published(task, surrogate):
        scores.append(Scored(known.file, False, model, system))
        rows.append(
            PublishedEntry(
                known.file,
                known.title,
                model.penalty,
                system.penalty,
                system.failures,
                known.system is not None,
            )
        )
    return rows, scores
