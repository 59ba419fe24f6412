"""Islands of programs: tournaments, offspring, and an archive with the best program of every complexity."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from clearloop.search.gp.genome import Genome
from clearloop.search.gp.grammar import Grammar
from clearloop.search.gp.variation import (
    cross,
    insert,
    mutate_constants,
    mutate_point,
    mutate_subtree,
    remove,
)


@dataclass(frozen=True, kw_only=True)
class GP:
    """Settings. What the shares of crossover … simplification leave over is point mutation."""

    islands: tuple[int, ...] = (11, 15, 21, 27, 33, 11, 15, 21, 27, 33)
    """the largest complexity that each allows. Good programs move on to the next, if it allows more; islands
    between which programs move are a ladder"""
    population: int = 40
    """structures on each island"""
    offspring: int = 64
    """children on each island in every round"""
    tournament: int = 3
    crossover: float = 0.3
    fresh: float = 0.05
    subtree: float = 0.15
    insertion: float = 0.2
    removal: float = 0.1
    constants: float = 0.05
    tries: int = 2
    """how often a structure may be promoted on an island: it is new ones that count"""
    patience: int = 12
    """rounds without progress after which a ladder starts anew, while the search explores"""


class Evolution:
    """`ask` for programs that were never evaluated, `tell` what the promising ones cost."""

    def __init__(self, grammar: Grammar, settings: GP, *, rng: np.random.Generator) -> None:
        self.grammar, self.settings, self.rng = grammar, settings, rng
        self.islands: list[dict[object, Genome]] = [{} for _ in settings.islands]
        """by structure"""
        self.costs: dict[Genome, float] = {}
        self.archive: dict[int, Genome] = {}
        self.seen: set[int] = set()
        self.tried: list[dict[int, int]] = [{} for _ in settings.islands]
        """on each island, how often a structure, of this hash, was promoted"""
        self.polished: dict[object, int] = {}
        """how often the constants of a structure were refined"""
        self.progress = [(np.inf, 0) for _ in self._ladders()]
        """of each ladder, the lowest cost, and the round in which it was found"""
        self.round = 0
        self.banned = [self._ban() for _ in self._ladders()]
        """of each ladder, the functions that it does without while it explores: so ladders come to different
        kinds of programs, and not each to the kind that is found first"""

    def ask(self) -> list[tuple[int, Genome]]:
        """New programs, and the island of each."""
        return [
            (number, child)
            for ladder, banned in zip(self._ladders(), self.banned, strict=True)
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
            structure, tried = hash(self.structure(genome)), self.tried[island]
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
            self.banned = [set() for _ in self.banned]
        self._forget()

    def admit(self, island: int, genome: Genome, cost: float) -> None:
        """Onto an island, if it is the best of its structure there, and into the archive."""
        self._record(genome, cost)
        structure = self.structure(genome)
        rival = self.islands[island].get(structure)
        if rival is None or cost < self.costs[rival]:
            self.islands[island][structure] = genome

    def to_polish(self, count: int, times: int) -> list[Genome]:
        """Members of the front, to be refined now: those that were refined least, and fewer than `times`."""
        refined = {genome: self.polished.get(self.structure(genome), 0) for genome in self.front()}
        chosen = sorted((g for g in refined if refined[g] < times), key=refined.__getitem__)[:count]
        for genome in chosen:
            self.polished[self.structure(genome)] = refined[genome] + 1
        return chosen

    def improve(self, genome: Genome, cost: float) -> None:
        """A program with better constants: wherever its structure lives, and in the archive."""
        self._record(genome, cost)
        structure = self.structure(genome)
        for island in self.islands:
            if structure in island and cost < self.costs[island[structure]]:
                island[structure] = genome

    def front(self) -> list[Genome]:
        """The archive without the dominated ones, from the simplest to the best."""
        front: list[Genome] = []
        for _, genome in sorted(self.archive.items()):
            if not front or self.costs[genome] < self.costs[front[-1]]:
                front.append(genome)
        return front

    def structure(self, genome: Genome) -> object:
        """The program without its constants."""
        constants = set(self.grammar.vocabulary.constants(genome))
        return genome.code, tuple(x for place, x in enumerate(genome.operand) if place not in constants)

    def _record(self, genome: Genome, cost: float) -> None:
        """Into the archive, if it is the best of its complexity."""
        self.costs[genome] = cost
        self.seen.add(hash(genome))
        complexity = self.grammar.vocabulary.complexity(genome)
        best = self.archive.get(complexity)
        if best is None or cost < self.costs[best]:
            self.archive[complexity] = genome

    def _children(self, island: int, banned: set[str]) -> list[Genome]:
        limit, enough = self.settings.islands[island], self.settings.offspring
        children: list[Genome] = []
        for _ in range(20 * enough):  # a small language runs out of programs
            children += [
                child
                for child in self._offspring(island)
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

    def _ladders(self) -> list[range]:
        """The numbers of the islands of each."""
        limits = self.settings.islands
        first = [n for n in range(len(limits)) if n == 0 or limits[n] <= limits[n - 1]]
        return [range(start, stop) for start, stop in pairwise((*first, len(limits)))]

    def _migrate(self) -> None:
        for ladder in self._ladders():
            for number in reversed(ladder[1:]):
                for genome in self._best(number - 1, 5):
                    self.admit(number, genome, self.costs[genome])

    def _share(self) -> None:
        for genome in self.front():
            complexity = self.grammar.vocabulary.complexity(genome)
            for ladder in self._ladders():
                fits = (n for n in ladder if complexity <= self.settings.islands[n])
                self.admit(next(fits, ladder[-1]), genome, self.costs[genome])

    def _start_anew(self) -> None:
        for n, ladder in enumerate(self._ladders()):
            cost = min((self.costs[g] for number in ladder for g in self._best(number, 1)), default=np.inf)
            lowest, since = self.progress[n]
            if cost < 0.995 * lowest:
                self.progress[n] = cost, self.round
            elif self.round - since >= self.settings.patience:
                self.progress[n] = np.inf, self.round
                self.banned[n] = self._ban()
                for number in ladder:
                    self.islands[number].clear()
                    self.tried[number].clear()

    def _ban(self) -> set[str]:
        """Half of the functions."""
        optional = self.grammar.optional
        return {optional[n] for n in self.rng.permutation(len(optional))[: len(optional) // 2]}

    def _forget(self) -> None:
        """What lives nowhere any more."""
        living = {genome for island in self.islands for genome in island.values()}
        living |= set(self.archive.values())
        self.costs = {genome: cost for genome, cost in self.costs.items() if genome in living}
        structures = {self.structure(genome) for genome in living}
        self.polished = {key: count for key, count in self.polished.items() if key in structures}

    def _best(self, island: int, count: int) -> list[Genome]:
        return sorted(self.islands[island].values(), key=lambda genome: self.costs[genome])[:count]

    def _parent(self, island: int) -> Genome:
        pool = list(self.islands[island].values())
        rivals = (self.rng.random(self.settings.tournament) * len(pool)).tolist()
        return min([pool[int(rival)] for rival in rivals], key=lambda genome: self.costs[genome])

    def _offspring(self, island: int) -> tuple[Genome, ...]:
        settings, rng, grammar = self.settings, self.rng, self.grammar
        if not self.islands[island]:
            return (grammar.grow(rng, int(rng.integers(1, 5))),)
        dice = rng.random()
        for share, make in (
            (settings.crossover, lambda: cross(self._parent(island), self._parent(island), grammar, rng)),
            (settings.fresh, lambda: (grammar.grow(rng, int(rng.integers(1, 5))),)),
            (settings.subtree, lambda: (mutate_subtree(self._parent(island), grammar, rng),)),
            (settings.insertion, lambda: (insert(self._parent(island), grammar, rng),)),
            (settings.removal, lambda: (remove(self._parent(island), grammar, rng),)),
            (settings.constants, lambda: (mutate_constants(self._parent(island), grammar, rng),)),
        ):
            if dice < share:
                return make()
            dice -= share
        return (mutate_point(self._parent(island), grammar, rng),)

    def state(self) -> dict[str, Any]:
        """Everything that changes, as plain data."""
        return {
            "islands": [_listed(island.values()) for island in self.islands],
            "archive": _listed(self.archive.values()),
            "costs": [[*_listed([genome])[0], cost] for genome, cost in self.costs.items()],
            "polished": [
                [*_listed([genome])[0], self.polished.get(self.structure(genome), 0)] for genome in self.costs
            ],
            "seen": np.array(sorted(self.seen), np.int64),
            "tried": [np.array(sorted(tried.items()), np.int64).reshape(-1, 2) for tried in self.tried],
            "progress": [list(pair) for pair in self.progress],
            "banned": [sorted(names) for names in self.banned],
            "round": self.round,
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on, to the bit, where `state` was taken."""
        self.islands = [
            {self.structure(genome): genome for genome in _genomes(island)} for island in state["islands"]
        ]
        self.archive = {
            self.grammar.vocabulary.complexity(genome): genome for genome in _genomes(state["archive"])
        }
        self.costs = {Genome(tuple(c), tuple(o)): cost for c, o, cost in state["costs"]}
        counts = ((Genome(tuple(c), tuple(o)), count) for c, o, count in state["polished"])
        self.polished = {self.structure(genome): count for genome, count in counts if count}
        self.seen = set(state["seen"].tolist())
        self.tried = [dict(tried.tolist()) for tried in state["tried"]]
        self.progress = [(cost, since) for cost, since in state["progress"]]
        self.banned = [set(names) for names in state["banned"]]
        self.round = state["round"]
        self.rng.bit_generator.state = state["rng"]


def _listed(genomes: Iterable[Genome]) -> list[list[list[float]]]:
    return [[list(genome.code), list(genome.operand)] for genome in genomes]


def _genomes(listed: Iterable[list[list[float]]]) -> list[Genome]:
    return [Genome(tuple(code), tuple(operand)) for code, operand in listed]  # type: ignore[arg-type]
