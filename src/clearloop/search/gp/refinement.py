"""The constants of many programs refined at once, each by its own CMA-ES (Hansen and Ostermeier 2001)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearloop.search.gp.genome import Genome
from clearloop.search.gp.grammar import Grammar, rounded

Floats = NDArray[np.float64]


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
        self._asked: list[list[tuple[Floats, Genome]]] = []

    def ask(self) -> list[Genome]:
        self._asked = [[run.ask() for _ in range(run.cma.population_size)] for run in self._runs]
        return [genome for asked in self._asked for _, genome in asked]

    def tell(self, costs: Sequence[float]) -> None:
        told = iter(costs)
        for run, asked in zip(self._runs, self._asked, strict=True):
            points = []
            for point, genome in asked:
                cost = float(next(told))
                points.append((point, cost))
                if cost < self.best[run.number][1]:
                    self.best[run.number] = genome, cost
            run.cma.tell(points)


@dataclass(frozen=True)
class _Run:
    """One program; its constants are `values` + `spreads` · point."""

    number: int
    genome: Genome
    places: list[int]
    values: Floats
    spreads: Floats
    cma: Any

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
        from cmaes import CMA

        cma = CMA(
            mean=np.zeros(max(2, len(places))),  # it wants two dimensions at least
            sigma=spread,
            population_size=candidates,
            seed=int(rng.integers(2**31)),
        )
        values = np.array([genome.operand[place] for place in places])
        return cls(number, genome, places, values, grammar.spreads(genome), cma)

    def ask(self) -> tuple[Floats, Genome]:
        point = self.cma.ask()
        moved = self.values + self.spreads * point[: len(self.places)]
        return point, self.genome.with_operands(self.places, [rounded(value) for value in moved.tolist()])
