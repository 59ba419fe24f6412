"""An experiment of a bench takes plain data and returns plain data, so any machine gives the same result.

There are two kinds of work: `prepare` makes a batch and learns its model; `experiment` lets a method search
on this model. A `Store` keeps the results in the run directory.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from clearloop.controllers import to_json
from clearloop.data import Batch
from clearloop.errors import ClearloopError
from clearloop.evaluation import Evaluation
from clearloop.files import read_json, whole_file
from clearloop.methods import Point, learn
from clearloop.methods.learning import repeat_log
from clearloop.methods.method import find_method
from clearloop.plants.exploration import make_batch
from clearloop.runs import RunDirectory
from clearloop.runs.front import score_published
from clearloop.surrogate import TRACKS, Surrogate
from clearloop.task import Task

Parcel = dict[str, bytes]
"""The files of a batch and its model, by their names."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """A piece of work of a bench; it holds JSON values only."""

    task: dict[str, Any]
    """the task, written out in full"""
    track: str
    """the kind of model: "best" or "published\""""
    seed: int
    """the seed of the batch and of the model"""
    method: str = ""
    """the method that searches; empty for the work that prepares the batch and the model"""
    settings: dict[str, Any]
    """all settings of the method"""
    budget: int
    """steps of the model that the search may use"""
    robust: bool = False
    """whether the search asks for what stands in `[robust]` of the task"""
    number: int = 0
    """the number of the experiment among those with this seed"""

    @property
    def of_model(self) -> "Work":
        """The work that prepares the batch and the model for this one."""
        return replace(self, method="", settings={}, robust=False, number=0)

    @property
    def key(self) -> str:
        """A name for files, such as `best-gprl-3`."""
        return f"{self.track}-{self.method or 'model'}-{self.seed + self.number}"


def prepare(work: Work) -> Parcel:
    """Make a batch and learn its model, as `clearloop learn --seed` does."""
    task, track = Task.model_validate(work.task), TRACKS[work.track]
    batch = make_batch(task, rng=np.random.default_rng(work.seed))
    fitted = Surrogate.fit(task, batch, track=track, rng=np.random.default_rng([work.seed, 1]))
    surrogate, _ = repeat_log(task, batch, fitted)
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
    """Let a method search on a model.

    Args:
        work: What to do.
        parcel: The batch and the model that `prepare` returned.

    Returns:
        JSON values: the best controller of the front and the ones beside it, with their penalties by start.
    """
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
        robust=work.robust,
    )
    best = result.best_point
    named = {(best.controller.name or work.method) if result.beside else work.method: best}
    named |= {str(point.controller.name): point for point in result.beside}
    return {
        "seconds": perf_counter() - begun,
        "steps": result.steps,
        "scores": {name: _score(task, point) for name, point in named.items()},
    }


def unpack(parcel: Parcel, task: Task) -> tuple[Batch, Surrogate]:
    """Read the batch and the model from their files."""
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
    """Score the controllers that others have published for this plant, on the same model and starts."""
    return [
        {"title": known.title, **_penalties(model, system)}
        for known, model, system in score_published(task, surrogate)
    ]


def _penalties(model: Evaluation, system: Evaluation | None) -> dict[str, Any]:
    # By start: the mean over the members of the model.
    return {
        "model": model.penalties.mean(axis=0).tolist(),
        "system": system and system.penalties.mean(axis=0).tolist(),
        "failures": system and system.failures,
    }


# The files of a bench.


class _Penalties(BaseModel):
    model: Annotated[list[float], Field(min_length=1)]
    system: Annotated[list[float], Field(min_length=1)] | None
    failures: float | None


class _Published(_Penalties):
    title: str


class _Score(_Penalties):
    complexity: int
    controller: str


class _Outcome(BaseModel):
    seconds: float
    steps: int
    scores: dict[str, _Score]


def _checked(file: Path, kind: Any) -> Any:
    content = read_json(file)
    try:
        TypeAdapter(kind).validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        raise ClearloopError(f"{file}: damaged: delete it, and continue with --resume") from error
    return content


LAST = "published.json"  # the file of a model that is written last: if it exists, all of them exist


@dataclass(frozen=True)
class Store:
    """The results of a bench in its run directory; each is written as soon as it is there."""

    run: RunDirectory

    def has(self, key: str) -> bool:
        """Say whether the piece of work with this key is done."""
        return self._scores(key).exists() or (self._model(key) / LAST).exists()

    def keep(self, key: str, outcome: Mapping[str, Any]) -> None:
        """Write what `experiment` or `prepare` returned."""
        if LAST in outcome:
            self._keep_model(key, dict(outcome))
            return
        self.run.folder("experiments")
        with whole_file(self._scores(key)) as file:
            file.write(json.dumps(outcome, allow_nan=False).encode())

    def scores(self, key: str) -> dict[str, Any]:
        """Read what `experiment` returned.

        Raises:
            ClearloopError: The file is damaged.
        """
        scores: dict[str, Any] = _checked(self._scores(key), _Outcome)
        return scores

    def published(self, key: str) -> list[dict[str, Any]]:
        """Read the scores of published controllers on the model of this key."""
        known: list[dict[str, Any]] = _checked(self._model(key) / LAST, list[_Published])
        return known

    def model(self, key: str) -> Parcel:
        """Read what `prepare` returned."""
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
