"""How a target writes formulas: a table of operations, and one printer for all of them.

A row has two forms: the plain one, where interval analysis shows that no special case can occur, and the one
with the special case (a division by 0, an overflow), mostly a small function that the export brings along.
"""

import re
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import clearloop
from clearloop.controllers import Controller
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

# What most languages write alike. `saturated`, `divided` and so on are functions that they bring along.
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


@dataclass(frozen=True, kw_only=True)
class Dialect:
    plain: Mapping[str, str]
    """Of every operation: `{0} + {1}` (bound as in the formula language), or `sin({0})`."""
    special: Mapping[str, str]
    """Of operations with a special case; `{plain}` is the plain form. Each is a call, or in brackets.

    `read` is a clip to ±1e12, as inputs are read."""
    helpers: Mapping[str, str] = field(default_factory=dict)
    """The small functions that the forms above call, by name; one may call those before it."""
    number: Callable[[float, Precision], str]

    def helpers_in(self, text: str) -> list[str]:
        """The helpers that a text calls, and those that they call, in the order of the table."""
        needed: set[str] = set()
        for name in reversed(list(self.helpers)):
            if re.search(rf"\b{name}\(", text) or any(
                re.search(rf"\b{name}\(", self.helpers[user]) for user in needed
            ):
                needed.add(name)
        return [name for name in self.helpers if name in needed]


class Piece(NamedTuple):
    text: str
    binds: int
    """How tightly its outermost operation binds."""
    span: Span
    value: float | None = None
    """Of a constant."""


@dataclass(frozen=True)
class Printer:
    """Prints formulas in a dialect, in some precision, with the names and spans that a routine has so far."""

    dialect: Dialect
    precision: Precision
    leaf: Callable[[Variable], tuple[str, Span]]

    def text(self, tree: Expression) -> str:
        return self.piece(tree).text

    def piece(self, tree: Expression) -> Piece:
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
        """A number x is above 0.1 just when it is above the largest number that is not above 0.1."""
        pieces = []
        for piece, greater in ((left, name in ("gt", "le")), (right, name in ("lt", "ge"))):
            if piece.value is None:
                pieces.append(piece)
            else:
                round_it = self.precision.above if greater else self.precision.below
                pieces.append(self._number(round_it(piece.value)))
        return pieces


def _operands(operation: Operation, pieces: Sequence[Piece]) -> list[str]:
    """With brackets where the binding asks for them, and where readers would like to see some."""
    single = len(pieces) == 1
    texts = []
    for number, piece in enumerate(pieces):
        loose = piece.binds < operation.precedence + (number > 0 or single)
        signs = piece.text.startswith("-") and (number > 0 or single)
        mixed = (operation.precedence, piece.binds) == (OR, AND)
        texts.append(f"({piece.text})" if loose or signs or mixed else piece.text)
    return texts


# Identifiers that a target accepts, made from names that people chose: ASCII, no keywords, no clashes.

DOT_ABOVE = "\u0307"
LONGEST_C_NAME = 31  # characters that every C99 compiler tells external names apart by


def ascii_name(text: str) -> str:
    """θ̇ as theta_dot, é as e, other letters by their code; `_` is never doubled, first or last."""
    word = "".join(_spelled(character) for character in unicodedata.normalize("NFKD", text))
    word = re.sub("_+", "_", re.sub(r"[^A-Za-z0-9]", "_", word)).rstrip("_")
    return word if re.match("[A-Za-z]", word) else f"x{word}" if word.startswith("_") else f"x_{word}"


def _spelled(character: str) -> str:
    if character.isascii():
        return character
    if unicodedata.combining(character):
        return "_dot" if character == DOT_ABOVE else ""
    script, _, letter = unicodedata.name(character, "").partition(" LETTER ")
    if script.startswith("GREEK") and letter.isalpha():
        return letter.capitalize() if "CAPITAL" in script else letter.lower()
    return f"u{ord(character):04x}"


class Names:
    """Gives each thing its identifier, once."""

    def __init__(self, reserved: Collection[str], *, ignore_case: bool = False) -> None:
        self._ignore_case = ignore_case
        self._taken = {self._key(word) for word in reserved}
        self._given: dict[Hashable, str] = {}

    def _key(self, word: str) -> str:
        return word.lower() if self._ignore_case else word

    def give(self, thing: Hashable, wish: str) -> str:
        """The identifier of a thing: the wish, made legal and with a number if it is taken."""
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


# How a target writes statements: a table of templates, and one printer for all of them.

STEP = "    "


@dataclass(frozen=True, kw_only=True)
class Syntax:
    """Templates of one or more lines each."""

    let: str
    store: str
    repeat: str
    """After the first `store` of a ring in which the first value is repeated."""
    sum: str
    fill: str
    table: str
    """Constant numbers."""
    mean: str
    layer: str
    best_open: str
    best_input: str
    """Inside a loop over rows: an element of the network's input becomes one of the row."""
    best_close: str
    best_choice: str
    output: str
    clip: str
    level: str
    answer: str


def body_lines(environment: Environment, syntax: Syntax) -> list[str]:
    """The lines of all statements of a routine, not indented."""
    texts = [text for one in environment.run() for text in _lines(one, environment, syntax)]
    return "\n".join(filter(None, texts)).splitlines()


def output_words(output: Output) -> str:
    """The unit of an action, its limits and its steps, for a comment: `N, -10 to 10 in 4 steps`."""
    if output.limits is None:
        return output.unit
    low, high = output.limits
    steps = f" in {output.parts} steps" if output.parts else ""
    return f"{output.unit}, {low:g} to {high:g}{steps}".removeprefix(", ")


def _lines(statement: Statement, environment: Environment, syntax: Syntax) -> Iterator[str]:
    """One statement; the environment is as before it, and gets the tables of numbers that it needs."""
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
    """Weights row by row, then the call of the function for such layers."""
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
    """The name of the small function; `over`: sums may be too large for the precision."""
    return f"layer_{activation}" + "_saturated" * over


def layer_functions(template: str, activations: Mapping[str, str]) -> dict[str, str]:
    """One for each activation, where no sum can be too large; `activations`: what becomes of a sum."""
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
    """Of a number in a table of rows."""
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


# What stands at the head of every export, and how people's words are made harmless in comments.

WIDTH = 100
_LONGEST_LINE = 2_000  # characters of one line of words; a formula may have 10,000
_HARMLESS = (("*/", "* /"), ("/*", "/ *"), ("??", "? ?"), ("\\", "/"))  # in C, `??/` and `\` join lines


def about(controller: Controller, name: str) -> list[str]:
    """Lines of words: the controller, its limits and setpoints, and how often to call it."""
    lines = [controller.name or name, "", *controller.words(), ""]
    if controller.dt:
        lines.append(f"Call it once every {controller.dt:g} s.")
    lines.append(f"Exported by clearloop {clearloop.__version__}.")
    return [harmless(line) for line in lines]


def harmless(line: str) -> str:
    """A line for a comment in any language: nothing in it ends the comment or goes unseen."""
    text = "".join(c if c.isprintable() else "?" for c in line[:_LONGEST_LINE])
    for bad, good in _HARMLESS:
        while bad in text:
            text = text.replace(bad, good)
    return text.rstrip()


def commented(lines: list[str], mark: str) -> Iterator[str]:
    """As comment lines, each beginning with the mark."""
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        width = WIDTH - len(mark)
        for part in textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]:
            yield f"{mark} {part}".rstrip()


def folded(line: str, indent: str) -> str:
    """A long line of code, broken at spaces."""
    if len(indent) + len(line) <= WIDTH:
        return indent + line
    deeper = indent + " " * (len(line) - len(line.lstrip()) + 4 * (" = " in line))
    parts = textwrap.wrap(
        indent + line, WIDTH, subsequent_indent=deeper, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(parts)
