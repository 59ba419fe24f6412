"""What a search must know of its language: the symbols, how programs grow, and what constants may become."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from clearloop.expression import significant
from clearloop.search.gp.genome import Genome, Vocabulary

DIGITS = 3  # of a constant: a person has to read it


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


def rounded(value: float) -> float:
    return significant(value, DIGITS)
