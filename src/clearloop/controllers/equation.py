"""One formula for each action."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from clearloop.controllers.controller import Controller, Features, Memory
from clearloop.expression import Expression, FormulaError, Variable, complexity, evaluate, parse, to_latex, to_text, variables
from clearloop.task.tables import Formula


class Equation(Controller):
    kind: Literal["equation"] = "equation"
    outputs: Annotated[dict[str, Formula], Field(min_length=1)]

    @model_validator(mode="after")
    def _readable(self) -> "Equation":
        for name in self.outputs:
            self.formula(name)
        return self

    def formula(self, action: str) -> Expression:
        try:
            return parse(self.outputs[action])
        except FormulaError as error:
            raise ValueError(f"outputs.{action}: {error}") from error

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self.outputs)

    def programs(self) -> tuple[Expression, ...]:
        return tuple(self.formula(name) for name in self.outputs)

    def variables(self) -> Iterator[tuple[str, Variable]]:
        for name in self.outputs:
            for variable in variables(self.formula(name)):
                yield f"outputs.{name}", variable

    @property
    def complexity(self) -> int:
        return sum(complexity(formula) for formula in self.programs())

    @property
    def summary(self) -> str:
        if len(self.outputs) == 1:
            return to_text(self.programs()[0])
        return "; ".join(f"{name} = {to_text(self.formula(name))}" for name in self.outputs)

    def words(self) -> Iterator[str]:
        for name in self.outputs:
            yield f"{name} = {to_text(self.formula(name))}"
        yield from self.limit_words()

    def respond(self, memory: Memory, setpoint: Mapping[str, float]) -> dict[str, float]:
        answer = {}
        for name in self.outputs:
            formula = self.formula(name)
            answer[name] = evaluate(formula, {v: self.error(memory, v, setpoint) for v in variables(formula)})
        return answer

    def numbers(self, features: Features) -> list[float]:  # noqa: ARG002
        return []

    def _repr_latex_(self) -> str:
        rows = [rf"\mathrm{{{name}}} &= {to_latex(self.formula(name))}" for name in self.outputs]
        return r"$\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}$"
