"""A controller runs beside a plant: what it would do, and whether the plant is still the one of the log.

`Shadow` takes samples one after the other and keeps only counts and a short past, so that it can run for
months. Its one file is `shadow.csv`, a row for each sample; after a stop it goes on from there.
"""

import csv
import io
import itertools
import json
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.controllers.file import to_json
from clearloop.controllers.memory import Derivation
from clearloop.data import Batch
from clearloop.diagnosis.robustness import Region
from clearloop.errors import ClearloopError
from clearloop.exports import DOUBLE, lower
from clearloop.exports.guard import routine_of
from clearloop.exports.safety import safe_actions
from clearloop.expression import Expression, variables
from clearloop.expression.nodes import READ_LIMIT
from clearloop.files import check_ends, held, read_json, whole_file
from clearloop.numbers import percent
from clearloop.plants.plant import task_window
from clearloop.runs.feeds import Sample
from clearloop.surrogate import Surrogate
from clearloop.surrogate.quality import errors_of, segments
from clearloop.surrogate.steps import Steps
from clearloop.task import Task
from clearloop.verification.supervision import Supervisor

LATE = 1.5  # control intervals between two samples from which on samples are missing
AHEAD = 10  # steps that the model looks ahead
Row = tuple[list[float], list[float], list[float]]
"""The states, the applied actions, and the setpoints that are columns of a log."""

SURE = 0.95  # share of the errors on held-out data within the promised interval
RECENT, FEWEST, LEFT = 100, 20, 0.25  # predictions that count, the fewest, and the share of a plant that left
BLOCK, DELAY = 200, 20.0  # samples that are compared with the model at once, and seconds that they may wait
WARM_UP = 10_000  # rows from which the memory of a controller is made again after a restart
POINTS = 1_000  # of the figure
MOST_OLDER = 10  # samples in a row that are older than the latest, after which a person is told
MOST_EVENTS = 200  # that are remembered; all of them are in the files
LONGEST_ROW = 65_536  # bytes

FLAGS = ("gap", "guard", "outside")
_MARKS = ("gap", "outside", "kept")  # columns that hold 0 or 1


class Happening(NamedTuple):
    """Something that a person should know, and its time."""

    time: float
    text: str


class Promise:
    """What the model of a run promises: how far its predictions are off on data that it did not learn from.

    A prediction starts from measured states and takes the actions that were really applied, so it says
    whether the plant still answers as it did in the log, whoever controls it.
    """

    def __init__(self, surrogate: Surrogate, batch: Batch) -> None:
        """Take the limits of the errors from the held-out part of the batch of the run."""
        self.task, self._surrogate = surrogate.task, surrogate
        self.ahead = min(AHEAD, self.task.horizon)
        held_out = surrogate.split(batch)[1]
        errors = self._errors(held_out)
        if len(errors) < FEWEST:  # its episodes are shorter
            self.ahead = 1
            errors = self._errors(held_out)
        each = np.quantile(errors, SURE, axis=0)
        each = np.maximum(each, 1e-9 * np.ptp(batch.states, axis=0) + 1e-300)
        together = float(np.quantile((errors / each).max(axis=1), SURE))
        self.limits: Floats = np.asarray(each * max(together, 1e-9))
        """[S] the errors that 95 % of the predictions on held-out data do not exceed in any state"""
        self.overlap = -(-task_window(self.task) // self.ahead) * self.ahead
        """rows before the first prediction, which give it its past"""

    def _errors(self, batch: Batch) -> Floats:
        """Return the errors [n, S] after `ahead` steps, of the median judging member."""
        steps = Steps.of(self.task, batch)
        begins, lengths = segments(batch.transitions().episode, steps, self.ahead)
        begins = begins[lengths >= self.ahead]
        found = [
            errors_of(self._surrogate, member, self.task, steps, begins, self.ahead)[:, -1]
            for member in self._surrogate.judge_members
        ]
        return np.asarray(np.median(found, axis=0), np.float64)

    def kept(self, rows: Sequence[Row]) -> list[bool]:
        """Return whether the plant was within the promised interval, for each prediction from these rows.

        Predictions are of the row `overlap + ahead`, of that `ahead` rows later, and so on.
        """
        columns = self.task.columns
        states, actions, aims = (np.array(part, np.float64) for part in zip(*rows, strict=True))
        batch = Batch(
            columns=columns,
            states=states,
            actions=actions,
            episodes=np.zeros(len(rows), np.int64),
            terminal=np.zeros(len(rows), np.bool_),
            rewards=np.zeros(len(rows)) if self.task.reward_expression is None else None,
            setpoints=aims if columns.setpoints else None,
        )
        errors = self._errors(batch)[self.overlap // self.ahead :]
        return [bool(one) for one in np.all(errors <= self.limits, axis=1).tolist()]


@dataclass
class Counts:
    """What has been seen so far; all of it can be counted again from `shadow.csv`."""

    samples: int = 0
    gaps: int = 0
    missing: float = 0.0
    """seconds in gaps"""
    guarded: int = 0
    outside: int = 0
    first: float = math.nan
    last: float = math.nan
    differences: dict[str, list[float]] = field(default_factory=dict)
    """for each action: how many differences, their sum, the sum of their squares, the largest one"""
    guards: dict[str, int] = field(default_factory=dict)
    """how often each guard fired"""
    left: int = 0
    """how often the plant left the promise"""
    checked: int = 0
    """predictions that were compared"""
    kept: int = 0
    """predictions within the interval, for the worst state of each"""

    def gap(self, seconds: float) -> None:
        """Count a gap of so many seconds."""
        self.gaps += 1
        self.missing += seconds

    def differ(self, action: str, difference: float) -> None:
        """Count a difference between the action that was applied and that of the controller."""
        found = self.differences.setdefault(action, [0.0, 0.0, 0.0, 0.0])
        found[0] += 1
        found[1] += difference
        found[2] += difference * difference
        found[3] = max(found[3], abs(difference))


class Course:
    """A course of any length in at most so many points: neighbours are merged when there are too many."""

    def __init__(self, most: int = POINTS) -> None:
        self._most, self._each, self._count = most, 1, 0
        self.points: list[tuple[float, Floats, Floats]] = []
        """time, lowest and highest values [columns] of each point"""

    def add(self, time: float, values: list[float]) -> None:
        """Add the values [columns] of a sample."""
        row = np.array(values)
        if self._count % self._each == 0:
            if len(self.points) >= self._most:
                self._merge()
            self.points.append((time, row, row))
        else:
            when, low, high = self.points[-1]
            self.points[-1] = when, np.fmin(low, row), np.fmax(high, row)
        self._count += 1

    def _merge(self) -> None:
        pairs = zip(self.points[::2], self.points[1::2], strict=False)
        self.points = [(a[0], np.fmin(a[1], b[1]), np.fmax(a[2], b[2])) for a, b in pairs]
        self._each *= 2


class Block:
    """The exported block of a controller, with its guard, while somebody else chooses the actions."""

    def __init__(self, controller: Controller) -> None:
        self._controller, self._law = controller, lower(controller)
        roles = routine_of(controller, guard=True).inputs
        self._given = {one.role: one.default or 0.0 for one in roles if one.role}
        self.begin_again()

    def begin_again(self) -> None:
        """Forget the past."""
        self._supervisor = Supervisor(self._controller, self._law, DOUBLE)

    def step(
        self, states: Mapping[str, float], aims: Mapping[str, float]
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Return the actions that the block gives, and why inputs cannot be trusted, by their names."""
        inputs = {}
        for one in self._law.inputs:
            table, name = (aims if one.variable.part == "setpoint" else states), one.variable.name
            inputs[one.variable] = table.get(name, math.nan if one.default is None else one.default)
        found = self._supervisor.step(inputs, self._given)
        names = [output.action.name for output in self._law.outputs]
        wrong = self._supervisor.wrong.items()
        reasons = {str(variable): _reason(signs, inputs[variable]) for variable, signs in wrong}
        return dict(zip(names, found.actions, strict=True)), reasons

    def applied(self, actions: Mapping[str, float]) -> None:
        """Let these be the actions of the latest step."""
        self._supervisor.applied(actions)


def _reason(signs: set[str], value: float) -> str:
    """Return why a value cannot be trusted, by what the guard of a block found."""
    if "outside" in signs:
        large = "too large" if abs(value) > READ_LIMIT else "out of range"
        return large if math.isfinite(value) else "no number"
    return "too fast" if "gradient" in signs else "frozen"


def needed_states(controller: Controller, task: Task) -> set[str]:
    """Return the states that a controller must be given: those that it reads and that nobody computes."""
    found: set[str] = set()
    open_names = {variable.name for _, variable in controller.variables()} | {*controller.follows}
    while open_names:
        name = open_names.pop()
        if name in task.derived:
            inner = {variable.name for variable in variables(task.derived[name])} - found
            open_names |= inner - {name}
            found.add(name)
        elif name in task.states:
            found.add(name)
    return found - {*task.derived}


def computable(task: Task, given: Set[str]) -> dict[str, Expression]:
    """Return the formulas of the derived states that follow from what is given.

    A server need not have a node for a state that the controller does not read.

    Args:
        task: The task.
        given: The states that every sample has.
    """
    known, found = {*given, *task.action_names}, {}
    for name, formula in task.derived.items():
        known.add(name)  # it may read its own past
        if {variable.name for variable in variables(formula)} <= known:
            found[name] = formula
        elif name not in given:
            known.remove(name)
    return found


class Shadow:
    """The controller beside the plant.

    Args:
        controller: The controller, with the limits and units of the task.
        task: The task.
        folder: The folder of `shadow.csv`, which is made if needed.
        region: The region of the log's states, if there is a log.
        promise: What the model of a run promises, if there is one.

    Raises:
        ClearloopError: The folder holds the file of another controller or task, another process writes it, or
            it cannot be written.
    """

    def __init__(
        self,
        controller: Controller,
        task: Task,
        folder: Path,
        *,
        region: Region | None = None,
        promise: Promise | None = None,
    ) -> None:
        self.controller, self.task, self.folder = controller, task, folder
        self.region, self.promise = region, promise
        self.counts = Counts()
        self.course = Course()
        self.events: deque[Happening] = deque(maxlen=MOST_EVENTS)
        self.shown: dict[str, float] = {}
        """the actions of the controller at the latest sample"""
        self.seen: dict[str, float] = {}
        """the values of the latest sample"""
        self.told = 0
        """how many events there were"""
        self.has_left = False
        """whether the plant is outside the promise now"""
        self._older = 0
        """samples in a row that were older than the latest"""
        self._recent: deque[bool] = deque(maxlen=RECENT)
        self._block: list[tuple[float, Row]] = []
        self._twin = Block(controller)
        self._columns = [
            "time",
            *task.state_names,
            *(f"{name}.setpoint" for name in task.setpoints),
            *task.action_names,
            *(f"{name}.shadow" for name in task.action_names),
            *FLAGS,
        ]
        self._begin_again()
        self.file, self._checks = folder / "shadow.csv", folder / "promise.csv"
        with ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                opened.enter_context(held(folder))
                self._claim()
                self._resume()
                self._out = opened.enter_context(self._opened(self.file, self._columns))
                self._out_checks = opened.enter_context(self._opened(self._checks, ["time", "kept"]))
            except OSError as error:
                raise ClearloopError(f"{error.filename or folder}: {error.strerror or error}") from error
            self._files = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._files:
            self.settle()

    def _begin_again(self) -> None:
        """Forget the past, because the next sample does not follow the last one."""
        self._twin.begin_again()
        self._derivation: Derivation | None = None

    def take(self, sample: Sample) -> bool:
        """Take a sample, and say what the controller would have done.

        Args:
            sample: The sample. One that is not newer than the latest is left out.

        Returns:
            Whether the sample was new.
        """
        if not sample.time > self.counts.last and not math.isnan(self.counts.last):
            self._leave_out(sample.time)
            return False
        self._older = 0
        gap = sample.time - self.counts.last > LATE * self.task.dt
        if gap:
            self.settle()
            self._begin_again()
            self.counts.gap(sample.time - self.counts.last - self.task.dt)
            self._tell(sample.time, f"{sample.time - self.counts.last:.3g} s without a sample")
        reasons = self._step(sample)
        outside = self._is_outside()
        self._count(sample, reasons, outside)
        self._write(self._out, self._cells(sample, gap, reasons, outside))
        self._look_ahead(sample.time, reasons)
        return True

    def _leave_out(self, time: float) -> None:
        """Tell if sample after sample is older than the latest: a clock was set back, or was wrong for once.

        After a restart it is usual, because a file is read from its beginning.
        """
        late = self.counts.last - time
        if self.counts.samples > self.resumed and late > 0:
            self._older += 1
            if self._older == MOST_OLDER:
                self._tell(self.counts.last, f"left out: samples that are {late:.3g} s older than the latest")

    def _step(self, sample: Sample) -> dict[str, str]:
        """Run the controller on a sample, and return why values cannot be trusted."""
        task = self.task
        fixed = {name: aim for name, aim in task.setpoints.items() if isinstance(aim, float)}
        given = {name: sample.values.get(f"{name}.setpoint", math.nan) for name in task.setpoints}
        aims = {**fixed, **self.controller.setpoint}
        aims |= {
            name: aim for name, aim in given.items() if math.isfinite(aim) or name in task.logged_setpoints
        }
        states = {name: sample.values[name] for name in task.state_names if name in sample.values}
        applied = {name: _plausible(sample.values.get(name, math.nan)) for name in task.action_names}
        self.shown, reasons = self._twin.step(states, aims)
        if not reasons:
            if self._derivation is None:
                formulas = computable(task, states.keys())
                self._derivation = Derivation(formulas, task.action_names, task.past_actions)
            states = self._derivation.complete(states, aims)
            known = {name: v if math.isfinite(v) else self.shown[name] for name, v in applied.items()}
            self._twin.applied(known)
            self._derivation.acted(known)
        self.seen = {**dict.fromkeys(task.state_names, math.nan), **states, **applied}
        self.seen |= {f"{name}.setpoint": aims.get(name, math.nan) for name in task.setpoints}
        return reasons

    def _is_outside(self) -> bool:
        """Tell whether the latest states are outside the region of the log."""
        states = np.array([[self.seen[name] for name in self.task.state_names]])
        if self.region is None or not np.isfinite(states).all():
            return False
        return bool(self.region.distances(states)[0] > self.region.distance)

    def _count(self, sample: Sample, reasons: Mapping[str, str], outside: bool) -> None:
        counts = self.counts
        counts.samples += 1
        counts.guarded += bool(reasons)
        counts.outside += outside
        counts.first = sample.time if math.isnan(counts.first) else counts.first
        counts.last = sample.time
        for name, reason in reasons.items():
            if f"{name}: {reason}" not in counts.guards:
                self._tell(sample.time, f"guard: {name} is {reason}")
            counts.guards[f"{name}: {reason}"] = counts.guards.get(f"{name}: {reason}", 0) + 1
        pairs = [(self.seen[name], self.shown.get(name, math.nan)) for name in self.task.action_names]
        for name, (applied, own) in zip(self.task.action_names, pairs, strict=True):
            if math.isfinite(applied) and math.isfinite(own) and not reasons:
                counts.differ(name, own - applied)
        self.course.add(sample.time, [value for pair in pairs for value in pair])

    def _cells(self, sample: Sample, gap: bool, reasons: Mapping[str, str], outside: bool) -> list[str]:
        values = [self.seen[name] for name in self._columns[1 : -len(FLAGS) - len(self.task.actions)]]
        values += [self.shown.get(name, math.nan) for name in self.task.action_names]
        guard = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        cells = [repr(sample.time), *("" if math.isnan(value) else repr(value) for value in values)]
        return [*cells, str(int(gap)), guard, str(int(outside))]

    def _look_ahead(self, time: float, reasons: Mapping[str, str]) -> None:
        """Keep a row for the comparison with the model, and compare when there are enough."""
        if self.promise is None:
            return
        states = [self.seen[name] for name in self.task.state_names]
        actions = [self.seen[name] for name in self.task.action_names]
        aims = [self.seen[f"{name}.setpoint"] for name in self.task.logged_setpoints]
        if reasons or not all(map(math.isfinite, (*states, *actions, *aims))):
            self.settle()
            return
        self._block.append((time, (states, actions, aims)))
        ahead = self.promise.ahead
        size = ahead * max(1, int(min(BLOCK, DELAY / self.task.dt)) // ahead)
        if len(self._block) > size + self.promise.overlap:
            self._compare()
            self._block = self._block[-self.promise.overlap - 1 :]

    def settle(self) -> None:
        """Compare with the model what has not been compared, because the next sample does not follow it."""
        if self.promise is not None and len(self._block) > self.promise.overlap + self.promise.ahead:
            self._compare()
        self._block.clear()

    def _compare(self) -> None:
        assert self.promise is not None  # noqa: S101 - or there would be no block
        predicted = self._block[self.promise.overlap + self.promise.ahead :: self.promise.ahead]
        found = self.promise.kept([row for _, row in self._block])
        for (time, _), kept in zip(predicted, found, strict=True):
            self._judge(time, kept)
            self._write(self._out_checks, [repr(time), str(int(kept))])

    def _judge(self, time: float, kept: bool) -> None:
        self.counts.checked += 1
        self.counts.kept += kept
        self._recent.append(kept)
        off = 1 - sum(self._recent) / len(self._recent)
        if not self.has_left and len(self._recent) >= FEWEST and off > LEFT:
            self.has_left = True
            self.counts.left += 1
            share = percent(off, 0)
            self._tell(time, f"the plant leaves the promise: {share} of the last predictions are off")
        elif self.has_left and off < LEFT / 2:
            self.has_left = False
            self._tell(time, "the plant is back in the promise")

    def tell(self, text: str) -> None:
        """Keep something that happened now, such as a lost connection."""
        self._tell(self.counts.last, text)

    def _tell(self, time: float, text: str) -> None:
        self.events.append(Happening(time, text))
        self.told += 1

    def command(self) -> float:
        """Return the only action as it may be written to a plant: guarded, and within its limits.

        Raises:
            ClearloopError: There are several actions, or the action has no limits.
        """
        (name, *others) = self.task.action_names
        if others or name not in self.controller.limits:
            raise ClearloopError("--write is for a single action with limits")
        value = self.shown.get(name, math.nan)
        if not math.isfinite(value):
            value = safe_actions(self.controller)[name]
        return self.controller.range_of(name).limited(value)

    # The files.

    @staticmethod
    def _write(file: BinaryIO, cells: Sequence[str]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        file.write(text.getvalue().encode())

    @classmethod
    def _opened(cls, path: Path, columns: Sequence[str]) -> BinaryIO:
        """Open a table to append rows, each of which reaches the system at once."""
        file = path.open("ab", buffering=0)
        if not path.stat().st_size:
            cls._write(file, columns)
        return file

    def _claim(self) -> None:
        """Write down whose folder this is, or check it."""
        note = self.folder / "shadow.json"
        table = {
            "controller": sha256(to_json(self.controller).encode()).hexdigest(),
            "task": self.task.name,
            "columns": self._columns,
        }
        if note.exists():
            if read_json(note) != table:
                raise ClearloopError(
                    f"{self.folder}: holds the shadow of another controller or task; choose another --out"
                )
        elif self.file.exists():
            raise ClearloopError(
                f"{self.folder}: holds a shadow.csv without its shadow.json; choose another --out"
            )
        else:
            with whole_file(note) as file:
                file.write(json.dumps(table, indent=2).encode() + b"\n")

    def _resume(self) -> None:
        """Count again what is in the files, and make the memory of the controller from the latest rows."""
        latest: deque[dict[str, str]] = deque(maxlen=WARM_UP)
        for row in _rows_of(self.file, self._columns):
            if row["gap"] == "1":
                before = self.counts.last
                self.counts.gap(float(row["time"]) - before - self.task.dt)
                self._tell(float(row["time"]), f"{float(row['time']) - before:.3g} s without a sample")
                latest.clear()
            self.seen = {name: _plausible(_number(row[name])) for name in self._columns[1 : -len(FLAGS)]}
            self.shown = {name: self.seen[f"{name}.shadow"] for name in self.task.action_names}
            parts = (part.partition(": ") for part in row["guard"].split("; ") if part)
            sample = Sample(float(row["time"]), {})
            self._count(sample, {name: reason for name, _, reason in parts}, row["outside"] == "1")
            latest.append(row)
        given = [name for name in self._columns[1 : -len(FLAGS)] if any(row[name] for row in latest)]
        for row in latest:
            self._step(Sample(float(row["time"]), {name: _number(row[name]) for name in given}))
        for row in _rows_of(self._checks, ["time", "kept"]):
            self._judge(float(row["time"]), row["kept"] == "1")
        self.resumed = self.counts.samples


def _plausible(value: float) -> float:
    """Return a value that was measured; NaN for one beyond all that a plant has."""
    return value if abs(value) <= READ_LIMIT else math.nan


def _number(cell: str) -> float:
    return float(cell) if cell else math.nan


def _rows_of(path: Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of a table, whose last line is removed if a process was killed while it wrote it."""
    if not path.exists():
        return
    check_ends(path)
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        file.seek(max(size - LONGEST_ROW, 0))
        tail = file.read()
        if tail and not tail.endswith(b"\n"):
            file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)
    with path.open(encoding="utf-8", newline="") as text:
        rows = csv.DictReader(text, strict=True)
        for number in itertools.count(1):
            try:
                row = next(rows, None)
                sound = row is None or _is_sound(row, columns)
            except (csv.Error, UnicodeDecodeError):
                sound = False
            if not sound:
                raise ClearloopError(f"{path}: damaged: row {number:,}; choose another --out")
            if row is None:
                return
            yield row


def _is_sound(row: Mapping[str, str], columns: Sequence[str]) -> bool:
    """Tell whether the cells of a row are what was written: a time, marks that are 0 or 1, numbers."""
    if None in row or None in row.values() or [*row] != [*columns]:
        return False
    try:
        numbers = [_number(cell) for name, cell in row.items() if name not in ("guard", *_MARKS)]
    except ValueError:
        return False
    marks = [cell for name, cell in row.items() if name in _MARKS]
    return math.isfinite(numbers[0]) and all(mark in ("0", "1") for mark in marks)
