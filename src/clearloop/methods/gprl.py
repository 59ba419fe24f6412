"""GPRL finds equations by genetic programming on the model (sec. 3.7 of the paper)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar

import numpy as np

from clearloop.controllers import Equation
from clearloop.errors import ClearloopError, did_you_mean, quoted
from clearloop.expression import OPERATIONS, Number, Variable, simplify, substitute, to_text
from clearloop.expression.nodes import VARIABLE
from clearloop.kernels.layout import PROGRAM, Policies
from clearloop.methods.evolving import Evolving, Language, Rounds, Sample
from clearloop.methods.method import Column, Method, Problem
from clearloop.methods.sowing import LinearLaw, sow_laws
from clearloop.search.gp.formulas import Formulas
from clearloop.search.gp.genome import GP, Genome
from clearloop.search.gp.moves import added
from clearloop.search.gp.templates import Frame, Template, read_templates
from clearloop.task import Task

_VARIED = 4  # terms of a sown law, at most, of which every subset is tried
_BOLDNESS = (1.0, 2.0, 4.0)  # factors of the gains of sown laws: a reward may not mind effort


@dataclass(frozen=True, kw_only=True)
class GPRL(Method):
    """Equations by genetic programming (sec. 3.7 of the paper).

    Attributes:
        functions: Names of the functions that equations may consist of.
        gp: Settings of the genetic programming.
        rounds: Samples and shares of the budget for each part of a round.
        form: What the formula of an action must look like, by the action's name: a template such as
            `k1*theta + tanh({…})`, whose holes are searched and whose constants are tuned.
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
        polish=Sample(96, 1), refine=Sample(128, None), explore_share=0.0, sow=True, nursed=30, focus=3,
    )  # fmt: skip
    form: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.functions:
            if name not in OPERATIONS:
                raise ClearloopError(
                    f"gprl: functions: there is no function {quoted(name)}{did_you_mean(name, OPERATIONS)}"
                )
        if not any(OPERATIONS[name].kind == "number" and name != "if" for name in self.functions):
            raise ClearloopError("gprl: functions: expected functions that give numbers, such as add or mul")

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> Evolving:
        template = read_form(self.form, problem.task)
        language = Equations(
            problem,
            self.functions,
            odd=self.gp.symmetric and problem.task.symmetric and template is None,
            more=problem.moving_setpoints if self.gp.setpoints else (),
            template=template,
        )
        return Evolving(problem, language, self.gp, self.rounds, rng=rng)


def read_form(form: Mapping[str, str], task: Task) -> Template | None:
    """Parse the forms of formulas.

    Args:
        form: The template of each action that has one; without any, the result is None.
        task: The task.

    Raises:
        ClearloopError: A text is no template, or reads what a controller cannot read.
    """
    if not form:
        return None
    template = read_templates(form, task.action_names, task.scope.names)
    for variable in template.variables:
        if (variable.lag or 0) >= task.history:
            what = f"'{variable}' looks back further than the task's history = {task.history}"
            raise ClearloopError(f"form: {what}: give it history = {(variable.lag or 0) + 1}")
    fillings = dict.fromkeys((*template.holes, *template.constants), Number(1.0))
    formulas = zip(task.action_names, template.formulas, strict=True)
    outputs = {name: to_text(substitute(formula, fillings)) for name, formula in formulas}
    try:
        Equation(outputs=outputs).for_task(task)
    except ClearloopError as error:
        raise ClearloopError(str(error).replace("outputs.", "form of ", 1)) from error
    return template


class Equations(Formulas, Language):
    """The grammar of formulas, one for each action, over everything that a controller may read."""

    def __init__(
        self,
        problem: Problem,
        functions: Sequence[str],
        *,
        odd: bool = False,
        more: Sequence[Variable] = (),
        template: Template | None = None,
    ) -> None:
        """Choose what equations consist of.

        Args:
            problem: The problem.
            functions: Names of the functions that equations may use.
            odd: Whether only odd functions are allowed.
            more: Variables besides the problem's readable ones.
            template: What formulas must look like, if that is given.
        """
        self.problem = problem
        own = problem.task.derived
        read = [one for one in problem.readable if one.lag or own.get(one.name) not in more]  # nothing twice
        wanted = template.variables if template else ()
        variables = tuple(dict.fromkeys((*read, *more, *wanted)))
        self.slots = np.array([problem.features.slot(variable) for variable in variables])
        outputs = np.ptp(problem.task.action_limits, axis=1) / 2
        sizes = problem.scales[self.slots]
        super().__init__(functions, variables, sizes, outputs, odd=odd, template=template)

    def sown(self) -> list[Genome]:
        """Return the linear laws of the batch: each subset of their terms, plain and inside tanh or clip."""
        found = sow_laws(self.problem, self.variables)
        bold = [(tuple(law.scaled(size) for law in laws), size) for laws in found for size in _BOLDNESS]
        return [genome for laws, size in bold for genome in self._variants(laws, size)]

    def _variants(self, laws: Sequence[LinearLaw], boldness: float) -> Iterator[Genome]:
        """Yield laws, one for each action, whole and with one of them varied."""
        if self.frame:
            yield from self._fillings(laws, self.frame)
            return
        whole = [self.weighted_sum(law.terms, law.constant) for law in laws]
        yield self.joined(whole)
        for a, law in enumerate(laws):
            for some in _subsets(law.terms):
                others = [term for term in law.terms if term not in some]
                part, rest = self.weighted_sum(some), self.weighted_sum(others, law.constant)
                varied = [self.weighted_sum(some, law.constant)]
                varied += [added([rest, bent]) for bent in self.bent(part, boldness * self.outputs[a])]
                for one in varied:
                    yield self.joined([*whole[:a], one, *whole[a + 1 :]])

    def _fillings(self, laws: Sequence[LinearLaw], frame: Frame) -> Iterator[Genome]:
        """Yield a template with laws in its holes, whole and with one of them varied."""
        constants, whole, varied = [], list[Genome](), list[list[Genome]]()
        for n, (size, output) in enumerate(zip(frame.sizes, frame.outputs, strict=True)):
            law, share = laws[output], size / self.outputs[output]
            terms = [(which, share * gain) for which, gain in law.terms]
            if n < len(frame.template.holes):
                whole.append(self.weighted_sum(terms, share * law.constant))
                varied.append([self.weighted_sum(some) for some in _subsets(terms)])
            else:
                gains = {self.variables[which]: gain for which, gain in law.terms}
                constants.append(gains.get(frame.factors.get(n), size))  # type: ignore[arg-type]
        yield self.joined(whole, constants)
        for n, others in enumerate(varied):
            for one in others:
                yield self.joined([*whole[:n], one, *whole[n + 1 :]], constants)

    def encode(self, genomes: Sequence[Genome]) -> Iterator[tuple[list[int], Policies]]:
        if not genomes:
            return
        programs = [program for genome in genomes for program in self.programs(genome)]
        ends = np.cumsum([0, *(len(program.code) for program in programs)])
        each = ends[:-1].reshape(len(genomes), -1)
        spans = np.hstack([each, np.append(each[1:, :1], ends[-1:, None], axis=0)])
        code = np.array([gene for program in programs for gene in program.code], np.int32)
        operand = np.array([value for program in programs for value in program.operand])
        variable = code == VARIABLE
        operand[variable] = self.slots[operand[variable].astype(int)]
        policies = Policies(
            kind=PROGRAM,
            numbers=np.zeros((len(genomes), 0), np.float32),
            sizes=np.zeros(0, np.int64),
            code=code,
            operand=operand.astype(np.float32),
            spans=spans,
            limits=self.problem.limits,
            counts=self.problem.task.action_counts,
            rates=self.problem.task.action_changes,
        )
        yield list(range(len(genomes))), policies

    def controller(self, genome: Genome) -> Equation:
        task, formulas = self.problem.task, self.expressions(genome)
        if self.frame:  # a template may stand around a negative number
            formulas = [simplify(formula) for formula in formulas]
        outputs = {name: to_text(f) for name, f in zip(task.action_names, formulas, strict=True)}
        return Equation(outputs=outputs).for_task(task)


def _subsets(terms: Sequence[tuple[int, float]]) -> Iterator[tuple[tuple[int, float], ...]]:
    """Yield all subsets of the first few terms, the small ones first."""
    few = terms[:_VARIED]
    for count in range(1, len(few) + 1):
        yield from combinations(few, count)
