"""A run directory: `run.json` says what was asked and how far it came; files appear whole or not at all."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.files import whole_file
from clearloop.task import Task

_VERSIONS = ("clearloop", "numpy", "numba", "jax")


@dataclass(frozen=True)
class RunDirectory:
    path: Path

    @classmethod
    def create(cls, path: Path) -> "RunDirectory":
        """A folder for a run: a new one, an empty one, or one that held a run before."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            strangers = any(path.iterdir()) and not (path / "run.json").exists()
        except OSError as error:
            raise ClearloopError(f"{path}: cannot be a run directory: {error.strerror}") from error
        if strangers:
            raise ClearloopError(f"{path}: holds other things than a run; choose another --out")
        return cls(path)

    def begin(self, task: Task, batch: Batch, asked: Mapping[str, Any]) -> None:
        """Keep the batch, and write down everything that is needed to do it again."""
        self.write_json("run.json", {"status": "running", **self._description(task, batch, asked)})
        batch.save(self.path / "batch.parquet")

    def finish(self, task: Task, batch: Batch, asked: Mapping[str, Any]) -> None:
        self.write_json("run.json", {"status": "finished", **self._description(task, batch, asked)})

    def _description(self, task: Task, batch: Batch, asked: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "asked": dict(asked),
            "data": {"fingerprint": batch.fingerprint(), "summary": repr(batch)},
            "versions": {"python": platform.python_version(), **{name: version(name) for name in _VERSIONS}},
            "task": task.model_dump(mode="json", exclude_none=True),
        }

    def write_json(self, name: str, document: Any) -> None:
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
        with whole_file(self.path / name) as file:
            file.write(text.encode() + b"\n")
