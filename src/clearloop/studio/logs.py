"""Logs that are opened in the page: what their columns look like, and a draft of a task file.

It is `clearloop init` for the page. A log stays as it was brought; the page sends the roles of its columns,
and what is still missing comes back in the words of the page.
"""

import math
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
from pydantic import Field

from clearloop.arrays import Floats
from clearloop.data import Report, check, read
from clearloop.data.batch import READERS, write
from clearloop.data.drafting import Plan, StatePlan, Wishes, draft, make_plan, remember, usual_tolerance
from clearloop.data.survey import Column, Guess, Role, guess_roles, survey
from clearloop.errors import ClearloopError, quoted
from clearloop.studio.guarding import CommandMessage, Name, RefusedError, checked_name, inside
from clearloop.task import Task

if TYPE_CHECKING:
    import polars as pl

_Any = TypeVar("_Any")

MOST_COLUMNS = 200  # that the page shows
_PARTS = 80  # of the little picture of a column; each has its least and its largest value

# What the page sends.

_Wished = Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]
_NotNegative = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
_Text = Annotated[str, Field(max_length=200_000)]


class DraftWish(CommandMessage):
    """The body of `POST /api/drafts`: what a person says about a log. Columns go by their own names."""

    log: Name
    name: Name
    """of the task"""
    roles: dict[Name, Role] = Field(default_factory=dict)
    """columns that are not named have the role that was guessed"""
    setpoints: dict[Name, _Wished | Name | None] = Field(default_factory=dict)
    """the setpoint of a state: a number, a column, or null for none; states that are not named have the one
    that was guessed"""
    tolerances: dict[Name, _NotNegative] = Field(default_factory=dict)
    """the error of a state that costs nothing"""
    limits: dict[Name, tuple[_Wished, _Wished]] = Field(default_factory=dict)
    """of actions"""
    velocities: tuple[Name, ...] = ()
    """states whose velocity is derived"""
    integrals: tuple[Name, ...] | None = None
    """states whose errors are summed; null: those for which the log shows a need"""
    dt: _Positive | None = None
    """seconds from step to step; null: as in the log"""
    check: bool = False
    """examine the log with this task, too, which takes longer"""


class TaskText(CommandMessage):
    """The body of `POST /api/checks` and of `POST /api/tasks`: a log, and the text of a task file for it."""

    log: Name
    text: _Text


# The folder of logs.


@dataclass(frozen=True, eq=False)
class OpenLog:
    """A log that was read: its rows, and what its columns may be for."""

    name: str
    frame: "pl.DataFrame"
    guesses: tuple[Guess, ...]

    def describe(self) -> dict[str, Any]:
        """Return the log as JSON values for the page, column by column."""
        return {
            "name": self.name,
            "rows": len(self.frame),
            "columns": [
                {
                    "name": guess.column.name,
                    "unit": guess.column.header.unit,
                    "range": guess.column.range,
                    "numeric": guess.column.kind == "number",
                    "role": guess.role,
                    "of": guess.of and guess.of.name,
                    "why": guess.why,
                    "tolerance": _finite(usual_tolerance(guess.column)),
                    "course": course(guess.column),
                }
                for guess in self.guesses
            ],
        }


def course(column: Column) -> list[float | None]:
    """Return the course of a column as shares of its range: the least and the largest value of each part."""
    values, span = column.values, column.high - column.low
    if not len(values) or not np.isfinite(span):
        return []
    shares = (values - column.low) / (span or 1.0)
    parts = np.array_split(shares, min(_PARTS, len(shares)))
    return [value for part in parts for value in _ends(part)]


def _ends(part: Floats) -> tuple[float | None, float | None]:
    known = part[np.isfinite(part)]
    if not len(known):
        return None, None
    ends = round(float(known.min()), 3), round(float(known.max()), 3)
    return ends if known.argmin() <= known.argmax() else ends[::-1]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


class Logs:
    """The folder `logs` inside the folder of runs: files as they were brought."""

    def __init__(self, runs: Path) -> None:
        """Keep logs below this folder of runs."""
        self.folder = runs / "logs"
        self._latest: tuple[str, float, OpenLog] | None = None
        self._writing = Lock()

    @staticmethod
    def checked(name: str) -> str:
        """Return the name of a log, which is that of a file in one of the formats that can be read.

        Raises:
            ClearloopError: It is another name.
        """
        if Path(checked_name(name, "a log")).suffix.lower() not in READERS:
            raise ClearloopError(f"{name}: a log is a file that ends in {', '.join(READERS)}")
        return name

    def path(self, name: str) -> Path:
        """Return the path of a log.

        Raises:
            ClearloopError: There is no such log.
        """
        path = inside(self.folder, self.checked(name))
        if not path.is_file():
            raise RefusedError(404, f"there is no log {quoted(name)}")
        return path

    def list(self) -> list[dict[str, Any]]:
        """Return the name and the time of every log as JSON values, the newest first."""
        found = []
        for file in self.folder.glob("[A-Za-z0-9]*"):
            try:
                when = datetime.fromtimestamp(self.path(file.name).stat().st_mtime, UTC)
            except (ClearloopError, OSError):
                continue
            found.append({"name": file.name, "when": when.isoformat(timespec="seconds")})
        return sorted(found, key=lambda one: one["when"], reverse=True)

    def take(self, upload: Path, name: str) -> dict[str, Any]:
        """Keep an uploaded file as a log, and return its description as JSON values.

        Args:
            upload: The file, in the folder of logs and with the suffix of the name; it is moved.
            name: The name of the log. If another log has it, this one gets a number.

        Raises:
            ClearloopError: The file cannot be read, or has too many columns.
        """
        try:
            opened = _opened(upload, name)
        except ClearloopError as error:
            raise ClearloopError(str(error).replace(str(upload), name)) from error
        with self._writing:
            free = self._free(name)
            upload.replace(self.folder / free)
        opened = replace(opened, name=free)
        self._latest = (free, self.path(free).stat().st_mtime, opened)
        return opened.describe()

    def _free(self, name: str) -> str:
        stem, suffix, number, free = Path(name).stem, Path(name).suffix, 2, name
        while (self.folder / free).exists():
            free, number = f"{stem}-{number}{suffix}", number + 1
        return free

    def open(self, name: str) -> OpenLog:
        """Return a log that was read; the latest one is remembered.

        Raises:
            ClearloopError: There is no such log, or it cannot be read.
        """
        path = self.path(name)
        latest, changed = self._latest, path.stat().st_mtime
        if latest is None or latest[:2] != (name, changed):
            try:
                latest = self._latest = (name, changed, _opened(path, name))
            except ClearloopError as error:
                raise ClearloopError(str(error).replace(str(path), name)) from error
        return latest[2]

    def copy(self, name: str, to: Path) -> None:
        """Write a log as CSV, which is what batches are; a file that is CSV stays as it is.

        Raises:
            ClearloopError: There is no such log, or it cannot be read or written.
        """
        path = self.path(name)
        if path.suffix.lower() == ".csv":
            shutil.copyfile(path, to)
        else:
            write(self.open(name).frame, to)


def _opened(path: Path, name: str) -> OpenLog:
    frame = read(path)
    if not len(frame):
        raise ClearloopError(f"{path}: has no rows")
    if len(frame.columns) > MOST_COLUMNS:
        raise ClearloopError(
            f"{path}: has {len(frame.columns):,} columns, more than the {MOST_COLUMNS} that the page shows:"
            " keep only those that matter, or use `clearloop init`"
        )
    return OpenLog(name, frame, guess_roles(survey(frame)))


# The draft.


def draft_task(log: OpenLog, wish: DraftWish) -> dict[str, Any]:
    """Draft a task file.

    Args:
        log: The log.
        wish: What a person says about it.

    Returns:
        The draft as JSON values: `missing`, one line, if a person has to say more; else the `text` of the
        task file, the `states` and `actions` that it names, and if the log was to be checked its `report`.
    """
    guesses = _decided(log.guesses, wish)
    if missing := _missing(guesses, wish):
        return {"missing": missing}
    checked_name(wish.name, "a task")
    try:
        plan = make_plan(guesses, _wishes(guesses, wish))
        text = draft(plan, wish.name, log.name)
        task = Task.from_toml(text, source=wish.name)
        report = None
        if wish.check:
            report = check(task, log.frame)
            longer = remember(plan, report)
            if longer is not plan:
                plan, text = longer, draft(longer, wish.name, log.name)
                report = check(Task.from_toml(text, source=wish.name), log.frame)
    except ClearloopError as error:
        return {"missing": re.sub(r"--(?=[a-z])", "", str(error))}  # the page has no options
    return _described(plan, text) | ({"report": _words(report)} if report else {})


def check_task(log: OpenLog, text: str) -> dict[str, Any]:
    """Examine a log with a task file that a person has edited, and return the report as JSON values.

    Raises:
        ClearloopError: The task file is wrong.
    """
    return _words(check(own_task(text), log.frame))


def own_task(text: str) -> Task:
    """Make a task from a text of the page. It may have a plant with equations, but none that runs programs.

    Raises:
        ClearloopError: The text is no task file, or its plant is a program.
    """
    task = Task.from_toml(text, source="task file")
    if task.foreign:
        raise ClearloopError(
            "task file: [plant]: a program cannot be a plant here: start the studio with --task FILE for that"
        )
    return task


def _decided(guesses: tuple[Guess, ...], wish: DraftWish) -> tuple[Guess, ...]:
    """Return the guesses with the roles that a person gives; only setpoints keep the state that is theirs."""
    known = {guess.column.name for guess in guesses}
    for name in wish.roles:
        if name not in known:
            raise ClearloopError(f"no column {quoted(name)} in {wish.log}")
    roles = {guess.column.name: wish.roles.get(guess.column.name, guess.role) for guess in guesses}
    return tuple(
        replace(guess, role=role, of=guess.of if role == "setpoint" else None)
        for guess, role in zip(guesses, roles.values(), strict=True)
    )


def _missing(guesses: tuple[Guess, ...], wish: DraftWish) -> str:
    """Return what a person still has to say, in one line; nothing if that is enough for a draft."""
    roles = [guess.role for guess in guesses]
    if "action" not in roles:
        return "Which column does the controller set? Give it the role “action”."
    if "state" not in roles:
        return "Which columns are measured, and are to be controlled? Give them the role “state”."
    if "time" not in roles and wish.dt is None:
        return "No column tells the time: give one the role “time”, or fill in the seconds from row to row."
    aims = {guess.of.name for guess in guesses if guess.role == "setpoint" and guess.of is not None}
    aims -= {name for name, aim in wish.setpoints.items() if aim is None}
    aims |= {name for name, aim in wish.setpoints.items() if aim is not None}
    states = {guess.column.name for guess in guesses if guess.role == "state"}
    if not aims & states and "reward" not in roles:
        return "What is the goal? Give a state a setpoint: a number, or a column with the role “setpoint”."
    return ""


def _wishes(guesses: tuple[Guess, ...], wish: DraftWish) -> Wishes:
    """Return what `make_plan` takes; wishes about columns that have another role by now are left out."""

    def among(wished: Mapping[str, _Any], role: Role) -> dict[str, _Any]:
        names = {guess.column.name for guess in guesses if guess.role == role}
        return {name: value for name, value in wished.items() if name in names}

    constant = {guess.column.name: guess.column.low for guess in guesses if guess.column.constant}

    def said(aim: float | str | None) -> str:
        value = constant.get(aim, aim) if isinstance(aim, str) else aim
        return "-" if value is None else value if isinstance(value, str) else repr(value)

    setpoints = {name: said(aim) for name, aim in among(wish.setpoints, "state").items()}
    aimed = {guess.of.name for guess in guesses if guess.role == "setpoint" and guess.of is not None}
    aimed = (aimed | setpoints.keys()) - {name for name, aim in setpoints.items() if aim == "-"}
    states = among(dict.fromkeys([*aimed, *wish.velocities, *(wish.integrals or ())]), "state")
    for name, (low, high) in wish.limits.items():
        if not low < high:
            raise ClearloopError(f"the limits of {name}: the lower one must be below the upper one")
    return Wishes(
        setpoints=setpoints,
        tolerances={name: value for name, value in wish.tolerances.items() if name in aimed & states.keys()},
        limits=among(wish.limits, "action"),
        velocities={name: None for name in wish.velocities if name in states},
        integrals=wish.integrals and [name for name in wish.integrals if name in aimed & states.keys()],
        dt=wish.dt,
    )


def _described(plan: Plan, text: str) -> dict[str, Any]:
    return {
        "text": text,
        "dt": plan.dt,
        "horizon": plan.horizon,
        "history": plan.history,
        "pace": plan.pace,
        "states": [_state(state) for state in plan.states],
        "actions": [
            {"column": action.column.name, "name": action.name, "limits": action.limits}
            for action in plan.actions
        ],
    }


def _state(state: StatePlan) -> dict[str, Any]:
    return {
        "column": state.column.name,
        "name": state.name,
        "setpoint": state.setpoint,
        "tolerance": state.tolerance,
        "velocity": state.filter is not None,
        "integral": state.most is not None,
        "external": state.external,
    }


def _words(report: Report) -> dict[str, Any]:
    findings = [{"severity": one.severity, "message": one.message} for one in report.findings]
    return {"verdict": report.verdict, "severity": report.severity, "findings": findings}
