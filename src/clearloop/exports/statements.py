"""Statements as text: a language gives a table of templates, and one printer fills them in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clearloop.controllers.routine import (
    Act,
    Best,
    Correct,
    Fill,
    Gain,
    Layer,
    Let,
    Mean,
    Output,
    Remark,
    Report,
    Set,
    Statement,
    Status,
    Store,
    Sum,
)
from clearloop.exports.printer import STEP, Environment, ring_key


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
        flag: A named condition. This and what follows is used by languages that have guards.
        set: A new value of a state.
        correct: A new value of element 0 of a ring.
        act_result: The declaration of the action of a law, before it runs.
        act_open: The head of the statement that runs the law.
        act_action: Inside it, the action gets its value.
        act_close: The end of that statement.
        act_restart: What follows it where the law has to begin again after it did not run.
        report: A whole number for the caller.
        status: A word of bits, which are all 0 at first.
        bit: A bit of it is set under a condition.
        remark: A comment.
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
    flag: str = ""
    set: str = ""
    correct: str = ""
    act_result: str = ""
    act_open: str = ""
    act_action: str = ""
    act_close: str = ""
    act_restart: str = ""
    report: str = ""
    status: str = ""
    bit: str = ""
    remark: str = ""


def body_lines(environment: Environment, syntax: Syntax) -> list[str]:
    """Return the lines of all statements of a routine, not indented."""
    texts = [text for one in environment.run() for text in _lines(one, environment, syntax)]
    return "\n".join(filter(None, texts)).splitlines()


def gain_words(gain: Gain) -> str:
    """Return what a gain is, for a comment."""
    return f"{gain.words or 'gain'}; may be tuned"


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
            form = syntax.flag if statement.value.kind == "condition" else syntax.let
            yield form.format(target=names[statement.target], value=text(statement.value))
        case Set():
            name = environment.forms.get(statement.target) or names[statement.target]
            yield syntax.set.format(name=name, value=text(statement.value))
        case Correct(ring=ring):
            yield syntax.correct.format(past=names[ring_key(ring.name)], value=text(statement.value))
        case Report():
            yield syntax.report.format(name=names[statement.target], value=text(statement.value))
        case Status():
            yield syntax.status.format(name=names[statement.target])
            for number, words, condition in statement.bits:
                yield syntax.bit.format(
                    name=names[statement.target], number=number, words=words, when=text(condition)
                )
        case Remark():
            yield syntax.remark.format(words=statement.words)
        case Act():
            yield from _act(statement, environment, syntax)
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


def _act(act: Act, environment: Environment, syntax: Syntax) -> Iterator[str]:
    names, zero = environment.names, environment.number(0.0)
    pairs = [
        {"target": names[target], "action": names[output.action], "zero": zero}
        for output, target in zip(act.law.outputs, act.actions, strict=True)
    ]
    for pair in pairs:
        yield syntax.act_result.format(**pair)
    yield syntax.act_open.format(when=environment.text(act.when), law=environment.law)
    for pair in pairs:
        yield STEP + syntax.act_action.format(**pair)
    restart = syntax.act_restart if act.law.remembers_the_start else ""
    yield (syntax.act_close + restart).format()


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
