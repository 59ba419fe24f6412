"""The names and spans of a routine's values while it is printed, statement by statement."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

from clearloop.export.dialect import Dialect, Printer
from clearloop.export.naming import Names
from clearloop.export.precision import Precision
from clearloop.export.routine import (
    Best,
    Fill,
    Layer,
    Let,
    Mean,
    Output,
    Ring,
    Routine,
    Statement,
    Store,
    Sum,
    targets,
)
from clearloop.export.spans import Span, found, of_input, of_number, widened
from clearloop.expression import Expression, Variable

ZERO = Span(0.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Knows how each value is called and between which numbers it lies."""

    routine: Routine
    dialect: Dialect
    precision: Precision
    names: Names
    ring: str
    """How an element of a ring is written: `memory->{}[{}]`."""
    spans: dict[Hashable, Span] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    """Declarations of constant numbers that statements need."""

    def __post_init__(self) -> None:
        for one in self.routine.inputs:
            self.names.give(one.variable, plain_name(one.variable))
            self.spans[one.variable] = of_input(self.precision)
        for output in self.routine.outputs:
            self.names.give(output.action, output.action.name)
        values = {target for statement in self.routine.body for target in targets(statement)}
        values |= {one.variable for one in self.routine.inputs}
        for ring in self.routine.rings:
            end = "_past" if ring.name in values else ""
            self.names.give(ring_key(ring.name), ring.name.name + end)
            self.spans[ring_key(ring.name)] = self._start(ring)
        for statement in self.routine.body:
            for target in targets(statement):
                self.names.give(target, target.name)

    def _start(self, ring: Ring) -> Span:
        """Before its values are known: those of states and actions are read limited."""
        limits = {output.action: output.limits for output in self.routine.outputs}.get(ring.name)
        if limits and isinstance(ring.holds, Variable):
            low, high = map(self.precision.rounded, limits)
            return ZERO.hull(Span(low, high))
        return of_input(self.precision)

    @property
    def printer(self) -> Printer:
        return Printer(self.dialect, self.precision, self._leaf)

    def text(self, tree: Expression) -> str:
        return self.printer.text(tree)

    def number(self, value: float) -> str:
        return self.dialect.number(value, self.precision)

    def _leaf(self, variable: Variable) -> tuple[str, Span]:
        if variable.lag is None:
            return self.names[variable], self.spans[variable]
        array = Variable(variable.name, variable.part)
        if ring_key(array) in self.spans:
            name, form = self.names[ring_key(array)], self.ring
            return form.format(name, variable.lag), self.spans[ring_key(array)]
        return f"{self.names[array]}[{variable.lag}]", self.spans[array]

    def run(self) -> Iterator[Statement]:
        """The statements, one after the other; the spans are those before the one that is given."""
        for statement in self.routine.body:
            yield statement
            self._learn(statement)

    def _learn(self, statement: Statement) -> None:
        match statement:
            case Let():
                self.spans[statement.target] = self._span(statement.value)
            case Output():
                self.spans[statement.action] = self._limited(statement)
            case Store(ring=ring):
                self.spans[ring_key(ring.name)] = ZERO.hull(self._span(ring.holds))
            case Sum(ring=ring):
                most = statement.count * self.spans[ring_key(ring.name)].size * 1.01
                self.spans[statement.target] = Span(-most, most)
            case Fill():
                self.spans[statement.target] = ZERO.hull(*map(self._span, statement.values))
            case Mean():
                ends = [of_number(value, self.precision) for value in statement.outputs]
                self.spans[statement.target] = widened(ends[0].hull(*ends), self.precision)
            case Layer():
                self.spans[statement.target] = self.layer(statement)[0]
            case Best():
                self._learn_best(statement)

    def _learn_best(self, best: Best) -> None:
        for target, column in zip(best.targets, zip(*best.rows, strict=True), strict=True):
            ends = [of_number(value, self.precision) for value in column]
            self.spans[target] = ends[0].hull(*ends)

    def before_layers(self, best: Best) -> None:
        """Of a network that is asked about rows: its input is one of them, too."""
        values = [of_number(value, self.precision) for row in best.rows for value in row]
        self.spans[best.source] = self.spans[best.source].hull(*values)

    def layer(self, layer: Layer) -> tuple[Span, bool]:
        """What a layer gives, and whether its sums may be too large for the precision."""
        source, sums, over = self.spans[layer.source], [], False
        for row, bias in zip(layer.weights, layer.bias, strict=True):
            most = sum(abs(self.precision.rounded(weight)) * source.size for weight in row)
            most = (most + abs(bias)) * (1 + 4 * (len(row) + 1) * self.precision.unit)
            over = over or most > self.precision.largest
            sums.append(min(most, self.precision.largest))
        size = max(sums)
        spans = {"identity": Span(-size, size), "relu": Span(0.0, size)}
        return spans.get(layer.activation, Span(-1.1, 1.1)), over

    def _span(self, tree: Expression) -> Span:
        return self.printer.piece(tree).span

    def _limited(self, output: Output) -> Span:
        span = self._span(output.value)
        if output.limits is None:
            return span
        low, high = (of_number(limit, self.precision) for limit in output.limits)
        if output.parts:
            return low.hull(high)
        return found("clip", [span, low, high], self.precision).span


def ring_key(name: Variable) -> Hashable:
    """A ring has a name of its own beside that of the value."""
    return "ring", name


def plain_name(variable: Variable) -> str:
    return variable.name if variable.part == "value" else f"{variable.name}_{variable.part}"
