"""What an engineer wants to know of one controller before signing it."""

from dataclasses import dataclass
from textwrap import indent
from typing import Any

import numpy as np

from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.data.log import usual_setpoints
from clearloop.diagnosis.linearisation import Linearisation, linearise
from clearloop.diagnosis.response import StepResponse, step_responses
from clearloop.diagnosis.robustness import Coverage, Region, Robustness, StartMap, cover, disturb, map_starts
from clearloop.plants.scenarios import Scenarios
from clearloop.surrogate import Surrogate
from clearloop.task import Task

COURSES = 256  # starts for coverage
DISTURBED = 128  # starts for robustness
LOGGED = 1024  # starts for the map, where they come from the log

PLANNED = "a planner searches anew at every step: too slow"


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """On the plant where the task has one that the engine runs, otherwise on the model's judging members."""

    controller: Controller
    task: Task
    on: str
    """`system`, which is the plant's name in files, or `model`"""
    starts: StartMap | None
    linearisation: Linearisation | None
    steps: tuple[StepResponse, ...]
    """one for each state with a setpoint"""
    coverage: Coverage | None
    """always on the model"""
    robustness: Robustness | None
    left_out: dict[str, str]
    """what is None, and why"""

    @property
    def place(self) -> str:
        """What it was examined on, for people: the plant or the model."""
        return "plant" if self.on == "system" else self.on

    def to_dict(self) -> dict[str, Any]:
        """JSON values; null for what cannot be told."""
        return {
            "controller": self.controller.summary,
            "task": self.task.name,
            "on": self.on,
            "starts": self.starts and self.starts.to_dict(),
            "linearisation": self.linearisation and self.linearisation.to_dict(),
            "steps": [step.to_dict() for step in self.steps],
            "coverage": self.coverage and self.coverage.to_dict(),
            "robustness": self.robustness and self.robustness.to_dict(),
            "left_out": self.left_out,
        }

    def __repr__(self) -> str:
        parts = [self.starts, self.linearisation, *self.steps, self.coverage, self.robustness]
        lines = [repr(part) for part in parts if part is not None]
        lines += [f"no {what}: {why}" for what, why in self.left_out.items()]
        title = f"{self.controller.summary} ({self.task.name}, on the {self.place})"
        return title + indent("\n" + "\n".join(lines), "  ")


def diagnose(
    controller: Controller, task: Task, *, batch: Batch, surrogate: Surrogate, rng: np.random.Generator
) -> Diagnosis:
    """Some seconds. The same generator gives the same diagnosis; give equal ones to compare controllers."""
    controller = aimed(controller.for_task(task), task, batch)
    on, model, members = "system", None, None
    whole = task.unveiled is task  # what a start is, all of its states tell
    if not task.simulated or not whole or task.reward_expression is None:
        on, model, members = "model", surrogate, surrogate.judge_members
    if controller.plans:
        what = ("starts", "linearisation", "steps", "coverage", "robustness")
        return Diagnosis(controller, task, on, None, None, (), None, None, dict.fromkeys(what, PLANNED))
    spread = batch.states.std(axis=0)
    boxed = whole and task.start_box is not None and bool(np.ptp(task.start_box, axis=1).any())
    scoring = Scenarios.scoring(task, COURSES) if boxed else Scenarios.drawn(task, batch, LOGGED, rng)
    points = scoring.veiled(task).starts[:, : len(task.states)]
    linear = linearise(controller, task, spread=spread, surrogate=model, members=members)
    return Diagnosis(
        controller=controller,
        task=task,
        on=on,
        starts=map_starts(
            controller, task, surrogate=model, members=members, starts=None if boxed else points
        ),
        linearisation=linear,
        steps=step_responses(
            controller,
            task,
            batch=batch,
            surrogate=model,
            members=members,
            start=linear.point if linear else None,
        ),
        coverage=cover(
            controller,
            task,
            Region(task, batch, rng=rng),
            starts=scoring[:COURSES],
            surrogate=surrogate,
            members=surrogate.judge_members,
        ),
        robustness=disturb(
            controller,
            task,
            spread=spread,
            starts=points[:DISTURBED],
            rng=rng,
            surrogate=model,
            members=members,
        ),
        left_out={} if linear else {"linearisation": "the controller remembers too much"},
    )


def aimed(controller: Controller, task: Task, batch: Batch) -> Controller:
    """With the usual setpoints of the log, where they are columns of it and the controller has none."""
    usual = usual_setpoints(task, batch.setpoints)
    return controller.model_copy(update={"setpoint": usual | controller.setpoint})
