"""What programs cost: of all that live, and the best of every complexity."""

from collections.abc import Iterable
from typing import Any

from clearloop.search.gp.genome import Genome
from clearloop.search.gp.grammar import Grammar


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
            "archive": listed(self.best.values()),
            "costs": [[*listed([genome])[0], cost] for genome, cost in self.costs.items()],
            "polished": [
                [*listed([genome])[0], self.polished.get(self.structure(genome), 0)] for genome in self.costs
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.best = {self.grammar.vocabulary.complexity(one): one for one in genomes(state["archive"])}
        self.costs = {Genome(tuple(c), tuple(o)): cost for c, o, cost in state["costs"]}
        counts = ((Genome(tuple(c), tuple(o)), count) for c, o, count in state["polished"])
        self.polished = {self.structure(genome): count for genome, count in counts if count}


def listed(programs: Iterable[Genome]) -> list[list[list[float]]]:
    """As plain data."""
    return [[list(genome.code), list(genome.operand)] for genome in programs]


def genomes(data: Iterable[list[list[float]]]) -> list[Genome]:
    """What `listed` made plain."""
    return [Genome(tuple(code), tuple(operand)) for code, operand in data]  # type: ignore[arg-type]
