"""Fuzzy rules with Gaussian membership functions (sec. 3.6 of the paper, Eqs. 14–16)."""

import math
from collections.abc import Iterator
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, Strict, model_validator

from clearloop.controllers.controller import Coefficient, Controller, Known, Memory, read_variable
from clearloop.errors import ClearloopError, quoted
from clearloop.expression import Variable
from clearloop.expression.nodes import READ_LIMIT
from clearloop.programs import Features
from clearloop.task.tables import Table, expecting

# Narrower than this, squares of distances over squares of widths would not fit in single precision.
NARROWEST = 1e-6
Width = Annotated[
    float,
    Strict(),
    Field(ge=NARROWEST, le=READ_LIMIT, allow_inf_nan=False),
    expecting(f"a number from {NARROWEST:g} to {READ_LIMIT:g}"),
]


class Membership(Table):
    center: Coefficient
    width: Width


class Rule(Table):
    premise: Annotated[dict[str, Membership], Field(alias="if", min_length=1)]
    then: Coefficient


class RuleBase(Table):
    scale: Coefficient
    alpha: Coefficient
    rules: Annotated[tuple[Rule, ...], Field(min_length=1, max_length=1000)]


class Fuzzy(Controller):
    kind: Literal["fuzzy"] = "fuzzy"
    outputs: Annotated[dict[str, RuleBase], Field(min_length=1)]

    @model_validator(mode="after")
    def _looks_once(self) -> Self:
        seen = set()
        for place, variable in self.variables():
            # `rho`, `rho[t]` and `rho.error` are the same thing here.
            feature = place, variable.name, variable.part == "setpoint", variable.lag or 0
            if feature in seen:
                raise ClearloopError(f"{place}: {quoted(str(variable))} stands twice in one rule")
            seen.add(feature)
        return self

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self.outputs)

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        for action, base in self.outputs.items():
            for number, rule in enumerate(base.rules):
                place = f"outputs.{action}.rules[{number}].if"
                for name in rule.premise:
                    yield place, read_variable(name, place, known)

    @property
    def complexity(self) -> int:
        """3 for each membership term, 1 for each rule's output, 1 for alpha."""
        return sum(
            1 + sum(1 + 3 * len(rule.premise) for rule in base.rules) for base in self.outputs.values()
        )

    @property
    def summary(self) -> str:
        return "; ".join(_rule_text(rule) for base in self.outputs.values() for rule in base.rules)

    def words(self) -> Iterator[str]:
        for action, base in self.outputs.items():
            for number, rule in enumerate(base.rules, 1):
                pull = base.scale * math.tanh(base.alpha * rule.then)
                yield f"Rule {number}: if {self._premise_words(rule)}"
                yield f"        then {action} {pull:+.3g}{self.unit(action)}   (output {rule.then:+.4g})"
            mean = "mean output, weighted by how well the rules fit"
            yield f"{action} = {base.scale:g} * tanh({base.alpha:.4g} * {mean})"
        yield from self.limit_words()
        yield from self.setpoint_words()

    def _premise_words(self, rule: Rule) -> str:
        return " and ".join(
            f"{variable} is about {m.center:.4g} (± {m.width:.3g}{self.unit(variable.name)})"
            for variable, m in _terms(rule)
        )

    def reset(self) -> Memory:
        return Memory(self.history, self.actions)

    def respond(self, memory: Memory) -> dict[str, float]:
        answer = {}
        for action, base in self.outputs.items():
            exponents = np.array([_exponent(rule, memory) for rule in base.rules])
            memberships = np.exp(exponents - exponents.max())  # the largest is 1: exact when all underflow
            mean = memberships @ np.array([rule.then for rule in base.rules]) / memberships.sum()
            answer[action] = base.scale * math.tanh(base.alpha * mean)
        return answer

    def sizes(self, features: Features) -> list[int]:
        return [len(self.outputs[action].rules) for action in features.actions]

    def numbers(self, features: Features) -> list[float]:
        numbers = []
        for action in features.actions:
            base = self.outputs[action]
            numbers += [base.scale, base.alpha]
            for rule in base.rules:
                row = [0.0] * (2 * features.count)
                for variable, m in _terms(rule):
                    slot = features.slot(variable)
                    row[2 * slot : 2 * slot + 2] = m.center, -1 / (2 * m.width**2)
                numbers += [rule.then, *row]
        return numbers


def _terms(rule: Rule) -> Iterator[tuple[Variable, Membership]]:
    for name, membership in rule.premise.items():
        yield read_variable(name), membership


def _exponent(rule: Rule, memory: Memory) -> float:
    return -sum((m.center - memory.error(v)) ** 2 / (2 * m.width**2) for v, m in _terms(rule))


def _rule_text(rule: Rule) -> str:
    premise = " and ".join(f"{variable}~{m.center:.3g}" for variable, m in _terms(rule))
    return f"if {premise} then {rule.then:+.3g}"
