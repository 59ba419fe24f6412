"""The library of the studio: runs, tasks, controllers and batches, as lists of JSON values for the page."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from time import time
from typing import Any

from clearloop.controllers import Controller, load
from clearloop.controllers.equation import Equation
from clearloop.data import Batch
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import to_text
from clearloop.files import file_name, read_text, whole_file
from clearloop.numbers import shorten_numbers
from clearloop.pages.sentences import headline
from clearloop.published import published_for
from clearloop.runs import Front, RunDirectory, read_trust
from clearloop.runs.directory import read_table
from clearloop.runs.learning import Found
from clearloop.studio.guarding import RefusedError, checked_name, inside
from clearloop.studio.models import Models
from clearloop.studio.session import Automatic, Driver, Recorder
from clearloop.studio.stage import Stage, unknown_margins
from clearloop.task import Task, builtin_tasks


def make_folder(folder: Path) -> None:
    """Make a folder, if it does not exist.

    Raises:
        ClearloopError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ClearloopError(f"{folder}: this folder cannot be made: {error.strerror or error}") from error


# The folder of runs.

SILENT = 120.0  # seconds without a changed file, after which a run of another process counts as stopped
STATUS = {"finished": "finished", "interrupted": "stopped", "refused": "failed"}


class Runs:
    """A folder of run directories."""

    def __init__(self, folder: Path) -> None:
        """Read runs from a folder, which need not exist yet."""
        self.folder = folder
        self._known: dict[str, tuple[float, dict[str, Any]]] = {}

    def free_name(self, task: str) -> str:
        """Return a name that no run has, such as `cartpole-3`."""
        stem, number = file_name(task), 1
        while (self.folder / f"{stem}-{number}").exists():
            number += 1
        return f"{stem}-{number}"

    def report(self, name: str) -> Path:
        """Return the path of the report of a run.

        Raises:
            ClearloopError: There is no such run, or it has no report.
        """
        path = inside(self.folder, checked_name(name, "a run"), "report.html")
        if not path.is_file():
            raise RefusedError(404, f"run '{name}' has no report")
        return path

    def list(self) -> list[dict[str, Any]]:
        """Return all runs as JSON values, the newest first; runs that cannot be read are left out."""
        found = []
        for path in self.folder.glob("[A-Za-z0-9]*/run.json"):
            try:
                found.append(self.about(path.parent.name))
            except (ClearloopError, OSError):
                continue
        return sorted(found, key=lambda one: str(one["when"]), reverse=True)

    def about(self, name: str) -> dict[str, Any]:
        """Return the status, headline, front and report of a run as JSON values.

        Raises:
            ClearloopError: There is no such run, or its files are damaged.
        """
        file = inside(self.folder, checked_name(name, "a run"), "run.json")
        try:
            changed = file.stat().st_mtime
        except OSError as error:
            raise RefusedError(404, f"there is no run '{name}'") from error
        if self._known.get(name, (0.0,))[0] != changed:
            try:
                self._known[name] = (changed, self._read(name, changed))
            except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
                raise ClearloopError(f"run '{name}': its files are damaged") from error
        about = dict(self._known[name][1])
        if about["status"] == "running":
            silent = time() - _latest(file.parent) > SILENT
            about |= {"status": "stopped" if silent else "running", "front": self._candidates(name)}
        return about | {"report": f"/runs/{name}/report.html" if self._has_report(name) else None}

    def pick(self, name: str) -> str | None:
        """Return the controller that a run has picked; None if it has none, or cannot be read."""
        with suppress(ClearloopError, OSError):
            return next((one["controller"] for one in self.about(name)["front"] if one["pick"]), None)
        return None

    def finished(self, task: str) -> Sequence[RunDirectory]:
        """Return the finished runs of a task that learned models, the newest first."""
        found = []
        for path in sorted(self.folder.glob("[A-Za-z0-9]*/surrogate/surrogate.json"), key=_age):
            with suppress(ClearloopError, OSError):
                about = self.about(path.parents[1].name)
                if about["task"] == task and about["status"] == "finished":
                    found.append(RunDirectory(inside(self.folder, about["name"])))
        return found

    def _read(self, name: str, changed: float) -> dict[str, Any]:
        run = RunDirectory(inside(self.folder, name))
        description = run.describe()
        status = STATUS.get(str(description["status"]), "running")
        about: dict[str, Any] = {
            "name": name,
            "status": status,
            "task": str(description["task"]["name"]),
            "when": datetime.fromtimestamp(changed, UTC).isoformat(timespec="seconds"),
            "headline": f"clearloop {description['asked'].get('command')}",
            "front": [],
        }
        if status == "failed":
            about["headline"] = str(description["doubts"][0]["message"])
        if status == "finished" and (run.path / "front.csv").exists():
            front = Front.read(run)
            about["headline"] = headline(front, *read_trust(run, description))
            about["front"] = _front(front)
        return about

    def _has_report(self, name: str) -> bool:
        try:
            return self.report(name).is_file()
        except ClearloopError:
            return False

    def _candidates(self, name: str) -> Sequence[dict[str, Any]]:
        """Return the front of a search that is going on; empty before its first result and after its end."""
        try:
            found = read_table(inside(self.folder, name, "candidates.csv"), Found)
        except ClearloopError:
            return []
        return [
            {
                "controller": None,
                "method": row.method,
                "complexity": row.complexity,
                "penalty_model": row.penalty,
                "penalty_system": None,
                "formula": shorten_numbers(row.formula),
                "pick": False,
            }
            for row in found
        ]


def _front(front: Front) -> list[dict[str, Any]]:
    return [
        {
            "controller": entry.controller,
            "method": entry.method,
            "complexity": entry.complexity,
            "penalty_model": entry.penalty_model,
            "penalty_system": entry.penalty_system,
            "formula": shorten_numbers(entry.formula),
            "pick": i == front.pick,
        }
        for i, entry in enumerate(front.entries)
    ]


def _latest(folder: Path) -> float:
    """Return the time of the last change in a folder; hidden files are being written, and may vanish."""
    changed = [0.0]
    for path in folder.glob("[!.]*"):
        with suppress(OSError):
            changed.append(path.stat().st_mtime)
    return max(changed)


# The tasks, and the controllers that can drive them.

_LONGEST = 400  # characters of a formula in the list


class Catalog:
    """The built-in tasks, those drafted in the page, and one of the user's, with all controllers for each."""

    def __init__(self, runs: Runs, first: str = "cartpole") -> None:
        """Load the tasks; `first` is the one that is open first, a built-in name or a file."""
        self._runs = runs
        self._folder = runs.folder / "tasks"
        self._reading = Lock()  # the models of a run are read once, also for several requests at a time
        own = Stage(first, Task.load(first))
        self.stages = {name: Stage(name, Task.load(name)) for name in builtin_tasks()}
        for file in sorted(self._folder.glob("[A-Za-z0-9]*.toml")):
            with suppress(ClearloopError, OSError):
                task = Task.load(str(inside(self._folder, file.name)))
                self.stages.setdefault(task.name, Stage(str(file), task))
        if own.task.name not in self.stages or own.source != own.task.name:
            self.stages[own.task.name] = own
        self.first = own.task.name

    def check_new(self, task: Task) -> None:
        """Check that a task of the page can be kept.

        Raises:
            ClearloopError: Its name is not safe as part of a file name, or another task has it.
        """
        name = checked_name(task.name, "a task")
        if name in self.stages or (self._folder / f"{name}.toml").exists():
            raise ClearloopError(f"there is already a task {quoted(name)}: give another name")

    def free_name(self, wanted: str) -> str:
        """Return a name that no task has: the one that is wanted, or with a number behind it."""
        name, number = wanted, 2
        while name in self.stages:
            name, number = f"{wanted}-{number}", number + 1
        return name

    def keep(self, task: Task, text: str) -> None:
        """Keep the text of a task file, so that the studio knows the task from now on.

        Raises:
            ClearloopError: The name of the task is taken.
        """
        self.check_new(task)
        path = self._folder / f"{task.name}.toml"
        make_folder(self._folder)
        with whole_file(path) as file:
            file.write(text.encode())
        self.stages[task.name] = Stage(str(path), task)

    def find(self, name: str) -> Stage:
        """Return the stage of a task, which may lack a plant to play.

        Raises:
            ClearloopError: There is no task of this name.
        """
        if name not in self.stages:
            raise ClearloopError(f"there is no task {quoted(name)}")
        stage = self.stages[name]
        if stage.playable and stage.models is None:
            return stage
        with self._reading:
            return self._on_models(self.stages[name])

    def _on_models(self, stage: Stage) -> Stage:
        """Return the stage of a task without a plant, with the models of its newest run that has some."""
        for run in self._runs.finished(stage.task.name):
            if stage.models is not None and stage.models.run == run.path.name:
                return stage
            with suppress(ClearloopError, OSError):
                models = Models.of(run)
                self.stages[stage.task.name] = Stage(stage.source, models.task, models)
                break
        return self.stages[stage.task.name]

    def stage(self, name: str) -> Stage:
        """Return the stage of a task that can be played.

        Raises:
            ClearloopError: There is no such task, or it has no plant or no starts.
        """
        stage = self.find(name)
        if not stage.playable:
            raise ClearloopError(
                f"task {quoted(name)} cannot be played: it needs a [plant] and [starts], or models that a run"
                " has learned"
            )
        return stage

    def describe(self) -> list[dict[str, Any]]:
        """Return all tasks as JSON values."""
        return [self.find(name).describe() for name in list(self.stages)]

    def controllers(self, stage: Stage) -> list[dict[str, Any]]:
        """Return the controllers of a task as JSON values: published, logged, and from the newest run on."""
        task = stage.task
        listed = [
            _entry(f"published/{one.file}", f"{one.title} (published)", one.load(), "published")
            for one in published_for(task)
        ]
        if law := _law(task):
            listed.append(_entry("task/law", "the law that made the log", law, "logged"))
        if stage.models is not None and (own := stage.models.law) is not None:
            title = f"the log's own controller, {own.name or 'as logged'}"
            listed.append(_entry("log/law", title, own, "logged"))
        return listed + list(self._from_runs(task))

    def _from_runs(self, task: Task) -> Iterator[dict[str, Any]]:
        for path in sorted(self._runs.folder.glob("*/controllers"), key=_age):
            run = path.parent.name
            picked = self._runs.pick(run)
            for file in sorted(path.glob("[0-9]*.json")):
                name = f"runs/{run}/{file.stem}"
                try:
                    controller = self._load(name, task)
                except (ClearloopError, OSError):
                    continue
                entry = _entry(name, f"{run}, {file.stem}", controller, f"run {run}")
                yield entry | ({"pick": True} if file.stem == picked else {})

    def driver(self, name: str, stage: Stage) -> Driver:
        """Return the controller with this `id` of the list, as a driver.

        Raises:
            ClearloopError: There is no such controller for the task, or it is too slow to drive live.
        """
        if name == "task/law":
            if (law := _law(stage.task)) is None:
                raise ClearloopError(f"task '{stage.task.name}' does not say which law made its log")
            return Automatic(law, sees_all=True)
        return Automatic(self.controller(name, stage))

    def controller(self, name: str, stage: Stage) -> Controller:
        """Return the controller with this `id` of the list.

        Raises:
            ClearloopError: There is no such controller for the task, or it is too slow to drive live.
        """
        if name == "log/law":
            if stage.models is None or (own := stage.models.law) is None:
                raise ClearloopError(f"no law explains the log of task '{stage.task.name}'")
            return own
        return self._load(name, stage.task)

    def margins(self, name: str, stage: Stage) -> dict[str, Any]:
        """Return the margins of the controller with this `id` of the list, as JSON values.

        Raises:
            ClearloopError: There is no such controller for the task.
        """
        if name == "task/law":
            return unknown_margins("the law that made the log may read what no sensor shows")
        return stage.margins(self.controller(name, stage))

    def _load(self, name: str, task: Task) -> Controller:
        match name.split("/"):
            case ["published", file]:
                found = {one.file: one for one in published_for(task)}
                if file not in found:
                    raise ClearloopError(
                        f"there is no published controller {quoted(file)} for task '{task.name}'"
                    )
                return found[file].load().for_task(task)
            case ["runs", run, file]:
                return self._of_run(run, file, task)
        raise ClearloopError(f"there is no controller {quoted(name)}")

    def file(self, name: str) -> tuple[RunDirectory, Path]:
        """Return the run, and the file, of a controller with an `id` such as `runs/oven-1/003`.

        Raises:
            ClearloopError: It is not the `id` of a controller of a run, or leads out of the folder of runs.
        """
        match name.split("/"):
            case ["runs", run, file]:
                folder = inside(self._runs.folder, checked_name(run, "a run"))
                file = checked_name(file, "a controller") + ".json"
                return RunDirectory(folder), inside(self._runs.folder, run, "controllers", file)
        raise ClearloopError(f"{quoted(name)} is no controller of a run")

    def _of_run(self, run: str, file: str, task: Task) -> Controller:
        if self._runs.about(run)["task"] != task.name:
            raise ClearloopError(f"{run}: this run belongs to another task than '{task.name}'")
        controller = load(self.file(f"runs/{run}/{file}")[1])
        if controller.plans:
            raise ClearloopError(
                f"{run}, {file}: a planner searches at every step, which takes too long to watch"
            )
        return controller.for_task(task)


def _law(task: Task) -> Controller | None:
    """Return the law that made the task's own log, if it has one; it may read hidden states."""
    law = {name: to_text(formula) for name, formula in zip(task.actions, task.exploration_law, strict=False)}
    return Equation(outputs=law).for_task(task.unveiled) if law else None


def _entry(name: str, title: str, controller: Controller, source: str) -> dict[str, Any]:
    formula = shorten_numbers(controller.summary)
    return {
        "id": name,
        "title": title,
        "kind": controller.kind,
        "formula": formula if len(formula) <= _LONGEST else formula[: _LONGEST - 1] + "…",
        "source": source,
    }


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:  # somebody has deleted it
        return 0.0


# The folder of batches, recorded or uploaded: NAME.csv with the rows, and NAME.json with its description.

_LARGEST = 64 * 1024  # bytes of NAME.json


@dataclass(frozen=True, kw_only=True)
class About:
    """The description of a batch, as in NAME.json."""

    task: str
    """its name"""
    rows: int
    """number of transitions"""
    episodes: int
    """number of episodes"""


class Batches:
    """The folder `batches` inside the folder of runs."""

    def __init__(self, runs: Path) -> None:
        """Keep batches below this folder of runs."""
        self.folder = runs / "batches"
        self._promised: set[str] = set()
        self._writing = Lock()

    def path(self, name: str) -> Path:
        """Return the path of a batch.

        Raises:
            ClearloopError: There is no such batch.
        """
        path = inside(self.folder, checked_name(name, "a batch") + ".csv")
        if not path.is_file():
            raise RefusedError(404, f"there is no batch '{name}'")
        return path

    def free_name(self, task: str) -> str:
        """Reserve a name that no batch has, such as `cartpole-play-3`."""
        stem = file_name(task) + "-play"
        number = 1
        while self._taken(name := f"{stem}-{number}"):
            number += 1
        self._promised.add(name)
        return name

    def free_upload(self, wanted: str) -> str:
        """Return a name that no batch has: the one that is wanted, or with a number behind it."""
        name, number = wanted, 2
        while self._taken(name):
            name, number = f"{wanted}-{number}", number + 1
        return name

    def _taken(self, name: str) -> bool:
        return name in self._promised or (self.folder / f"{name}.csv").exists()

    def keep(self, recorder: Recorder) -> None:
        """Save a recording; its file appears whole or not at all."""
        batch = recorder.batch()
        self._describe(recorder.name, recorder.task, batch)
        batch.save(self.folder / f"{recorder.name}.csv")

    def take(self, upload: Path, name: str, task: Task) -> dict[str, Any]:
        """Keep an uploaded file as a batch, and return its description as JSON values.

        Args:
            upload: The file, in the folder of batches; it is moved.
            name: The name of the batch.
            task: The task whose log it is.

        Raises:
            ClearloopError: The task cannot read the file as a log, or the name is taken.
        """
        checked_name(name, "a batch")
        try:
            batch = Batch.load(upload, task)
        except ClearloopError as error:
            raise ClearloopError(str(error).replace(str(upload), f"{name}.csv")) from error
        with self._writing:
            if self._taken(name):
                raise ClearloopError(f"there is already a batch '{name}': give another name")
            self._describe(name, task, batch)
            upload.replace(self.folder / f"{name}.csv")
        return self.about(name)

    def _describe(self, name: str, task: Task, batch: Batch) -> None:
        make_folder(self.folder)
        about = About(task=task.name, rows=len(batch), episodes=batch.episode_count)
        with whole_file(self.folder / f"{name}.json") as file:
            file.write(json.dumps(asdict(about)).encode() + b"\n")

    def about(self, name: str) -> dict[str, Any]:
        """Return the description of a batch as JSON values.

        Raises:
            ClearloopError: There is no such batch, or its description is missing or damaged.
        """
        path = self.path(name)
        try:
            document = json.loads(read_text(inside(self.folder, f"{name}.json"), _LARGEST))
            about = About(**document)
        except (ValueError, TypeError, RecursionError) as error:
            raise ClearloopError(f"{path}: its description {name}.json is damaged") from error
        when = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return {"name": name, **asdict(about), "when": when.isoformat(timespec="seconds")}

    def list(self) -> list[dict[str, Any]]:
        """Return all batches as JSON values, the newest first; those that cannot be read are left out."""
        found = []
        for path in self.folder.glob("[A-Za-z0-9]*.csv"):
            try:
                found.append(self.about(path.stem))
            except (ClearloopError, OSError):
                continue
        return sorted(found, key=lambda one: str(one["when"]), reverse=True)
