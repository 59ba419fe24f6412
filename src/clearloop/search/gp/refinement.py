"""The constants of many programs refined at once, each by its own CMA-ES."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clearloop.search.cma import CMA, Descent
from clearloop.search.gp.genome import Genome
from clearloop.search.gp.grammar import Grammar, rounded

Floats = NDArray[np.float64]

REACH = 50.0  # how far a constant may go to either side, in the grammar's spreads


class Refinement:
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
        box = np.tile([-REACH, REACH], (len(places), 1))
        settings = CMA(candidates=candidates, spread=spread / (2 * REACH))
        values = np.array([genome.operand[place] for place in places])
        return cls(
            number, genome, places, values, grammar.spreads(genome), Descent(box, start, settings, rng=rng)
        )

    def ask(self) -> list[Genome]:
        points = self.values + self.spreads * self.descent.ask()
        return [
            self.genome.with_operands(self.places, [rounded(value) for value in point])
            for point in points.tolist()
        ]
