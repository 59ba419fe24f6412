"""The writer of function blocks: it prints a routine as the declarations and statements of a block.

The body limits the inputs, computes one formula after the other, limits the actions, and stores past values.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from clearloop.controllers.routine import (
    Fill,
    Input,
    Let,
    Mean,
    Output,
    Ring,
    Routine,
    Statement,
    Store,
    Sum,
    formulas,
    targets,
)
from clearloop.errors import ClearloopError
from clearloop.exports.printer import (
    STEP,
    Environment,
    Names,
    output_words,
    plain_name,
    ring_key,
)
from clearloop.exports.spans import Precision, Span, found
from clearloop.exports.structured_text.functions import DIALECT, RESERVED, finished, real
from clearloop.exports.structured_text.units import Declaration, Pou, VarSection, folded_lines
from clearloop.expression import Call, Expression, Variable, fold, variables
from clearloop.expression.nodes import READ_LIMIT, Operation

_OWN = ("restart", "running", "k", "manual", "was_manual", "acted")  # names that every block may use itself


class Page:
    """A function block while it is written: its declarations and the lines of its body so far.

    Args:
        name: The name of the block, as the user gave it.
        precision: Double or single precision.
    """

    def __init__(self, name: str, precision: Precision) -> None:
        self.precision = precision
        self.names = Names({*RESERVED, *_OWN}, ignore_case=True)
        self.name = self.names.give("block", _block_name(name))
        self._declarations: dict[str, Declaration] = {}
        self._lines: list[str] = []

    def pou(self, words: list[str]) -> Pou:
        """Return the block; `words` are the lines of the comment before it."""
        return Pou(
            name=self.name,
            words=tuple(words),
            declarations=tuple(self._declarations.values()),
            body="\n".join(self._lines),
        )

    def declare(
        self,
        section: VarSection,
        name: str,
        words: str = "",
        *,
        type_: str = "",
        initial: tuple[str, ...] = (),
        bounds: tuple[int, int] | None = None,
    ) -> str:
        """Declare a variable, with the arguments of `Declaration`, and return its name."""
        kind = type_ or real(self.precision)
        self._declarations[name] = Declaration(section, name, kind, initial, bounds, words)
        return name

    def temporary(self, thing: Hashable, wish: str = "") -> str:
        """Declare a value that is needed in this call only; a thing that has a name keeps it."""
        return self.declare("VAR_TEMP", self.names.give(thing, wish))

    def say(self, words: str) -> None:
        """Write a comment before the statements that follow."""
        self._lines += [*[""][: len(self._lines)], f"(* {words} *)"]

    def write(self, *lines: str) -> None:
        """Write statements, which may contain `<0.5>` and `real` (see `finished`)."""
        for line in lines:
            indent = line[: len(line) - len(line.lstrip())]
            self._lines += folded_lines(finished(line.strip(), self.precision), indent)

    def loop(self, first: int, last: int, *lines: str, indent: str = "") -> None:
        """Write a loop over k, which counts downwards where the first value is above the last."""
        self.declare("VAR_TEMP", "k", type_="DINT")
        step = " BY -1" if first > last else ""
        self.write(f"{indent}FOR k := {first} TO {last}{step} DO")
        self.write(*[f"{indent}{STEP}{line}" for line in lines], f"{indent}END_FOR;")

    def number(self, value: float) -> str:
        """Return a literal."""
        return DIALECT.number(value, self.precision)


def _block_name(name: str) -> str:
    if name.upper() in RESERVED:
        return f"{name}_controller"
    return name if name[:1].isalpha() else f"controller_{name}"


class Note(NamedTuple):
    """The comment on an input that an option adds, and the lower limit of the input."""

    words: str
    low: float


class Conduct(Protocol):
    """The way in which an action follows from the value of its formula."""

    def output(self, writer: "Writer", output: Output) -> None:
        """Write the statements for one action."""

    def end(self, writer: "Writer") -> None:
        """Write the statements that follow all actions."""


class Writer(Page):
    """A function block that is written for a routine.

    Args:
        routine: What the controller does at every step.
        name: The name of the block, as the user gave it.
        precision: Double or single precision.
        conduct: How actions follow from their formulas.
        notes: The comments and lower limits of inputs that options add.
        kept: What rings store where an option changes that.
    """

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
            self.declare(
                "VAR_OUTPUT", self.names.give(output.action, output.action.name), output_words(output)
            )
        for one, given in inputs:
            self._declare_input(one, given)
            self.names.give(one.variable, f"{given}_now")
        self.environment = Environment(
            routine=routine, dialect=DIALECT, precision=precision, names=self.names, ring="{}[{}]"
        )

    def block(self, words: list[str]) -> Pou:
        """Write the whole block and return it; `words` are the lines of the comment before it."""
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
        """Return a formula as Structured Text."""
        return self.environment.text(tree)

    def _declare_input(self, one: Input, name: str) -> None:
        spelled = "" if name == plain_name(one.variable) else str(one.variable)
        note = self.notes[one.variable].words if one.variable in self.notes else ""
        words = ", ".join(filter(None, (spelled, one.unit, note)))
        initial = () if one.default is None else (self.number(one.default),)
        self.declare("VAR_INPUT", name, words, initial=initial)

    def _restart(self) -> None:
        self.declare("VAR_INPUT", "restart", "TRUE: reset the memory, as before the first call", type_="BOOL")
        self.write("IF restart THEN")
        if self.routine.remembers_the_start:
            self.declare("VAR", "running", "FALSE: the next call is the first one", type_="BOOL")
            self.write(f"{STEP}running := FALSE;")
        for ring in self.routine.rings:
            past = self.names[ring_key(ring.name)]
            self.declare("VAR", past, "[k]: value k calls ago", bounds=(1, ring.depth))
            self._fill_past(ring, "<0>")
        self.write("END_IF;")

    def _fill_past(self, ring: Ring, value: str) -> None:
        past = self.names[ring_key(ring.name)]
        if ring.depth == 1:
            self.write(f"{STEP}{past}[1] := {value};")
        else:
            self.loop(1, ring.depth, f"{past}[k] := {value};", indent=STEP)

    def _remember(self) -> None:
        self.say("Store the present values for the next calls.")
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
            self.say(f"Limit the inputs to +/-{high}, so that no calculation overflows.")
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
                    "Structured Text cannot express a network: export it to c, javascript or python"
                )

    def _begin(self) -> None:
        """Fill rings at the first call with the first values, where these are to be repeated."""
        if self._new:
            self.write("IF NOT running THEN")
            for ring in self._new:
                self._fill_past(ring, self.text(ring.holds))
            self.write("END_IF;")
        self._new = []

    def _sum(self, statement: Sum) -> None:
        """Write the sum of a ring's elements, of which element 0 is the present value."""
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
        self.declare(
            "VAR CONSTANT", outputs, "outputs of the rules", initial=numbers, bounds=(1, len(numbers))
        )
        span = self.environment.spans[statement.source]
        over = found("sub", [span, span], self.precision).special
        distance = f"CL_ADD({source}[k], -{best})" if over else f"{source}[k] - {best}"
        self.say("Mean of the rule outputs with the weights EXP(fit), scaled so that the largest is 1.")
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


# How an action follows from the value of its formula.


class Limited:
    """The conduct without options: the action is the value within its limits."""

    def output(self, writer: Writer, output: Output) -> None:
        """Write the action as the limited value."""
        action = writer.names[output.action]
        if output.limits is None:
            writer.write(f"{action} := {writer.text(output.value)};")
            return
        wanted = writer.text(output.value)
        if not isinstance(output.value, Variable):
            value, wanted = (
                wanted,
                writer.temporary(("wanted", output.action), f"{output.action.name}_wanted"),
            )
            writer.write(f"{wanted} := {value};")
        writer.write(f"{action} := {_limited(writer, output, wanted)};")

    def end(self, writer: Writer) -> None:
        """Write nothing after the actions."""


def _limited(writer: Writer, output: Output, value: str) -> str:
    """Return the value within the limits of the action, rounded to a level if it takes only some values."""
    if output.limits is None:
        return value
    low, high = map(writer.number, output.limits)
    text = f"LIMIT({low}, {value}, {high})"
    if not output.parts:
        return text
    return f"CL_LEVEL({text}, {low}, {high}, {writer.number(output.parts)})"


@dataclass(frozen=True, kw_only=True)
class Operated:
    """The conduct with the options `manual` and `rate-limit`.

    The statements use that an output keeps its last value until it is assigned.

    Attributes:
        manual: For each action, the input with its value in manual mode; empty without that option.
        steps: For each action, its largest change from one call to the next; empty without that option.
        transfer: The factor by which the offset after manual mode decays from one call to the next.
    """

    manual: dict[Variable, Variable]
    steps: dict[Variable, Variable]
    transfer: Variable

    def output(self, writer: Writer, output: Output) -> None:
        """Write the action as the limited value, with manual mode and a limited rate of change."""
        action = writer.names[output.action]
        chosen = writer.temporary(("chosen", output.action), f"{output.action.name}_chosen")
        writer.write(f"{chosen} := {_limited(writer, output, writer.text(output.value))};")
        if self.manual:
            self._manual_mode(writer, output, chosen)
        if self.steps:
            self._rate_limit(writer, output, chosen)
        writer.write(f"{action} := {chosen};")

    def _manual_mode(self, writer: Writer, output: Output, chosen: str) -> None:
        """Write a bumpless transfer: after manual mode the action has an offset, which decays."""
        action, manual = writer.names[output.action], writer.names[self.manual[output.action]]
        bias = writer.names.give(("bias", output.action), f"{output.action.name}_bias")
        writer.declare("VAR", bias, "offset after manual mode; it decays")
        writer.declare("VAR_INPUT", "manual", "TRUE: manual mode", type_="BOOL")
        writer.declare("VAR", "was_manual", "TRUE: manual mode in the last call", type_="BOOL")
        writer.say(
            "Manual mode; after it, automatic control starts from the last action (bumpless transfer)."
        )
        writer.write(
            "IF manual THEN",
            f"{STEP}{chosen} := {_limited(writer, output, manual)};",
            "ELSE",
            f"{STEP}IF was_manual THEN",
            f"{STEP}{STEP}{bias} := {_sum(writer, output, action, chosen, '-')};",
            f"{STEP}ELSE",
            f"{STEP}{STEP}{bias} := {bias} * {writer.names[self.transfer]};",
            f"{STEP}END_IF;",
            f"{STEP}{chosen} := {_limited(writer, output, _sum(writer, output, chosen, bias))};",
            "END_IF;",
        )

    def _rate_limit(self, writer: Writer, output: Output, chosen: str) -> None:
        action, step = writer.names[output.action], writer.names[self.steps[output.action]]
        writer.declare("VAR", "acted", "FALSE: there is no last action yet", type_="BOOL")
        low, high = (_sum(writer, output, action, step, sign) for sign in "-+")
        writer.say("Limit the rate of change.")
        writer.write(
            f"IF acted AND ({step} > <0>) THEN",
            f"{STEP}{chosen} := LIMIT({low}, {chosen}, {high});",
            "END_IF;",
        )

    def end(self, writer: Writer) -> None:
        """Write what the next call has to know about this one."""
        if self.manual:
            writer.write("was_manual := manual;")
        if self.steps:
            writer.write("acted := TRUE;")


def _sum(writer: Writer, output: Output, left: str, right: str, sign: str = "+") -> str:
    """Return the sum or difference of two values of the size of an action, guarded against overflow."""
    size = writer.environment.printer.piece(output.value).span.size
    if output.limits:
        size = max(map(abs, output.limits))
    if 8 * (size + READ_LIMIT * READ_LIMIT) < writer.precision.largest:
        return f"{left} {sign} {right}"
    return f"CL_ADD({left}, {right})" if sign == "+" else f"CL_ADD({left}, -{right})"


# Deeply nested formulas are split into named parts, because compilers limit the nesting of brackets.

_DEEPEST = 12  # levels of brackets


class _Piece(NamedTuple):
    tree: Expression
    nesting: int


@dataclass
class _Splitter:
    taken: set[str]
    before: list[Statement] = field(default_factory=list)

    def split(self, tree: Expression) -> Expression:
        return fold(tree, lambda leaf: _Piece(leaf, 0), self._call).tree

    def _call(self, operation: Operation, arguments: Sequence[_Piece]) -> _Piece:
        pieces = [self._short(piece) for piece in arguments]
        nesting = max(_level(operation, number, piece) for number, piece in enumerate(pieces))
        return _Piece(Call(operation, tuple(piece.tree for piece in pieces)), nesting)

    def _short(self, piece: _Piece) -> _Piece:
        if piece.nesting < _DEEPEST or piece.tree.kind == "condition":
            return piece
        number = next(n for n in range(1, len(self.taken) + 2) if f"part_{n}" not in self.taken)
        target = Variable(f"part_{number}")
        self.taken.add(target.name)
        self.before.append(Let(target, piece.tree))
        return _Piece(target, 0)


def _level(operation: Operation, number: int, piece: _Piece) -> int:
    """Return the nesting of an argument: a sum that begins with a sum needs no more brackets."""
    goes_on = (
        number == 0
        and operation.symbol
        and operation.arity == 2
        and (not isinstance(piece.tree, Call) or piece.tree.operation.precedence >= operation.precedence)
    )
    return piece.nesting + (not goes_on)


def split_deep(routine: Routine) -> Routine:
    """Return the same routine with deeply nested formulas split into named parts."""
    names = {v.name for statement in routine.body for tree in formulas(statement) for v in variables(tree)}
    names |= {v.name for statement in routine.body for v in targets(statement)}
    splitter = _Splitter(names)
    rings: dict[Ring, Ring] = {}
    body = [part for statement in routine.body for part in _statement(statement, splitter, rings)]
    return replace(routine, body=tuple(body), rings=tuple(rings.get(ring, ring) for ring in routine.rings))


def _statement(statement: Statement, splitter: _Splitter, rings: dict[Ring, Ring]) -> Iterator[Statement]:
    match statement:
        case Let() | Output():
            statement = replace(statement, value=splitter.split(statement.value))
        case Fill():
            statement = replace(statement, values=tuple(map(splitter.split, statement.values)))
        case Store(ring=ring):
            rings[ring] = replace(ring, holds=splitter.split(ring.holds))
            statement = Store(rings[ring])
        case Sum(ring=ring):
            statement = replace(statement, ring=rings.get(ring, ring))
    parts, splitter.before = splitter.before, []
    yield from parts
    yield statement
