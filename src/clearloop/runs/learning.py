"""A run carries out its methods here, one after the other; each continues from its last checkpoint.

A method that is finished is not carried out again: its result is kept in its checkpoint.
"""

import math
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
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
from clearloop.evaluation.promise import Interval
from clearloop.methods import Candidate, Method, Point, Problem, Result, Search, State, learn, snapshot
from clearloop.methods.learning import JUDGED_STARTS
from clearloop.methods.method import Trial
from clearloop.methods.robust import Kept
from clearloop.runs.directory import RunDirectory, read_state, read_table, write_state, write_table
from clearloop.runs.front import Front, PublishedEntry, Scored, method_rng, score_published
from clearloop.surrogate import Surrogate
from clearloop.task import Task

# Results as plain data, for checkpoints.


def result_to_state(result: Result) -> State:
    """Convert the result of a method to plain data with arrays."""
    return {
        "method": result.method,
        "steps": result.steps,
        "points": [_point_to_state(point) for point in result.points],
        "beside": [_point_to_state(point) for point in result.beside],
    }


def result_from_state(state: State) -> Result:
    """Convert back what `result_to_state` returned."""
    points, beside = (tuple(map(_point_from_state, state[name])) for name in ("points", "beside"))
    return Result(state["method"], points, state["steps"], beside)


def _point_to_state(point: Point) -> State:
    return {
        "controller": to_json(point.controller),
        "judged": _evaluation_to_state(point.judged),
        "model": _evaluation_to_state(point.model),
        "system": point.system and _evaluation_to_state(point.system),
        "interval": point.interval and list(point.interval),
        "disturbed": point.disturbed,
        "kept": asdict(point.kept),
        "asked": point.asked,
    }


def _point_from_state(state: State) -> Point:
    return Point(
        from_json(state["controller"]),
        Evaluation(**state["judged"]),
        Evaluation(**state["model"]),
        state["system"] and Evaluation(**state["system"]),
        Interval(*interval) if (interval := state.get("interval")) else None,
        state.get("disturbed"),
        Kept(**state.get("kept", {})),
        bool(state.get("asked", False)),
    )


def _evaluation_to_state(score: Evaluation) -> dict[str, Any]:
    return {"task": score.task, "on": score.on, "penalties": score.penalties, "failed": score.failed}


# The trials of a tuning: `tuning.csv`.

FILE = "tuning.csv"


@dataclass(frozen=True)
class TrialRow:
    """A row of `tuning.csv`: one step of one trial with a proportional controller."""

    trial: int
    input: str
    action: str
    gain: float
    """action = gain · (setpoint - state)"""
    period: float | None
    """the period of the oscillation in steps; empty if there is none"""
    ratio: float | None
    """the ratio of a swing to the swing one period before: 1 if the oscillation is sustained"""
    step: int
    error: float
    """setpoint - state"""
    value: float
    """the value of the action"""


class TrialCourse(NamedTuple):
    """One trial, read back: its first row, and its errors and actions, [T] each."""

    first: TrialRow
    errors: Floats
    actions: Floats


def write_tuning(run: RunDirectory, trials: Sequence[Trial]) -> None:
    """Write the trials of a tuning into a run."""
    write_table(run.path / FILE, TrialRow, _rows(trials))


def read_tuning(run: RunDirectory) -> list[TrialCourse]:
    """Read the trials of a run; the list is empty if nothing was tuned."""
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


# The progress of a run: `progress.csv`, `candidates.csv` and `timing.csv`.


@dataclass(frozen=True)
class ProgressRow:
    """A row of `progress.csv`: how far a search is."""

    method: str
    steps: int
    """steps of the model so far"""
    best: float
    """the lowest penalty so far, as the search estimates it"""
    latest: float | None
    """the penalty that the last round found, if it may be higher than the best"""
    front: int
    """how many controllers the front has so far"""
    seconds: float
    """seconds of search so far"""


@dataclass(frozen=True)
class Found:
    """A row of `candidates.csv`: a controller found so far. The file is removed when the run is finished."""

    method: str
    complexity: int
    penalty: float
    """the penalty as the search estimates it"""
    formula: str


@dataclass(frozen=True)
class PhaseTiming:
    """A row of `timing.csv`: how long a phase of the run took."""

    phase: str
    method: str | None
    seconds: float
    steps: int | None
    """steps of the model, if they are counted"""


class Ledger:
    """The tables about the progress of a run; an interrupted run continues them."""

    def __init__(self, run: RunDirectory) -> None:
        """Read the tables of the run, if it has any."""
        self._progress_file, self._timing_file = run.path / "progress.csv", run.path / "timing.csv"
        self._candidates_file = run.path / "candidates.csv"
        self._found: dict[str, list[Found]] = {}
        self.progress: list[ProgressRow] = []
        self.timing: list[PhaseTiming] = []
        if self._progress_file.exists():
            self.progress += read_table(self._progress_file, ProgressRow, infinite=("best", "latest"))
        if self._timing_file.exists():
            self.timing += read_table(self._timing_file, PhaseTiming)

    def go_back(self, method: str, steps: int) -> None:
        """Forget the progress of a method after its checkpoint, which has counted `steps` model steps."""
        self.progress = [row for row in self.progress if row.method != method or row.steps <= steps]

    def write_progress(self) -> None:
        """Write `progress.csv`."""
        write_table(self._progress_file, ProgressRow, self.progress)

    def write_candidates(self, method: str, candidates: Sequence[Candidate]) -> None:
        """Write `candidates.csv` with the present candidates of a method; those of other methods stay."""
        found = [(one.controller, one.penalty) for one in candidates if math.isfinite(one.penalty)]
        self._found[method] = [Found(method, one.complexity, cost, one.summary) for one, cost in found]
        write_table(self._candidates_file, Found, chain.from_iterable(self._found.values()))

    def took(
        self, phase: str, seconds: float, *, method: str | None = None, steps: int | None = None
    ) -> None:
        """Write into `timing.csv` how long a phase took; an earlier entry of the phase is replaced."""
        self.timing = [row for row in self.timing if (row.phase, row.method) != (phase, method)]
        self.timing.append(PhaseTiming(phase, method, seconds, steps))
        write_table(self._timing_file, PhaseTiming, self.timing)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure how long the block takes, and write it into `timing.csv`."""
        begun = perf_counter()
        yield
        self.took(name, perf_counter() - begun)


# Ctrl-C during a search: the search stops at the end of its round, so that nothing is lost.


class Interruption:
    """A signal handler that notes the first Ctrl-C; the second one interrupts at once.

    Attributes:
        asked: True if the user has asked to stop.
    """

    asked = False

    def __call__(self, signal_number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def polite_interruption() -> Iterator[Interruption]:
    """Let Ctrl-C only ask for a stop within the block.

    It changes nothing outside the main thread, or where Ctrl-C already has another meaning.
    """
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


# Searches: each is watched, for the progress that people see, for the tables, and for checkpoints.

CHECKPOINT_SECONDS = 10.0
PROGRESS_ROWS = 200  # of `progress.csv`, for a whole budget


class News(NamedTuple):
    """The news that a search reports after each round."""

    method: str
    share: float
    """the share of the budget that is spent"""
    best: float
    """the lowest penalty so far, as the search estimates it"""
    candidates: Sequence[Candidate]
    """the front so far, as of the last row of `progress.csv`"""
    over: bool
    """True if the search is over and the judgement begins"""


TellNews = Callable[[News], None]


class Watcher:
    """A function that is called after every round of a search; after the last round it keeps a checkpoint."""

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
        """Prepare to watch a search.

        Args:
            method: The name of the method.
            checkpoint: The file of its checkpoint.
            ledger: The tables about the progress of the run.
            tell: Called with the news after each round.
            interruption: Says whether the user has asked to stop.
            begun: The checkpoint that the search continues from, or nothing.
            budget: Steps of the model that the search may use.
        """
        self.method, self.checkpoint, self.ledger = method, checkpoint, ledger
        self.tell, self.interruption = tell, interruption
        spent = begun["learning"]["spent"] if begun else -1
        ledger.go_back(method, spent)
        self._row = PROGRESS_ROWS * spent // budget
        self._candidates: Sequence[Candidate] = ()
        self._saved = perf_counter()
        self._started: float = self._saved - begun.get("seconds", 0.0)
        self.ended = self._saved
        """the time when the search was over"""

    def __call__(self, search: Search, problem: Problem) -> None:
        over = search.done or problem.spent >= problem.budget
        self._note(search, problem, over)
        share = 1.0 if over else problem.share
        self.tell(News(self.method, share, search.best, self._candidates, over))
        if over:  # before the checkpoint: a run that continues from there is not watched again
            self.ledger.took("search", self._seconds, method=self.method, steps=problem.spent)
        if over or self.interruption.asked or perf_counter() - self._saved >= CHECKPOINT_SECONDS:
            self._keep(search, problem)
        if over:
            self.ended = perf_counter()
        if self.interruption.asked:
            raise KeyboardInterrupt

    @property
    def _seconds(self) -> float:
        # Seconds of search, including those before an interruption.
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
        # The table first: `Ledger.go_back` drops rows after the checkpoint, and nobody adds those before it.
        self.ledger.write_progress()
        write_state({"learning": snapshot(search, problem), "seconds": self._seconds}, self.checkpoint)
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
    robust: bool = True,
    stay: float = 0.0,
    seed: int,
    ledger: Ledger,
    tell: TellNews,
    interruption: Interruption,
) -> Result:
    """Carry out one method of a run, from its checkpoint if there is one.

    Args:
        run: The run.
        method: The method with its settings.
        task: The task.
        batch: The data to learn from.
        surrogate: The model to search on.
        budget: Steps of the model that the search may use.
        value: What the search minimises: "model" or "batch"; see `Request`.
        robust: Whether the search asks for robustness.
        stay: How near to the log controllers must stay, from 0 to 1.
        seed: The seed of the run.
        ledger: The tables about its progress.
        tell: Called with the news after each round.
        interruption: Says whether the user has asked to stop.

    Returns:
        What the method found.

    Raises:
        KeyboardInterrupt: The user has asked to stop; a checkpoint is there.
        UnsuitableError: The method cannot give a controller for this task.
    """
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
        robust=robust,
        stay=stay,
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
    """Write the controllers and the front, mark the run as finished, and remove its checkpoints.

    Args:
        run: The run.
        task: Its task.
        surrogate: Its model.
        results: The result of each method.

    Returns:
        The front that was written.
    """
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
    run.sweep()
    return front


def _published(task: Task, surrogate: Surrogate) -> tuple[list[PublishedEntry], list[Scored]]:
    # Like the front, on the scoring set.
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
