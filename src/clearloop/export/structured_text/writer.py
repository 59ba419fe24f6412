"""A routine as a function block: inputs as they come, one formula after the other, limits, and the past."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from clearloop.errors import ClearloopError
from clearloop.export.environment import Environment, plain_name, ring_key
from clearloop.export.precision import Precision
from clearloop.export.routine import Fill, Input, Let, Mean, Output, Ring, Routine, Statement, Store, Sum
from clearloop.export.spans import Span, found
from clearloop.export.structured_text.folding import STEP
from clearloop.export.structured_text.page import Page
from clearloop.export.structured_text.pou import Pou
from clearloop.export.structured_text.words import DIALECT
from clearloop.expression import Expression, Variable
from clearloop.expression.meanings import READ_LIMIT


class Note(NamedTuple):
    """On an input that an option brings along."""

    words: str
    low: float
    """what is below counts as this"""


class Conduct(Protocol):
    """What is done with a value that a formula gives for an action."""

    def output(self, writer: "Writer", output: Output) -> None: ...

    def end(self, writer: "Writer") -> None:
        """After all actions."""


class Writer(Page):
    """`notes`: what inputs are for. `kept`: what rings remember, where that is not what they hold."""

    def __init__(
        self,
        routine: Routine,
        name: str,
        precision: Precision,
        conduct: Conduct,
        notes: Mapping[Variable, Note],
        kept: Mapping[Variable, Expression],
    ) -> None:
        super().__init__(name, precision)
        self.routine, self.conduct, self.notes, self.kept = routine, conduct, notes, kept
        self._new: list[Ring] = []
        inputs = [(one, self.names.give(("input", one), plain_name(one.variable))) for one in routine.inputs]
        for output in routine.outputs:
            self.declare("VAR_OUTPUT", self.names.give(output.action, output.action.name), _range(output))
        for one, given in inputs:
            self._declare_input(one, given)
            self.names.give(one.variable, f"{given}_now")
        self.environment = Environment(
            routine=routine, dialect=DIALECT, precision=precision, names=self.names, ring="{}[{}]"
        )

    def block(self, words: list[str]) -> Pou:
        if self.routine.rings:
            self._restart()
        self._read()
        for statement in self.environment.run():
            if not isinstance(statement, Store):
                self._begin()
            self._statement(statement)
        self.conduct.end(self)
        if self.routine.rings:
            self._remember()
        return self.pou(words)

    def text(self, tree: Expression) -> str:
        return self.environment.text(tree)

    def _declare_input(self, one: Input, name: str) -> None:
        spelled = "" if name == plain_name(one.variable) else str(one.variable)
        note = self.notes[one.variable].words if one.variable in self.notes else ""
        words = ", ".join(filter(None, (spelled, one.unit, note)))
        initial = () if one.default is None else (self.number(one.default),)
        self.declare("VAR_INPUT", name, words, initial=initial)

    def _restart(self) -> None:
        self.declare("VAR_INPUT", "restart", "TRUE: forget the past, as at the first call", type_="BOOL")
        self.write("IF restart THEN")
        if self.routine.remembers_the_start:
            self.declare("VAR", "running", "FALSE: the next call is the first", type_="BOOL")
            self.write(f"{STEP}running := FALSE;")
        for ring in self.routine.rings:
            past = self.names[ring_key(ring.name)]
            self.declare("VAR", past, "[k]: k calls ago", bounds=(1, ring.depth))
            self._fill_past(ring, "<0>")
        self.write("END_IF;")

    def _fill_past(self, ring: Ring, value: str) -> None:
        past = self.names[ring_key(ring.name)]
        if ring.depth == 1:
            self.write(f"{STEP}{past}[1] := {value};")
        else:
            self.loop(1, ring.depth, f"{past}[k] := {value};", indent=STEP)

    def _remember(self) -> None:
        self.say("What was present becomes past.")
        for ring in self.routine.rings:
            past = self.names[ring_key(ring.name)]
            if ring.depth > 2:
                self.loop(ring.depth, 2, f"{past}[k] := {past}[k - 1];")
            elif ring.depth == 2:
                self.write(f"{past}[2] := {past}[1];")
            self.write(f"{past}[1] := {self.text(self.kept.get(ring.name, ring.holds))};")
        if self.routine.remembers_the_start:
            self.write("running := TRUE;")

    def _read(self) -> None:
        high = self.number(READ_LIMIT)
        if self.routine.inputs:
            self.say(f"An input beyond {high} counts as {high}, so that nothing can overflow.")
        for one in self.routine.inputs:
            low = -READ_LIMIT
            if one.variable in self.notes:
                low = self.notes[one.variable].low
                self.environment.spans[one.variable] = Span(low, self.precision.rounded(READ_LIMIT))
            given = self.names["input", one]
            self.write(f"{self.temporary(one.variable)} := LIMIT({self.number(low)}, {given}, {high});")

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Let():
                self.write(f"{self.temporary(statement.target)} := {self.text(statement.value)};")
            case Store(ring=ring):
                self._new += [ring] * ring.repeat
            case Sum():
                self._sum(statement)
            case Fill():
                self._fill(statement)
            case Mean():
                self._mean(statement)
            case Output():
                self.conduct.output(self, statement)
            case _:
                raise ClearloopError(
                    "Structured Text is for controllers that a person can read: "
                    "export a network to c, javascript or python"
                )

    def _begin(self) -> None:
        """At the first call the first values are the past, too."""
        if self._new:
            self.write("IF NOT running THEN")
            for ring in self._new:
                self._fill_past(ring, self.text(ring.holds))
            self.write("END_IF;")
        self._new = []

    def _sum(self, statement: Sum) -> None:
        """Element 0 of a ring is the present value."""
        target, past = self.temporary(statement.target), self.names[ring_key(statement.ring.name)]
        self.write(f"{target} := {self.text(statement.ring.holds)};")
        if statement.count > 1:
            self.loop(1, statement.count - 1, f"{target} := {target} + {past}[k];")

    def _fill(self, statement: Fill) -> None:
        target = self.names[statement.target]
        self.declare("VAR_TEMP", target, bounds=(1, len(statement.values)))
        for number, value in enumerate(statement.values, 1):
            self.write(f"{target}[{number}] := {self.text(value)};")

    def _mean(self, statement: Mean) -> None:
        target, source = self.temporary(statement.target), self.names[statement.source]
        best, weight, weights = (
            self.temporary((statement.target, word), f"{statement.target.name}_{word}")
            for word in ("best", "weight", "weights")
        )
        outputs = self.names.give((statement.target, "outputs"), f"{statement.target.name}_outputs")
        numbers = tuple(map(self.number, statement.outputs))
        self.declare("VAR CONSTANT", outputs, "of the rules", initial=numbers, bounds=(1, len(numbers)))
        span = self.environment.spans[statement.source]
        over = found("sub", [span, span], self.precision).special
        distance = f"CL_ADD({source}[k], -{best})" if over else f"{source}[k] - {best}"
        self.say("The mean output of the rules, weighted by how well they fit; the best one has weight 1.")
        self.write(f"{best} := {source}[1];")
        if len(numbers) > 1:
            self.loop(2, len(numbers), f"{best} := MAX({best}, {source}[k]);")
        self.write(f"{target} := <0>;", f"{weights} := <0>;")
        self.loop(
            1,
            len(numbers),
            f"{weight} := EXP({distance});",
            f"{target} := {target} + {weight} * {outputs}[k];",
            f"{weights} := {weights} + {weight};",
        )
        self.write(f"{target} := {target} / {weights};")


def _range(output: Output) -> str:
    if output.limits is None:
        return output.unit
    low, high = output.limits
    steps = f" in {output.parts} steps" if output.parts else ""
    return f"{output.unit}, {low:g} to {high:g}{steps}".removeprefix(", ")
