"""The constants of many programs refined at once, each by its own CMA-ES (Hansen and Ostermeier 2001)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clearloop.search.gp.genome import Genome
from clearloop.search.gp.grammar import Grammar, rounded


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
        """`costs` of the programs as they are. `candidates` for each and every round.

        `spread`: of the first round, in the grammar's spreads. Programs without constants stay as they are.
        """
        from cmaes import CMA

        self._grammar = grammar
        self.best: list[tuple[Genome, float]] = list(zip(genomes, costs, strict=True))
        """of each program, what it became"""
        self._runs = []
        for number, genome in enumerate(genomes):
            places = grammar.vocabulary.constants(genome)
            if not places:
                continue
            values = np.array([genome.operand[place] for place in places])
            scales = grammar.spreads(genome)
            cma = CMA(
                mean=np.zeros(len(places)) if len(places) > 1 else np.zeros(2),  # it wants two dimensions
                sigma=spread,
                population_size=candidates,
                seed=int(rng.integers(2**31)),
            )
            self._runs.append((number, genome, places, values, scales, cma))
        self._asked: list[list[tuple[NDArray[np.float64], Genome]]] = []

    def ask(self) -> list[Genome]:
        self._asked = [
            [(point, self._at(point, *rest)) for point in (cma.ask() for _ in range(cma.population_size))]
            for _, *rest, cma in self._runs
        ]
        return [genome for run in self._asked for _, genome in run]

    def tell(self, costs: Sequence[float]) -> None:
        told = iter(costs)
        for (number, *_, cma), asked in zip(self._runs, self._asked, strict=True):
            solutions = [(point, float(next(told))) for point, _ in asked]
            for (_, genome), (_, cost) in zip(asked, solutions, strict=True):
                if cost < self.best[number][1]:
                    self.best[number] = genome, cost
            cma.tell(solutions)

    def _at(
        self,
        point: NDArray[np.float64],
        genome: Genome,
        places: list[int],
        values: NDArray[np.float64],
        scales: NDArray[np.float64],
    ) -> Genome:
        moved = values + scales * point[: len(places)]
        return genome.with_operands(places, [rounded(value) for value in moved.tolist()])
