"""GPRL finds equations by genetic programming on the model (sec. 3.7 of the paper)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from clearloop.controllers import Equation
from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import OPERATIONS, Variable, to_text
from clearloop.expression.nodes import VARIABLE
from clearloop.kernels.layout import PROGRAM, Policies
from clearloop.methods.evolving import Evolving, Language, Rounds, Sample
from clearloop.methods.method import Column, Method, Problem
from clearloop.methods.sowing import LinearLaw, sow_laws
from clearloop.search.gp.formulas import Formulas
from clearloop.search.gp.genome import GP, Genome
from clearloop.search.gp.moves import added

_VARIED = 4  # terms of a sown law, at most, of which every subset is tried


@dataclass(frozen=True, kw_only=True)
class GPRL(Method):
    """Equations by genetic programming (sec. 3.7 of the paper).

    Attributes:
        functions: Names of the functions that equations may consist of.
        gp: Settings of the genetic programming.
        rounds: Samples and shares of the budget for each part of a round.
    """

    name: ClassVar[str] = "gprl"
    title: ClassVar[str] = "GPRL"
    gives: ClassVar[str] = "equations"
    section: ClassVar[str] = "3.7"
    columns: ClassVar[tuple[Column, ...]] = (Column("gprl", "GPRL", 9, "1.88 ± 0.02", "2.71 ± 0.03"),)

    functions: tuple[str, ...] = (
        "add", "sub", "mul", "div", "min", "max", "abs", "tanh", "clip", "if", "lt", "gt", "and", "or",
    )  # fmt: skip
    gp: GP = GP(
        islands=(11, 15, 21, 27, 33, 37, 41),
        migration=2, offspring=160, moves=0.5, crossover=0.15,
        subtree=0.1, insertion=0.1, removal=0.05,
        symmetric=True, setpoints=True,
    )  # fmt: skip
    rounds: Rounds = Rounds(
        race=Sample(32, 1), tune=Sample(64, 1), tunings=10, trials=16, promoted=6, score=Sample(512, 1),
        polish=Sample(96, 1), refine=Sample(128, None), explore_share=0.0, sow=True, focus=3,
    )  # fmt: skip

    def __post_init__(self) -> None:
        for name in self.functions:
            if name not in OPERATIONS:
                raise ClearloopError(
                    f"gprl: functions: there is no function {quoted(name)}{did_you_mean(name, OPERATIONS)}"
                )
        if not any(OPERATIONS[name].kind == "number" and name != "if" for name in self.functions):
            raise ClearloopError("gprl: functions: expected functions that give numbers, such as add or mul")

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> Evolving:
        language = Equations(
            problem,
            self.functions,
            odd=self.gp.symmetric and problem.task.symmetric,
            more=problem.moving_setpoints if self.gp.setpoints else (),
        )
        return Evolving(problem, language, self.gp, self.rounds, rng=rng)


class Equations(Formulas, Language):
    """The grammar of formulas, one for each action, over everything that a controller may read."""

    def __init__(
        self,
        problem: Problem,
        functions: Sequence[str],
        *,
        odd: bool = False,
        more: Sequence[Variable] = (),
    ) -> None:
        """Choose what equations consist of.

        Args:
            problem: The problem.
            functions: Names of the functions that equations may use.
            odd: Whether only odd functions are allowed.
            more: Variables besides the problem's readable ones.
        """
        self.problem = problem
        variables = (*problem.readable, *more)
        self.slots = np.array([problem.features.slot(variable) for variable in variables])
        outputs = np.ptp(problem.task.action_limits, axis=1) / 2
        super().__init__(functions, variables, problem.scales[self.slots], outputs, odd=odd)

    def sown(self) -> list[Genome]:
        """Return the linear laws of the batch: each subset of their terms, plain and inside tanh or clip."""
        return [genome for laws in sow_laws(self.problem, self.variables) for genome in self._variants(laws)]

    def _variants(self, laws: Sequence[LinearLaw]) -> Iterator[Genome]:
        """Yield laws, one for each action, whole and with one of them varied."""
        whole = [self.weighted_sum(law.terms, law.constant) for law in laws]
        yield self.joined(whole)
        for a, law in enumerate(laws):
            for some in _subsets(law.terms):
                others = [term for term in law.terms if term not in some]
                part, rest = self.weighted_sum(some), self.weighted_sum(others, law.constant)
                varied = [self.weighted_sum(some, law.constant)]
                varied += [added([rest, bent]) for bent in self.bent(part, self.outputs[a])]
                for one in varied:
                    yield self.joined([*whole[:a], one, *whole[a + 1 :]])

    def encode(self, genomes: Sequence[Genome]) -> Iterator[tuple[list[int], Policies]]:
        if not genomes:
            return
        spans = np.array([self._spans(genome) for genome in genomes])
        first = np.cumsum([0, *spans[:-1, -1]])
        code = np.array([gene for genome in genomes for gene in genome.code[:-1]], np.int32)
        operand = np.array([value for genome in genomes for value in genome.operand[:-1]])
        variable = code == VARIABLE
        operand[variable] = self.slots[operand[variable].astype(int)]
        policies = Policies(
            kind=PROGRAM,
            numbers=np.zeros((len(genomes), 0), np.float32),
            sizes=np.zeros(0, np.int64),
            code=code,
            operand=operand.astype(np.float32),
            spans=spans + first[:, None],
            limits=self.problem.limits,
            counts=self.problem.task.action_counts,
        )
        yield list(range(len(genomes))), policies

    def _spans(self, genome: Genome) -> list[int]:
        """Return where the formula of each action starts, and where the last one ends."""
        starts = [start for start, _ in self.vocabulary.arguments(genome, len(genome.code) - 1)]
        return [*starts[::-1], len(genome.code) - 1]

    def controller(self, genome: Genome) -> Equation:
        task, formulas = self.problem.task, self.expressions(genome)
        outputs = {name: to_text(f) for name, f in zip(task.action_names, formulas, strict=True)}
        return Equation(outputs=outputs).for_task(task)


def _subsets(terms: Sequence[tuple[int, float]]) -> Iterator[tuple[tuple[int, float], ...]]:
    """Yield all subsets of the first few terms, the small ones first."""
    few = terms[:_VARIED]
    for count in range(1, len(few) + 1):
        yield from combinations(few, count)
