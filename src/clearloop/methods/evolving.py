"""The search that GPRL and FGPRL share: rounds of evolution with racing and refinement, then a final."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Controller
from clearloop.errors import ClearloopError, check_range
from clearloop.kernels.layout import Policies
from clearloop.methods.focus import Focus
from clearloop.methods.method import Candidate, Problem, Search, State
from clearloop.search.gp.evolution import ConstantRefinement, Evolution
from clearloop.search.gp.genome import GP, Genome, Grammar

FINALISTS_AT_ONCE = 3  # enough to keep the engine busy on the large sample of the final


_Prepared = tuple[int, list[tuple[list[int], Policies]]]  # a number of programs, and their populations


@cache
def _background() -> ThreadPoolExecutor:
    """The thread that waits for rollouts while Python goes on."""
    return ThreadPoolExecutor(1, thread_name_prefix="clearloop-rollouts")


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
    trials: int = 0
    """children of each island that go on after the race and are refined very little, on its sample; with 0
    the best `promoted` go on at once"""
    promoted: int = 6
    """children of each island that go on after that"""
    tune: Sample = Sample(64, 1)
    """the sample on which their constants are refined a little, so that structures compete rather than lucky
    constants"""
    tunings: int = 6
    """rounds of this refinement"""
    score: Sample = Sample(256, 1)
    """the sample that decides who survives"""
    polish: Sample | None = None
    """the sample on which members of the front are refined; None takes that of `score`"""
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

    sow: bool = False
    """whether the islands begin with linear laws of the batch"""
    nursed: int = 0
    """rounds of refinement of the best sown program of each complexity, on the sample of `polish`: all others
    descend from them, and a child shows what it is worth only if its parent's constants are at their best"""
    focus: int = 0
    """rounds after which the samples of `race`, `tune`, `polish` and `refine` are drawn again where good laws
    disagree; with 0 all samples are even"""
    refine: Sample | None = None
    """the sample on which finalists are refined; None takes that of `final`"""

    def __post_init__(self) -> None:
        check_range(self, "race promoted tune tunings score final", 1)
        check_range(self, "trials polished polishings nursed focus", 0)
        check_range(self, "final_share", 0, 0.99)
        check_range(self, "explore_share", 0, 1)


class Language(Grammar):
    """A grammar whose programs are controllers: the engine can run them, and people can read them."""

    @abstractmethod
    def encode(self, genomes: Sequence[Genome]) -> Iterable[tuple[list[int], Policies]]:
        """Yield populations for the engine, each with the positions of its genomes among `genomes`."""

    def sown(self) -> list[Genome]:
        """Return programs to begin with, which follow from the batch."""
        return []

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
        self.foci: dict[int, Focus] = {}
        """samples that were drawn where laws disagree, by their number of starts"""

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
        if evolution.round == 0 and rounds.explore_share == 0:
            evolution.lift_bans()
        if evolution.round == 0 and rounds.sow:
            self._sow()
        if rounds.focus and evolution.round % rounds.focus == 0:
            self._look([*evolution.archive.front(), *self._near(3)], rounds.score.members)
        settled = evolution.settled() if rounds.focus else frozenset()
        promoted = self._race()
        if rounds.trials:
            promoted = self._try(promoted, settled)
        islands, genomes = [island for island, _ in promoted], [genome for _, genome in promoted]
        tuned = self._tune(genomes, settled)
        explore = self.problem.share < rounds.explore_share
        evolution.tell(((n, *found) for n, found in zip(islands, tuned, strict=True)), explore=explore)

    def _race(self) -> list[tuple[int, Genome]]:
        """Breed children, score them on a small sample, and return the best of each island.

        With a focus, children that change nothing come last. While the children of an island are rolled out,
        those of the next are bred.
        """
        rounds, evolution, sample = self.rounds, self.evolution, self.rounds.race
        count = rounds.trials or rounds.promoted
        living = {genome for island in evolution.islands for genome in island.values()}
        known = self._begun(sorted(living) if rounds.focus else [], sample, focused=True)
        promoted: list[tuple[int, Genome]] = []
        racing: list[tuple[list[tuple[int, Genome]], Future[Floats]]] = []

        def finish() -> None:
            for children, future in racing:
                raced = np.where(np.isin(future.result(), known.result()), np.inf, future.result())
                promoted.extend(evolution.promote(children, raced.tolist(), count))
            racing.clear()

        for children in evolution.broods():
            programs = [child for _, child in children]
            begun = self._begun(programs, sample, focused=bool(rounds.focus))
            finish()
            racing.append((children, begun))
        finish()
        return promoted

    def _try(self, promoted: Sequence[tuple[int, Genome]], settled: Set[float]) -> list[tuple[int, Genome]]:
        """Refine programs very little, and keep the best of each island."""
        rounds, genomes = self.rounds, [genome for _, genome in promoted]
        tried = self._refine(genomes, None, rounds.race, candidates=8, times=3, spread=0.7, settled=settled)
        islands = [island for island, _ in promoted]
        order = sorted(range(len(tried)), key=lambda n: (islands[n], tried[n][1]))
        kept = [list(group)[: rounds.promoted] for _, group in groupby(order, key=islands.__getitem__)]
        return [(islands[n], tried[n][0]) for group in kept for n in group]

    def _sow(self) -> None:
        """Tune the programs that follow from the batch, and let every ladder begin with them."""
        rounds, archive = self.rounds, self.evolution.archive
        most = max(self.evolution.settings.islands)
        complexity = self.language.vocabulary.complexity
        sown = dict.fromkeys(self.language.simplify(genome) for genome in self.language.sown())
        programs = [genome for genome in sown if complexity(genome) <= most]
        if rounds.focus:
            self._look(programs, rounds.score.members)
        costs = self._penalties(programs, rounds.tune, focused=True)
        best: dict[object, Genome] = {}
        for n in np.argsort(costs, kind="stable"):  # of one structure, the best constants are enough
            best.setdefault(archive.structure(programs[n]), programs[n])
        for genome, cost in self._tune(list(best.values())):
            self.evolution.sow(genome, cost)
        front, sample = archive.front(), rounds.polish or rounds.score
        nursed = self._refine(front, None, sample, candidates=12, times=rounds.nursed, spread=0.5)
        for genome, cost in self._scored(nursed):
            self.evolution.sow(genome, cost)

    def _look(self, genomes: Sequence[Genome], members: int | None) -> None:
        """Find out where laws disagree, and draw the samples there."""
        if not genomes:
            return
        costs = np.empty((len(genomes), len(self.problem.scenarios)))
        for which, policies in self.language.encode(genomes):
            costs[which] = self.problem.costs(policies, starts=costs.shape[1], members=members)
        rounds = self.rounds
        samples = (rounds.race, rounds.tune, rounds.polish or rounds.score, rounds.refine or rounds.final)
        self.foci = {n: Focus.draw(costs, n, rng=self.rng) for n in sorted({one.starts for one in samples})}

    def _near(self, count: int) -> list[Genome]:
        """Return the best few programs of each island."""
        costs = self.evolution.costs
        return [
            genome
            for island in self.evolution.islands
            for genome in sorted(island.values(), key=costs.__getitem__)[:count]
        ]

    def _tune(
        self, genomes: Sequence[Genome], settled: Set[float] = frozenset()
    ) -> list[tuple[Genome, float]]:
        """Refine the constants of programs a little, and score the results."""
        rounds = self.rounds
        tuned = self._refine(
            genomes, None, rounds.tune, candidates=8, times=rounds.tunings, spread=0.7, settled=settled
        )
        return self._scored(tuned)

    def _scored(self, refined: Sequence[tuple[Genome, float]]) -> list[tuple[Genome, float]]:
        """Score programs whose costs are those of a small sample."""
        genomes = [genome for genome, _ in refined]
        return list(zip(genomes, self._penalties(genomes, self.rounds.score).tolist(), strict=True))

    def _polish(self) -> None:
        """Refine the constants of a few members of the front."""
        evolution, rounds = self.evolution, self.rounds
        chosen = evolution.archive.to_polish(rounds.polished, rounds.polishings)
        costs = [evolution.costs[genome] for genome in chosen]
        for genome, cost in self._improve(chosen, costs, rounds.polish, rounds.score, spread=0.5):
            evolution.improve(genome, cost)

    def _call_finalists(self) -> None:
        """Score the front and the best of each island again, and keep the two best of each complexity."""
        evolution, complexity = self.evolution, self.language.vocabulary.complexity
        found = (*evolution.archive.front(), *self._near(5))
        pool = list(dict.fromkeys(self.language.simplify(genome) for genome in found))
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
        if self.rounds.focus:
            self._look([genome for genome, _, _ in self.finalists], self.rounds.final.members)

    def _refine_finalists(self) -> None:
        """Refine the finalists that were refined least often, the best of them first."""
        order = sorted(range(len(self.finalists)), key=lambda n: (self.finalists[n][2], self.finalists[n][1]))
        chosen = order[:FINALISTS_AT_ONCE]
        genomes, costs = [self.finalists[n][0] for n in chosen], [self.finalists[n][1] for n in chosen]
        refined = self._improve(genomes, costs, self.rounds.refine, self.rounds.final, spread=0.3)
        for number, (genome, cost) in zip(chosen, refined, strict=True):
            self.finalists[number] = genome, cost, self.finalists[number][2] + 1

    def _improve(
        self,
        genomes: Sequence[Genome],
        costs: Sequence[float],
        small: Sample | None,
        sample: Sample,
        *,
        spread: float,
    ) -> list[tuple[Genome, float]]:
        """Refine programs with known costs on a sample, or first on a smaller one; return what is better."""
        if small is None:
            return self._refine(genomes, costs, sample, candidates=12, times=10, spread=spread)
        refined = self._refine(genomes, None, small, candidates=12, times=10, spread=spread)
        scores = self._penalties([genome for genome, _ in refined], sample).tolist()
        return [
            (new, score) if score < cost else (old, cost)
            for old, cost, (new, _), score in zip(genomes, costs, refined, scores, strict=True)
        ]

    def _refine(
        self,
        genomes: Sequence[Genome],
        costs: Sequence[float] | None,
        sample: Sample,
        *,
        candidates: int,
        times: int,
        spread: float,
        settled: Set[float] = frozenset(),
    ) -> list[tuple[Genome, float]]:
        focused = costs is None
        known = self._penalties(genomes, sample, focused=True).tolist() if costs is None else costs
        middle = -(-len(genomes) // 2)
        halves = [
            ConstantRefinement(
                genomes[some],
                known[some],
                self.language,
                candidates=candidates,
                spread=spread,
                settled=settled,
                rng=self.rng,
            )
            for some in (slice(middle), slice(middle, None))
        ]
        # While one half is rolled out, the other is told its costs and asked again.
        under_way: list[tuple[ConstantRefinement, Future[Floats]]] = []
        for half in halves * times:
            prepared = self._prepared(half.ask())
            rolled = [(other, future.result()) for other, future in under_way]
            under_way = [(half, _background().submit(self._measured, prepared, sample, focused))]
            for other, penalties in rolled:
                other.tell(penalties.tolist())
        for other, future in under_way:
            other.tell(future.result().tolist())
        return [found for half in halves for found in half.best]

    def _penalties(self, genomes: Sequence[Genome], sample: Sample, *, focused: bool = False) -> Floats:
        return self._measured(self._prepared(genomes), sample, focused)

    def _begun(self, genomes: Sequence[Genome], sample: Sample, *, focused: bool) -> "Future[Floats]":
        """Begin to measure penalties, and return at once."""
        return _background().submit(self._measured, self._prepared(genomes), sample, focused)

    def _prepared(self, genomes: Sequence[Genome]) -> _Prepared:
        return len(genomes), list(self.language.encode(genomes))

    def _measured(self, prepared: _Prepared, sample: Sample, focused: bool) -> Floats:
        count, populations = prepared
        penalties = np.full(count, np.inf)
        starts = self.foci.get(sample.starts, sample.starts) if focused else sample.starts
        for which, policies in populations:
            penalties[which] = self.problem.penalties(policies, starts=starts, members=sample.members)
        return penalties

    def state(self) -> State:
        finalists = [
            [list(genome.code), list(genome.operand), cost, times] for genome, cost, times in self.finalists
        ]
        foci = [{"size": size, **focus._asdict()} for size, focus in self.foci.items()]
        return {"evolution": self.evolution.state(), "finalists": finalists, "foci": foci}

    def restore(self, state: State) -> None:
        self.evolution.restore(state["evolution"])
        self.finalists = [
            (Genome(tuple(code), tuple(operand)), cost, times)
            for code, operand, cost, times in state["finalists"]
        ]
        self.foci = {
            one["size"]: Focus(one["starts"], one["weights"], one["offset"]) for one in state.get("foci", [])
        }
