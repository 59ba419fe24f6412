"""Bounds: arguments that are off by as much as they may be give results within the bound."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clearloop.exports import DOUBLE, SINGLE
from clearloop.expression import Expression, Number, Variable, evaluate, fold, variables
from clearloop.expression.nodes import OPERATIONS, Operation
from clearloop.verification.bounds import Approximate, Arithmetic, apply
from tests.expression.strategies import ALL_OPERATIONS, expressions, tame_numbers

VALUES = st.sampled_from([0.0, 1.0, -1.0, 0.5, 2.0]) | st.floats(-1e6, 1e6) | st.floats(-10, 10)
BOUNDS = st.sampled_from([0.0, 1e-9, 1e-3, 0.5]) | st.floats(0, 3)


@settings(max_examples=500)
@given(st.sampled_from(sorted(OPERATIONS)), st.data())
def test_what_is_off_within_the_bounds_stays_within_the_bound(name: str, data: st.DataObject) -> None:
    operation = OPERATIONS[name]
    arguments, moved = [], []
    for kind in operation.kinds:
        if kind == "condition":
            arguments.append(Approximate(data.draw(st.sampled_from([0.0, 1.0])), 0.0))
            moved.append(arguments[-1].value)
        else:
            arguments.append(Approximate(data.draw(VALUES), data.draw(BOUNDS)))
            moved.append(arguments[-1].value + data.draw(st.floats(-0.99, 0.99)) * arguments[-1].bound)
    found = apply(Arithmetic(DOUBLE, exact=False), operation, arguments)
    assert found.value == operation.meaning(*(argument.value for argument in arguments))
    moved_sum = max(1.0, abs(found.value))  # what was moved was rounded, too
    assert abs(operation.meaning(*moved) - found.value) <= found.bound + 1e-13 * moved_sum


def in_single(operation: Operation, arguments: Sequence[float]) -> float:
    """As a processor would: the nearest float of the result, which is as good as a library can be."""
    return SINGLE.rounded(operation.meaning(*arguments))


@settings(max_examples=400)
@given(expressions("number", 3, ALL_OPERATIONS, tame_numbers), st.data())
def test_single_precision_stays_within_the_bound(tree: Expression, data: st.DataObject) -> None:
    values = {v: SINGLE.rounded(data.draw(VALUES)) for v in variables(tree)}
    arithmetic = Arithmetic(SINGLE, exact=False)

    def leaf(node: Number | Variable) -> Approximate:
        return arithmetic.number(node.value) if isinstance(node, Number) else Approximate(values[node])

    def single_leaf(node: Number | Variable) -> float:
        return SINGLE.rounded(node.value) if isinstance(node, Number) else values[node]

    found = fold(tree, leaf, partial(apply, arithmetic))
    single = fold(tree, single_leaf, in_single)
    assert found.value == evaluate(tree, values)
    assert abs(single - found.value) <= found.bound
    assert math.isfinite(single)


def test_exact_numbers_are_compared_with_constants_exactly() -> None:
    arithmetic = Arithmetic(SINGLE, exact=False)
    above = Approximate(float(np.float32(0.1)))
    assert apply(arithmetic, OPERATIONS["gt"], [above, arithmetic.number(0.1)]) == Approximate(1.0, 0.0)
    computed = Approximate(float(np.float32(0.1)), 1e-9)
    assert apply(arithmetic, OPERATIONS["gt"], [computed, arithmetic.number(0.1)]) == Approximate(1.0, 1.0)


def test_an_undecided_condition_counts_with_both_outcomes() -> None:
    arithmetic = Arithmetic(DOUBLE, exact=True)
    found = apply(
        arithmetic, OPERATIONS["if"], [Approximate(1.0, 1.0), Approximate(5.0, 0.1), Approximate(2.0, 0.3)]
    )
    assert found == Approximate(5.0, 3.3)
