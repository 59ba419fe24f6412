"""FGPRL finds fuzzy rules by genetic programming on the model (sec. 3.7 of the paper).

If the task is symmetric, every rule has a mirrored twin.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from clearloop.controllers import Fuzzy
from clearloop.kernels.layout import FUZZY, Policies
from clearloop.methods.evolving import Evolving, Language, Rounds
from clearloop.methods.method import Column, Method, Problem
from clearloop.search.gp.genome import GP, Genome
from clearloop.search.gp.rules import Premise, Rules


@dataclass(frozen=True, kw_only=True)
class FGPRL(Method):
    """Fuzzy rules by genetic programming (sec. 3.7 of the paper).

    Attributes:
        gp: Settings of the genetic programming.
        rounds: Samples and shares of the budget for each part of a round.
    """

    name: ClassVar[str] = "fgprl"
    title: ClassVar[str] = "FGPRL"
    gives: ClassVar[str] = "fuzzy rules"
    section: ClassVar[str] = "3.7"
    columns: ClassVar[tuple[Column, ...]] = (Column("fgprl", "FGPRL", 8, "1.814 ± 0.003", "2.798 ± 0.006"),)
    effort: ClassVar[float] = 6.5

    gp: GP = GP(islands=(21, 31, 41, 53, 21, 31, 41, 53))
    rounds: Rounds = Rounds()

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> Evolving:
        return Evolving(problem, RuleLanguage(problem), self.gp, self.rounds, rng=rng)


class RuleLanguage(Rules, Language):
    """The grammar of rule bases, one for each action, over everything that a controller may read."""

    def __init__(self, problem: Problem) -> None:
        task = problem.task
        self.problem = problem
        self.reach = np.abs(task.action_limits).max(axis=1).tolist()
        self.slots = [problem.features.slot(variable) for variable in problem.readable]
        super().__init__(problem.scales[self.slots], len(task.actions), mirrored=task.symmetric)

    def encode(self, genomes: Sequence[Genome]) -> Iterator[tuple[list[int], Policies]]:
        """Yield one population for each combination of rule counts, because the engine wants equal counts."""
        groups: dict[tuple[int, ...], list[tuple[int, list[float]]]] = {}
        for number, genome in enumerate(genomes):
            sizes, numbers = self._numbers(genome)
            groups.setdefault(sizes, []).append((number, numbers))
        for sizes, rows in groups.items():
            policies = Policies(
                kind=FUZZY,
                numbers=np.array([numbers for _, numbers in rows], np.float32),
                sizes=np.array(sizes, np.int64),
                code=np.zeros(0, np.int32),
                operand=np.zeros(0, np.float32),
                spans=np.zeros((len(rows), 0), np.int64),
                limits=self.problem.limits,
                counts=self.problem.task.action_counts,
                rates=self.problem.task.action_changes,
            )
            yield [number for number, _ in rows], policies

    def _numbers(self, genome: Genome) -> tuple[tuple[int, ...], list[float]]:
        """Return the rule count of each action, and the numbers in the order of `kernels/policies.py`."""
        sizes, numbers = [], []
        for reach, (alpha, rules) in zip(self.reach, self.bases(genome), strict=True):
            whole = self.whole(rules)
            sizes.append(len(whole))
            numbers += [reach, alpha]
            for premise, output in whole:
                row = [0.0] * (2 * self.problem.features.count)
                for feature, (centre, width) in premise.items():
                    slot = self.slots[feature]
                    row[2 * slot : 2 * slot + 2] = centre, -1 / (2 * width**2)
                numbers += [output, *row]
        return tuple(sizes), numbers

    def controller(self, genome: Genome) -> Fuzzy:
        task = self.problem.task
        outputs = {
            name: {
                "scale": reach,
                "alpha": alpha,
                "rules": [{"if": self._premise_table(p), "then": output} for p, output in self.whole(rules)],
            }
            for name, reach, (alpha, rules) in zip(
                task.action_names, self.reach, self.bases(genome), strict=True
            )
        }
        return Fuzzy.model_validate({"outputs": outputs}).for_task(task)

    def _premise_table(self, premise: Premise) -> dict[str, dict[str, float]]:
        names = self.problem.readable
        return {
            str(names[feature]): {"center": centre, "width": width}
            for feature, (centre, width) in premise.items()
        }
