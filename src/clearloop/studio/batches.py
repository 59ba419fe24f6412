"""The folder of batches: recorded here, or uploaded; a CSV file for each, and what it is beside it."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.files import file_name, read_text, whole_file
from clearloop.studio.guarding import RefusedError, checked_name, inside
from clearloop.studio.recording import Recorder
from clearloop.task import Task

_LARGEST = 64 * 1024  # bytes, of what stands beside a batch


@dataclass(frozen=True, kw_only=True)
class About:
    """What stands beside a batch, in NAME.json."""

    task: str
    rows: int
    """transitions"""
    episodes: int


class Batches:
    def __init__(self, runs: Path) -> None:
        self.folder = runs / "batches"
        self._promised: set[str] = set()
        self._writing = Lock()

    def path(self, name: str) -> Path:
        """Of a batch that is there."""
        path = inside(self.folder, checked_name(name, "a batch") + ".csv")
        if not path.is_file():
            raise RefusedError(404, f"no batch '{name}'")
        return path

    def free_name(self, task: str) -> str:
        """`cartpole-play-3`: nothing has it yet, and nobody else gets it."""
        stem = file_name(task) + "-play"
        number = 1
        while self._taken(name := f"{stem}-{number}"):
            number += 1
        self._promised.add(name)
        return name

    def _taken(self, name: str) -> bool:
        return name in self._promised or (self.folder / f"{name}.csv").exists()

    def keep(self, recorder: Recorder) -> None:
        """What was recorded, whole or not at all."""
        batch = recorder.batch()
        self._describe(recorder.name, recorder.task, batch)
        batch.save(self.folder / f"{recorder.name}.csv")

    def take(self, upload: Path, name: str, task: Task) -> dict[str, Any]:
        """A file that was uploaded into the folder, if the task can read it as a log."""
        checked_name(name, "a batch")
        try:
            batch = Batch.load(upload, task)
        except ClearloopError as error:
            raise ClearloopError(str(error).replace(str(upload), f"{name}.csv")) from error
        with self._writing:
            if self._taken(name):
                raise ClearloopError(f"there is a batch '{name}' already: give another name")
            self._describe(name, task, batch)
            upload.replace(self.folder / f"{name}.csv")
        return self.about(name)

    def make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ClearloopError(f"{self.folder}: cannot be made: {error.strerror or error}") from error

    def _describe(self, name: str, task: Task, batch: Batch) -> None:
        self.make_folder()
        about = About(task=task.name, rows=len(batch), episodes=batch.episode_count)
        with whole_file(self.folder / f"{name}.json") as file:
            file.write(json.dumps(asdict(about)).encode() + b"\n")

    def about(self, name: str) -> dict[str, Any]:
        """JSON values."""
        path = self.path(name)
        try:
            document = json.loads(read_text(inside(self.folder, f"{name}.json"), _LARGEST))
            about = About(**document)
        except (ValueError, TypeError, RecursionError) as error:
            raise ClearloopError(f"{path}: nothing says what it is") from error
        when = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return {"name": name, **asdict(about), "when": when.isoformat(timespec="seconds")}

    def list(self) -> list[dict[str, Any]]:
        """Newest first; what cannot be read is left out."""
        found = []
        for path in self.folder.glob("[A-Za-z0-9]*.csv"):
            try:
                found.append(self.about(path.stem))
            except (ClearloopError, OSError):
                continue
        return sorted(found, key=lambda one: str(one["when"]), reverse=True)
