"""One formula for each action (sec. 3.7 of the paper)."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from clearloop.controllers.controller import Controller, Known, Memory, read_formula
from clearloop.expression import Expression, Variable, complexity, evaluate, to_latex, to_text, variables
from clearloop.programs import Features
from clearloop.task.tables import Formula


class Equation(Controller):
    kind: Literal["equation"] = "equation"
    outputs: Annotated[dict[str, Formula], Field(min_length=1)]

    def formula(self, action: str) -> Expression:
        return read_formula(self.outputs[action])

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self.outputs)

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        for action, text in self.outputs.items():
            place = f"outputs.{action}"
            for variable in variables(read_formula(text, place, known)):
                yield place, variable

    @property
    def complexity(self) -> int:
        return sum(complexity(self.formula(action)) for action in self.outputs)

    @property
    def summary(self) -> str:
        lines = list(self._lines())
        return lines[0].partition(" = ")[2] if len(lines) == 1 else "; ".join(lines)

    def words(self) -> Iterator[str]:
        yield from self._lines()
        yield from self.limit_words()
        yield from self.setpoint_words()

    def _lines(self) -> Iterator[str]:
        for action in self.outputs:
            yield f"{action} = {to_text(self.formula(action))}"

    def reset(self) -> Memory:
        return Memory(self.history, self.actions)

    def respond(self, memory: Memory) -> dict[str, float]:
        return {action: self._value(self.formula(action), memory) for action in self.outputs}

    def _value(self, formula: Expression, memory: Memory) -> float:
        return evaluate(formula, {variable: memory.error(variable) for variable in variables(formula)})

    def sizes(self, features: Features) -> list[int]:  # noqa: ARG002
        return []

    def numbers(self, features: Features) -> list[float]:  # noqa: ARG002
        return []

    def _repr_latex_(self) -> str:
        rows = [f"{to_latex(Variable(name))} &= {to_latex(self.formula(name))}" for name in self.outputs]
        return r"$\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}$"
