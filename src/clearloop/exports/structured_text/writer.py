"""A routine as a function block: inputs as they come, one formula after the other, limits, and the past."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, Protocol

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
    WIDTH,
    Environment,
    Names,
    commented,
    output_words,
    plain_name,
    ring_key,
)
from clearloop.exports.printer import harmless as printable
from clearloop.exports.spans import Precision, Span, found
from clearloop.exports.structured_text.functions import DIALECT, RESERVED, finished, real
from clearloop.expression import Call, Expression, Variable, fold, variables
from clearloop.expression.nodes import READ_LIMIT, Operation

# Long lines of code, broken where a reader would break them.

MOST_BRACKETS = 20
_BREAK = re.compile(r" (?=[-+] )| (?=AND |OR )|(?<=,) ")


def folded_lines(line: str, indent: str) -> list[str]:
    """A long line of code, broken before signs and after commas, in as few brackets as will do."""
    room = WIDTH - len(indent) - len(STEP)
    parts = [line]
    for brackets in range(MOST_BRACKETS):
        if max(map(len, parts)) <= room:
            break
        parts = list(_parts(line, brackets))
    lines = [indent + parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) <= WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(f"{indent}{STEP}{part}")
    return lines


def _parts(line: str, brackets: int) -> Iterator[str]:
    """The line between spaces that stand in at most so many brackets."""
    depth = start = 0
    for place, character in enumerate(line):
        depth += (character == "(") - (character == ")")
        if depth <= brackets and _BREAK.match(line, place):
            yield line[start:place]
            start = place + 1
    yield line[start:]


# Program organisation units: functions and function blocks, as text of IEC 61131-3.

VarSection = Literal["VAR_INPUT", "VAR_OUTPUT", "VAR CONSTANT", "VAR", "VAR_TEMP"]
SECTIONS: tuple[VarSection, ...] = ("VAR_INPUT", "VAR_OUTPUT", "VAR CONSTANT", "VAR", "VAR_TEMP")


@dataclass(frozen=True)
class Declaration:
    section: VarSection
    name: str
    type: str
    """LREAL, REAL, DINT, LINT or BOOL; of its elements, if it is an array"""
    initial: tuple[str, ...] = ()
    """literals; none: 0"""
    bounds: tuple[int, int] | None = None
    """of an array's index"""
    words: str = ""
    """what it is, for people"""


@dataclass(frozen=True, kw_only=True)
class Pou:
    name: str
    result: str | None = None
    """the type of a function's value; None: it is a function block"""
    words: tuple[str, ...]
    """lines for people"""
    declarations: tuple[Declaration, ...]
    body: str

    def section(self, section: VarSection) -> tuple[Declaration, ...]:
        return tuple(one for one in self.declarations if one.section == section)


def harmless_words(words: str) -> str:
    """Words that neither end a comment nor begin one."""
    words = printable(words)
    while "(*" in words or "*)" in words:
        words = words.replace("(*", "( *").replace("*)", "* )")
    return words


def pou_text(pou: Pou) -> str:
    kind = "FUNCTION" if pou.result else "FUNCTION_BLOCK"
    head = f"{kind} {pou.name}" + (f" : {pou.result}" if pou.result else "")
    lines = [*comment(pou.words), head]
    for section in SECTIONS:
        declared = pou.section(section)
        if declared:
            lines += [section, *(line for one in declared for line in declared_lines(one)), "END_VAR"]
    return "\n".join([*lines, "", pou.body.strip("\n"), f"END_{kind}", ""])


def comment(words: tuple[str, ...]) -> Iterator[str]:
    """One line, or several with the marks on lines of their own."""
    harmed = [harmless_words(line) for line in words]
    if len(harmed) == 1:
        yield f"(* {harmed[0]} *)"
    elif harmed:
        yield "(*"
        yield from commented(harmed, " ")
        yield "*)"


def declared_lines(one: Declaration) -> list[str]:
    kind = f"ARRAY [{one.bounds[0]}..{one.bounds[1]}] OF {one.type}" if one.bounds else one.type
    initial = ", ".join(one.initial)
    start = f" := [{initial}]" if one.bounds and initial else f" := {initial}" if initial else ""
    *lines, last = folded_lines(f"{one.name} : {kind}{start};", STEP)
    return [*lines, f"{last} (* {harmless_words(one.words)} *)" if one.words else last]


# A function block while it is written: what is declared so far, and the lines of its body.

OWN = ("restart", "running", "k", "manual", "was_manual", "acted")


class Page:
    def __init__(self, name: str, precision: Precision) -> None:
        self.precision = precision
        self.names = Names({*RESERVED, *OWN}, ignore_case=True)
        self.name = self.names.give("block", block_name(name))
        self._declarations: dict[str, Declaration] = {}
        self._lines: list[str] = []

    def pou(self, words: list[str]) -> Pou:
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
        kind = type_ or real(self.precision)
        self._declarations[name] = Declaration(section, name, kind, initial, bounds, words)
        return name

    def temporary(self, thing: Hashable, wish: str = "") -> str:
        """A value that is needed in this call only; a thing that has a name keeps it."""
        return self.declare("VAR_TEMP", self.names.give(thing, wish))

    def say(self, words: str) -> None:
        """A comment before what follows."""
        self._lines += [*[""][: len(self._lines)], f"(* {words} *)"]

    def write(self, *lines: str) -> None:
        for line in lines:
            indent = line[: len(line) - len(line.lstrip())]
            self._lines += folded_lines(finished(line.strip(), self.precision), indent)

    def loop(self, first: int, last: int, *lines: str, indent: str = "") -> None:
        """Over k; downwards where the first is above the last."""
        self.declare("VAR_TEMP", "k", type_="DINT")
        step = " BY -1" if first > last else ""
        self.write(f"{indent}FOR k := {first} TO {last}{step} DO")
        self.write(*[f"{indent}{STEP}{line}" for line in lines], f"{indent}END_FOR;")

    def number(self, value: float) -> str:
        return DIALECT.number(value, self.precision)


def block_name(name: str) -> str:
    """What a file is called is mostly a name for a block, too."""
    if name.upper() in RESERVED:
        return f"{name}_controller"
    return name if name[:1].isalpha() else f"controller_{name}"


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


# How an action follows from what its formula wants: limits and levels; by hand; not too fast.


class Limited:
    """The value in its limits."""

    def output(self, writer: Writer, output: Output) -> None:
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
        pass


def _limited(writer: Writer, output: Output, value: str) -> str:
    """In its limits; the nearest level, if there are only some."""
    if output.limits is None:
        return value
    low, high = map(writer.number, output.limits)
    text = f"LIMIT({low}, {value}, {high})"
    if not output.parts:
        return text
    return f"CL_LEVEL({text}, {low}, {high}, {writer.number(output.parts)})"


@dataclass(frozen=True, kw_only=True)
class Operated:
    """By hand or automatic, and not faster than allowed. Until it is assigned, an action is the last one."""

    by_hand: dict[Variable, Variable]
    """Of actions: what the hand wants. Empty: there is no hand."""
    steps: dict[Variable, Variable]
    """Of actions: the largest change from one call to the next. Empty: any."""
    transfer: Variable
    """What is left of the difference between hand and controller from one call to the next."""

    def output(self, writer: Writer, output: Output) -> None:
        action = writer.names[output.action]
        chosen = writer.temporary(("chosen", output.action), f"{output.action.name}_chosen")
        writer.write(f"{chosen} := {_limited(writer, output, writer.text(output.value))};")
        if self.by_hand:
            self._by_hand(writer, output, chosen)
        if self.steps:
            self._not_too_fast(writer, output, chosen)
        writer.write(f"{action} := {chosen};")

    def _by_hand(self, writer: Writer, output: Output, chosen: str) -> None:
        """Back from the hand, the action goes on from where it is; then the difference fades."""
        action, hand = writer.names[output.action], writer.names[self.by_hand[output.action]]
        bias = writer.names.give(("bias", output.action), f"{output.action.name}_bias")
        writer.declare("VAR", bias, "what is left of the difference to the hand")
        writer.declare("VAR_INPUT", "manual", "TRUE: by hand", type_="BOOL")
        writer.declare("VAR", "was_manual", type_="BOOL")
        writer.say("By hand; or automatic, and back from the hand it goes on from where the action is.")
        writer.write(
            "IF manual THEN",
            f"{STEP}{chosen} := {_limited(writer, output, hand)};",
            "ELSE",
            f"{STEP}IF was_manual THEN",
            f"{STEP}{STEP}{bias} := {_sum(writer, output, action, chosen, '-')};",
            f"{STEP}ELSE",
            f"{STEP}{STEP}{bias} := {bias} * {writer.names[self.transfer]};",
            f"{STEP}END_IF;",
            f"{STEP}{chosen} := {_limited(writer, output, _sum(writer, output, chosen, bias))};",
            "END_IF;",
        )

    def _not_too_fast(self, writer: Writer, output: Output, chosen: str) -> None:
        action, step = writer.names[output.action], writer.names[self.steps[output.action]]
        writer.declare("VAR", "acted", "FALSE: there is no last action yet", type_="BOOL")
        low, high = (_sum(writer, output, action, step, sign) for sign in "-+")
        writer.say("Not faster than the rate.")
        writer.write(
            f"IF acted AND ({step} > <0>) THEN",
            f"{STEP}{chosen} := LIMIT({low}, {chosen}, {high});",
            "END_IF;",
        )

    def end(self, writer: Writer) -> None:
        if self.by_hand:
            writer.write("was_manual := manual;")
        if self.steps:
            writer.write("acted := TRUE;")


def _sum(writer: Writer, output: Output, left: str, right: str, sign: str = "+") -> str:
    """Of two values of the size of an action."""
    size = writer.environment.printer.piece(output.value).span.size
    if output.limits:
        size = max(map(abs, output.limits))
    if 8 * (size + READ_LIMIT * READ_LIMIT) < writer.precision.largest:
        return f"{left} {sign} {right}"
    return f"CL_ADD({left}, {right})" if sign == "+" else f"CL_ADD({left}, -{right})"


# Formulas that are nested deeply, cut into parts with names: compilers allow only so many brackets.

_DEEPEST = 12  # brackets in brackets


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
    """A sum goes on without brackets where it begins with a sum."""
    goes_on = (
        number == 0
        and operation.symbol
        and operation.arity == 2
        and (not isinstance(piece.tree, Call) or piece.tree.operation.precedence >= operation.precedence)
    )
    return piece.nesting + (not goes_on)


def split_deep(routine: Routine) -> Routine:
    """The same routine, with no formula nested too deeply."""
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
