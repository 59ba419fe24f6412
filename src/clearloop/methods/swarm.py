"""The search that FPSRL and PSONN share: a swarm explores, then descents start from the best places it found.

From stage to stage there are fewer descents, on a larger sample.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.errors import ClearloopError, UnsuitableError, check_range
from clearloop.kernels.layout import Policies
from clearloop.methods.evolving import Sample
from clearloop.methods.method import Candidate, Problem, Search, State
from clearloop.search.cma import CMA, Descent
from clearloop.search.pso import PSO, Swarm

_DIGITS = 4  # significant digits of the parameters in files
MOST_PARAMETERS = 2_000  # of a form: the covariance of a descent has the square of this many entries


@dataclass(frozen=True)
class SwarmStage:
    """One stage of the descents."""

    until: float
    """share of the budget at which the stage ends"""
    descents: int
    """number of descents that go on in it"""
    sample: Sample
    """rollouts that a penalty is the mean of"""

    def __post_init__(self) -> None:
        check_range(self, "until", 0, 1)
        check_range(self, "descents sample", 1)


@dataclass(frozen=True, kw_only=True)
class Stages:
    """The settings that say how the search spends the budget of model steps."""

    swarm: PSO = PSO(particles=100, reach=2)
    """settings of the swarm"""
    explore: Sample = Sample(64, 1)
    """rollouts that the swarm's penalties are means of"""
    explore_share: float = 0.2
    """share of the budget for the swarm"""
    cma: CMA = CMA()
    """settings of the descents"""
    descend: tuple[SwarmStage, ...] = (
        SwarmStage(0.45, 8, Sample(64, 1)),
        SwarmStage(0.65, 4, Sample(128, 1)),
        SwarmStage(0.85, 2, Sample(256, 2)),
        SwarmStage(1.0, 2, Sample(1024, None)),
    )

    def __post_init__(self) -> None:
        if not self.descend:
            raise ClearloopError("stages: descend: expected at least one stage")
        check_range(self, "explore", 1)
        check_range(self, "explore_share", 0, 1)

    def number(self, share: float) -> int:
        """Return the stage in which this share of the budget is spent; 0 is the swarm's."""
        ends = [self.explore_share, *(stage.until for stage in self.descend[:-1])]
        return sum(share >= end for end in ends)


class Form(ABC):
    """Controllers of one structure, written as vectors of d parameters between bounds."""

    bounds: Floats
    """[d, 2] least and greatest value of each parameter"""

    def __init__(self, problem: Problem) -> None:
        self.task, self.features = problem.task, problem.features.count
        self.names = tuple(str(variable) for variable in problem.readable)
        self.slots = np.array([problem.features.slot(variable) for variable in problem.readable])
        """[D] positions of the variables that it reads among the engine's features"""
        self.scales = problem.scales[self.slots]
        self.reach: Floats = np.abs(problem.task.action_limits).max(axis=1)
        """[A] the largest size of each action"""

    def population(self, kind: int, numbers: Floats, sizes: Sequence[int]) -> Policies:
        """Return P controllers of a kind without programs for the engine.

        Args:
            kind: The kind, a constant of `kernels/layout.py`.
            numbers: [P, …] the parameters of each controller, in the order of `kernels/policies.py`.
            sizes: The counts that say how `numbers` are to be read, the same for all controllers.
        """
        return Policies(
            kind=kind,
            numbers=numbers.reshape(len(numbers), -1).astype(np.float32),
            sizes=np.array(sizes, np.int64),
            code=np.zeros(0, np.int32),
            operand=np.zeros(0, np.float32),
            spans=np.zeros((len(numbers), 0), np.int64),
            limits=self.task.action_limits.astype(np.float32),
            counts=self.task.action_counts,
            rates=self.task.action_changes,
        )

    @abstractmethod
    def encode(self, vectors: Floats) -> Policies:
        """Return [P, d] vectors as a population for the engine."""

    @abstractmethod
    def controller(self, vector: Floats) -> Controller:
        """Return one vector [d] as a controller with the same numbers."""


class Swarming(Search):
    """A search with one hunt for each form; the hunts take turns."""

    def __init__(
        self, problem: Problem, forms: Sequence[Form], stages: Stages, *, rng: np.random.Generator
    ) -> None:
        self.problem, self.stages = problem, stages
        self.hunts = [Hunt(form, stages, rng) for form in forms]

    @property
    def done(self) -> bool:
        return False

    @property
    def best(self) -> float:
        return min(run.best[1] for hunt in self.hunts for run in hunt.runs)

    def candidates(self) -> list[Candidate]:
        return [candidate for hunt in self.hunts if hunt.spent for candidate in hunt.candidates()]

    def advance(self) -> None:
        """Advance the hunt that has spent the fewest steps for each of its parameters."""
        hunt = min(self.hunts, key=lambda hunt: hunt.spent / len(hunt.form.bounds))
        hunt.advance(self.problem, self.stages.number(self.problem.share))

    def state(self) -> State:
        return {"hunts": [hunt.state() for hunt in self.hunts]}

    def restore(self, state: State) -> None:
        for hunt, part in zip(self.hunts, state["hunts"], strict=True):
            hunt.restore(part)


class Hunt:
    """The search for the best controller of one form."""

    def __init__(self, form: Form, stages: Stages, rng: np.random.Generator) -> None:
        if len(form.bounds) > MOST_PARAMETERS:
            raise UnsuitableError(
                f"a controller with {len(form.bounds):,} parameters is too large for this search, which takes"
                f" at most {MOST_PARAMETERS:,}: use fewer rules or hidden units, or a shorter history"
            )
        self.form, self.stages, self.rng = form, stages, rng
        self.stage, self.spent = 0, 0
        self.swarm = Swarm(form.bounds, stages.swarm, rng=rng)
        self.descents: list[Descent] = []

    @property
    def runs(self) -> Sequence[Swarm | Descent]:
        """The descents, or the swarm while there are none."""
        return self.descents or [self.swarm]

    def candidates(self) -> list[Candidate]:
        """Return the best controller of each run."""
        found = [run.best for run in self.runs]
        return [Candidate(self.form.controller(vector), cost) for vector, cost in found]

    def advance(self, problem: Problem, stage: int) -> None:
        """Run one round in a stage: ask the swarm or the descents, and tell them the penalties."""
        before = problem.spent
        if stage > self.stage and self.spent:
            self._enter(problem, stage)
        asked = [run.ask() for run in self.runs]
        costs = self._penalties(problem, np.concatenate(asked))
        ends = np.cumsum([len(each) for each in asked])
        for run, part in zip(self.runs, np.split(costs, ends[:-1]), strict=True):
            run.tell(part)
        self.spent += problem.spent - before

    def _enter(self, problem: Problem, stage: int) -> None:
        """Score what was found on the sample of the new stage, and go on with the best."""
        self.stage = stage
        descents = self.descents or [self._descent(start) for start in self.swarm.summits()]
        costs = self._penalties(problem, np.stack([descent.best[0] for descent in descents]))
        for descent, cost in zip(descents, costs.tolist(), strict=True):
            descent.revalue(cost)
        order = np.argsort(costs, kind="stable")[: self.stages.descend[stage - 1].descents]
        self.descents = [descents[number] for number in order]

    def _descent(self, start: Floats) -> Descent:
        return Descent(self.form.bounds, start, self.stages.cma, rng=self.rng)

    def _penalties(self, problem: Problem, vectors: Floats) -> Floats:
        sample = self.stages.descend[self.stage - 1].sample if self.stage else self.stages.explore
        return problem.penalties(self.form.encode(vectors), starts=sample.starts, members=sample.members)

    def state(self) -> State:
        """Return what `restore` needs to go on from here."""
        return {"stage": self.stage, "spent": self.spent, "runs": [run.state() for run in self.runs]}

    def restore(self, state: State) -> None:
        """Go on from what `state` gave."""
        self.stage, self.spent, runs = state["stage"], state["spent"], state["runs"]
        self.descents = [self._descent(run["best_position"]) for run in runs] if self.stage else []
        for run, part in zip(self.runs, runs, strict=True):
            run.restore(part)


def short_decimals(values: Floats) -> Floats:
    """Round to a few significant digits: the result are the doubles nearest to short decimals."""
    sizes = np.abs(values)
    places = _DIGITS - 1 - np.floor(np.log10(np.where(sizes > 0, sizes, 1.0)))
    power = 10.0 ** np.abs(places)
    near: Floats = np.where(places > 0, np.rint(values * power) / power, np.rint(values / power) * power)
    return near
