"""Fuzzy rules with Gaussian membership functions (sec. 3.6 of the paper, Eqs. 14–16)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from clearloop.controllers.controller import Controller, Features, Memory, parse_variable
from clearloop.errors import ClearloopError
from clearloop.expression import Variable
from clearloop.task.tables import Number, Table, expecting

# Narrower than this, squares of distances over squares of widths would not fit in single precision.
Width = Annotated[float, Field(ge=1e-6, allow_inf_nan=False), expecting("a number of at least 0.000001")]


class Membership(Table):
    center: Number
    width: Width


class Rule(Table):
    premise: Annotated[dict[str, Membership], Field(alias="if", min_length=1)]
    then: Number


class RuleBase(Table):
    scale: Number
    alpha: Number
    rules: Annotated[tuple[Rule, ...], Field(min_length=1, max_length=1000)]


class Fuzzy(Controller):
    kind: Literal["fuzzy"] = "fuzzy"
    outputs: Annotated[dict[str, RuleBase], Field(min_length=1)]

    @model_validator(mode="after")
    def _readable(self) -> "Fuzzy":
        try:
            list(self.variables())
        except ClearloopError as error:
            raise ValueError(f"outputs: {error}") from error
        return self

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self.outputs)

    def variables(self) -> Iterator[tuple[str, Variable]]:
        for action, base in self.outputs.items():
            for number, rule in enumerate(base.rules):
                for name in rule.premise:
                    yield f"outputs.{action}.rules[{number}].if", parse_variable(name)

    @property
    def complexity(self) -> int:
        """3 for each membership term, 1 for each rule's output, 1 for alpha."""
        return sum(1 + sum(1 + 3 * len(rule.premise) for rule in base.rules) for base in self.outputs.values())

    @property
    def summary(self) -> str:
        def rule(rule: Rule) -> str:
            premise = " and ".join(f"{name}~{m.center:.3g}" for name, m in rule.premise.items())
            return f"if {premise} then {rule.then:+.3g}"

        return "; ".join(rule(r) for base in self.outputs.values() for r in base.rules)

    def words(self) -> Iterator[str]:
        for action, base in self.outputs.items():
            for number, rule in enumerate(base.rules, 1):
                premise = " and ".join(
                    f"{name} is about {m.center:.4g} (± {m.width:.3g}{self.unit(parse_variable(name).name)})"
                    for name, m in rule.premise.items()
                )
                pull = base.scale * float(np.tanh(base.alpha * rule.then))
                yield f"Rule {number}: if {premise}"
                yield f"        then {action} {pull:+.3g}{self.unit(action)}   (output {rule.then:+.4g})"
            yield f"{action} = {base.scale:g} · tanh({base.alpha:.4g} · mean output, weighted by how well rules fit)"
        yield from self.limit_words()

    def respond(self, memory: Memory, setpoint: Mapping[str, float]) -> dict[str, float]:
        answer = {}
        for action, base in self.outputs.items():
            exponents = np.array([
                -sum(
                    (m.center - self.error(memory, parse_variable(name), setpoint)) ** 2 / (2 * m.width**2)
                    for name, m in rule.premise.items()
                )
                for rule in base.rules
            ])  # fmt: skip
            memberships = np.exp(exponents - exponents.max())  # the largest is 1: exact when all underflow
            mean = memberships @ np.array([rule.then for rule in base.rules]) / memberships.sum()
            answer[action] = base.scale * float(np.tanh(base.alpha * mean))
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
                for name, m in rule.premise.items():
                    slot = features.slot(parse_variable(name))
                    row[2 * slot : 2 * slot + 2] = m.center, -1 / (2 * m.width**2)
                numbers += [rule.then, *row]
        return numbers
