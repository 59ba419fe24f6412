"""A run directory: `run.json` says what was asked and how far it came; files appear whole or not at all."""

import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from clearloop.data import Batch
from clearloop.errors import ClearloopError, quoted
from clearloop.files import read_json, whole_file
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
