"""FPSRL finds the parameters of fuzzy rules by particle swarms on the model (sec. 3.6 of the paper).

A rule base is a vector as in Eq. (15), the swarm minimises its mean penalty on the model, and the best vector
becomes a controller file. If the task is symmetric, every rule has a mirrored twin, and the swarm searches
for half of the rules.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from clearloop.arrays import Floats
from clearloop.controllers import Fuzzy
from clearloop.controllers.fuzzy import NARROWEST
from clearloop.errors import ClearloopError, check_range
from clearloop.kernels.layout import FUZZY, Policies
from clearloop.methods.method import Column, Method, Problem
from clearloop.methods.swarm import Form, Stages, Swarming, short_decimals

CENTRES = 2.5  # the largest distance of a centre from zero, in typical sizes of the feature
WIDTHS = (0.1, 10.0)  # the smallest and the largest width, in typical sizes of the feature
ALPHAS = (1.0, 100.0)  # the smallest and the largest slope of the tanh that limits the output


@dataclass(frozen=True, kw_only=True)
class FPSRL(Method):
    """Fuzzy rules by particle swarms (sec. 3.6 of the paper).

    Attributes:
        rules: Counts of rules for each action; every count has a search of its own.
        stages: Samples and shares of the budget for the swarm and the descents that follow it.
    """

    name: ClassVar[str] = "fpsrl"
    title: ClassVar[str] = "FPSRL"
    gives: ClassVar[str] = "fuzzy rules"
    section: ClassVar[str] = "3.6"
    columns: ClassVar[tuple[Column, ...]] = (Column("fpsrl", "FPSRL", 7, "1.819 ± 0.005", "2.69 ± 0.03"),)

    rules: tuple[int, ...] = (2, 4, 6)
    stages: Stages = Stages()

    def __post_init__(self) -> None:
        if not self.rules:
            raise ClearloopError("fpsrl: rules: expected at least one count of rules")
        check_range(self, "rules", 1, 1_000)

    def begin(self, problem: Problem, *, rng: np.random.Generator) -> Swarming:
        return Swarming(problem, [RuleForm(problem, rules) for rules in self.rules], self.stages, rng=rng)


class RuleBases(NamedTuple):
    """The numbers of P controllers, as files hold them: A actions with C rules over D features each."""

    alpha: Floats
    """[P, A]"""
    centres: Floats
    """[P, A, C, D]"""
    widths: Floats
    """[P, A, C, D]"""
    outputs: Floats
    """[P, A, C]"""


class RuleForm(Form):
    """Rule bases as vectors, Eq. (15). For each action: centres, widths and output of each rule, then alpha.

    Centres are in typical sizes, widths and alpha are logarithms. A vector holds only one rule of each pair
    of twins. If the number of rules is odd, one rule is its own twin: its centres and its output are zero,
    and the vector holds only its widths.
    """

    def __init__(self, problem: Problem, rules: int) -> None:
        super().__init__(problem)
        self.rules, self.mirrored = rules, problem.task.symmetric
        self.drawn, self.middle = divmod(rules, 2) if self.mirrored else (rules, 0)
        d = len(self.slots)
        centres, widths = np.tile([-CENTRES, CENTRES], (d, 1)), np.tile(np.log(WIDTHS), (d, 1))
        rule = np.concatenate([centres, widths, [[-1.0, 1.0]]])
        base = np.concatenate([*[rule] * self.drawn, *[widths] * self.middle, [np.log(ALPHAS)]])
        self.bounds = np.tile(base, (len(self.reach), 1))

    def rule_bases(self, vectors: Floats) -> RuleBases:
        """Return the rule bases of [P, d] vectors, rounded as in files, with the mirrored twins."""
        d, population, actions = len(self.slots), len(vectors), len(self.reach)
        x = vectors.reshape(population, actions, -1)
        split = self.drawn * (2 * d + 1)
        rules = x[..., :split].reshape(population, actions, self.drawn, 2 * d + 1)
        centres, widths, outputs = rules[..., :d], rules[..., d : 2 * d], rules[..., -1]
        if self.mirrored:
            own = x[..., split:-1].reshape(population, actions, self.middle, d)
            centres = np.concatenate([centres, np.zeros_like(own), -centres], axis=2)
            widths = np.concatenate([widths, own, widths], axis=2)
            outputs = np.concatenate([outputs, np.zeros_like(own[..., 0]), -outputs], axis=2)
        return RuleBases(
            short_decimals(np.exp(x[..., -1])),
            short_decimals(centres * self.scales),
            np.maximum(short_decimals(np.exp(widths) * self.scales), NARROWEST),
            short_decimals(outputs),
        )

    def encode(self, vectors: Floats) -> Policies:
        """Return the numbers that `Fuzzy.numbers` gives, for all vectors at once."""
        bases = self.rule_bases(vectors)
        rules = np.zeros((*bases.outputs.shape, 1 + 2 * self.features))
        rules[..., 0] = bases.outputs
        rules[..., 1 + 2 * self.slots] = bases.centres
        rules[..., 2 + 2 * self.slots] = -1 / (2 * bases.widths**2)
        head = np.stack([np.broadcast_to(self.reach, bases.alpha.shape), bases.alpha], axis=2)
        numbers = np.concatenate([head, rules.reshape(*bases.alpha.shape, -1)], axis=2)
        return self.population(FUZZY, numbers, [self.rules] * len(self.reach))

    def controller(self, vector: Floats) -> Fuzzy:
        bases = RuleBases(*(array[0].tolist() for array in self.rule_bases(vector[None])))
        outputs = {}
        for a, action in enumerate(self.task.action_names):
            rules = [
                {"if": self._premise(centres, widths), "then": output}
                for centres, widths, output in zip(
                    bases.centres[a], bases.widths[a], bases.outputs[a], strict=True
                )
            ]
            outputs[action] = {"scale": float(self.reach[a]), "alpha": bases.alpha[a], "rules": rules}
        return Fuzzy.model_validate({"outputs": outputs}).for_task(self.task)

    def _premise(self, centres: list[float], widths: list[float]) -> dict[str, dict[str, float]]:
        terms = zip(self.names, centres, widths, strict=True)
        return {name: {"center": centre, "width": width} for name, centre, width in terms}
