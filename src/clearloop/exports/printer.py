"""The printer that all languages share: formulas, statements and identifiers.

A language gives tables: `Dialect` for operations and `Syntax` for statements. An operation has two forms: the
plain one, used where interval analysis shows that no special case can occur, and one that handles the special
case (a division by 0, an overflow), which mostly calls a small helper function that the export contains.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from clearloop.controllers.routine import (
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
            plain form. The form `read` is a clip to ±1e12, as inputs are read.
        helpers: The definitions of the helper functions that the forms call, by name; a helper may call those
            before it.
        number: The function that writes a number in a precision.
    """

    plain: Mapping[str, str]
    special: Mapping[str, str]
    helpers: Mapping[str, str] = field(default_factory=dict)
    number: Callable[[float, Precision], str] = plain_number

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
    """

    text: str
    binds: int
    span: Span
    value: float | None = None


@dataclass(frozen=True)
class Printer:
    """A printer of formulas in a dialect and a precision.

    Attributes:
        dialect: The forms of operations and numbers.
        precision: The precision that the target computes in.
        leaf: The function that gives the text and the span of a variable.
    """

    dialect: Dialect
    precision: Precision
    leaf: Callable[[Variable], tuple[str, Span]]

    def text(self, tree: Expression) -> str:
        """Return a formula in the target's language."""
        return self.piece(tree).text

    def piece(self, tree: Expression) -> Piece:
        """Return a formula in the target's language, with its precedence and its span."""
        return fold(tree, self._leaf, self._call)

    def _leaf(self, node: Number | Variable) -> Piece:
        if isinstance(node, Variable):
            text, span = self.leaf(node)
            return Piece(text, ATOM, span)
        return self._number(node.value)

    def _number(self, value: float) -> Piece:
        text = self.dialect.number(value, self.precision)
        return Piece(text, NEGATION if value < 0 else ATOM, of_number(value, self.precision), value)

    def _call(self, operation: Operation, arguments: Sequence[Piece]) -> Piece:
        name = operation.name
        if name in _COMPARISONS:
            arguments = self._exact(name, *arguments)
        span, special = found(name, [piece.span for piece in arguments], self.precision)
        values = [piece.value for piece in arguments if piece.value is not None]
        value = operation.meaning(*values) if len(values) == len(arguments) else None
        if special and value is not None:
            return self._number(value)
        form = self.dialect.plain[name]
        if form == "{0}" and not special:
            return Piece(arguments[0].text, arguments[0].binds, span, value)
        infix = not form.endswith(")")
        texts = [piece.text for piece in arguments]
        text = form.format(*(_operands(operation, arguments) if infix else texts))
        if special:
            reading = name == "clip" and (values == [-READ_LIMIT, READ_LIMIT])
            special_form = self.dialect.special["read" if reading else name]
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


def _operands(operation: Operation, pieces: Sequence[Piece]) -> list[str]:
    """Put operands in brackets where the precedence requires it, and where it helps the reader."""
    single = len(pieces) == 1
    texts = []
    for number, piece in enumerate(pieces):
        loose = piece.binds < operation.precedence + (number > 0 or single)
        signs = piece.text.startswith("-") and (number > 0 or single)
        mixed = (operation.precedence, piece.binds) == (OR, AND)
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
    """

    routine: Routine
    dialect: Dialect
    precision: Precision
    names: Names
    ring: str
    spans: dict[Hashable, Span] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)

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
        """Return the span of a ring before it is stored to: states and actions are limited when read."""
        limits = {output.action: output.limits for output in self.routine.outputs}.get(ring.name)
        if limits and isinstance(ring.holds, Variable):
            low, high = map(self.precision.rounded, limits)
            return _ZERO.hull(Span(low, high))
        return of_input(self.precision)

    @property
    def printer(self) -> Printer:
        """A printer that knows the names and spans so far."""
        return Printer(self.dialect, self.precision, self._leaf)

    def text(self, tree: Expression) -> str:
        """Return a formula in the target's language."""
        return self.printer.text(tree)

    def number(self, value: float) -> str:
        """Return a number in the target's language."""
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


# Statements: a language gives a table of templates, and one printer fills them in.

STEP = "    "


@dataclass(frozen=True, kw_only=True)
class Syntax:
    """The templates of a language for the statements of a routine, of one or more lines each.

    Attributes:
        let: A named value.
        store: The present value becomes element 0 of a ring.
        repeat: At the first step, element 0 of a ring is copied to all elements.
        sum: The sum of the first elements of a ring.
        fill: An array of values.
        table: An array of constant numbers.
        mean: The weighted mean of the outputs of rules.
        layer: The call of the function for a layer of a network.
        best_open: The head of a loop over the rows of `Best`.
        best_input: Inside that loop, an element of the row becomes an element of the network's input.
        best_close: The end of that loop, which keeps the best row.
        best_choice: A named value from the best row.
        output: An action before it is limited.
        clip: The limits of an action.
        level: The limits of an action that takes only some values.
        answer: The assignment of an action to the result.
    """

    let: str
    store: str
    repeat: str
    sum: str
    fill: str
    table: str
    mean: str
    layer: str
    best_open: str
    best_input: str
    best_close: str
    best_choice: str
    output: str
    clip: str
    level: str
    answer: str


def body_lines(environment: Environment, syntax: Syntax) -> list[str]:
    """Return the lines of all statements of a routine, not indented."""
    texts = [text for one in environment.run() for text in _lines(one, environment, syntax)]
    return "\n".join(filter(None, texts)).splitlines()


def output_words(output: Output) -> str:
    """Return the unit, the limits and the steps of an action for a comment: `N, -10 to 10 in 4 steps`."""
    if output.limits is None:
        return output.unit
    low, high = output.limits
    steps = f" in {output.parts} steps" if output.parts else ""
    return f"{output.unit}, {low:g} to {high:g}{steps}".removeprefix(", ")


def _lines(statement: Statement, environment: Environment, syntax: Syntax) -> Iterator[str]:
    """Yield the lines of one statement, and add the tables of numbers that it needs to the environment."""
    names, text, zero = environment.names, environment.text, environment.number(0.0)
    match statement:
        case Let():
            yield syntax.let.format(target=names[statement.target], value=text(statement.value))
        case Store(ring=ring):
            past, count = names[ring_key(ring.name)], ring.depth + 1
            yield syntax.store.format(past=past, value=text(ring.holds))
            if ring.repeat:
                yield syntax.repeat.format(past=past, count=count)
        case Sum(ring=ring):
            past, target = names[ring_key(ring.name)], names[statement.target]
            yield syntax.sum.format(target=target, past=past, count=statement.count, zero=zero)
        case Fill():
            values = ", ".join(map(text, statement.values))
            count = len(statement.values)
            yield syntax.fill.format(target=names[statement.target], values=values, count=count)
        case Mean():
            table = names.give((statement.target, "outputs"), f"{statement.target.name}_of")
            _table(table, statement.outputs, environment, syntax)
            source, count = names[statement.source], len(statement.outputs)
            target = names[statement.target]
            yield syntax.mean.format(target=target, source=source, table=table, count=count)
        case Layer():
            yield from _layer(statement, environment, syntax)
        case Best():
            yield from _best(statement, environment, syntax)
        case Output():
            yield from _output(statement, environment, syntax)


def _table(name: str, values: tuple[float, ...], environment: Environment, syntax: Syntax) -> None:
    numbers = ", ".join(map(environment.number, values))
    environment.tables.append(syntax.table.format(name=name, values=numbers, count=len(values)))


def _layer(layer: Layer, environment: Environment, syntax: Syntax) -> Iterator[str]:
    """Add the weights to the tables, and yield the call of the function for such layers."""
    names = environment.names
    weights = names.give((layer.target, "weights"), f"{layer.target.name}_weights")
    bias = names.give((layer.target, "bias"), f"{layer.target.name}_bias")
    _table(weights, tuple(weight for row in layer.weights for weight in row), environment, syntax)
    _table(bias, layer.bias, environment, syntax)
    yield syntax.layer.format(
        function=layer_function(layer.activation, environment.layer(layer)[1]),
        weights=weights,
        bias=bias,
        source=names[layer.source],
        width=len(layer.weights[0]),
        target=names[layer.target],
        count=len(layer.bias),
    )


def layer_function(activation: str, over: bool) -> str:
    """Return the name of the helper function for a layer; `over` says that its sums may overflow."""
    return f"layer_{activation}" + "_saturated" * over


def layer_functions(template: str, activations: Mapping[str, str]) -> dict[str, str]:
    """Return the definitions of layer functions whose sums cannot overflow.

    Args:
        template: The definition, with `{name}`, `{activation}` and `{value}`.
        activations: For each activation function, its value for a sum.

    Returns:
        The definitions by name.
    """
    names = {layer_function(activation, False): activation for activation in activations}
    return {
        name: template.format(name=name, activation=activation, value=activations[activation])
        for name, activation in names.items()
    }


def _best(best: Best, environment: Environment, syntax: Syntax) -> Iterator[str]:
    names, width = environment.names, len(best.targets)
    table = names.give((best.targets, "rows"), "choices")
    words = {
        "table": table,
        "value": names.give((best.targets, "value"), "best"),
        "chosen": names.give((best.targets, "row"), "chosen"),
        "source": names[best.source],
        "last": names[best.layers[-1].target],
        "count": len(best.rows),
        "width": width,
        "zero": environment.number(0.0),
    }
    _table(table, tuple(value for row in best.rows for value in row), environment, syntax)
    yield syntax.best_open.format(**words)
    first = len(best.layers[0].weights[0]) - width
    for number in range(width):
        index = _index("row", width, number)
        yield STEP + syntax.best_input.format(**words, element=first + number, row_index=index)
    environment.before_layers(best)
    for layer in best.layers:
        yield from (_indented(line) for line in _layer(layer, environment, syntax))
        environment.spans[layer.target] = environment.layer(layer)[0]
    yield syntax.best_close.format(**words)
    for number, target in enumerate(best.targets):
        index = _index(str(words["chosen"]), width, number)
        yield syntax.best_choice.format(**words, target=names[target], chosen_index=index)


def _index(row: str, width: int, number: int) -> str:
    """Return the index of a number in a table of rows."""
    return row if width == 1 else f"{width}*{row} + {number}"


def _indented(text: str) -> str:
    return "\n".join(STEP + line for line in text.splitlines())


def _output(output: Output, environment: Environment, syntax: Syntax) -> Iterator[str]:
    name = environment.names[output.action]
    yield syntax.output.format(name=name, value=environment.text(output.value))
    if output.limits is not None:
        low, high = map(environment.number, output.limits)
        form = syntax.level if output.parts else syntax.clip
        yield form.format(name=name, low=low, high=high, parts=environment.number(output.parts))
    yield syntax.answer.format(name=name)
