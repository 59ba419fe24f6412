"""A gain for each state: what LQR designs (sec. 3.1 of the paper)."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from clearloop.controllers.controller import Coefficient, Controller, Known, Memory, read_variable
from clearloop.expression import OPERATIONS, Call, Number, Variable, simplify, to_text
from clearloop.programs import Features

Gains = Annotated[dict[str, Coefficient], Field(min_length=1)]


class Linear(Controller):
    kind: Literal["linear"] = "linear"
    gains: Annotated[dict[str, Gains], Field(min_length=1)]

    chosen_in: ClassVar[str] = "gains"

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self.gains)

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        for action, row in self.gains.items():
            for name in row:
                yield f"gains.{action}", read_variable(name, f"gains.{action}", known)

    @property
    def complexity(self) -> int:
        """2 for each gain with its variable, 1 for each addition."""
        return sum(3 * len(row) - 1 for row in self.gains.values())

    @property
    def summary(self) -> str:
        sums = [_sum(row) for row in self.gains.values()]
        return sums[0] if len(sums) == 1 else "; ".join(map("{} = {}".format, self.gains, sums))

    def words(self) -> Iterator[str]:
        for action, row in self.gains.items():
            yield f"{action} = {_sum(row)}"
            for name, gain in row.items():
                variable = read_variable(name)
                per = self.units.get(variable.name) or "unit"
                yield f"  {gain:g}{self.unit(action)} for each {per} of {variable}"
        yield from self.limit_words()
        yield from self.setpoint_words()

    def reset(self) -> Memory:
        return Memory(self.history, self.actions)

    def respond(self, memory: Memory) -> dict[str, float]:
        return {
            action: sum(gain * memory.error(read_variable(name)) for name, gain in row.items())
            for action, row in self.gains.items()
        }

    def sizes(self, features: Features) -> list[int]:  # noqa: ARG002
        return []

    def numbers(self, features: Features) -> list[float]:
        numbers = []
        for action in features.actions:
            row = [0.0] * features.count
            for name, gain in self.gains[action].items():
                row[features.slot(read_variable(name))] += gain
            numbers += [0.0, *row]
        return numbers


def _sum(row: dict[str, float]) -> str:
    """`38.8*theta - rho`: one text, not one tree, which could have only so many levels."""
    products = [Call(OPERATIONS["mul"], (Number(gain), read_variable(name))) for name, gain in row.items()]
    terms = [to_text(simplify(product)) for product in products]
    return " + ".join(term for term in terms if term != "0").replace("+ -", "- ") or "0"
