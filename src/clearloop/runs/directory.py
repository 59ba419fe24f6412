"""A run directory holds all files of a run; its `run.json` says what was asked and how far the run came.

Files appear whole or not at all. Below the class `RunDirectory` follow the formats of its tables and
checkpoints, the `Request` that a run carries out, and the checks before a run is continued.
"""

import csv
import io
import json
import math
import platform
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, NonNegativeInt, TypeAdapter, ValidationError

import clearloop
from clearloop.data import Batch
from clearloop.errors import ClearloopError, quoted
from clearloop.files import LOCK, check_ends, held, read_json, read_text, whole_file
from clearloop.methods import Method
from clearloop.methods.method import find_method
from clearloop.task import Task

Status = Literal["running", "interrupted", "refused", "finished"]
_VERSIONS = ("clearloop", "numpy", "numba", "jax")
_BATCH = "batch.parquet"
# Files that a run writes one after the other; a new run in the same directory must not find old ones.
_LEFT_OVER = (
    _BATCH,
    "front.csv",
    "judged.csv",
    "planned.csv",
    "candidates.csv",
    "published.csv",
    "progress.csv",
    "tuning.csv",
    "timing.csv",
    "trust.csv",
    "quality.json",
    "model.png",
    "replays.png",
    "trajectories.png",
    "report.html",
    "card-*.html",
    "card-*.pdf",
    "surrogate/surrogate.json",
    "controllers/[0-9]*.json",
    "controllers/*-last.json",
    "checkpoint/*.safetensors",
)


@dataclass(frozen=True)
class RunDirectory:
    """The directory of one run, which need not exist yet."""

    path: Path

    def check_free(self, *, replacing: str = "") -> None:
        """Check that a new run may use this directory.

        It may if the directory does not exist, is empty, or holds a run that was refused or that may be
        replaced.

        Args:
            replacing: A command of clearloop whose earlier run may be replaced.

        Raises:
            ClearloopError: The directory holds something else.
        """
        path = self.path
        try:
            found = list(path.iterdir()) if path.exists() else []
        except OSError as error:
            raise ClearloopError(f"{path}: cannot be a run directory: {error.strerror}") from error
        if not self.exists and any(one.name != LOCK and one.suffix != ".partial" for one in found):
            raise ClearloopError(f"{path}: holds files that do not belong to a run; choose another --out")
        if not self.exists or self.describe()["status"] == "refused":
            return
        if (earlier := self.describe()["asked"].get("command")) != replacing:
            raise ClearloopError(
                f"{path}: already holds a run of {quoted(f'clearloop {earlier}')}; look at it with"
                f" 'clearloop show {path}', continue it with --resume, or choose another --out"
            )

    @contextmanager
    def claimed(self, *, replacing: str = "") -> Iterator[None]:
        """Lock the directory for a new run; see `check_free` and `held`."""
        self.check_free(replacing=replacing)  # before a lock file is made in a folder that is not ours
        with self.held():
            self.check_free(replacing=replacing)  # another process may have been faster
            yield

    @property
    def exists(self) -> bool:
        """True if the directory holds a run."""
        return (self.path / "run.json").exists()

    def describe(self) -> dict[str, Any]:
        """Read `run.json`.

        Raises:
            ClearloopError: The directory holds no run, or the file is damaged.
        """
        file = self.path / "run.json"
        if self.path.is_dir() and not file.exists():
            raise ClearloopError(f"{self.path}: holds no run: it has no run.json")
        description: dict[str, Any] = read_json(file)
        try:
            _Description.model_validate_json(json.dumps(description), strict=True)
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(map(str, problem["loc"])) or "the file"
            raise ClearloopError(f"{file}: damaged: {quoted(place)}: {problem['msg']}") from error
        if missing := _missing(description):
            raise ClearloopError(f"{file}: damaged: it does not say {', '.join(sorted(missing))}")
        return description

    def task(self) -> Task:
        """Return the task as it was when the run began, without an FMU or a package: programs of others."""
        if {"fmu", "package"} & (tables := self.describe()["task"]).get("plant", {}).keys():
            tables = {**tables, "plant": None, "signals": {}, "exploration": None}
        return Task.from_dict(tables, source=str(self.path / "run.json"))

    def begin(self, task: Task, batch: Batch, asked: Mapping[str, Any], **findings: Any) -> None:
        """Start a new run: write `run.json` and a copy of the batch, and remove files of an earlier run.

        Args:
            task: The task, which is written out in full.
            batch: The data that the run learns from.
            asked: The request as JSON values; see `Request.to_dict`.
            findings: JSON values that stand beside them in `run.json`.
        """
        self.folder(".")
        self._remove(*_LEFT_OVER)  # before run.json: --resume must not find files of the earlier run
        self.write_json("run.json", {"status": "running", **_description(task, batch, asked), **findings})
        batch.save(self.path / _BATCH)

    def batch(self, task: Task, make: Callable[[], Batch], source: str = "") -> Batch:
        """Load the run's copy of its batch; a run that was killed before it wrote the copy gets it now.

        Args:
            task: The task of the run.
            make: Makes the batch again.
            source: Where that batch comes from, for the message; the copy itself if empty.

        Raises:
            ClearloopError: The batch is not the one that the run was started with.
        """
        copy, fingerprint = self.path / _BATCH, self.describe()["data"]["fingerprint"]
        kept = copy.exists()
        batch = Batch.load(copy, task) if kept else make()
        check_data(self, fingerprint, batch, source or str(copy))
        if not kept:
            batch.save(copy)
        return batch

    def held(self) -> AbstractContextManager[None]:
        """Lock the directory, because two processes would write the same files.

        Raises:
            ClearloopError: Another process holds the lock.
        """
        return held(self.folder("."))

    def go_on(self, **findings: Any) -> None:
        """Continue a run that was interrupted, or that was killed while it wrote a file."""
        self.sweep()
        self.mark("running", **findings)

    def sweep(self) -> None:
        """Remove half-written files that a killed process left, and the checkpoints of a finished run."""
        self._remove("**/.*.partial")
        if self.describe()["status"] == "finished":
            self._remove("candidates.csv", "checkpoint/*.safetensors")
            with suppress(OSError):  # it does not exist, or a user keeps other files in it
                (self.path / "checkpoint").rmdir()

    def _remove(self, *patterns: str) -> None:
        for pattern in patterns:
            for file in self.path.glob(pattern):
                file.unlink()

    def mark(self, status: Status, **findings: Any) -> None:
        """Write the status of the run into `run.json`, and further findings beside it."""
        self.write_json("run.json", {**self.describe(), "status": status, **findings})

    def write_json(self, name: str, document: Any) -> None:
        """Write JSON values into a file of the run."""
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        with whole_file(self.path / name) as file:
            file.write(text.encode() + b"\n")

    def folder(self, name: str) -> Path:
        """Return the path of a folder in the run, and make the folder if needed."""
        path = self.path / name
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ClearloopError(f"{path}: cannot be created: {error.strerror or error}") from error
        return path


# The content of `run.json`, as far as others rely on it; tasks and methods have checks of their own.

_ABSENT: Any = None  # the default of a part that may be left out, but that may not be null


class _Reason(BaseModel):
    code: str
    message: str


class _Action(BaseModel):
    unit: str = _ABSENT


class _TaskTable(BaseModel):
    name: str
    actions: Annotated[dict[str, _Action], Field(min_length=1)]


class _Asked(BaseModel):
    command: str
    task: str = _ABSENT
    data: list[str] = _ABSENT
    methods: dict[str, dict[str, Any]] = _ABSENT
    budget: int = _ABSENT
    track: str = _ABSENT
    value: str = _ABSENT
    seed: NonNegativeInt = _ABSENT


class _Data(BaseModel):
    fingerprint: str
    summary: str


class _Pick(BaseModel):
    controller: str
    reason: str


class _Description(BaseModel):
    status: Status
    begun: str = _ABSENT
    asked: _Asked
    data: _Data
    versions: dict[str, str]
    task: _TaskTable
    pick: _Pick = _ABSENT
    doubts: Annotated[list[_Reason], Field(min_length=1)] = _ABSENT
    left_out: dict[str, str] = _ABSENT
    before: dict[str, Any] = _ABSENT


def _missing(description: dict[str, Any]) -> set[str]:
    """Find the parts that a run of its command and status must have."""
    asked, missing = description["asked"], set()
    if asked["command"] in ("learn", "demo", "bench"):
        missing |= {"task", "methods", "budget", "track", "seed"} - asked.keys()
    if description["status"] == "refused":
        missing |= {"doubts"} - description.keys()
    if description["status"] == "finished" and asked["command"] in ("learn", "demo"):
        missing |= {"pick"} - description.keys()
    return missing


def _description(task: Task, batch: Batch, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "begun": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "asked": dict(asked),
        "data": {"fingerprint": batch.fingerprint(), "summary": repr(batch)},
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _VERSIONS}},
        "task": task.model_dump(mode="json", exclude_none=True),
    }


# Tables (CSV). Each kind of row is a dataclass; numbers are read back exactly as they were written.

_Row = TypeVar("_Row")

_LARGEST = 256 * 1024 * 1024  # bytes of a table


def write_table(path: Path, kind: type[_Row], rows: Iterable[_Row]) -> None:
    """Write a CSV table with a column for each field of its rows.

    Args:
        path: The file.
        kind: The dataclass of the rows.
        rows: The rows. None and NaN become empty cells.
    """
    names = _names(kind)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_printed(getattr(row, name)) for name in names] for row in rows)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def read_table(path: Path, kind: type[_Row], *, infinite: Collection[str] = ()) -> tuple[_Row, ...]:
    """Read a table that `write_table` wrote.

    Args:
        path: The file. Further columns are ignored.
        kind: The dataclass of the rows.
        infinite: The columns that may hold infinite numbers.

    Raises:
        ClearloopError: The file cannot be read, or it is damaged.
    """
    try:
        cells = list(csv.DictReader(io.StringIO(read_text(path, _LARGEST)), strict=True))
    except csv.Error as error:
        raise ClearloopError(f"{path}: damaged: {error}") from error
    rows = [{name: row[name] or None for name in _names(kind) if name in row} for row in cells]
    try:
        found: tuple[_Row, ...] = TypeAdapter(tuple[kind, ...]).validate_python(rows)  # type: ignore[valid-type]
    except ValidationError as error:
        row, column = error.errors()[0]["loc"][:2]
        raise ClearloopError(f"{path}: damaged: row {int(row) + 1}, column '{column}'") from error
    for number, one in enumerate(found, 1):
        for name, cell in vars(one).items():
            if isinstance(cell, float) and (math.isnan(cell) or (math.isinf(cell) and name not in infinite)):
                raise ClearloopError(f"{path}: damaged: row {number}, column '{name}'")
    return found


def _names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)]


def _printed(cell: Any) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    text = repr(float(cell)) if isinstance(cell, float) else str(cell)
    return text.lower() if isinstance(cell, bool) else text


# Checkpoints (safetensors). Nested plain data is kept exactly: arrays as tensors, the rest as JSON.
#
# In the JSON every dictionary, tuple and array is an object with one key that says which it is:
# `{"table": {…}}`, `{"tuple": […]}`, `{"array": NAME}`, `{"scalar": NAME}`.

Arrays = dict[str, NDArray[Any]]

_TEXT = "state"  # the key of the JSON in the file's metadata


def write_state(state: dict[str, Any], path: Path) -> None:
    """Write nested plain data into one file.

    Args:
        state: Dictionaries with text as keys, lists, tuples, text, numbers, None and arrays of numbers.
        path: The file.
    """
    from safetensors.numpy import save

    arrays: Arrays = {}
    text = json.dumps(_taken_apart(state, "", arrays))
    content: bytes = save(arrays, metadata={_TEXT: text})
    with whole_file(path) as file:
        file.write(content)


def read_state(path: Path) -> dict[str, Any]:
    """Read what `write_state` wrote.

    Raises:
        ClearloopError: The file cannot be read, or it is damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        check_ends(path)
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
            text = (file.metadata() or {})[_TEXT]
        state: dict[str, Any] = _put_together(json.loads(text), arrays)
    except OSError as error:
        raise ClearloopError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ClearloopError(f"{path}: damaged, or not a checkpoint: start the run again") from error
    return state


def _taken_apart(value: Any, place: str, arrays: Arrays) -> Any:
    match value:
        case np.ndarray() | np.generic():
            name = f"{len(arrays)}{place}"  # the number keeps {"a/b": …} and {"a": {"b": …}} apart
            arrays[name] = np.array(value, order="C")
            return {"array" if isinstance(value, np.ndarray) else "scalar": name}
        case None | bool() | int() | float() | str():
            return value
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise TypeError(
                    f"a state needs text as keys: {place or 'the outermost dictionary'} has other keys"
                )
            table = {key: _taken_apart(item, f"{place}/{key}", arrays) for key, item in value.items()}
            return {"table": table}
        case list() | tuple():
            items = [_taken_apart(item, f"{place}/{i}", arrays) for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
    raise TypeError(f"a state cannot hold the {type(value).__name__} at {place}")


def _put_together(value: Any, arrays: Arrays) -> Any:
    if isinstance(value, list):
        return [_put_together(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    ((what, content),) = value.items()
    match what:
        case "array":
            return arrays[content]
        case "scalar":
            return arrays[content][()]
        case "table":
            return {key: _put_together(item, arrays) for key, item in content.items()}
        case "tuple":
            return tuple(_put_together(item, arrays) for item in content)
    raise ValueError(what)


# Requests.


@dataclass(frozen=True, kw_only=True)
class Request:
    """The request that a run carries out, complete: another run of the same request gives the same front."""

    command: str
    """the command of clearloop, such as "learn\""""
    task: str
    """the name of a built-in task or a task file, as the user gave it"""
    data: tuple[str, ...] = ()
    """the files of the log, as the user gave them; empty if the task's plant made the batch"""
    methods: tuple[Method, ...]
    """the methods with all their settings, in the order of the front"""
    budget: int
    """steps of the model that each method may use"""
    track: str = "best"
    """the kind of model: "best" or "published\""""
    value: str = "model"
    """what searches minimise: the penalty of rollouts on the "model", or its estimate from the "batch\""""
    seed: int = 0
    robust: bool = True
    """whether searches ask for what stands in `[robust]` of the task"""
    stay: float = 0.0
    """how near to the log controllers must stay, from 0, which does not ask, to 1"""

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON values."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return plain | {"data": list(self.data), "methods": {m.name: settings_of(m) for m in self.methods}}

    @classmethod
    def from_dict(cls, asked: dict[str, Any]) -> Self:
        """Make a request from what `to_dict` returned.

        Raises:
            ClearloopError: Something is missing or wrong.
        """
        try:
            methods = tuple(_method(name, settings) for name, settings in asked["methods"].items())
            return cls(
                command=str(asked["command"]),
                task=str(asked["task"]),
                data=tuple(map(str, asked["data"])),
                methods=methods,
                budget=int(asked["budget"]),
                track=str(asked["track"]),
                value=str(asked["value"]),
                seed=int(asked["seed"]),
                robust=bool(asked.get("robust", False)),  # version 0.1 did not ask
                stay=float(asked.get("stay", 0.0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ClearloopError("run.json: damaged: it does not say what was asked") from error


def settings_of(method: Method) -> dict[str, Any]:
    """Return all settings of a method as JSON values, by field name."""
    settings: dict[str, Any] = TypeAdapter(type(method)).dump_python(method, mode="json")
    return settings


def changed_settings(settings: dict[str, Any], defaults: dict[str, Any]) -> Iterator[str]:
    """Yield what differs from the defaults, as `--set` takes them: `gp.population=80`, `rules=2,4`."""
    for name, value in settings.items():
        default = defaults.get(name)
        if isinstance(value, dict) and isinstance(default, dict):
            yield from (f"{name}.{inner}" for inner in changed_settings(value, default))
        elif value != default:
            yield f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}"


def _method(name: str, settings: dict[str, Any]) -> Method:
    try:
        return TypeAdapter(find_method(name)).validate_python(settings)
    except ValidationError as error:
        place = ".".join(("methods", name, *map(str, error.errors()[0]["loc"])))
        raise ClearloopError(f"run.json: damaged: {place}: {error.errors()[0]['msg']}") from error


# Checks before a run is continued: what the user gives now must agree with what the run was started with.
# Each raises a ClearloopError that names the difference.


def check_command(run: RunDirectory, asked: Mapping[str, Any], *commands: str) -> None:
    """Check that the run was started with one of these commands."""
    if (begun := str(asked.get("command"))) not in commands:
        raise ClearloopError(
            f"{run.path}: holds a run of {quoted(f'clearloop {begun}')}, which this command cannot continue:"
            " choose another --out"
        )


def check_version(run: RunDirectory, versions: Mapping[str, str]) -> None:
    """Check that the run was started with this version of clearloop."""
    if versions.get("clearloop") != clearloop.__version__:
        was, now = f"clearloop {versions.get('clearloop')}", clearloop.__version__
        raise ClearloopError(
            f"{run.path}: was started with {was}, not {now}, which may search differently:"
            " choose another --out"
        )


def check_option(run: RunDirectory, option: str, begun: Any, given: Any) -> None:
    """Check that an option has the value that the run was started with."""
    if begun != given:
        raise ClearloopError(
            f"{run.path}: was started with {option} {_said(begun)}, not {_said(given)};"
            f" leave {option} out to continue the run, or choose another --out"
        )


def check_task(run: RunDirectory, begun: Mapping[str, Any], given: Task) -> None:
    """Check that the task is the same in every part; `begun` is the task in `run.json`."""
    now = given.model_dump(mode="json", exclude_none=True)
    if begun.get("name") != given.name:
        raise ClearloopError(
            f"{run.path}: was started with the task {quoted(str(begun.get('name')))}, not"
            f" {quoted(given.name)}: give that task, or choose another --out"
        )
    with suppress(ClearloopError):  # keys that are newer than the run get their defaults
        begun = Task.from_dict(dict(begun)).model_dump(mode="json", exclude_none=True)
    changed = next((key for key in {**begun, **now} if begun.get(key) != now.get(key)), None)
    if changed is not None:
        raise ClearloopError(
            f"{run.path}: {quoted(changed)} of the task {quoted(given.name)} has changed since the run was"
            " started: undo the change to continue the run, or choose another --out"
        )


def check_data(run: RunDirectory, fingerprint: str, given: Batch, source: str) -> None:
    """Check that the data is the same; `source` says where the given data comes from."""
    if given.fingerprint() != fingerprint:
        raise ClearloopError(
            f"{run.path}: was started with other data than {source} holds now;"
            " leave --data out to continue with the run's own copy, or choose another --out"
        )


def check_settings(run: RunDirectory, begun: tuple[Method, ...], given: tuple[Method, ...]) -> None:
    """Check that the settings agree; both hold the same methods, `given` with the options of now."""
    for one, other in zip(begun, given, strict=True):
        was, now = settings_of(one), settings_of(other)
        for name in was:
            if was[name] != now[name]:
                check_option(run, f"--set {one.name}.{name}", was[name], now[name])


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_said, value))
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)
