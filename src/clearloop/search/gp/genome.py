"""Individuals are programs in postfix order, so that every subtree is a slice that operators can exchange."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from clearloop.errors import ClearloopError, check_range
from clearloop.numbers import significant

_T = TypeVar("_T")


class Genome(NamedTuple):
    """A program in postfix order. Genomes are hashable, so that none is evaluated twice."""

    code: tuple[int, ...]
    """code of the symbol of each gene"""
    operand: tuple[float, ...]
    """constant or index of the variable of each gene; 0 for other symbols"""

    def slice(self, start: int, stop: int) -> "Genome":
        """Return the genes from `start` to `stop`."""
        return Genome(self.code[start:stop], self.operand[start:stop])

    def replace(self, start: int, stop: int, other: "Genome") -> "Genome":
        """Return the genome with other genes instead of those from `start` to `stop`."""
        return Genome(
            self.code[:start] + other.code + self.code[stop:],
            self.operand[:start] + other.operand + self.operand[stop:],
        )

    def with_operands(self, places: Sequence[int], values: Sequence[float]) -> "Genome":
        """Return the genome with these operands in the genes `places`."""
        operand = list(self.operand)
        for place, value in zip(places, values, strict=True):
            operand[place] = value
        return Genome(self.code, tuple(operand))


@dataclass(frozen=True)
class Symbol:
    """A symbol of the language, with the kinds (types) of its result and its arguments."""

    code: int
    name: str
    kind: str
    """kind of the result"""
    takes: tuple[str, ...] = ()
    """kind of each argument"""
    weight: int = 1
    """what it adds to the complexity"""
    constant: bool = False
    """whether its operand is a constant that the search adjusts"""


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
        """Return the sum of the weights of a genome's symbols."""
        return sum(map(self._weight.__getitem__, genome.code))

    def kind(self, genome: Genome, place: int) -> str:
        """Return the kind of the subtree whose root is the gene `place`."""
        return self._kind[genome.code[place]]

    def start(self, genome: Genome, place: int) -> int:
        """Return the first gene of the subtree whose root is the gene `place`."""
        missing = 1
        while missing:
            missing += self._arity[genome.code[place]] - 1
            place -= 1
        return place + 1

    def subtree(self, genome: Genome, place: int) -> Genome:
        """Return the subtree whose root is the gene `place`."""
        return genome.slice(self.start(genome, place), place + 1)

    def arguments(self, genome: Genome, place: int) -> Iterator[tuple[int, int]]:
        """Yield start and stop of each argument of the gene `place`, the last argument first."""
        stop = place
        for _ in range(self._arity[genome.code[place]]):
            start = self.start(genome, stop - 1)
            yield start, stop
            stop = start

    def places(self, genome: Genome, kind: str) -> list[int]:
        """Return the genes whose subtrees are of this kind."""
        kinds = self._kind
        return [place for place, code in enumerate(genome.code) if kinds[code] == kind]

    def constants(self, genome: Genome) -> list[int]:
        """Return the genes that hold constants."""
        return [place for place, code in enumerate(genome.code) if code in self._constants]

    def alike(self, code: int) -> list[int]:
        """Return the other symbols with the same kinds; there are none for symbols without arguments."""
        return self._alike.get(code, [])


def _signature(symbol: Symbol) -> tuple[str, tuple[str, ...]]:
    return symbol.kind, symbol.takes


def any_of(choices: Sequence[_T], rng: np.random.Generator) -> _T:
    """Draw one of the choices."""
    return choices[int(rng.random() * len(choices))]


def compose(symbol: int, *arguments: Genome) -> Genome:
    """Return the program that applies a symbol to arguments."""
    code: tuple[int, ...] = ()
    operand: tuple[float, ...] = ()
    for argument in arguments:
        code += argument.code
        operand += argument.operand
    return Genome((*code, symbol), (*operand, 0.0))


_DIGITS = 3  # significant digits of a constant, because a person has to read it


class Grammar(ABC):
    """The language of a search: its symbols, how programs grow, and how far constants may change."""

    vocabulary: Vocabulary
    optional: tuple[str, ...] = ()
    """functions that programs need not use"""

    @abstractmethod
    def grow(self, rng: np.random.Generator, depth: int) -> Genome:
        """Return a new individual, of about this depth."""

    @abstractmethod
    def regrow(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        """Return a small random subtree that may replace the one whose root is the gene `place`."""

    @abstractmethod
    def wrap(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        """Return something new of the same kind, with the subtree whose root is the gene `place` in it."""

    @abstractmethod
    def vary(self, genome: Genome, place: int, rng: np.random.Generator) -> Genome:
        """Return the genome with another variable in the gene `place`, or itself if that is no variable."""

    @abstractmethod
    def simplify(self, genome: Genome) -> Genome:
        """Return the same function in fewer genes, if there are such: automatic cancelation."""

    @abstractmethod
    def reshape(self, genome: Genome, rng: np.random.Generator) -> Genome:
        """Return the program with one part changed as an engineer would: guarded, faded, bent, scheduled."""

    def allows(self, genome: Genome) -> bool:  # noqa: ARG002
        """Tell whether a program may be evaluated; a language may rule some programs out."""
        return True

    def followers(self, genome: Genome) -> dict[int, int]:  # noqa: ARG002
        """Return the constants that must be minus another one: the gene of that, by their own gene."""
        return {}

    @abstractmethod
    def spreads(self, genome: Genome) -> NDArray[np.float64]:
        """Return, for each constant, a typical distance at which to search for better values."""

    def used(self, genome: Genome) -> set[str]:
        """Return the optional functions that a program uses."""
        return {self.vocabulary.symbols[code].name for code in genome.code}.intersection(self.optional)


def few_digits(value: float) -> float:
    """Round a constant to a few significant digits."""
    return significant(value, _DIGITS)


@dataclass(frozen=True, kw_only=True)
class GP:
    """Settings of an evolution. The shares of the operators leave a rest, which is point mutation."""

    islands: tuple[int, ...] = (11, 15, 21, 27, 33, 11, 15, 21, 27, 33)
    """largest complexity on each island. Good programs move to the next island if that allows more; islands
    between which programs move are called a ladder"""
    population: int = 40
    """structures on each island"""
    offspring: int = 64
    """children on each island in every round"""
    tournament: int = 3
    """programs of which the best becomes a parent"""
    crossover: float = 0.3
    """share of children by crossover"""
    fresh: float = 0.05
    """share of children that are new programs"""
    subtree: float = 0.15
    """share of children with a new subtree instead of an old one"""
    insertion: float = 0.2
    """share of children with something new around a subtree"""
    removal: float = 0.1
    """share of children with an argument instead of its operation"""
    constants: float = 0.05
    """share of children with other constants"""
    tries: int = 2
    """times that a structure may be promoted on an island, so that new structures get their turn"""
    patience: int = 12
    """rounds without progress after which a ladder starts again, while the search explores"""
    migration: int = 5
    """rounds after which the best programs of each island move to the next"""
    moves: float = 0.0
    """share of children with one part changed as an engineer would: guarded, faded, bent, scheduled"""
    symmetric: bool = False
    """whether only odd functions are searched if the task is symmetric"""
    setpoints: bool = False
    """whether programs may read setpoints that move"""

    def __post_init__(self) -> None:
        if not self.islands:
            raise ClearloopError("gp: islands: expected at least one island")
        check_range(self, "islands population offspring tournament tries patience migration", 1)
        check_range(self, "crossover fresh subtree insertion removal constants moves", 0, 1)

    @property
    def ladders(self) -> list[range]:
        """The islands of each ladder."""
        limits = self.islands
        first = [n for n in range(len(limits)) if n == 0 or limits[n] <= limits[n - 1]]
        return [range(start, stop) for start, stop in pairwise((*first, len(limits)))]


# The operators that make new programs from old ones. Each of them keeps kinds, so every child is a program.

Slice = tuple[int, int]
"""Start and stop of a subtree in its genome."""


def cross(first: Genome, second: Genome, grammar: Grammar, rng: np.random.Generator) -> tuple[Genome, Genome]:
    """Exchange two subtrees of the same kind, which gives two children, as in figure 6 of the paper."""
    cuts = choose_cuts(first, second, grammar.vocabulary, rng)
    if cuts is None:
        return first, second
    mine, theirs = cuts
    return first.replace(*mine, second.slice(*theirs)), second.replace(*theirs, first.slice(*mine))


def choose_cuts(
    first: Genome, second: Genome, words: Vocabulary, rng: np.random.Generator
) -> tuple[Slice, Slice] | None:
    """Draw a subtree of each of the same kind; None if the second has none of the kind drawn in the first."""
    cut = any_of(range(len(first.code)), rng)
    places = words.places(second, words.kind(first, cut))
    if not places:
        return None
    other = any_of(places, rng)
    return (words.start(first, cut), cut + 1), (words.start(second, other), other + 1)


def mutate_subtree(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """Replace a subtree by a new one."""
    place = any_of(range(len(genome.code)), rng)
    return genome.replace(
        grammar.vocabulary.start(genome, place), place + 1, grammar.regrow(genome, place, rng)
    )


def insert(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """Insert something new around a subtree, which becomes one of its arguments."""
    place = any_of(range(len(genome.code)), rng)
    return genome.replace(
        grammar.vocabulary.start(genome, place), place + 1, grammar.wrap(genome, place, rng)
    )


def remove(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """Replace a subtree by one of its root's arguments."""
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
    """Replace a symbol by another one with the same arguments, or a variable by another one."""
    place = any_of(range(len(genome.code)), rng)
    others = grammar.vocabulary.alike(genome.code[place])
    if not others:
        return grammar.vary(genome, place, rng)
    code = (*genome.code[:place], any_of(others, rng), *genome.code[place + 1 :])
    return Genome(code, genome.operand)


def mutate_constants(genome: Genome, grammar: Grammar, rng: np.random.Generator) -> Genome:
    """Change every constant a little, and sometimes one of them a lot."""
    places = grammar.vocabulary.constants(genome)
    if not places:
        return genome
    spreads = grammar.spreads(genome)
    steps = 0.5 * spreads * rng.normal(size=len(places))
    if rng.random() < 0.3:
        steps[rng.integers(len(places))] *= 10.0
    values = [few_digits(genome.operand[place] + step) for place, step in zip(places, steps, strict=True)]
    return follow(genome.with_operands(places, values), grammar.followers(genome))


def follow(genome: Genome, followers: Mapping[int, int]) -> Genome:
    """Return the genome with every follower set to minus the constant that it follows."""
    if not followers:
        return genome
    return genome.with_operands(list(followers), [-genome.operand[leader] for leader in followers.values()])
