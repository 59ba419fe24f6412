"""The particle swarm optimisation policy (PSO-P, sec. 3.4 of the paper) makes a new plan at every step.

Nothing is left to learn once there is a model: the controller is itself a search, which
`evaluation/planning.py` runs at every step. The one round here finds its penalty on the model.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from clearloop.controllers import Planner
from clearloop.controllers.planner import MOST
from clearloop.errors import check_range
from clearloop.evaluation import evaluate
from clearloop.evaluation.planning import pilot_of, with_model
from clearloop.methods.method import Candidate, Column, Method, Problem, Search, State
from clearloop.task import Task

RUN = ".."  # the run's folder, seen from the folder of its controllers


@dataclass(frozen=True, kw_only=True)
class PSOP(Method):
    """A planner that searches the next actions on the model at every step (PSO-P, sec. 3.4 of the paper).

    Attributes:
        horizon: Steps that the planner looks ahead; None takes six tenths of the task's horizon.
        hold: Steps for which a plan keeps an action; None takes a tenth of the planner's horizon.
        particles: Plans that are tried in each round of the swarm.
        rounds: Rounds of the swarm at every step.
        members: Members of the surrogate whose mean penalty the plan minimises.
        tried: Starts from which `learn` evaluates the planner.
    """

    horizon: int | None = None
    hold: int | None = None
    particles: int = 128
    rounds: int = 16
    members: int = 1
    tried: int = 16

    name: ClassVar[str] = "pso-p"
    title: ClassVar[str] = "PSO-P"
    gives: ClassVar[str] = "planner"
    section: ClassVar[str] = "3.4"
    columns: ClassVar[tuple[Column, ...]] = (Column("pso-p", "PSO-P", 3, "1.254 ± 0.001", "4.20 ± 0.04"),)
    effort: ClassVar[float] = 1.6
    grows: ClassVar[bool] = False
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range(self, "horizon hold particles rounds members", 1, MOST)
        check_range(self, "tried", 1)

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> "PSOPSearch":
        return PSOPSearch(problem, self, rng)

    def planner(self, task: Task, *, seed: int) -> Planner:
        """Return the controller with these settings, which still needs a model to plan with.

        Args:
            task: The task that gives the horizon and the names of the actions.
            seed: The seed of the random numbers that the planner draws.
        """
        horizon = self.horizon or min(math.ceil(0.6 * task.horizon), MOST)
        return Planner(
            run=RUN,
            outputs=task.action_names,
            horizon=horizon,
            hold=self.hold or math.ceil(horizon / 10),
            particles=self.particles,
            rounds=self.rounds,
            members=self.members,
            seed=seed,
        )


class PSOPSearch(Search):
    """One round, which evaluates the planner on a member of the surrogate that it does not plan with."""

    def __init__(self, problem: Problem, settings: PSOP, rng: np.random.Generator) -> None:
        self.problem, self.tried = problem, settings.tried
        planner = settings.planner(problem.task, seed=int(rng.integers(2**32)))
        self.controller = with_model(planner, problem.task, problem.surrogate)
        self._penalty = math.inf

    def advance(self) -> None:
        problem, surrogate = self.problem, self.problem.surrogate
        starts = problem.scenarios[: self.tried]
        score = evaluate(
            self.controller, problem.task, surrogate=surrogate, members=surrogate.search_members[-1:],
            starts=starts,
        )  # fmt: skip
        pilot = pilot_of(self.controller)
        problem.spent += (pilot.spent if pilot else 0) + len(starts) * problem.task.horizon
        self._penalty = score.penalty

    @property
    def done(self) -> bool:
        return math.isfinite(self._penalty)

    @property
    def best(self) -> float:
        return self._penalty

    def candidates(self) -> list[Candidate]:
        return [Candidate(self.controller, self._penalty)]

    def state(self) -> State:
        return {"penalty": self._penalty}

    def restore(self, state: State) -> None:
        self._penalty = state["penalty"]
