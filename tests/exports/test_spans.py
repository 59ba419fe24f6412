"""Interval analysis: every value lies where it says, and without special cases mathematics alone is right."""

import math
from collections.abc import Callable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.exports import DOUBLE
from clearloop.exports.spans import Span, found, of_input, of_number
from clearloop.expression import Expression, Number, Variable, evaluate, fold, variables
from clearloop.expression.nodes import Operation
from tests.expression.strategies import expressions

PLAIN: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": math.pow,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "tan": math.tan,
    "atan2": math.atan2,
    "clip": lambda x, _low, _high: x,
    "wrap": lambda x: x,
}


def span_of(tree: Expression) -> Span:
    def leaf(node: Number | Variable) -> Span:
        return of_number(node.value, DOUBLE) if isinstance(node, Number) else of_input(DOUBLE)

    return fold(tree, leaf, lambda operation, spans: found(operation.name, spans, DOUBLE).span)


@settings(max_examples=300)
@given(expressions("number", 4), st.data())
def test_values_lie_in_their_span(tree: Expression, data: st.DataObject) -> None:
    numbers = st.sampled_from([0.0, 1e12, -1e12, 1.0, -3.0]) | st.floats(-1e12, 1e12)
    span = span_of(tree)
    for _ in range(5):
        value = evaluate(tree, {variable: data.draw(numbers) for variable in variables(tree)})
        assert span.low <= value <= span.high


@settings(max_examples=300)
@given(expressions("number", 4), st.data())
def test_where_no_special_case_is_seen_there_is_none(tree: Expression, data: st.DataObject) -> None:
    values = {variable: data.draw(st.floats(-1e12, 1e12)) for variable in variables(tree)}

    def leaf(node: Number | Variable) -> tuple[float, Span]:
        if isinstance(node, Number):
            return node.value, of_number(node.value, DOUBLE)
        return values[node], of_input(DOUBLE)

    def call(operation: Operation, arguments: Sequence[tuple[float, Span]]) -> tuple[float, Span]:
        span, special = found(operation.name, [one for _, one in arguments], DOUBLE)
        numbers = [value for value, _ in arguments]
        value = operation.meaning(*numbers)
        if not special and operation.name in PLAIN:
            assert PLAIN[operation.name](*numbers) == value
        return value, span

    fold(tree, leaf, call)
