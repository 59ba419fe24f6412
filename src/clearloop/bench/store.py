"""The files of a bench in its run directory: what a piece of work gave, as soon as it is there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearloop.bench.experiment import Parcel
from clearloop.errors import ClearloopError
from clearloop.files import read_json, whole_file
from clearloop.runs import RunDirectory

LAST = "published.json"  # of a model's files: when it is there, all are


@dataclass(frozen=True)
class Store:
    run: RunDirectory

    def has(self, key: str) -> bool:
        return self._scores(key).exists() or (self._model(key) / LAST).exists()

    def keep(self, key: str, outcome: Mapping[str, Any]) -> None:
        """Scores, or a model."""
        if LAST in outcome:
            self._keep_model(key, dict(outcome))
            return
        self.run.folder("experiments")
        with whole_file(self._scores(key)) as file:
            file.write(json.dumps(outcome, allow_nan=False).encode())

    def scores(self, key: str) -> dict[str, Any]:
        scores: dict[str, Any] = read_json(self._scores(key))
        if not (isinstance(scores, dict) and scores.keys() >= {"seconds", "steps", "scores"}):
            raise ClearloopError(f"{self._scores(key)}: damaged: delete it, and go on with --resume")
        return scores

    def published(self, key: str) -> list[dict[str, Any]]:
        """What others have published, on the model of this key."""
        known: list[dict[str, Any]] = read_json(self._model(key) / LAST)
        return known

    def model(self, key: str) -> Parcel:
        folder = self._model(key)
        files = (file for file in sorted(folder.rglob("[!.]*")) if file.is_file())
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}

    def _keep_model(self, key: str, parcel: Parcel) -> None:
        for name in sorted(parcel, key=lambda name: name == LAST):
            self.run.folder(str(Path("models", key, name).parent))
            with whole_file(self._model(key) / name) as file:
                file.write(parcel[name])

    def _scores(self, key: str) -> Path:
        return self.run.path / "experiments" / f"{key}.json"

    def _model(self, key: str) -> Path:
        return self.run.path / "models" / key
