"""Islands of programs: they breed, the best live on, and good ones move to the next island."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from clearloop.arrays import Floats
from clearloop.search.cma import CMA, Descent
from clearloop.search.gp.genome import (
    GP,
    Genome,
    Grammar,
    cross,
    few_digits,
    insert,
    mutate_constants,
    mutate_point,
    mutate_subtree,
    remove,
)

# What programs cost: of all that live, and the best of every complexity.


class Archive:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.costs: dict[Genome, float] = {}
        self.best: dict[int, Genome] = {}
        """by complexity"""
        self.polished: dict[object, int] = {}
        """how often the constants of a structure were refined"""

    def record(self, genome: Genome, cost: float) -> None:
        """Kept if it is the best of its complexity."""
        self.costs[genome] = cost
        complexity = self.grammar.vocabulary.complexity(genome)
        best = self.best.get(complexity)
        if best is None or cost < self.costs[best]:
            self.best[complexity] = genome

    def front(self) -> list[Genome]:
        """Without the dominated ones, from the simplest to the best."""
        front: list[Genome] = []
        for _, genome in sorted(self.best.items()):
            if not front or self.costs[genome] < self.costs[front[-1]]:
                front.append(genome)
        return front

    def structure(self, genome: Genome) -> object:
        """The program without its constants."""
        constants = set(self.grammar.vocabulary.constants(genome))
        return genome.code, tuple(x for place, x in enumerate(genome.operand) if place not in constants)

    def to_polish(self, count: int, times: int) -> list[Genome]:
        """Members of the front, to be refined now: those that were refined least, and fewer than `times`."""
        refined = {genome: self.polished.get(self.structure(genome), 0) for genome in self.front()}
        chosen = sorted((g for g in refined if refined[g] < times), key=refined.__getitem__)[:count]
        for genome in chosen:
            self.polished[self.structure(genome)] = refined[genome] + 1
        return chosen

    def forget(self, living: Iterable[Genome]) -> None:
        """What lives nowhere any more, and is not the best of its complexity."""
        kept = {*living, *self.best.values()}
        self.costs = {genome: cost for genome, cost in self.costs.items() if genome in kept}
        structures = {self.structure(genome) for genome in kept}
        self.polished = {key: count for key, count in self.polished.items() if key in structures}

    def state(self) -> dict[str, Any]:
        """Everything that changes, as plain data."""
        return {
            "archive": plain_genomes(self.best.values()),
            "costs": [[*plain_genomes([genome])[0], cost] for genome, cost in self.costs.items()],
            "polished": [
                [*plain_genomes([genome])[0], self.polished.get(self.structure(genome), 0)]
                for genome in self.costs
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.best = {self.grammar.vocabulary.complexity(one): one for one in genomes(state["archive"])}
        self.costs = {Genome(tuple(c), tuple(o)): cost for c, o, cost in state["costs"]}
        counts = ((Genome(tuple(c), tuple(o)), count) for c, o, count in state["polished"])
        self.polished = {self.structure(genome): count for genome, count in counts if count}


def plain_genomes(programs: Iterable[Genome]) -> list[list[list[float]]]:
    """As plain data."""
    return [[list(genome.code), list(genome.operand)] for genome in programs]


def genomes(data: Iterable[list[list[float]]]) -> list[Genome]:
    """What `listed` made plain."""
    return [Genome(tuple(code), tuple(operand)) for code, operand in data]  # type: ignore[arg-type]


# Children: by crossover or mutation of parents that won a tournament, or grown anew.


def breed(
    pool: Sequence[Genome],
    costs: Mapping[Genome, float],
    grammar: Grammar,
    settings: GP,
    rng: np.random.Generator,
) -> tuple[Genome, ...]:
    """One or two children of programs that live together; grown anew where none does."""

    def parent() -> Genome:
        rivals = (rng.random(settings.tournament) * len(pool)).tolist()
        return min([pool[int(rival)] for rival in rivals], key=costs.__getitem__)

    def fresh() -> Genome:
        return grammar.grow(rng, int(rng.integers(1, 5)))

    if not pool:
        return (fresh(),)
    dice = rng.random()
    for share, make in (
        (settings.crossover, lambda: cross(parent(), parent(), grammar, rng)),
        (settings.fresh, lambda: (fresh(),)),
        (settings.subtree, lambda: (mutate_subtree(parent(), grammar, rng),)),
        (settings.insertion, lambda: (insert(parent(), grammar, rng),)),
        (settings.removal, lambda: (remove(parent(), grammar, rng),)),
        (settings.constants, lambda: (mutate_constants(parent(), grammar, rng),)),
    ):
        if dice < share:
            return make()
        dice -= share
    return (mutate_point(parent(), grammar, rng),)


class Evolution:
    """`ask` for programs that were never evaluated, `tell` what the promising ones cost."""

    def __init__(self, grammar: Grammar, settings: GP, *, rng: np.random.Generator) -> None:
        self.grammar, self.settings, self.rng = grammar, settings, rng
        self.islands: list[dict[object, Genome]] = [{} for _ in settings.islands]
        """by structure"""
        self.archive = Archive(grammar)
        self.seen: set[int] = set()
        self.tried: list[dict[int, int]] = [{} for _ in settings.islands]
        """on each island, how often a structure, of this hash, was promoted"""
        self.progress = [(np.inf, 0) for _ in self.settings.ladders]
        """of each ladder, the lowest cost, and the round in which it was found"""
        self.round = 0
        self.banned = [self._ban() for _ in self.settings.ladders]
        """of each ladder, the functions that it does without while it explores: so ladders come to different
        kinds of programs, and not each to the kind that is found first"""

    @property
    def costs(self) -> dict[Genome, float]:
        """Of all that live, and of the best of every complexity."""
        return self.archive.costs

    def ask(self) -> list[tuple[int, Genome]]:
        """New programs, and the island of each."""
        return [
            (number, child)
            for ladder, banned in zip(self.settings.ladders, self.banned, strict=True)
            for number in ladder
            for child in self._children(number, banned)
        ]

    def promote(
        self, children: Sequence[tuple[int, Genome]], costs: Sequence[float], count: int
    ) -> list[tuple[int, Genome]]:
        """The best of each island, simplified, of structures that were not promoted too often before."""
        chosen: list[tuple[int, Genome]] = []
        taken = [0] * len(self.islands)
        for place in sorted(range(len(children)), key=costs.__getitem__):
            island, child = children[place]
            if taken[island] == count:
                continue
            genome = self.grammar.simplify(child)
            structure, tried = hash(self.archive.structure(genome)), self.tried[island]
            if tried.get(structure, 0) < self.settings.tries:
                tried[structure] = tried.get(structure, 0) + 1
                taken[island] += 1
                chosen.append((island, genome))
        return chosen

    def tell(self, found: Iterable[tuple[int, Genome, float]], *, explore: bool) -> None:
        """Island, program and cost of those that are worth to live.

        As long as it is to `explore`, ladders are kept apart, and start anew when they no longer progress.
        Afterwards they share the best of what all of them found.
        """
        for number, genome, cost in found:
            self.admit(number, genome, cost)
        self.round += 1
        if self.round % 5 == 0:
            self._migrate()
            if not explore:
                self._share()
        for island in self.islands:
            self._select(island)
        if explore:
            self._start_anew()
        else:
            self.lift_bans()
        self.archive.forget(genome for island in self.islands for genome in island.values())

    def admit(self, island: int, genome: Genome, cost: float) -> None:
        """Onto an island, if it is the best of its structure there, and into the archive."""
        self._record(genome, cost)
        structure = self.archive.structure(genome)
        rival = self.islands[island].get(structure)
        if rival is None or cost < self.costs[rival]:
            self.islands[island][structure] = genome

    def improve(self, genome: Genome, cost: float) -> None:
        """A program with better constants: wherever its structure lives, and in the archive."""
        self._record(genome, cost)
        structure = self.archive.structure(genome)
        for island in self.islands:
            if structure in island and cost < self.costs[island[structure]]:
                island[structure] = genome

    def _record(self, genome: Genome, cost: float) -> None:
        self.archive.record(genome, cost)
        self.seen.add(hash(genome))

    def _children(self, island: int, banned: set[str]) -> list[Genome]:
        limit, enough = self.settings.islands[island], self.settings.offspring
        pool = list(self.islands[island].values())
        children: list[Genome] = []
        for _ in range(20 * enough):  # a small language runs out of programs
            children += [
                child
                for child in breed(pool, self.costs, self.grammar, self.settings, self.rng)
                if self.grammar.vocabulary.complexity(child) <= limit
                and banned.isdisjoint(self.grammar.used(child))
                and self._is_new(child)
            ]
            if len(children) >= enough:
                break
        return children

    def _is_new(self, genome: Genome) -> bool:
        key = hash(genome)
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def _select(self, island: dict[object, Genome]) -> None:
        best = sorted(island.items(), key=lambda item: self.costs[item[1]])[: self.settings.population]
        island.clear()
        island.update(best)

    def _migrate(self) -> None:
        for ladder in self.settings.ladders:
            for number in reversed(ladder[1:]):
                for genome in self._best(number - 1, 5):
                    self.admit(number, genome, self.costs[genome])

    def _share(self) -> None:
        for genome in self.archive.front():
            complexity = self.grammar.vocabulary.complexity(genome)
            for ladder in self.settings.ladders:
                fits = (n for n in ladder if complexity <= self.settings.islands[n])
                self.admit(next(fits, ladder[-1]), genome, self.costs[genome])

    def _start_anew(self) -> None:
        for n, ladder in enumerate(self.settings.ladders):
            cost = min((self.costs[g] for number in ladder for g in self._best(number, 1)), default=np.inf)
            lowest, since = self.progress[n]
            if cost < lowest and (np.isinf(lowest) or cost < lowest - 0.005 * abs(lowest)):
                self.progress[n] = cost, self.round
            elif self.round - since >= self.settings.patience:
                self.progress[n] = np.inf, self.round
                self.banned[n] = self._ban()
                for number in ladder:
                    self.islands[number].clear()
                    self.tried[number].clear()

    def lift_bans(self) -> bool:
        """Whether there were any."""
        banned, self.banned = self.banned, [set() for _ in self.banned]
        return any(banned)

    def _ban(self) -> set[str]:
        """Half of the functions."""
        optional = self.grammar.optional
        return {optional[n] for n in self.rng.permutation(len(optional))[: len(optional) // 2]}

    def _best(self, island: int, count: int) -> list[Genome]:
        return sorted(self.islands[island].values(), key=lambda genome: self.costs[genome])[:count]

    def state(self) -> dict[str, Any]:
        """Everything that changes, as plain data."""
        return {
            "islands": [plain_genomes(island.values()) for island in self.islands],
            **self.archive.state(),
            "seen": np.array(sorted(self.seen), np.int64),
            "tried": [np.array(sorted(tried.items()), np.int64).reshape(-1, 2) for tried in self.tried],
            "progress": [list(pair) for pair in self.progress],
            "banned": [sorted(names) for names in self.banned],
            "round": self.round,
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on, to the bit, where `state` was taken."""
        self.archive.restore(state)
        self.islands = [
            {self.archive.structure(genome): genome for genome in genomes(island)}
            for island in state["islands"]
        ]
        self.seen = set(state["seen"].tolist())
        self.tried = [dict(tried.tolist()) for tried in state["tried"]]
        self.progress = [(cost, since) for cost, since in state["progress"]]
        self.banned = [set(names) for names in state["banned"]]
        self.round = state["round"]
        self.rng.bit_generator.state = state["rng"]


# The constants of many programs refined at once, each by its own CMA-ES.


_REACH = 50.0  # how far a constant may go to either side, in the grammar's spreads


class ConstantRefinement:
    """`ask` for candidates of all programs, `tell` what they cost, as often as is worth it; then `best`."""

    def __init__(
        self,
        genomes: Sequence[Genome],
        costs: Sequence[float],
        grammar: Grammar,
        *,
        candidates: int,
        spread: float = 1.0,
        rng: np.random.Generator,
    ) -> None:
        """`costs` of the programs as they are; `candidates` for each of them in every round.

        `spread`: of the first round, in the grammar's spreads. Programs without constants stay as they are.
        """
        self.best: list[tuple[Genome, float]] = list(zip(genomes, costs, strict=True))
        """of each program, what it became, and what that costs"""
        self._runs = [
            _Run.begin(number, genome, places, grammar, candidates, spread, rng)
            for number, genome in enumerate(genomes)
            if (places := grammar.vocabulary.constants(genome))
        ]
        self._candidates = candidates
        self._asked: list[Genome] = []

    def ask(self) -> list[Genome]:
        self._asked = [genome for run in self._runs for genome in run.ask()]
        return self._asked

    def tell(self, costs: Sequence[float]) -> None:
        by_run = np.reshape(np.asarray(costs, np.float64), (len(self._runs), self._candidates))
        for n, (run, told) in enumerate(zip(self._runs, by_run, strict=True)):
            run.descent.tell(told)
            best = int(np.argmin(told))
            if told[best] < self.best[run.number][1]:
                self.best[run.number] = self._asked[n * self._candidates + best], float(told[best])


@dataclass(frozen=True)
class _Run:
    """One program; its constants are `values` + `spreads` · point."""

    number: int
    genome: Genome
    places: list[int]
    values: Floats
    spreads: Floats
    descent: Descent

    @classmethod
    def begin(
        cls,
        number: int,
        genome: Genome,
        places: list[int],
        grammar: Grammar,
        candidates: int,
        spread: float,
        rng: np.random.Generator,
    ) -> "_Run":
        start = np.zeros(len(places))
        box = np.tile([-_REACH, _REACH], (len(places), 1))
        settings = CMA(candidates=candidates, spread=spread / (2 * _REACH))
        values = np.array([genome.operand[place] for place in places])
        return cls(
            number, genome, places, values, grammar.spreads(genome), Descent(box, start, settings, rng=rng)
        )

    def ask(self) -> list[Genome]:
        points = self.values + self.spreads * self.descent.ask()
        return [
            self.genome.with_operands(self.places, [few_digits(value) for value in point])
            for point in points.tolist()
        ]
