"""One experiment of a bench, from plain data to plain data: so it gives the same on any machine.

Two kinds of work: `prepare` makes a batch and the model of it; `experiment` lets a method search on that.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from clearloop.controllers import to_json
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.evaluation import Evaluation
from clearloop.files import read_json, whole_file
from clearloop.methods import Point, learn
from clearloop.methods.method import find_method
from clearloop.plants.exploration import make_batch
from clearloop.runs import RunDirectory
from clearloop.runs.front import score_published
from clearloop.surrogate import TRACKS, Surrogate
from clearloop.task import Task

Parcel = dict[str, bytes]
"""Files by their names: a batch and its model."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """One piece of it; JSON values only."""

    task: dict[str, Any]
    track: str
    seed: int
    """of the batch and of the model"""
    method: str = ""
    """nothing: prepare the batch and the model"""
    settings: dict[str, Any]
    """of the method"""
    budget: int
    """steps of the model"""
    number: int = 0
    """of the experiment, among those with this seed"""

    @property
    def of_model(self) -> "Work":
        """What makes the batch and the model for it."""
        return replace(self, method="", settings={}, number=0)

    @property
    def key(self) -> str:
        """`best-gprl-3`: a name for files."""
        return f"{self.track}-{self.method or 'model'}-{self.seed + self.number}"


def prepare(work: Work) -> Parcel:
    """As `clearloop learn --seed` does it."""
    task, track = Task.model_validate(work.task), TRACKS[work.track]
    batch = make_batch(task, rng=np.random.default_rng(work.seed))
    surrogate = Surrogate.fit(task, batch, track=track, rng=np.random.default_rng([work.seed, 1]))
    with TemporaryDirectory() as name:
        folder = Path(name)
        batch.save(folder / "batch.parquet")
        surrogate.save(folder / "surrogate")
        known = json.dumps(_published(task, surrogate)).encode()
        return {"published.json": known} | {
            str(file.relative_to(folder).as_posix()): file.read_bytes()
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        }


def experiment(work: Work, parcel: Parcel) -> dict[str, Any]:
    """JSON values: the best controller of the front, and those beside it, with their penalties by start."""
    task = Task.model_validate(work.task)
    batch, surrogate = unpack(parcel, task)
    begun = perf_counter()
    result = learn(
        task,
        batch,
        TypeAdapter(find_method(work.method)).validate_python(work.settings),
        rng=np.random.default_rng([work.seed, 2, work.number]),  # the first is that of `learn --seed`
        budget=work.budget,
        surrogate=surrogate,
    )
    best = result.points[-1]
    named = {(best.controller.name or work.method) if result.beside else work.method: best}
    named |= {str(point.controller.name): point for point in result.beside}
    return {
        "seconds": perf_counter() - begun,
        "steps": result.steps,
        "scores": {name: _score(task, point) for name, point in named.items()},
    }


def unpack(parcel: Parcel, task: Task) -> tuple[Batch, Surrogate]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in parcel.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(content)
        return Batch.load(folder / "batch.parquet", task), Surrogate.load(folder / "surrogate", task)


def _score(task: Task, point: Point) -> dict[str, Any]:
    return {
        "complexity": point.controller.complexity,
        "controller": to_json(point.controller.for_task(task)),
        **_penalties(point.model, point.system),
    }


def _published(task: Task, surrogate: Surrogate) -> list[dict[str, Any]]:
    """What others have published for this plant, on the same model and starts."""
    return [
        {"title": known.title, **_penalties(model, system)}
        for known, model, system in score_published(task, surrogate)
    ]


def _penalties(model: Evaluation, system: Evaluation | None) -> dict[str, Any]:
    """By start: the mean over members."""
    return {
        "model": model.penalties.mean(axis=0).tolist(),
        "system": system and system.penalties.mean(axis=0).tolist(),
        "failures": system and system.failures,
    }


# The files of a bench in its run directory: what a piece of work gave, as soon as it is there.

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
