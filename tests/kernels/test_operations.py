"""Each operation in double precision means what `evaluate` says, at the edges of doubles too."""

import math
from itertools import product

import numpy as np
import pytest

from clearloop.expression import OPERATIONS, Call, Expression, Number, Operation, Variable, evaluate
from tests.kernels.rig import values

LARGEST = 1.7976931348623157e308
SMALL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, math.pi, -math.pi, 1e-30, 5e-324, -5e-324)
READ = (*SMALL, 709.9, -745.5, 1e12, -1e12, 3e12, -1e300)  # variables are limited to ±1e12
WRITTEN = (*SMALL, 1e154, -1e154, 1e-200, 1e15, LARGEST, -LARGEST)  # numbers are not

LIBRARY = {"pow", "exp", "log", "sin", "cos", "tan", "atan2", "tanh"}  # C libraries differ in the last bits
VARIABLES = tuple(Variable(name) for name in "abc")

every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=str)


def call(operation: Operation, leaves: tuple[Expression, ...]) -> Call:
    """The operation on these leaves; where it wants a condition, on whether they are positive."""
    positive = OPERATIONS["gt"]
    arguments = [
        leaf if kind == "number" else Call(positive, (leaf, Number(0)))
        for leaf, kind in zip(leaves, operation.kinds, strict=True)
    ]
    return Call(operation, tuple(arguments))


def assert_same(operation: Operation, found: list[float], expected: list[float], inputs: object) -> None:
    if operation.name in LIBRARY:
        low, high = np.array(expected), np.array(expected)
        for _ in range(4):
            low, high = np.nextafter(low, -LARGEST), np.nextafter(high, LARGEST)
    else:
        low = high = np.array(expected)
    wrong = ~((low <= found) & (found <= high))
    assert not wrong.any(), list(
        zip(np.array(inputs)[wrong].tolist(), np.array(found)[wrong], np.array(expected)[wrong], strict=True)
    )[:5]


@every_operation
def test_on_variables(operation: Operation) -> None:
    inputs = list(product(READ, repeat=operation.arity))
    names = VARIABLES[: operation.arity]
    formula = call(operation, names)
    found = values([formula], names, inputs, np.float64)[0]
    expected = [evaluate(formula, dict(zip(names, row, strict=True))) for row in inputs]
    assert_same(operation, found, expected, inputs)


@every_operation
def test_on_numbers(operation: Operation) -> None:
    inputs = list(product(WRITTEN, repeat=operation.arity))
    formulas = [call(operation, tuple(map(Number, row))) for row in inputs]
    found = values(formulas, VARIABLES[:1], [[0.0]], np.float64)[:, 0]
    assert_same(operation, found, [evaluate(formula, {}) for formula in formulas], inputs)


def test_a_variable_is_read_limited() -> None:
    x = VARIABLES[0]
    found = values([x], [x], [[-1e300], [-1e12], [5e-324], [1.1e12], [LARGEST]], np.float64)
    assert found.tolist() == [[-1e12, -1e12, 5e-324, 1e12, 1e12]]
