"""The writer of function blocks: it prints a routine as the declarations and statements of a block.

The body limits the inputs, computes one formula after the other, limits the actions, and stores past values.
"""

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from clearloop.controllers.routine import (
    Act,
    Correct,
    Fill,
    Input,
    Let,
    Mean,
    Output,
    Remark,
    Report,
    Ring,
    Routine,
    Set,
    State,
    Statement,
    Status,
    Store,
    Sum,
)
from clearloop.errors import ClearloopError
from clearloop.exports.printer import STEP, Environment, Names, plain_name, ring_key
from clearloop.exports.spans import Precision, Span, found
from clearloop.exports.statements import gain_words, output_words
from clearloop.exports.structured_text.functions import DIALECT, RESERVED, finished, real, st_literal
from clearloop.exports.structured_text.units import Declaration, Pou, VarSection, folded_lines
from clearloop.expression import Call, Expression, Variable, fold
from clearloop.expression.nodes import READ_LIMIT, Operation

_OWN = ("restart", "running", "k")  # names that every block may use itself


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
        self.indent = ""
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

    def temporary(self, thing: Hashable, wish: str = "", *, flag: bool = False) -> str:
        """Declare a value that is needed in this call only; a thing that has a name keeps it."""
        return self.declare("VAR_TEMP", self.names.give(thing, wish), type_="BOOL" if flag else "")

    def say(self, words: str) -> None:
        """Write a comment before the statements that follow."""
        begins = not self._lines or self._lines[-1].endswith(" THEN")
        self._lines += [*([] if begins else [""]), f"{self.indent}(* {words} *)"]

    def write(self, *lines: str) -> None:
        """Write statements, which may contain `<0.5>` and `real` (see `finished`)."""
        for line in lines:
            indent = self.indent + line[: len(line) - len(line.lstrip())]
            self._lines += folded_lines(finished(line.strip(), self.precision), indent)

    def loop(self, first: int, last: int, *lines: str, indent: str = "") -> None:
        """Write a loop over k, which counts downwards where the first value is above the last.

        A single round is written without a loop, because matiec runs `FOR k := 1 TO 1` zero times.
        """
        if first == last:
            self.write(*[indent + re.sub(r"\bk\b", str(first), line) for line in lines])
            return
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


class Writer(Page):
    """A function block that is written for a routine.

    Args:
        routine: What the block does at every step: a law, or a guard with a law inside.
        name: The name of the block, as the user gave it.
        precision: Double or single precision.
    """

    def __init__(self, routine: Routine, name: str, precision: Precision) -> None:
        super().__init__(name, precision)
        self.routine, self.law = routine, routine.law
        self.guarded = self.law is not routine
        self._new: list[Ring] = []
        inputs = [(one, self.names.give(("input", one), plain_name(one.variable))) for one in routine.inputs]
        for output in routine.outputs:
            self.declare(
                "VAR_OUTPUT", self.names.give(output.action, output.action.name), output_words(output)
            )
        for one, given in inputs:
            self._declare_input(one, given)
            if one in self.law.inputs:
                self.names.give(one.variable, f"{given}_now")
        self.inner = Environment(
            routine=self.law, dialect=DIALECT, precision=precision, names=self.names, ring="{}[{}]"
        )
        for gain in self.law.gains:
            words, initial = gain_words(gain), st_literal(gain.value, precision)
            self.declare("VAR", self.names[gain.variable], words, initial=(initial,))
        self.environment = self._outer() if self.guarded else self.inner

    def _outer(self) -> Environment:
        """Return the environment of the guard, which reads inputs as they are given."""
        environment = Environment(
            routine=self.routine,
            dialect=DIALECT,
            precision=self.precision,
            names=self.names,
            ring="{}[{}]",
            raw=True,
        )
        for one in self.routine.inputs:
            environment.forms[one.variable] = self.names["input", one]
        for state in self.routine.states:
            name, initial = self.names[state.variable], self._initial(state.start, state.flag)
            self.declare("VAR", name, state.words, type_="BOOL" if state.flag else "", initial=(initial,))
        environment.read_integrals(self.law)
        for ring in self.law.rings:  # between two calls, the latest value is element 1
            latest = Variable(ring.name.name, ring.name.part, lag=0)
            environment.forms[latest] = f"{self.names[ring_key(ring.name)]}[1]"
        return environment

    def block(self, words: list[str]) -> Pou:
        """Write the whole block and return it; `words` are the lines of the comment before it."""
        again = [state for state in self.routine.states if state.restarts]
        if self.law.rings or again:
            self._restart(again)
        if self.guarded:
            for statement in self.environment.run():
                self._guard_statement(statement)
        else:
            self._law()
        return self.pou(words)

    def _law(self) -> None:
        """Write the statements of the law."""
        self._read()
        for statement in self.environment.run():
            if not isinstance(statement, Store):
                self._begin()
            self._statement(statement)
        if self.law.rings:
            self._remember()

    def text(self, tree: Expression) -> str:
        """Return a formula as Structured Text."""
        return self.environment.text(tree)

    def _declare_input(self, one: Input, name: str) -> None:
        spelled = "" if name == plain_name(one.variable) else str(one.variable)
        words = ", ".join(filter(None, (spelled, one.unit, one.words)))
        initial = () if one.default is None else (self._initial(one.default, one.flag),)
        self.declare("VAR_INPUT", name, words, type_="BOOL" if one.flag else "", initial=initial)

    def _initial(self, value: float, flag: bool) -> str:
        return str(bool(value)).upper() if flag else st_literal(value, self.precision)

    def _restart(self, states: Sequence[State]) -> None:
        self.declare("VAR_INPUT", "restart", "TRUE: reset the memory, as before the first call", type_="BOOL")
        self.write("IF restart THEN")
        if self.law.remembers_the_start:
            self.declare("VAR", "running", "FALSE: the next call is the first one", type_="BOOL")
            self.write(f"{STEP}running := FALSE;")
        for ring in self.law.rings:
            past = self.names[ring_key(ring.name)]
            self.declare("VAR", past, "[k]: value k calls ago", bounds=(1, ring.depth))
            self._fill_past(ring, "<0>")
        for state in states:
            self.write(f"{STEP}{self.names[state.variable]} := {self._initial(state.start, state.flag)};")
        self.write("END_IF;")

    def _fill_past(self, ring: Ring, value: str) -> None:
        past = self.names[ring_key(ring.name)]
        if ring.depth == 1:
            self.write(f"{STEP}{past}[1] := {value};")
        else:
            self.loop(1, ring.depth, f"{past}[k] := {value};", indent=STEP)

    def _remember(self) -> None:
        self.say("Store the present values for the next calls.")
        for ring in self.law.rings:
            past = self.names[ring_key(ring.name)]
            if ring.depth > 2:
                self.loop(ring.depth, 2, f"{past}[k] := {past}[k - 1];")
            elif ring.depth == 2:
                self.write(f"{past}[2] := {past}[1];")
            self.write(f"{past}[1] := {self.text(ring.holds)};")
        for statement in self.law.body:
            if isinstance(statement, Correct):
                self._correct(statement)
        if self.law.remembers_the_start:
            self.write("running := TRUE;")

    def _read(self) -> None:
        high = self.number(READ_LIMIT)
        if self.law.inputs:
            self.say(f"Limit the inputs to +/-{high}, so that no calculation overflows.")
        for one in self.law.inputs:
            if one.low != -READ_LIMIT:
                self.environment.spans[one.variable] = Span(one.low, self.precision.rounded(READ_LIMIT))
            given, low = self.names["input", one], self.number(one.low)
            self.write(f"{self.temporary(one.variable)} := LIMIT({low}, {given}, {high});")

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
                self._output(statement)
            case Correct():
                pass  # it follows when past values are stored
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
        self.declare("VAR", target, bounds=(1, len(statement.values)))  # matiec takes no array in VAR_TEMP
        for number, value in enumerate(statement.values, 1):
            self.write(f"{target}[{number}] := {self.text(value)};")

    def _mean(self, statement: Mean) -> None:
        target, source = self.temporary(statement.target), self.names[statement.source]
        best, weight, weights = (
            self.temporary((statement.target, word), f"{statement.target.name}_{word}")
            for word in ("best", "weight", "weights")
        )
        outputs = self.names.give((statement.target, "outputs"), f"{statement.target.name}_outputs")
        numbers = tuple(st_literal(value, self.precision) for value in statement.outputs)
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

    def _output(self, output: Output) -> None:
        """Write an action as the value of its formula within the limits."""
        action = self.environment.forms.get(output.action) or self.names[output.action]
        if output.limits is None:
            self.write(f"{action} := {self.text(output.value)};")
            return
        wanted = self.text(output.value)
        if not isinstance(output.value, Variable):
            name = self.temporary((self.environment.raw, output.action), f"{output.action.name}_wanted")
            self.write(f"{name} := {wanted};")
            wanted = name
        self.write(f"{action} := {self._limited(output, wanted)};")

    def _limited(self, output: Output, value: str) -> str:
        """Return the value within the limits of the action, rounded to a level if it takes only some."""
        assert output.limits is not None  # noqa: S101 - the caller has asked
        low, high = map(self.number, output.limits)
        text = f"LIMIT({low}, {value}, {high})"
        if not output.parts:
            return text
        return f"CL_LEVEL({text}, {low}, {high}, {self.number(output.parts)})"

    # The guard. A choice is an IF, because SEL evaluates both sides, and one of them may be NaN.

    def _guard_statement(self, statement: Statement) -> None:
        match statement:
            case Let(target=target, value=value):
                name = self.temporary(target, flag=value.kind == "condition")
                self._assign(name, value)
            case Set(target=target, value=value):
                self._assign(self.names[target], value)
            case Act():
                self._act(statement)
            case Output():
                self._output(statement)
            case Correct():
                self._correct(statement)
            case Report(target=target, value=value):
                self.declare("VAR_OUTPUT", self.names[target], statement.words, type_="DINT")
                self.write(f"{self.names[target]} := {real(self.precision)}_TO_DINT({self.text(value)});")
            case Status():
                self._status(statement)
            case Remark(words=words):
                self.say(words)
            case _:
                raise TypeError(f"a guard has no {type(statement).__name__}")

    def _assign(self, name: str, value: Expression, indent: str = "", word: str = "IF") -> None:
        if not _is_choice(value):
            if (text := self.text(value)) != name:
                self.write(f"{indent}{name} := {text};")
            return
        assert isinstance(value, Call)  # noqa: S101 - a choice is a call
        condition, yes, no = value.arguments
        self.write(f"{indent}{word} {self.text(condition)} THEN")
        self._assign(name, yes, indent + STEP)
        if _is_choice(no):
            self._assign(name, no, indent, "ELSIF")
            return
        if self.text(no) != name:
            self.write(f"{indent}ELSE", f"{indent}{STEP}{name} := {self.text(no)};")
        self.write(f"{indent}END_IF;")

    def _act(self, act: Act) -> None:
        """Write the law where its condition holds."""
        self.say("The law, for valid inputs.")
        outer = self.environment
        for output, target in zip(self.law.outputs, act.actions, strict=True):
            name = self.inner.forms[output.action] = self.temporary(target)
            self.write(f"{name} := <0>;")
        self.write(f"IF {self.text(act.when)} THEN")
        self.indent, self.environment = STEP, self.inner
        self._law()
        self.indent, self.environment = "", outer
        if self.law.remembers_the_start:
            self.write("ELSE", f"{STEP}running := FALSE; (* the next step is like a first one *)")
        self.write("END_IF;")
        self.say("What becomes of the action.")

    def _correct(self, statement: Correct) -> None:
        self._assign(f"{self.names[ring_key(statement.ring.name)]}[1]", statement.value)

    def _status(self, status: Status) -> None:
        name = self.declare("VAR_OUTPUT", self.names[status.target], status.words, type_="DINT")
        self.write(f"{name} := 0;")
        for number, words, condition in status.bits:
            self.write(f"IF {self.text(condition)} THEN", f"{STEP}{name} := {name} + {number}; (* {words} *)")
            self.write("END_IF;")


def _is_choice(value: Expression) -> bool:
    return isinstance(value, Call) and value.operation.name == "if"


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
    """Return the same routine with deeply nested formulas of its law split into named parts."""
    if routine.law is not routine:
        body = (
            replace(one, law=split_deep(one.law)) if isinstance(one, Act) else one for one in routine.body
        )
        return replace(routine, body=tuple(body))
    splitter = _Splitter(routine.names)
    rings: dict[Ring, Ring] = {}
    parts = [part for statement in routine.body for part in _statement(statement, splitter, rings)]
    return replace(routine, body=tuple(parts), rings=tuple(rings.get(ring, ring) for ring in routine.rings))


def _statement(statement: Statement, splitter: _Splitter, rings: dict[Ring, Ring]) -> Iterator[Statement]:
    match statement:
        case Let() | Output():
            statement = replace(statement, value=splitter.split(statement.value))
        case Correct(ring=ring):
            value = splitter.split(statement.value)
            statement = Correct(rings.get(ring, ring), value)
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
