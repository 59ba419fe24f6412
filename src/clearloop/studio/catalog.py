"""The tasks that can be played, and the controllers that can drive them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clearloop.controllers import Controller, Planner, load
from clearloop.controllers.equation import Equation
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import to_text
from clearloop.published import published_for
from clearloop.report.sentences import rounded
from clearloop.studio.drivers import Automatic, Driver
from clearloop.studio.guarding import checked_name, inside
from clearloop.studio.runs import Runs
from clearloop.studio.stage import Stage
from clearloop.task import Task, builtin_tasks

LONGEST = 400  # characters of a formula, as it is listed


class Catalog:
    def __init__(self, runs: Runs, first: str = "cartpole") -> None:
        """`first`: the task that is played first, a built-in name or a file."""
        self._runs = runs
        own = Stage(first, Task.load(first))
        self.stages = {name: Stage(name, Task.load(name)) for name in builtin_tasks()}
        if own.task.name not in self.stages or own.source != own.task.name:
            self.stages[own.task.name] = own
        self.first = own.task.name

    def find(self, name: str) -> Stage:
        """By the task's name; perhaps it can only be learned."""
        if name not in self.stages:
            raise ClearloopError(f"no task {quoted(name)}")
        return self.stages[name]

    def stage(self, name: str) -> Stage:
        """One that can be played."""
        stage = self.find(name)
        if not stage.playable:
            raise ClearloopError(f"task {quoted(name)} cannot be played: it needs a [plant] and [starts]")
        return stage

    def describe(self) -> list[dict[str, Any]]:
        """JSON values."""
        return [stage.describe() for stage in self.stages.values()]

    def controllers(self, stage: Stage) -> list[dict[str, Any]]:
        """All that can drive the task, as JSON values: published, logged, and from runs, the newest first."""
        task = stage.task
        listed = [
            _entry(f"published/{one.file}", f"{one.title} (published)", one.load(), "published")
            for one in published_for(task)
        ]
        if law := _law(task):
            listed.append(_entry("task/law", "as the log was made", law, "logged"))
        return listed + list(self._from_runs(task))

    def _from_runs(self, task: Task) -> Iterator[dict[str, Any]]:
        for path in sorted(self._runs.folder.glob("*/controllers"), key=_age):
            run = path.parent.name
            for file in sorted(path.glob("[0-9]*.json")):
                name = f"runs/{run}/{file.stem}"
                try:
                    controller = self._load(name, task)
                except (ClearloopError, OSError):
                    continue
                yield _entry(name, f"{run}, {file.stem}", controller, f"run {run}")

    def driver(self, name: str, stage: Stage) -> Driver:
        """By what it is called in the list."""
        if name == "task/law":
            if (law := _law(stage.task)) is None:
                raise ClearloopError(f"task '{stage.task.name}' says nothing of how its log was made")
            return Automatic(law, sees_all=True)
        return Automatic(self._load(name, stage.task))

    def _load(self, name: str, task: Task) -> Controller:
        match name.split("/"):
            case ["published", file]:
                found = {one.file: one for one in published_for(task)}
                if file not in found:
                    raise ClearloopError(f"nothing is published as {quoted(file)} for task '{task.name}'")
                return found[file].load().for_task(task)
            case ["runs", run, file]:
                return self._of_run(run, file, task)
        raise ClearloopError(f"no controller {quoted(name)}")

    def _of_run(self, run: str, file: str, task: Task) -> Controller:
        if self._runs.about(run)["task"] != task.name:
            raise ClearloopError(f"{run}: a run of another task than '{task.name}'")
        name = checked_name(file, "a controller") + ".json"
        controller = load(inside(self._runs.folder, run, "controllers", name))
        if isinstance(controller, Planner):
            raise ClearloopError(f"{run}, {file}: plans at every step, which takes too long to watch")
        return controller.for_task(task)


def _law(task: Task) -> Controller | None:
    """How the task's own log was made: it may read what no sensor shows."""
    law = {name: to_text(formula) for name, formula in zip(task.actions, task.exploration_law, strict=False)}
    return Equation(outputs=law).for_task(task.unveiled) if law else None


def _entry(name: str, title: str, controller: Controller, source: str) -> dict[str, Any]:
    formula = rounded(controller.summary)
    return {
        "id": name,
        "title": title,
        "kind": controller.kind,
        "formula": formula if len(formula) <= LONGEST else formula[: LONGEST - 1] + "…",
        "source": source,
    }


def _age(path: Path) -> float:
    try:
        return -path.stat().st_mtime
    except OSError:  # it is gone
        return 0.0
