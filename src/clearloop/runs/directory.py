"""A run directory: `run.json` says what was asked and how far it came; files appear whole or not at all."""

import csv
import io
import json
import math
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

import clearloop
from clearloop.data import Batch
from clearloop.errors import ClearloopError, quoted
from clearloop.files import read_json, read_text, whole_file
from clearloop.methods import Method
from clearloop.methods.method import find_method
from clearloop.task import Task

Status = Literal["running", "interrupted", "refused", "finished"]

_VERSIONS = ("clearloop", "numpy", "numba", "jax")
_TABLES = {"asked", "data", "versions", "task"}
_PARTS = {"status", *_TABLES}
_LOCK = ".lock"
# What a run makes bit by bit, and a new one in the same place must not find.
_LEFT_OVER = (
    "batch.parquet",
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
    path: Path

    def check_free(self, *, replacing: str = "") -> None:
        """For a new run: nothing yet, an empty folder, an earlier run of the same command, or one that was
        refused; an error else.
        """
        path = self.path
        try:
            found = list(path.iterdir()) if path.exists() else []
        except OSError as error:
            raise ClearloopError(f"{path}: cannot be a run directory: {error.strerror}") from error
        if not self.exists and any(one.name != _LOCK and one.suffix != ".partial" for one in found):
            raise ClearloopError(f"{path}: holds other things than a run; choose another --out")
        if not self.exists or self.describe()["status"] == "refused":
            return
        if (earlier := self.describe()["asked"].get("command")) != replacing:
            raise ClearloopError(
                f"{path}: holds a run of {quoted(f'clearloop {earlier}')} already;"
                f" look at it with 'clearloop show {path}', go on with --resume, or choose another --out"
            )

    @contextmanager
    def claimed(self, *, replacing: str = "") -> Iterator[None]:
        """Held for a new run."""
        self.check_free(replacing=replacing)  # a stranger's folder gets no lock
        with self.held():
            self.check_free(replacing=replacing)  # nobody was faster
            yield

    @property
    def exists(self) -> bool:
        return (self.path / "run.json").exists()

    def describe(self) -> dict[str, Any]:
        """What `run.json` says."""
        file = self.path / "run.json"
        if self.path.is_dir() and not file.exists():
            raise ClearloopError(f"{self.path}: holds no run: there is no run.json in it")
        description: dict[str, Any] = read_json(file)
        parts = description if isinstance(description, dict) else {}
        if not (parts.keys() >= _PARTS and all(isinstance(parts[name], dict) for name in _TABLES)):
            raise ClearloopError(f"{file}: damaged: it does not say {', '.join(sorted(_PARTS))}")
        return description

    def task(self) -> Task:
        """As it was when the run began."""
        return Task.from_dict(self.describe()["task"], source=str(self.path / "run.json"))

    def begin(self, task: Task, batch: Batch, asked: Mapping[str, Any]) -> None:
        """Keep the batch, and write down everything that is needed to do it again."""
        self.folder(".")
        self._remove(*_LEFT_OVER)  # first: whoever goes on with what stands below must not find them
        self.write_json("run.json", {"status": "running", **_description(task, batch, asked)})
        batch.save(self.path / "batch.parquet")

    @contextmanager
    def held(self) -> Iterator[None]:
        """By nobody else: two processes would write the same files."""
        lock = FileLock(self.folder(".") / _LOCK)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            what = f"{self.path}: another process is at work there: wait, or stop it"
            raise ClearloopError(what) from error
        try:
            yield
        finally:
            lock.release()

    def go_on(self, **findings: Any) -> None:
        """After it was interrupted, or killed in the middle of a file."""
        self._remove("**/.*.partial")
        self.mark("running", **findings)

    def _remove(self, *patterns: str) -> None:
        for pattern in patterns:
            for file in self.path.glob(pattern):
                file.unlink()

    def mark(self, status: Status, **findings: Any) -> None:
        """How far it came, and what came out."""
        self.write_json("run.json", {**self.describe(), "status": status, **findings})

    def write_json(self, name: str, document: Any) -> None:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        with whole_file(self.path / name) as file:
            file.write(text.encode() + b"\n")

    def folder(self, name: str) -> Path:
        """A folder in the run, which is there afterwards."""
        path = self.path / name
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ClearloopError(f"{path}: cannot be made: {error.strerror or error}") from error
        return path


def _description(task: Task, batch: Batch, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "begun": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "asked": dict(asked),
        "data": {"fingerprint": batch.fingerprint(), "summary": repr(batch)},
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _VERSIONS}},
        "task": task.model_dump(mode="json", exclude_none=True),
    }


# Tables of a run as CSV, a dataclass for each kind of row: numbers read back as they were.

_Row = TypeVar("_Row")

_LARGEST = 256 * 1024 * 1024  # bytes


def write_table(path: Path, kind: type[_Row], rows: Iterable[_Row]) -> None:
    """A column for each field; an empty cell for what is unknown: None or NaN."""
    names = _names(kind)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_printed(getattr(row, name)) for name in names] for row in rows)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def read_table(path: Path, kind: type[_Row]) -> tuple[_Row, ...]:
    """What `write_table` wrote; further columns do no harm."""
    try:
        cells = list(csv.DictReader(io.StringIO(read_text(path, _LARGEST)), strict=True))
    except csv.Error as error:
        raise ClearloopError(f"{path}: damaged: {error}") from error
    rows = [{name: row[name] or None for name in _names(kind) if name in row} for row in cells]
    try:
        return TypeAdapter(tuple[kind, ...]).validate_python(rows)  # type: ignore[valid-type]
    except ValidationError as error:
        row, column = error.errors()[0]["loc"][:2]
        raise ClearloopError(f"{path}: damaged: row {int(row) + 1}, column '{column}'") from error


def _names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)]


def _printed(cell: Any) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return repr(float(cell)) if isinstance(cell, float) else str(cell)


# Plain data with arrays in it, in one file, to the bit: arrays as tensors, the rest as JSON.
#
# In the JSON every dictionary, tuple and array stands in an object of one key that says which it is:
# `{"table": {…}}`, `{"tuple": […]}`, `{"array": NAME}`, `{"scalar": NAME}`.

Arrays = dict[str, NDArray[Any]]

_TEXT = "state"  # the key of the JSON in the file's metadata


def write_state(state: dict[str, Any], path: Path) -> None:
    """Dictionaries with text for keys, lists, tuples, text, numbers, None and arrays of numbers."""
    from safetensors.numpy import save

    arrays: Arrays = {}
    text = json.dumps(_taken_apart(state, "", arrays))
    content: bytes = save(arrays, metadata={_TEXT: text})
    with whole_file(path) as file:
        file.write(content)


def read_state(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
            text = (file.metadata() or {})[_TEXT]
        state: dict[str, Any] = _put_together(json.loads(text), arrays)
    except OSError as error:
        raise ClearloopError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ClearloopError(f"{path}: damaged, or no checkpoint: begin the run anew") from error
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
                raise TypeError(f"a state's tables have text for keys, unlike {place or 'the outermost'}")
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


# What was asked of a run, resolved in full: another run of the same request gives the same front.


@dataclass(frozen=True, kw_only=True)
class Request:
    command: str
    """of `clearloop`"""
    task: str
    """a built-in name or a file, as it was given"""
    data: tuple[str, ...] = ()
    """files, as they were given; none if the task's plant made the batch"""
    methods: tuple[Method, ...]
    """with all their settings, in the order of the front"""
    budget: int
    """steps of the model, for each method"""
    track: str = "best"
    value: str = "model"
    """what searches minimise: of rollouts on the "model", or of the "batch" alone"""
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            "command": self.command,
            "task": self.task,
            "data": list(self.data),
            "methods": {method.name: settings_of(method) for method in self.methods},
            "budget": self.budget,
            "track": self.track,
            "value": self.value,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, asked: dict[str, Any]) -> Self:
        """What `to_dict` gave."""
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
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ClearloopError("run.json: damaged: it does not say what was asked") from error


def settings_of(method: Method) -> dict[str, Any]:
    """JSON values by the names of fields."""
    settings: dict[str, Any] = TypeAdapter(type(method)).dump_python(method, mode="json")
    return settings


def changed_settings(settings: dict[str, Any], defaults: dict[str, Any]) -> Iterator[str]:
    """Those that differ from the defaults, as `--set` takes them: `gp.population=80`, `rules=2,4`."""
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


# Whether a run that is to go on is the one that was begun. What differs is named; nothing is guessed.


def check_command(run: RunDirectory, asked: Mapping[str, Any], *commands: str) -> None:
    if (begun := str(asked.get("command"))) not in commands:
        raise ClearloopError(
            f"{run.path}: holds a run of {quoted(f'clearloop {begun}')}, and that cannot go on here:"
            " choose another --out"
        )


def check_version(run: RunDirectory, versions: Mapping[str, str]) -> None:
    if versions.get("clearloop") != clearloop.__version__:
        was, now = f"clearloop {versions.get('clearloop')}", clearloop.__version__
        raise ClearloopError(
            f"{run.path}: was begun with {was}, not {now}, which may search differently: choose another --out"
        )


def check_option(run: RunDirectory, option: str, begun: Any, given: Any) -> None:
    """Of an option that was given again."""
    if begun != given:
        raise ClearloopError(
            f"{run.path}: was begun with {option} {_said(begun)}, not {_said(given)};"
            f" leave {option} out to go on, or choose another --out"
        )


def check_task(run: RunDirectory, begun: Mapping[str, Any], given: Task) -> None:
    now = given.model_dump(mode="json", exclude_none=True)
    if begun.get("name") != given.name:
        raise ClearloopError(
            f"{run.path}: was begun with the task {quoted(str(begun.get('name')))}, not {quoted(given.name)}:"
            " give that one, or choose another --out"
        )
    changed = next((key for key in {**begun, **now} if begun.get(key) != now.get(key)), None)
    if changed is not None:
        raise ClearloopError(
            f"{run.path}: the task {quoted(given.name)} has changed since it was begun, in {quoted(changed)}:"
            " undo that to go on, or choose another --out"
        )


def check_data(run: RunDirectory, fingerprint: str, given: Batch, source: str) -> None:
    if given.fingerprint() != fingerprint:
        raise ClearloopError(
            f"{run.path}: was begun with other data than {source} holds now;"
            " leave --data out to go on with what it was begun with, or choose another --out"
        )


def check_settings(run: RunDirectory, begun: tuple[Method, ...], given: tuple[Method, ...]) -> None:
    """Of the same methods, the second time with what was given again."""
    for one, other in zip(begun, given, strict=True):
        was, now = settings_of(one), settings_of(other)
        for name in was:
            if was[name] != now[name]:
                check_option(run, f"--set {one.name}.{name}", was[name], now[name])


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_said, value))
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)
