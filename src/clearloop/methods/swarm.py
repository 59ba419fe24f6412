"""The search that FPSRL and PSONN share: a swarm explores, and where it found something, descents go on.

The number of descents falls and the sample grows from stage to stage.
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

_DIGITS = 4
MOST_PARAMETERS = 2_000  # of a form: a descent's covariance has the square of that


@dataclass(frozen=True)
class SwarmStage:
    until: float
    """share of the budget at which it ends"""
    descents: int
    """that are left"""
    sample: Sample

    def __post_init__(self) -> None:
        check_range(self, "until", 0, 1)
        check_range(self, "descents sample", 1)


@dataclass(frozen=True, kw_only=True)
class Stages:
    """How the model's steps are spent."""

    swarm: PSO = PSO(particles=100, reach=2)
    explore: Sample = Sample(64, 1)
    """what the swarm runs on"""
    explore_share: float = 0.2
    """of the budget, for the swarm"""
    cma: CMA = CMA()
    descend: tuple[SwarmStage, ...] = (
        SwarmStage(0.45, 8, Sample(64, 1)),
        SwarmStage(0.65, 4, Sample(128, 1)),
        SwarmStage(0.85, 2, Sample(256, 2)),
        SwarmStage(1.0, 2, Sample(1024, None)),
    )

    def __post_init__(self) -> None:
        if not self.descend:
            raise ClearloopError("stages: descend: expected one or more")
        check_range(self, "explore", 1)
        check_range(self, "explore_share", 0, 1)

    def number(self, share: float) -> int:
        """Of the stage when this share of the budget is spent; 0 is the swarm's."""
        ends = [self.explore_share, *(stage.until for stage in self.descend[:-1])]
        return sum(share >= end for end in ends)


class Form(ABC):
    """Controllers of one shape, as vectors of d parameters between bounds."""

    bounds: Floats
    """[d, 2]"""

    def __init__(self, problem: Problem) -> None:
        self.task, self.features = problem.task, problem.features.count
        self.names = tuple(str(variable) for variable in problem.readable)
        self.slots = np.array([problem.features.slot(variable) for variable in problem.readable])
        """[D] where what it reads stands among the engine's features"""
        self.scales = problem.scales[self.slots]
        self.reach: Floats = np.abs(problem.task.action_limits).max(axis=1)
        """[A] the largest size of each action"""

    def population(self, kind: int, numbers: Floats, sizes: Sequence[int]) -> Policies:
        """`numbers` [P, …] and `sizes` of a kind without programs."""
        return Policies(
            kind=kind,
            numbers=numbers.reshape(len(numbers), -1).astype(np.float32),
            sizes=np.array(sizes, np.int64),
            code=np.zeros(0, np.int32),
            operand=np.zeros(0, np.float32),
            spans=np.zeros((len(numbers), 0), np.int64),
            limits=self.task.action_limits.astype(np.float32),
            counts=self.task.action_counts,
        )

    @abstractmethod
    def encode(self, vectors: Floats) -> Policies:
        """[P, d] vectors as a population for the engine."""

    @abstractmethod
    def controller(self, vector: Floats) -> Controller:
        """One vector [d] as a file: the same numbers."""


class Swarming(Search):
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
        """The hunt goes on that has spent least for each of its parameters."""
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
                f"a controller of {len(form.bounds):,} parameters is too large to be searched,"
                f" {MOST_PARAMETERS:,} are the most: take fewer rules or hidden units, or let it read less"
            )
        self.form, self.stages, self.rng = form, stages, rng
        self.stage, self.spent = 0, 0
        self.swarm = Swarm(form.bounds, stages.swarm, rng=rng)
        self.descents: list[Descent] = []

    @property
    def runs(self) -> Sequence[Swarm | Descent]:
        """What goes on at present."""
        return self.descents or [self.swarm]

    def candidates(self) -> list[Candidate]:
        found = [run.best for run in self.runs]
        return [Candidate(self.form.controller(vector), cost) for vector, cost in found]

    def advance(self, problem: Problem, stage: int) -> None:
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
        """By the sample of the new stage, the best of what was found go on."""
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
        return {"stage": self.stage, "spent": self.spent, "runs": [run.state() for run in self.runs]}

    def restore(self, state: State) -> None:
        self.stage, self.spent, runs = state["stage"], state["spent"], state["runs"]
        self.descents = [self._descent(run["best_position"]) for run in runs] if self.stage else []
        for run, part in zip(self.runs, runs, strict=True):
            run.restore(part)


def short_decimals(values: Floats) -> Floats:
    """To a few significant digits: the doubles nearest to short decimals."""
    sizes = np.abs(values)
    places = _DIGITS - 1 - np.floor(np.log10(np.where(sizes > 0, sizes, 1.0)))
    power = 10.0 ** np.abs(places)
    near: Floats = np.where(places > 0, np.rint(values * power) / power, np.rint(values / power) * power)
    return near
