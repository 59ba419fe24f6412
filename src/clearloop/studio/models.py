"""The models of a run, which stand for the plant where a task has none: they start in the log and go on."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.data.log import first_rows, last_rows
from clearloop.errors import ClearloopError
from clearloop.evaluation import Evaluation, evaluate
from clearloop.explanation import begin_at_mean, explain
from clearloop.methods.robust import keeps
from clearloop.plants.plant import PlantStepper, task_window
from clearloop.runs import RunDirectory
from clearloop.runs.front import judging_starts
from clearloop.studio.course import LoggedCourse
from clearloop.surrogate import Surrogate
from clearloop.task import Task

MOST_MEMBERS = 5  # models that run beside each other, which one core steps in time


@dataclass(frozen=True, eq=False)
class Models:
    """A finished run whose models are driven: those that judge, the one that repeats the log best first."""

    directory: RunDirectory
    task: Task
    batch: Batch
    surrogate: Surrogate

    @classmethod
    def of(cls, directory: RunDirectory) -> "Models":
        """Read the task, the log and the models of a run.

        Raises:
            ClearloopError: A file is missing or damaged, or the run learned no models.
        """
        task = directory.task()
        batch = Batch.load(directory.path / "batch.parquet", task)
        return cls(directory, task, batch, Surrogate.load(directory.path / "surrogate", task))

    @property
    def run(self) -> str:
        """The name of the run."""
        return self.directory.path.name

    @cached_property
    def members(self) -> tuple[int, ...]:
        """The members that are driven."""
        judges, found = self.surrogate.judge_members, self.surrogate.repetition
        if found is not None:
            judges = tuple(sorted(judges, key=lambda member: abs(found.bias[member])))
        return judges[:MOST_MEMBERS]

    def plants(self) -> list[PlantStepper]:
        """Return a plant for each member that is driven."""
        history = task_window(self.task)
        return [
            PlantStepper(self.task, self.surrogate.system(np.float64, [member], history))
            for member in self.members
        ]

    def course(self, rng: np.random.Generator) -> LoggedCourse:
        """Return a course that starts in a random row of the log, in the first half of an episode."""
        first = first_rows(self.batch.episodes)
        if self.task.starts_with_episodes:
            rows = np.unique(first)
        else:
            ends = np.flatnonzero(last_rows(self.batch.episodes))
            last = ends[np.searchsorted(ends, np.arange(len(first)))]
            rows = np.flatnonzero(np.arange(len(first)) - first < np.maximum((last - first) // 2, 1))
        row, luck = int(rng.choice(rows)), int(rng.integers(2**31))
        return LoggedCourse(self.task, self.batch, self.surrogate, row, luck)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return the usual range of each state, in the log and at its setpoints."""
        task = self.task
        low, high = np.quantile(self.batch.states, [0.01, 0.99], axis=0)
        aims: dict[str, list[float]] = {
            name: [aim] for name, aim in task.setpoints.items() if isinstance(aim, float)
        }
        if (logged := self.batch.setpoints) is not None:
            ends = np.stack([logged.min(axis=0), logged.max(axis=0)], axis=1)
            aims |= dict(zip(task.logged_setpoints, ends.tolist(), strict=True))
        return {
            name: (min([least, *aims.get(name, [])]), max([most, *aims.get(name, [])]))
            for name, least, most in zip(task.state_names, low.tolist(), high.tolist(), strict=True)
        }

    @cached_property
    def law(self) -> Controller | None:
        """The log's own controller, as `clearloop data explain` finds it; None if no law explains the log.

        It is switched on in any row of the log, so an empty integral begins at the mean action.
        """
        try:
            return begin_at_mean(explain(self.task, self.batch).controller(), self.task, self.batch)
        except ClearloopError:
            return None

    def score(self, controller: Controller, starts: int) -> Evaluation:
        """Score a controller on the models that judge, from rows of the log that no search saw."""
        return evaluate(
            controller,
            self.task,
            surrogate=self.surrogate,
            members=self.surrogate.judge_members,
            starts=judging_starts(self.directory, self.task, self.batch, starts),
        )

    def margins(self, controller: Controller) -> dict[str, Any]:
        """Return the least margins of a controller on the models that judge, as JSON values.

        Infinite margins, which no change of this kind uses up, are None, as those that nobody can tell are.
        """
        kept = keeps(controller, self.task, self.batch, self.surrogate)
        names = ("phase", "gain", "delay", "ms")
        numbers = {name: _finite(getattr(kept, name)) for name in names}
        return {**numbers, "robust": kept.robust, "known": kept.phase is not None, "why": kept.why}


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
