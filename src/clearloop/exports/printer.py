"""The printer that all languages share: formulas and identifiers.

A language gives tables: `Dialect` for operations and `Syntax` (`statements.py`) for statements. An operation
has two forms: the plain one, used where interval analysis shows that no special case can occur, and one that
handles the special case (a division by 0, an overflow), which mostly calls a small helper function that the
export contains.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from clearloop.controllers.routine import (
    Act,
    Best,
    Fill,
    Layer,
    Let,
    Mean,
    Output,
    Report,
    Ring,
    Routine,
    Statement,
    Status,
    Store,
    Sum,
    targets,
)
from clearloop.exports.spans import Precision, Span, found, of_input, of_number, with_margin
from clearloop.expression import Expression, Number, Variable, fold
from clearloop.expression.nodes import AND, ATOM, NEGATION, OR, READ_LIMIT, Operation

_COMPARISONS = ("lt", "le", "gt", "ge")

# The forms that most languages share. `saturated`, `divided` and so on are helper functions of the export.
PLAIN = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0}*{1}",
    "div": "{0}/{1}",
    "neg": "-{0}",
    "sign": "sign({0})",
    "clip": "{0}",
    "wrap": "{0}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "and": "{0} && {1}",
    "or": "{0} || {1}",
    "not": "!({0})",
    "if": "({0} ? {1} : {2})",
}
SPECIAL = {
    "add": "saturated({plain})",
    "sub": "saturated({plain})",
    "mul": "saturated({plain})",
    "div": "divided({0}, {1})",
    "pow": "power({0}, {1})",
    "exp": "saturated({plain})",
    "atan2": "angle({0}, {1})",
    "clip": "clip({0}, {1}, {2})",
    "wrap": "wrap({0})",
    "read": "limited({0})",
}


def plain_number(value: float, precision: Precision) -> str:
    """Return a number as most languages write it."""
    return precision.text(value)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """A dialect says how a language writes operations and numbers.

    Attributes:
        plain: The plain form of every operation: `{0} + {1}`, with the precedence of the formula language,
            or `sin({0})`.
        special: The forms that handle a special case: calls, or expressions in brackets. `{plain}` is the
            plain form. The form `read` is a clip to ±1e12, as inputs are read, and `clip_anyhow` is a clip
            whose lower limit may lie above the upper one, where a language needs another form for that.
        helpers: The definitions of the helper functions that the forms call, by name; a helper may call those
            before it.
        number: The function that writes a number in a precision.
        brackets: Whether brackets show the order of all operations, so that no reader needs to know it.
        truths: A condition that never holds, and one that always holds.
    """

    plain: Mapping[str, str]
    special: Mapping[str, str]
    helpers: Mapping[str, str] = field(default_factory=dict)
    number: Callable[[float, Precision], str] = plain_number
    brackets: bool = False
    truths: tuple[str, str] = ("false", "true")

    def helpers_in(self, text: str) -> list[str]:
        """Return the helpers that a text calls, and those that they call, in the order of the table."""
        needed: set[str] = set()
        for name in reversed(list(self.helpers)):
            if re.search(rf"\b{name}\(", text) or any(
                re.search(rf"\b{name}\(", self.helpers[user]) for user in needed
            ):
                needed.add(name)
        return [name for name in self.helpers if name in needed]


class Piece(NamedTuple):
    """A printed part of a formula.

    Attributes:
        text: The part in the target's language.
        binds: The precedence of its outermost operation.
        span: The interval of its values.
        value: Its value, if it is a constant.
        flag: Whether it is the name of a flag.
        asked: Whether it is the condition that a flag holds.
    """

    text: str
    binds: int
    span: Span
    value: float | None = None
    flag: bool = False
    asked: bool = False


@dataclass(frozen=True)
class Printer:
    """A printer of formulas in a dialect and a precision.

    Attributes:
        dialect: The forms of operations and numbers.
        precision: The precision that the target computes in.
        leaf: The function that gives the text and the span of a variable.
        flags: The variables that are true or false.
    """

    dialect: Dialect
    precision: Precision
    leaf: Callable[[Variable], tuple[str, Span]]
    flags: Collection[Variable] = ()

    def text(self, tree: Expression) -> str:
        """Return a formula in the target's language."""
        return self.piece(tree).text

    def piece(self, tree: Expression) -> Piece:
        """Return a formula in the target's language, with its precedence and its span."""
        return fold(tree, self._leaf, self._call)

    def _leaf(self, node: Number | Variable) -> Piece:
        if isinstance(node, Variable):
            text, span = self.leaf(node)
            return Piece(text, ATOM, span, flag=node in self.flags)
        return self._number(node.value)

    def _number(self, value: float) -> Piece:
        text = self.dialect.number(value, self.precision)
        return Piece(text, NEGATION if value < 0 else ATOM, of_number(value, self.precision), value)

    def _call(self, operation: Operation, arguments: Sequence[Piece]) -> Piece:
        name = operation.name
        if arguments[0].flag:  # it is asked with `flag != 0`
            return arguments[0]._replace(flag=False, asked=True)
        if name in _COMPARISONS:
            arguments = self._exact(name, *arguments)
        span, special = found(name, [piece.span for piece in arguments], self.precision)
        values = [piece.value for piece in arguments if piece.value is not None]
        value = operation.meaning(*values) if len(values) == len(arguments) else None
        if operation.kind == "condition" and value is not None:
            return Piece(self.dialect.truths[bool(value)], ATOM, span, value)
        if special and value is not None:
            return self._number(value)
        form = self.dialect.plain[name]
        if form == "{0}" and not special:
            return Piece(arguments[0].text, arguments[0].binds, span, value)
        infix = not form.endswith(")")
        texts = [piece.text for piece in arguments]
        if name == "if" and self.dialect.brackets:
            texts = [piece.text if piece.binds == ATOM else f"({piece.text})" for piece in arguments]
        operands = _operands(operation, arguments, self.dialect.brackets) if infix else texts
        text = form.format(*operands)
        if name == "not" and arguments[0].asked:
            text = text.replace("(", "").replace(")", "")
        if special:
            reading = name == "clip" and (values == [-READ_LIMIT, READ_LIMIT])
            special_form = self.dialect.special["read" if reading else name]
            if name == "clip" and arguments[1].span.high > arguments[2].span.low:
                special_form = self.dialect.special.get("clip_anyhow", special_form)
            return Piece(special_form.format(*texts, plain=text), ATOM, span)
        return Piece(text, operation.precedence if infix else ATOM, span, value)

    def _exact(self, name: str, left: Piece, right: Piece) -> list[Piece]:
        """Round constants so that a comparison in this precision decides as the original does.

        For example, x > 0.1 holds if and only if x is above the largest representable number up to 0.1.
        """
        pieces = []
        for piece, greater in ((left, name in ("gt", "le")), (right, name in ("lt", "ge"))):
            if piece.value is None:
                pieces.append(piece)
            else:
                round_it = self.precision.above if greater else self.precision.below
                pieces.append(self._number(round_it(piece.value)))
        return pieces


def _operands(operation: Operation, pieces: Sequence[Piece], explicit: bool) -> list[str]:
    """Put operands in brackets where the precedence requires it, and where it helps the reader.

    `explicit` puts all those in brackets that bind more tightly than the operation, too.
    """
    single = len(pieces) == 1
    texts = []
    for number, piece in enumerate(pieces):
        loose = piece.binds < operation.precedence + (number > 0 or single)
        signs = piece.text.startswith("-") and (number > 0 or single)
        mixed = (operation.precedence, piece.binds) == (OR, AND)
        mixed = mixed or (explicit and operation.precedence < piece.binds < NEGATION)
        texts.append(f"({piece.text})" if loose or signs or mixed else piece.text)
    return texts


# Identifiers: names that people chose become ASCII words that are no keywords and differ from each other.

_DOT_ABOVE = "\u0307"
LONGEST_C_NAME = 31  # C99 compilers need not distinguish external names beyond so many characters


def ascii_name(text: str) -> str:
    """Return a text as an identifier in ASCII, in which `_` is never doubled, first or last.

    For example, θ̇ becomes theta_dot and é becomes e; other letters are given by their code.
    """
    word = "".join(_spelled(character) for character in unicodedata.normalize("NFKD", text))
    word = re.sub("_+", "_", re.sub(r"[^A-Za-z0-9]", "_", word)).rstrip("_")
    return word if re.match("[A-Za-z]", word) else f"x{word}" if word.startswith("_") else f"x_{word}"


def _spelled(character: str) -> str:
    if character.isascii():
        return character
    if unicodedata.combining(character):
        return "_dot" if character == _DOT_ABOVE else ""
    script, _, letter = unicodedata.name(character, "").partition(" LETTER ")
    if script.startswith("GREEK") and letter.isalpha():
        return letter.capitalize() if "CAPITAL" in script else letter.lower()
    return f"u{ord(character):04x}"


class Names:
    """A table that gives each thing an identifier of its own.

    Args:
        reserved: Words that must not be used as identifiers.
        ignore_case: Whether names that differ only in upper and lower case clash.
    """

    def __init__(self, reserved: Collection[str], *, ignore_case: bool = False) -> None:
        self._ignore_case = ignore_case
        self._taken = {self._key(word) for word in reserved}
        self._given: dict[Hashable, str] = {}

    def _key(self, word: str) -> str:
        return word.lower() if self._ignore_case else word

    def give(self, thing: Hashable, wish: str) -> str:
        """Return the identifier of a thing: at first the wish, made legal, with a number if it is taken."""
        if thing not in self._given:
            word = base = ascii_name(wish)[:LONGEST_C_NAME].rstrip("_")
            number = 2
            while self._key(word) in self._taken:
                end = f"_{number}"
                word, number = base[: LONGEST_C_NAME - len(end)].rstrip("_") + end, number + 1
            self._taken.add(self._key(word))
            self._given[thing] = word
        return self._given[thing]

    def __getitem__(self, thing: Hashable) -> str:
        return self._given[thing]


# The names and spans of a routine's values while it is printed, statement by statement.

_ZERO = Span(0.0, 0.0)
_TUNABLE = 100.0  # a gain may be tuned from 0 to so many times its value, and nothing overflows
STEP = "    "


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The names and the spans of a routine's values while it is printed.

    Attributes:
        routine: The routine that is printed.
        dialect: The forms of operations and numbers.
        precision: The precision that the target computes in.
        names: The identifiers of values.
        ring: The form of an element of a ring, such as `memory->{}[{}]`.
        spans: The intervals of the values that are known so far.
        tables: The declarations of constant numbers that statements need.
        raw: Whether formulas read inputs as they are given; otherwise these are limited before.
        forms: The texts of variables that are not written by their names alone.
        flags: The variables that are true or false.
        law: The name of the function that runs the law of a guard.
    """

    routine: Routine
    dialect: Dialect
    precision: Precision
    names: Names
    ring: str
    spans: dict[Hashable, Span] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    raw: bool = False
    forms: dict[Variable, str] = field(default_factory=dict)
    flags: set[Variable] = field(default_factory=set)
    law: str = ""

    def __post_init__(self) -> None:
        anything = Span(-self.precision.largest, self.precision.largest)
        for one in self.routine.inputs:
            self.names.give(one.variable, plain_name(one.variable))
            self.spans[one.variable] = anything if self.raw else of_input(self.precision)
        for state in self.routine.states:
            self.names.give(state.variable, state.variable.name)
            self.spans[state.variable] = anything if state.size is None else Span(-state.size, state.size)
        self.flags.update(one.variable for one in self.routine.inputs if one.flag)
        self.flags.update(one.variable for one in self.routine.states if one.flag)
        lets = (one for one in self.routine.body if isinstance(one, Let))
        self.flags.update(one.target for one in lets if one.value.kind == "condition")
        for output in self.routine.outputs:
            self.names.give(output.action, output.action.name)
        for gain in self.routine.gains:
            self.names.give(gain.variable, gain.variable.name)
            most = self.precision.rounded(_TUNABLE * gain.value)
            self.spans[gain.variable] = _ZERO.hull(Span(most, most))
        values = {target for statement in self.routine.body for target in targets(statement)}
        values |= {one.variable for one in self.routine.inputs}
        for ring in self.routine.rings:
            end = "_past" if ring.name in values else ""
            self.names.give(ring_key(ring.name), ring.name.name + end)
            self.spans[ring_key(ring.name)] = self._start(ring)
        for statement in self.routine.body:
            for target in targets(statement):
                self.names.give(target, target.name)
            if isinstance(statement, Report | Status):
                self.names.give(statement.target, statement.target.name)

    def read_integrals(self, law: Routine) -> None:
        """Let formulas of a guard read the integrals of its law."""
        for ring in law.rings:
            if ring.integral:
                self.spans[ring_key(ring.name)] = of_input(self.precision)

    def _start(self, ring: Ring) -> Span:
        """Return the span of a ring before it is stored to: states and actions are limited when read."""
        limits = {output.action: output.limits for output in self.routine.outputs}.get(ring.name)
        if limits and isinstance(ring.holds, Variable):
            low, high = map(self.precision.rounded, limits)
            return _ZERO.hull(Span(low, high))
        return of_input(self.precision)

    @property
    def printer(self) -> Printer:
        """A printer that knows the names and spans so far."""
        return Printer(self.dialect, self.precision, self._leaf, self.flags)

    def text(self, tree: Expression) -> str:
        """Return a formula in the target's language."""
        return self.printer.text(tree)

    def number(self, value: float) -> str:
        """Return a number in the target's language."""
        return self.dialect.number(value, self.precision)

    def _leaf(self, variable: Variable) -> tuple[str, Span]:
        if variable.lag is None:
            return self.forms.get(variable) or self.names[variable], self.spans[variable]
        array = Variable(variable.name, variable.part)
        if ring_key(array) in self.spans:
            text = self.forms.get(variable) or self.ring.format(self.names[ring_key(array)], variable.lag)
            return text, self.spans[ring_key(array)]
        return f"{self.names[array]}[{variable.lag}]", self.spans[array]

    def run(self) -> Iterator[Statement]:
        """Yield the statements one after the other; the spans are then those before that statement."""
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
                self.spans[ring_key(ring.name)] = _ZERO.hull(self._span(ring.holds))
            case Sum(ring=ring):
                most = statement.count * self.spans[ring_key(ring.name)].size * 1.01
                self.spans[statement.target] = Span(-most, most)
            case Fill():
                self.spans[statement.target] = _ZERO.hull(*map(self._span, statement.values))
            case Mean():
                ends = [of_number(value, self.precision) for value in statement.outputs]
                self.spans[statement.target] = with_margin(ends[0].hull(*ends), self.precision)
            case Layer():
                self.spans[statement.target] = self.layer(statement)[0]
            case Best():
                self._learn_best(statement)
            case Act():
                for output, target in zip(statement.law.outputs, statement.actions, strict=True):
                    span = Span(-self.precision.largest, self.precision.largest)
                    if output.limits:
                        span = Span(*map(self.precision.rounded, output.limits))
                    self.spans[target] = _ZERO.hull(span)

    def _learn_best(self, best: Best) -> None:
        for target, column in zip(best.targets, zip(*best.rows, strict=True), strict=True):
            ends = [of_number(value, self.precision) for value in column]
            self.spans[target] = ends[0].hull(*ends)

    def before_layers(self, best: Best) -> None:
        """Extend the span of a network's input by the rows that are written into it."""
        values = [of_number(value, self.precision) for row in best.rows for value in row]
        self.spans[best.source] = self.spans[best.source].hull(*values)

    def layer(self, layer: Layer) -> tuple[Span, bool]:
        """Return the span of a layer's results, and whether its sums may overflow in this precision."""
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
    """Return the key of a ring in tables: its identifier and span differ from those of the value."""
    return "ring", name


def plain_name(variable: Variable) -> str:
    """Return the wish for a variable's identifier: `theta`, or `rho_setpoint`."""
    return variable.name if variable.part == "value" else f"{variable.name}_{variable.part}"
