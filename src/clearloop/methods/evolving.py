"""The search that GPRL and FGPRL share: rounds of evolution with racing and refinement, then a final."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.errors import ClearloopError, check_range
from clearloop.kernels.layout import Policies
from clearloop.methods.method import Candidate, Problem, Search, State
from clearloop.search.gp.evolution import ConstantRefinement, Evolution
from clearloop.search.gp.genome import GP, Genome, Grammar

FINALISTS_AT_ONCE = 3  # enough to keep the engine busy on the large sample of the final


class Sample(NamedTuple):
    """The rollouts that a penalty is the mean of."""

    starts: int
    """number of starts, the first of the problem's"""
    members: int | None
    """number of members of the surrogate; None: all that the search may use"""


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """The settings that say how the evolution spends the budget of model steps."""

    race: Sample = Sample(32, 1)
    """the sample that every child is scored on; the best `promoted` of each island go on"""
    promoted: int = 6
    """children of each island that go on after the race"""
    tune: Sample = Sample(64, 1)
    """the sample on which their constants are refined a little, so that structures compete rather than lucky
    constants"""
    score: Sample = Sample(256, 1)
    """the sample that decides who survives, and on which members of the front are refined"""
    polished: int = 8
    """members of the front, at most, whose constants are refined in a round"""
    polishings: int = 3
    """times that a structure on the front is refined; more would gain little, and the final refines again"""
    final: Sample = Sample(512, None)
    """the sample on which the front and programs near it are scored again and refined at the end"""
    final_share: float = 0.2
    """share of the budget for the final"""
    explore_share: float = 0.5
    """share of the budget, at the beginning, in which islands that no longer progress start again"""

    def __post_init__(self) -> None:
        check_range(self, "race promoted tune score final", 1)
        check_range(self, "polished polishings", 0)
        check_range(self, "final_share", 0, 0.99)
        check_range(self, "explore_share", 0, 1)


class Language(Grammar):
    """A grammar whose programs are controllers: the engine can run them, and people can read them."""

    @abstractmethod
    def encode(self, genomes: Sequence[Genome]) -> Iterable[tuple[list[int], Policies]]:
        """Yield populations for the engine, each with the positions of its genomes among `genomes`."""

    @abstractmethod
    def controller(self, genome: Genome) -> Controller:
        """Return the controller that a genome stands for, with the same numbers."""


class Evolving(Search):
    """A search by genetic programming: rounds of evolution, then a final that refines the best programs."""

    def __init__(
        self, problem: Problem, language: Language, gp: GP, rounds: Rounds, *, rng: np.random.Generator
    ) -> None:
        self.problem, self.language, self.rounds, self.rng = problem, language, rounds, rng
        self.evolution = Evolution(language, gp, rng=rng)
        self.finalists: list[tuple[Genome, float, int]] = []
        """each with its penalty and the number of times that it was refined"""

    @property
    def done(self) -> bool:
        """The search ends before the budget only if no finalist has constants left to refine."""
        constants = self.language.vocabulary.constants
        return bool(self.finalists) and not any(constants(genome) for genome, _, _ in self.finalists)

    @property
    def best(self) -> float:
        if self.finalists:
            return min(cost for _, cost, _ in self.finalists)
        return min(self.evolution.costs.values(), default=np.inf)

    def candidates(self) -> list[Candidate]:
        """Return the finalists; before the final, return the front so far."""
        costs = self.evolution.costs
        found = [(genome, cost) for genome, cost, _ in self.finalists] or [
            (genome, costs[genome]) for genome in self.evolution.archive.front()
        ]
        return [
            Candidate(self.language.controller(self.language.simplify(genome)), cost)
            for genome, cost in found
        ]

    def advance(self) -> None:
        spent = self.problem.spent
        if not self.finalists and self.problem.share < 1 - self.rounds.final_share:
            self._evolve()
            self._polish()
            if self.problem.spent > spent or self.evolution.lift_bans():
                return
        if not self.finalists:
            self._call_finalists()
        else:
            self._refine_finalists()

    def _evolve(self) -> None:
        """Score all children on a small sample, tune and score the promising ones, and keep the best."""
        rounds, evolution = self.rounds, self.evolution
        children = evolution.ask()
        raced = self._penalties([child for _, child in children], rounds.race)
        promoted = evolution.promote(children, raced.tolist(), rounds.promoted)
        islands, genomes = [island for island, _ in promoted], [genome for _, genome in promoted]
        tuned = self._refine(genomes, None, rounds.tune, candidates=8, times=6, spread=0.7)
        genomes = [genome for genome, _ in tuned]
        scores = self._penalties(genomes, rounds.score).tolist()
        explore = self.problem.share < rounds.explore_share
        evolution.tell(zip(islands, genomes, scores, strict=True), explore=explore)

    def _polish(self) -> None:
        """Refine the constants of a few members of the front."""
        evolution, sample = self.evolution, self.rounds.score
        chosen = evolution.archive.to_polish(self.rounds.polished, self.rounds.polishings)
        costs = [evolution.costs[genome] for genome in chosen]
        for genome, cost in self._refine(chosen, costs, sample, candidates=12, times=10, spread=0.5):
            evolution.improve(genome, cost)

    def _call_finalists(self) -> None:
        """Score the front and the best of each island again, and keep the two best of each complexity."""
        evolution, complexity = self.evolution, self.language.vocabulary.complexity
        near = [
            genome
            for island in evolution.islands
            for genome in sorted(island.values(), key=evolution.costs.__getitem__)[:5]
        ]
        pool = list(
            dict.fromkeys(self.language.simplify(genome) for genome in (*evolution.archive.front(), *near))
        )
        if not pool:
            most = max(evolution.settings.islands)
            raise ClearloopError(
                f"gp.islands: no program has a complexity of {most} or less, which is the most that the "
                "islands allow: raise this limit"
            )
        costs = self._penalties(pool, self.rounds.final)
        groups: dict[int, list[tuple[float, Genome]]] = {}
        for cost, genome in sorted(zip(costs.tolist(), pool, strict=True)):
            groups.setdefault(complexity(genome), []).append((cost, genome))
        lowest = np.inf
        for _, group in sorted(groups.items()):
            near_enough = lowest + 0.03 * abs(lowest)
            self.finalists += [(genome, cost, 0) for cost, genome in group[:2] if cost < near_enough]
            lowest = min(lowest, group[0][0])

    def _refine_finalists(self) -> None:
        """Refine the finalists that were refined least often, the best of them first."""
        order = sorted(range(len(self.finalists)), key=lambda n: (self.finalists[n][2], self.finalists[n][1]))
        chosen = order[:FINALISTS_AT_ONCE]
        genomes, costs = [self.finalists[n][0] for n in chosen], [self.finalists[n][1] for n in chosen]
        refined = self._refine(genomes, costs, self.rounds.final, candidates=12, times=10, spread=0.3)
        for number, (genome, cost) in zip(chosen, refined, strict=True):
            self.finalists[number] = genome, cost, self.finalists[number][2] + 1

    def _refine(
        self,
        genomes: Sequence[Genome],
        costs: Sequence[float] | None,
        sample: Sample,
        *,
        candidates: int,
        times: int,
        spread: float,
    ) -> list[tuple[Genome, float]]:
        known = self._penalties(genomes, sample).tolist() if costs is None else costs
        refinement = ConstantRefinement(
            genomes, known, self.language, candidates=candidates, spread=spread, rng=self.rng
        )
        for _ in range(times):
            asked = refinement.ask()
            refinement.tell(self._penalties(asked, sample).tolist())
        return refinement.best

    def _penalties(self, genomes: Sequence[Genome], sample: Sample) -> Floats:
        penalties = np.full(len(genomes), np.inf)
        for which, policies in self.language.encode(genomes):
            penalties[which] = self.problem.penalties(policies, starts=sample.starts, members=sample.members)
        return penalties

    def state(self) -> State:
        finalists = [
            [list(genome.code), list(genome.operand), cost, times] for genome, cost, times in self.finalists
        ]
        return {"evolution": self.evolution.state(), "finalists": finalists}

    def restore(self, state: State) -> None:
        self.evolution.restore(state["evolution"])
        self.finalists = [
            (Genome(tuple(code), tuple(operand)), cost, times)
            for code, operand, cost, times in state["finalists"]
        ]
