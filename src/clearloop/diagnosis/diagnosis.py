"""The diagnosis puts together everything that an engineer wants to know of a controller before signing it."""

from dataclasses import dataclass
from textwrap import indent
from typing import Any

import numpy as np

from clearloop.controllers import Controller
from clearloop.data import Batch
from clearloop.data.log import usual_setpoints
from clearloop.diagnosis.response import StepResponse, step_responses
from clearloop.diagnosis.robustness import Coverage, Region, Robustness, StartMap, cover, disturb, map_starts
from clearloop.evaluation.linearisation import Linearisation, linearise, linearise_each
from clearloop.evaluation.rollouts import place_name
from clearloop.plants.scenarios import Scenarios
from clearloop.showing import Shown
from clearloop.surrogate import Surrogate
from clearloop.task import Task

COURSES = 256  # starts for the coverage
DISTURBED = 128  # starts for the robustness
LOGGED = 1024  # starts for the map, where they come from the log

PLANNED = "a planner searches for a new plan at every step, which takes too long to examine"


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Shown):
    """Everything that was found out about one controller.

    It is examined on the plant if the task has one that the engine can run, otherwise on the members of the
    surrogate that judge (which no search has used).
    """

    controller: Controller
    task: Task
    on: str
    """`system`, which is the name of the plant in files, or `model`"""
    starts: StartMap | None
    linearisation: Linearisation | None
    steps: tuple[StepResponse, ...]
    """a step response for each state with a setpoint"""
    coverage: Coverage | None
    """the share of visited states outside the log; always on the model"""
    robustness: Robustness | None
    left_out: dict[str, str]
    """the parts that are None, each with the reason"""
    by_member: tuple[Linearisation, ...] = ()
    """the linearisation with each judging model; none if it was examined on the plant"""

    @property
    def place(self) -> str:
        """The word for people: `plant` or `model`."""
        return place_name(self.on)

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as JSON values, with null for what is not known."""
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
    """Examine a controller; this takes some seconds.

    Args:
        controller: The controller to examine.
        task: The task that it controls.
        batch: The log that it was learned from. It gives the spread of each state and the logged region.
        surrogate: The model that was learned from the same log.
        rng: The random numbers of starts and noise. Equal generators give equal diagnoses, so give equal
            ones to compare controllers.

    Returns:
        The diagnosis. A planner is not examined; `left_out` then says so.
    """
    controller = aimed(controller.for_task(task), task, batch)
    on, model, members = "system", None, None
    whole = task.unveiled is task  # nothing is hidden, so that a start is given by its states
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
        by_member=linearise_each(controller, task, spread=spread, surrogate=model, members=members or ()),
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
        left_out={} if linear else {"linearisation": "the controller remembers too many values"},
    )


def aimed(controller: Controller, task: Task, batch: Batch) -> Controller:
    """Return the controller with the usual setpoints of the log, where it has none of its own.

    Only setpoints that are columns of the log are filled in.
    """
    usual = usual_setpoints(task, batch.setpoints)
    return controller.model_copy(update={"setpoint": usual | controller.setpoint})
