"""A gain for each state: what LQR designs (sec. 3.1 of the paper)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from clearloop.controllers.controller import Controller, Features, Memory, parse_variable
from clearloop.errors import ClearloopError
from clearloop.expression import OPERATIONS, Call, Expression, Number, Variable, simplify, to_text
from clearloop.task.tables import Number as Gain

Gains = Annotated[dict[str, Gain], Field(min_length=1)]


class Linear(Controller):
    kind: Literal["linear"] = "linear"
    gains: Annotated[dict[str, Gains], Field(min_length=1)]

    @model_validator(mode="after")
    def _readable(self) -> "Linear":
        try:
            list(self.variables())
        except ClearloopError as error:
            raise ValueError(f"gains: {error}") from error
        return self

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(self.gains)

    def variables(self) -> Iterator[tuple[str, Variable]]:
        for action, row in self.gains.items():
            for name in row:
                yield f"gains.{action}", parse_variable(name)

    @property
    def complexity(self) -> int:
        """2 for each gain with its variable, 1 for each addition."""
        return sum(3 * len(row) - 1 for row in self.gains.values())

    def formula(self, action: str) -> Expression:
        terms = [Call(OPERATIONS["mul"], (Number(k), parse_variable(name))) for name, k in self.gains[action].items()]
        total: Expression = terms[0]
        for term in terms[1:]:
            total = Call(OPERATIONS["add"], (total, term))
        return simplify(total)

    @property
    def summary(self) -> str:
        texts = [to_text(self.formula(action)) for action in self.gains]
        return texts[0] if len(texts) == 1 else "; ".join(map("{} = {}".format, self.gains, texts))

    def words(self) -> Iterator[str]:
        for action in self.gains:
            yield f"{action} = {to_text(self.formula(action))}"
        for action, row in self.gains.items():
            for name, gain in row.items():
                per = self.units.get(parse_variable(name).name, "") or "unit"
                yield f"  {gain:g}{self.unit(action)} for each {per} of {name}"
        yield from self.limit_words()

    def respond(self, memory: Memory, setpoint: Mapping[str, float]) -> dict[str, float]:
        return {
            action: sum(gain * self.error(memory, parse_variable(name), setpoint) for name, gain in row.items())
            for action, row in self.gains.items()
        }

    def numbers(self, features: Features) -> list[float]:
        numbers = []
        for action in features.actions:
            row = [0.0] * features.count
            for name, gain in self.gains[action].items():
                row[features.slot(parse_variable(name))] += gain
            numbers += [0.0, *row]
        return numbers
