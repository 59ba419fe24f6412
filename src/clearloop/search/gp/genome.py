"""Individuals as postfix arrays, in which every subtree is a slice: what crossover cuts and exchanges."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")


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


def any_of(choices: Sequence[T], rng: np.random.Generator) -> T:
    return choices[int(rng.random() * len(choices))]


def call(symbol: int, *arguments: Genome) -> Genome:
    """The program that applies a symbol to others."""
    code = tuple(gene for argument in arguments for gene in argument.code)
    operand = tuple(value for argument in arguments for value in argument.operand)
    return Genome((*code, symbol), (*operand, 0.0))
