"""How a target writes statements: a table of templates, and one printer for all of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clearloop.export.environment import Environment, ring_key
from clearloop.export.routine import Best, Fill, Layer, Let, Mean, Output, Statement, Store, Sum

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


def lines(statement: Statement, environment: Environment, syntax: Syntax) -> Iterator[str]:
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
