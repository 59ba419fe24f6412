"""Individuals as postfix arrays, in which every subtree is a slice: what crossover cuts and exchanges."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError, check_range
from clearloop.numbers import significant

_T = TypeVar("_T")


class Genome(NamedTuple):
    """A program: a symbol's code for each gene, and beside it a constant or the number of a variable.

    Hashable, so that none need be evaluated twice.
    """

    code: tuple[int, ...]
    operand: tuple[float, ...]

    def slice(self, start: int, stop: int) -> "Genome":
        return Genome(self.code[start:stop], self.operand[start:stop])

    def replace(self, start: int, stop: int, other: "Genome") -> "Genome":
        return Genome(
            self.code[:start] + other.code + self.code[stop:],
            self.operand[:start] + other.operand + self.operand[stop:],
        )

    def with_operands(self, places: Sequence[int], values: Sequence[float]) -> "Genome":
        operand = list(self.operand)
        for place, value in zip(places, values, strict=True):
            operand[place] = value
        return Genome(self.code, tuple(operand))


@dataclass(frozen=True)
class Symbol:
    """A gene of this code gives something of one kind, and takes arguments of others."""

    code: int
    name: str
    kind: str
    takes: tuple[str, ...] = ()
    weight: int = 1
    """what it adds to the complexity"""
    constant: bool = False
    """whether its operand is a constant, to be adjusted"""


class Vocabulary:
    """All symbols that genomes may consist of, by their codes."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self.symbols = {symbol.code: symbol for symbol in symbols}
        self._arity = {symbol.code: len(symbol.takes) for symbol in symbols}
        self._weight = {symbol.code: symbol.weight for symbol in symbols}
        self._kind = {symbol.code: symbol.kind for symbol in symbols}
        self._constants = {symbol.code for symbol in symbols if symbol.constant}
        self._alike = {
            symbol.code: [
                other.code
                for other in symbols
                if other is not symbol and _signature(other) == _signature(symbol)
            ]
            for symbol in symbols
            if symbol.takes
        }

    def complexity(self, genome: Genome) -> int:
        return sum(map(self._weight.__getitem__, genome.code))

    def kind(self, genome: Genome, place: int) -> str:
        """What the subtree whose root is the gene `place` gives."""
        return self._kind[genome.code[place]]

    def start(self, genome: Genome, place: int) -> int:
        """Where the subtree begins whose root is the gene `place`."""
        missing = 1
        while missing:
            missing += self._arity[genome.code[place]] - 1
            place -= 1
        return place + 1

    def subtree(self, genome: Genome, place: int) -> Genome:
        return genome.slice(self.start(genome, place), place + 1)

    def arguments(self, genome: Genome, place: int) -> Iterator[tuple[int, int]]:
        """Start and stop of each argument of the gene `place`, the last argument first."""
        stop = place
        for _ in range(self._arity[genome.code[place]]):
            start = self.start(genome, stop - 1)
            yield start, stop
            stop = start

    def places(self, genome: Genome, kind: str) -> list[int]:
        """The genes whose subtrees are of this kind."""
        kinds = self._kind
        return [place for place, code in enumerate(genome.code) if kinds[code] == kind]

    def constants(self, genome: Genome) -> list[int]:
        """The genes that hold one."""
        return [place for place, code in enumerate(genome.code) if code in self._constants]

    def alike(self, code: int) -> list[int]:
        """Other symbols that take and give the same kinds; none for what takes nothing."""
        return self._alike.get(code, [])


def _signature(symbol: Symbol) -> tuple[str, tuple[str, ...]]:
    return symbol.kind, symbol.takes


def any_of(choices: Sequence[_T], rng: np.random.Generator) -> _T:
    return choices[int(rng.random() * len(choices))]


def compose(symbol: int, *arguments: Genome) -> Genome:
    """The program that applies a symbol to others."""
    code = tuple(gene for argument in arguments for gene in argument.code)
    operand = tuple(value for argument in arguments for value in argument.operand)
    return Genome((*code, symbol), (*operand, 0.0))


# What a search must know of its language: the symbols, how programs grow, and what constants may become.

_DIGITS = 3  # of a constant: a person has to read it


class Grammar(ABC):
    vocabulary: Vocabulary
    optional: tuple[str, ...] = ()
    """functions that programs can do without"""

    @abstractmethod
    def grow(self, rng: np.random.Generator, depth: int) -> Genome:
        """A new individual, of about this depth."""

    @abstractmethod
    def regrow(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        """A small random subtree that may stand in the place of the one whose root is the gene `place`."""

    @abstractmethod
    def wrap(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        """The subtree whose root is the gene `place`, as an argument of something new of the same kind."""

    @abstractmethod
    def vary(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        """The same genome with another variable in the gene `place`; itself if it holds none."""

    @abstractmethod
    def simplify(self, genome: Genome) -> Genome:
        """The same function in fewer genes, where that can be seen: automatic cancelation."""

    @abstractmethod
    def spreads(self, genome: Genome) -> NDArray[np.float64]:
        """For each constant, how far from its value it is worth looking."""

    def used(self, genome: Genome) -> set[str]:
        """Which of the optional functions a program has."""
        return {self.vocabulary.symbols[code].name for code in genome.code}.intersection(self.optional)


def few_digits(value: float) -> float:
    return significant(value, _DIGITS)


# How an evolution breeds: sizes and shares.


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

    def __post_init__(self) -> None:
        if not self.islands:
            raise ClearloopError("gp: islands: expected one or more")
        check_range(self, "islands population offspring tournament tries patience", 1)
        check_range(self, "crossover fresh subtree insertion removal constants", 0, 1)

    @property
    def ladders(self) -> list[range]:
        """The numbers of the islands of each."""
        limits = self.islands
        first = [n for n in range(len(limits)) if n == 0 or limits[n] <= limits[n - 1]]
        return [range(start, stop) for start, stop in pairwise((*first, len(limits)))]


# How new programs come from old ones. Every operator keeps kinds, so every child is a program.

Slice = tuple[int, int]
"""Where a subtree starts and stops in its genome."""


def cross(first: Genome, second: Genome, grammar: Grammar, rng: np.random.Generator) -> tuple[Genome, Genome]:
    """Exchange two subtrees of the same kind: two offspring, as in the paper's figure 6."""
    cuts = choose_cuts(first, second, grammar.vocabulary, rng)
    if cuts is None:
        return first, second
    mine, theirs = cuts
    return first.replace(*mine, second.slice(*theirs)), second.replace(*theirs, first.slice(*mine))


def choose_cuts(
    first: Genome, second: Genome, words: Vocabulary, rng: np.random.Generator
) -> tuple[Slice, Slice] | None:
    """A subtree of each, of the same kind; None if there is no such pair with the first one's."""
    cut = any_of(range(len(first.code)), rng)
    places = words.places(second, words.kind(first, cut))
    if not places:
        return None
    other = any_of(places, rng)
    return (words.start(first, cut), cut + 1), (words.start(second, other), other + 1)


def mutate_subtree(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """A new subtree in the place of an old one."""
    place = any_of(range(len(genome.code)), rng)
    return genome.replace(
        grammar.vocabulary.start(genome, place), place + 1, grammar.regrow(genome, place, rng)
    )


def insert(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """Something new around a subtree, which becomes one of its arguments."""
    place = any_of(range(len(genome.code)), rng)
    return genome.replace(
        grammar.vocabulary.start(genome, place), place + 1, grammar.wrap(genome, place, rng)
    )


def remove(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """One of a gene's arguments in the place of the gene."""
    words = grammar.vocabulary
    place = any_of(range(len(genome.code)), rng)
    kind = words.kind(genome, place)
    fitting = [
        (start, stop)
        for start, stop in words.arguments(genome, place)
        if words.kind(genome, stop - 1) == kind
    ]
    if not fitting:
        return genome
    start, stop = any_of(fitting, rng)
    return genome.replace(words.start(genome, place), place + 1, genome.slice(start, stop))


def mutate_point(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """Another symbol with the same arguments, or another variable."""
    place = any_of(range(len(genome.code)), rng)
    others = grammar.vocabulary.alike(genome.code[place])
    if not others:
        return grammar.vary(genome, place, rng)
    code = (*genome.code[:place], any_of(others, rng), *genome.code[place + 1 :])
    return Genome(code, genome.operand)


def mutate_constants(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """Every constant a little, and sometimes one of them a lot."""
    places = grammar.vocabulary.constants(genome)
    if not places:
        return genome
    spreads = grammar.spreads(genome)
    steps = 0.5 * spreads * rng.normal(size=len(places))
    if rng.random() < 0.3:
        steps[rng.integers(len(places))] *= 10.0
    values = [few_digits(genome.operand[place] + step) for place, step in zip(places, steps, strict=True)]
    return genome.with_operands(places, values)
