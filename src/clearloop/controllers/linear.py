"""Linear controllers: a gain for each state, as LQR designs them (sec. 3.1 of the paper)."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from clearloop.controllers.controller import Coefficient, Controller, Known, read_variable
from clearloop.controllers.equation import past_worth
from clearloop.controllers.memory import Memory
from clearloop.controllers.routine import Scope, call, times, weighted
from clearloop.controllers.views import Part, Summand
from clearloop.expression import Expression, Number, Variable, simplify, to_latex, to_text
from clearloop.expression.pieces import Piece, Pieces, aligned
from clearloop.expression.summands import Term
from clearloop.kernels.layout import LINEAR
from clearloop.programs import Features

Gains = Annotated[dict[str, Coefficient], Field(min_length=1)]


class Linear(Controller):
    """A controller whose actions are weighted sums; `gains` maps actions to the gains of what they read."""

    kind: Literal["linear"] = "linear"
    gains: Annotated[dict[str, Gains], Field(min_length=1)]

    chosen_in: ClassVar[str] = "gains"
    policy: ClassVar[int | None] = LINEAR

    def variables(self, known: Known = None) -> Iterator[tuple[str, Variable]]:
        for action, row in self.gains.items():
            for name in row:
                yield f"gains.{action}", read_variable(name, f"gains.{action}", known)

    @property
    def complexity(self) -> int:
        """The complexity: 2 for each gain with its variable, 1 for each addition."""
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

    def respond(self, memory: Memory) -> dict[str, float]:
        return {
            action: sum(gain * memory.error(read_variable(name)) for name, gain in row.items())
            for action, row in self.gains.items()
        }

    def numbers(self, features: Features) -> list[float]:
        numbers = []
        for action in features.actions:
            row = [0.0] * features.count
            for name, gain in self.gains[action].items():
                row[features.slot(read_variable(name))] += gain
            numbers += [0.0, *row]
        return numbers

    def lower(self, scope: Scope) -> dict[str, Expression]:
        return {
            action: scope.total(
                action, weighted((gain, scope.read(v)) for v, gain in self._terms(action) if gain)
            )
            for action in self.gains
        }

    def _terms(self, action: str) -> Iterator[tuple[Variable, float]]:
        for name, gain in self.gains[action].items():
            yield read_variable(name), gain

    def equations(self) -> tuple[Pieces, ...]:
        return tuple(self._equation(action) for action in self.gains)

    def _equation(self, action: str) -> Pieces:
        """Return the equation term by term, because the depth of a tree is limited."""
        terms = [(gain, variable) for variable, gain in self._terms(action) if gain]
        first = Piece.of(times(*terms[0]) if terms else Number(0.0))
        others = [Piece.signed(gain < 0, times(abs(gain), variable)) for gain, variable in terms[1:]]
        return (Piece.name(action), first, *others)

    def latex_rows(self) -> Iterator[str]:
        yield aligned((to_latex(Variable(action)), self._latex(action)) for action in self.gains)

    def _latex(self, action: str) -> str:
        parts: list[str] = []
        for negative, tree in weighted((gain, variable) for variable, gain in self._terms(action)):
            sign = "-" if negative else "+" if parts else ""
            parts.append(f"{sign} {to_latex(tree)}".strip())
        return " ".join(parts) or "0"

    def parts(self, action: str) -> Iterator[Part]:
        for variable, gain in self._terms(action):
            yield Term(gain, variable)

    def summands(self) -> Iterator[Summand]:
        for action in self.gains:
            for variable, gain in self._terms(action):
                product = call("mul", Number(gain), variable)
                yield Summand(action, f"{gain:.3g}*{variable}", partial(past_worth, product, self.actions))

    def simpler(self) -> Iterator[tuple[Self, str]]:
        for action, row in self.gains.items():
            for name in row if len(row) > 1 else ():
                others = {other: gain for other, gain in row.items() if other != name}
                yield self._with_output(action, others), f"drop {row[name]:g}*{name}"


def _sum(row: dict[str, float]) -> str:
    """Return a sum such as `38.8*theta - rho`, made as text, because the depth of a tree is limited."""
    products = [call("mul", Number(gain), read_variable(name)) for name, gain in row.items()]
    terms = [to_text(simplify(product)) for product in products]
    return " + ".join(term for term in terms if term != "0").replace("+ -", "- ") or "0"
