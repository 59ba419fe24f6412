"""An evolution breeds programs on islands, keeps the best, and moves good ones to the next island."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from clearloop.arrays import Floats
from clearloop.search.cma import Descents
from clearloop.search.gp.genome import (
    GP,
    Genome,
    Grammar,
    cross,
    few_digits,
    follow,
    insert,
    mutate_constants,
    mutate_point,
    mutate_subtree,
    remove,
)


class Archive:
    """The costs of all living programs, and the best program of every complexity."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.costs: dict[Genome, float] = {}
        self.best: dict[int, Genome] = {}
        """the best program of each complexity"""
        self.polished: dict[object, int] = {}
        """number of times that the constants of each structure were refined"""

    def record(self, genome: Genome, cost: float) -> None:
        """Note the cost of a program, and keep the program if it is the best of its complexity."""
        self.costs[genome] = cost
        complexity = self.grammar.vocabulary.complexity(genome)
        best = self.best.get(complexity)
        if best is None or cost < self.costs[best]:
            self.best[complexity] = genome

    def front(self) -> list[Genome]:
        """Return the programs that no simpler one beats, from the simplest to the best."""
        front: list[Genome] = []
        for _, genome in sorted(self.best.items()):
            if not front or self.costs[genome] < self.costs[front[-1]]:
                front.append(genome)
        return front

    def structure(self, genome: Genome) -> object:
        """Return the program without its constants, as a key."""
        constants = set(self.grammar.vocabulary.constants(genome))
        return genome.code, tuple(x for place, x in enumerate(genome.operand) if place not in constants)

    def to_polish(self, count: int, times: int) -> list[Genome]:
        """Choose `count` members of the front to refine now: the least refined, less than `times` times."""
        refined = {genome: self.polished.get(self.structure(genome), 0) for genome in self.front()}
        chosen = sorted((g for g in refined if refined[g] < times), key=refined.__getitem__)[:count]
        for genome in chosen:
            self.polished[self.structure(genome)] = refined[genome] + 1
        return chosen

    def forget(self, living: Iterable[Genome]) -> None:
        """Forget programs that live on no island and are not the best of their complexity."""
        kept = {*living, *self.best.values()}
        self.costs = {genome: cost for genome, cost in self.costs.items() if genome in kept}
        structures = {self.structure(genome) for genome in kept}
        self.polished = {key: count for key, count in self.polished.items() if key in structures}

    def state(self) -> dict[str, Any]:
        """Return everything that changes, as plain data."""
        return {
            "archive": plain_genomes(self.best.values()),
            "costs": [[*plain_genomes([genome])[0], cost] for genome, cost in self.costs.items()],
            "polished": [
                [*plain_genomes([genome])[0], self.polished.get(self.structure(genome), 0)]
                for genome in self.costs
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on exactly where the state was taken."""
        self.best = {self.grammar.vocabulary.complexity(one): one for one in genomes(state["archive"])}
        self.costs = {Genome(tuple(c), tuple(o)): cost for c, o, cost in state["costs"]}
        counts = ((Genome(tuple(c), tuple(o)), count) for c, o, count in state["polished"])
        self.polished = {self.structure(genome): count for genome, count in counts if count}


def plain_genomes(programs: Iterable[Genome]) -> list[list[list[float]]]:
    """Return genomes as plain data."""
    return [[list(genome.code), list(genome.operand)] for genome in programs]


def genomes(data: Iterable[list[list[float]]]) -> list[Genome]:
    """Return the genomes that `plain_genomes` wrote."""
    return [Genome(tuple(code), tuple(operand)) for code, operand in data]  # type: ignore[arg-type]


def breed(
    pool: Sequence[Genome],
    costs: Mapping[Genome, float],
    grammar: Grammar,
    settings: GP,
    rng: np.random.Generator,
) -> tuple[Genome, ...]:
    """Make one or two children by crossover or mutation of parents that won a tournament, or new programs.

    Args:
        pool: The programs of an island; if there are none, the child is new.
        costs: The cost of each program.
        grammar: The language of the programs.
        settings: The shares of the operators and the size of tournaments.
        rng: The source of all random numbers.
    """

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
        (settings.moves, lambda: (grammar.reshape(parent(), rng),)),
    ):
        if dice < share:
            return make()
        dice -= share
    return (mutate_point(parent(), grammar, rng),)


class Evolution:
    """The islands: `ask` for new programs, evaluate them, and `tell` the costs of the promising ones."""

    def __init__(self, grammar: Grammar, settings: GP, *, rng: np.random.Generator) -> None:
        self.grammar, self.settings, self.rng = grammar, settings, rng
        self.islands: list[dict[object, Genome]] = [{} for _ in settings.islands]
        """the programs of each island, by structure"""
        self.archive = Archive(grammar)
        self.seen: set[int] = set()
        """hashes of all programs that were ever bred"""
        self.tried: list[dict[int, int]] = [{} for _ in settings.islands]
        """on each island, the number of times that a structure was promoted, by its hash"""
        self.progress = [(np.inf, 0) for _ in self.settings.ladders]
        """for each ladder, the lowest cost and the round in which it was found"""
        self.round = 0
        self.banned = [self._ban() for _ in self.settings.ladders]
        """for each ladder, the functions that it must not use while it explores, so that ladders find
        different kinds of programs instead of all finding the easiest kind"""

    @property
    def costs(self) -> dict[Genome, float]:
        """The costs of all living programs, and of the best of every complexity."""
        return self.archive.costs

    def ask(self) -> list[tuple[int, Genome]]:
        """Breed new programs on every island, and return each with its island."""
        return [one for brood in self.broods() for one in brood]

    def broods(self) -> Iterator[list[tuple[int, Genome]]]:
        """Breed new programs on one island after the other, and yield those of each with its number."""
        for ladder, banned in zip(self.settings.ladders, self.banned, strict=True):
            for number in ladder:
                yield [(number, child) for child in self._children(number, banned)]

    def promote(
        self, children: Sequence[tuple[int, Genome]], costs: Sequence[float], count: int
    ) -> list[tuple[int, Genome]]:
        """Return the best children of each island, simplified.

        Args:
            children: The islands and programs that `ask` returned.
            costs: The cost of each child.
            count: The number of children that are promoted on each island.

        Returns:
            Islands and programs, without structures that were promoted too often before.
        """
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
        """Admit programs to their islands, and end the round: migration, selection, and new starts.

        Args:
            found: Island, program and cost of the programs to admit.
            explore: Whether ladders are kept apart and start again when they no longer progress. If not, they
                share the best programs that any of them found.
        """
        for number, genome, cost in found:
            self.admit(number, genome, cost)
        self.round += 1
        if self.round % self.settings.migration == 0:
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
        """Put a program into the archive, and onto an island if it is the best of its structure there."""
        self._record(genome, cost)
        structure = self.archive.structure(genome)
        rival = self.islands[island].get(structure)
        if rival is None or cost < self.costs[rival]:
            self.islands[island][structure] = genome

    def improve(self, genome: Genome, cost: float) -> None:
        """Replace a program by one with better constants, wherever its structure lives and in the archive."""
        self._record(genome, cost)
        structure = self.archive.structure(genome)
        for island in self.islands:
            if structure in island and cost < self.costs[island[structure]]:
                island[structure] = genome

    def settled(self) -> set[float]:
        """Return the constants of all programs on the islands."""
        constants = self.grammar.vocabulary.constants
        living = {genome for island in self.islands for genome in island.values()}
        return {genome.operand[place] for genome in living for place in constants(genome)}

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
                and (not banned or banned.isdisjoint(self.grammar.used(child)))
                and self.grammar.allows(child)
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

    def sow(self, genome: Genome, cost: float) -> None:
        """Admit a program to all islands that allow its complexity."""
        complexity = self.grammar.vocabulary.complexity(genome)
        for number, most in enumerate(self.settings.islands):
            if complexity <= most:
                self.admit(number, genome, cost)

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
        """Allow all functions on all ladders, and tell whether any was banned."""
        banned, self.banned = self.banned, [set() for _ in self.banned]
        return any(banned)

    def _ban(self) -> set[str]:
        """Draw half of the optional functions."""
        optional = self.grammar.optional
        return {optional[n] for n in self.rng.permutation(len(optional))[: len(optional) // 2]}

    def _best(self, island: int, count: int) -> list[Genome]:
        return sorted(self.islands[island].values(), key=lambda genome: self.costs[genome])[:count]

    def state(self) -> dict[str, Any]:
        """Return everything that changes, as plain data."""
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
        """Go on exactly where the state was taken."""
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


_REACH = 50.0  # the most that a constant may change in either direction, in the grammar's spreads


_SETTLED = 0.4  # spread of a constant that was refined before, as a share of that of a new one


class ConstantRefinement:
    """The refinement of the constants of many programs at once, each by its own CMA-ES.

    `ask` for candidates of all programs, `tell` their costs, and repeat; `best` holds the result.
    """

    def __init__(
        self,
        genomes: Sequence[Genome],
        costs: Sequence[float],
        grammar: Grammar,
        *,
        candidates: int,
        spread: float = 1.0,
        settled: Set[float] = frozenset(),
        rng: np.random.Generator,
    ) -> None:
        """Begin at the constants that the programs have. Programs without constants stay as they are.

        Args:
            genomes: The programs.
            costs: Their costs.
            grammar: The language, which tells how far constants may spread.
            candidates: The number of candidates for each program in every round.
            spread: The spread of the first round, in the grammar's spreads.
            settled: Constants that were refined before; they spread less.
            rng: The source of all random numbers.
        """
        self.best: list[tuple[Genome, float]] = list(zip(genomes, costs, strict=True))
        """the best variant of each program, and its cost"""
        self._runs = [
            _Run.begin(number, genome, grammar, settled)
            for number, genome in enumerate(genomes)
            if grammar.vocabulary.constants(genome)
        ]
        self._descents = Descents([len(run.places) for run in self._runs], candidates, spread, rng=rng)
        self._asked: list[Genome] = []

    def ask(self) -> list[Genome]:
        """Return the candidates of all programs, to be evaluated."""
        if not self._runs:
            return []
        points = np.clip(self._descents.ask(), -_REACH, _REACH)
        self._asked = [
            genome for run, own in zip(self._runs, points, strict=True) for genome in run.candidates(own)
        ]
        return self._asked

    def tell(self, costs: Sequence[float]) -> None:
        """Take the costs of the candidates, in the order of `ask`. NaN counts as infinite."""
        if not self._runs:
            return
        count = self._descents.candidates
        by_run = np.reshape(np.asarray(costs, np.float64), (len(self._runs), count))
        by_run = np.where(np.isnan(by_run), np.inf, by_run)
        self._descents.tell(by_run)
        best = np.argmin(by_run, axis=1).tolist()
        for n, (run, k) in enumerate(zip(self._runs, best, strict=True)):
            if by_run[n, k] < self.best[run.number][1]:
                self.best[run.number] = self._asked[n * count + k], float(by_run[n, k])


@dataclass(frozen=True)
class _Run:
    """The refinement of one program, whose constants are `values` + `spreads` · point."""

    number: int
    genome: Genome
    places: list[int]
    followers: dict[int, int]
    values: Floats
    spreads: Floats

    @classmethod
    def begin(cls, number: int, genome: Genome, grammar: Grammar, settled: Set[float]) -> "_Run":
        followers = grammar.followers(genome)
        constants = grammar.vocabulary.constants(genome)
        free = [place not in followers for place in constants]
        places = [place for place, own in zip(constants, free, strict=True) if own]
        values = np.array([genome.operand[place] for place in places])
        spreads = grammar.spreads(genome)[free] * [_SETTLED if x in settled else 1.0 for x in values.tolist()]
        return cls(number, genome, places, followers, values, spreads)

    def candidates(self, points: Floats) -> list[Genome]:
        """Return the programs with the constants at these points [K, at least as many]."""
        constants = self.values + self.spreads * points[:, : len(self.places)]
        return [
            follow(self.genome.with_operands(self.places, list(map(few_digits, row))), self.followers)
            for row in constants.tolist()
        ]
