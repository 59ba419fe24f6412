"""The controller that a card is about, with everything of its run that the card needs."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clearloop.controllers import Controller, Planner, load
from clearloop.data import Batch
from clearloop.diagnosis import Diagnosis, Margins, diagnose, find_margins
from clearloop.diagnosis.terms import Experience
from clearloop.errors import ClearloopError
from clearloop.evaluation import Evaluation, evaluate
from clearloop.methods.linear_model import LinearModel, identify
from clearloop.methods.lqr import LQR, Design, design
from clearloop.plants.scenarios import Scenarios
from clearloop.runs import RunDirectory
from clearloop.runs.judgement import judging_starts
from clearloop.surrogate import Surrogate
from clearloop.task import Task

SEED = 0  # of the noise, as in the report


@dataclass(frozen=True, eq=False)
class Subject:
    name: str
    """what to call it: 003, or the name of its file"""
    file: str
    """its name"""
    controller: Controller
    """with the limits, units and setpoints of the task"""
    task: Task
    batch: Batch
    description: dict[str, Any]
    """what `run.json` says"""
    diagnosis: Diagnosis
    promised: Evaluation
    tested: Evaluation | None
    """None: there is no plant"""
    model: LinearModel | ClearloopError
    """the linear model of the log, or why there is none"""
    lqr: Design | ClearloopError
    fingerprint: str
    """SHA-256 of the controller's file"""

    @property
    def experience(self) -> Experience:
        linear, task = self.diagnosis.linearisation, self.task
        rest, aims = np.zeros(len(task.states)), np.zeros(len(task.states))
        for name, aim in self.diagnosis.controller.setpoint.items():
            rest[task.state_names.index(name)] = aims[task.state_names.index(name)] = aim
        action = np.zeros(len(task.actions))
        if linear is not None:
            rest, action, aims = linear.point, linear.action, linear.aims
        return Experience(task, self.batch, rest, action, aims)

    def margins(self, *, logged: bool) -> Margins | None:
        """With the linear model of the log, or with the system where the loop rests."""
        linear = self.diagnosis.linearisation
        if linear is None or (logged and isinstance(self.model, ClearloopError)):
            return None
        return find_margins(linear, self.model if logged and isinstance(self.model, LinearModel) else None)


def examine(file: Path, run: RunDirectory) -> Subject:
    """Some seconds."""
    description = run.describe()
    task = run.task()
    controller = load(file)
    if isinstance(controller, Planner):
        raise ClearloopError(f"{file}: a planner searches anew at every step: there is nothing to sign")
    try:
        controller = controller.for_task(task)
    except ClearloopError as error:
        raise ClearloopError(f"{file}: {error}") from error
    batch = Batch.load(run.path / "batch.parquet", task)
    surrogate = Surrogate.load(run.path / "surrogate", task)
    scoring = judging_starts(run, task, batch) if task.start_box is None else Scenarios.scoring(task)
    return Subject(
        name=file.stem,
        file=file.name,
        controller=controller,
        task=task,
        batch=batch,
        description=description,
        diagnosis=diagnose(
            controller, task, batch=batch, surrogate=surrogate, rng=np.random.default_rng(SEED)
        ),
        promised=evaluate(
            controller, task, surrogate=surrogate, members=surrogate.judge_members, starts=scoring
        ),
        tested=evaluate(controller, task) if task.scorable else None,
        model=_tried(lambda: identify(task, batch)),
        lqr=_tried(lambda: design(task, batch, LQR())),
        fingerprint=hashlib.sha256(file.read_bytes()).hexdigest(),
    )


def _tried(make: Any) -> Any:
    """What is made, or why it cannot be."""
    try:
        return make()
    except ClearloopError as error:
        return error
