"""Single precision, which is for search only: close to the meaning, and total."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.expression import OPERATIONS, Call, Expression, Operation, Variable, evaluate
from tests.expression.strategies import expressions, tame_numbers
from tests.kernels.noise import spread
from tests.kernels.rig import values
from tests.kernels.test_operations import call
from tests.kernels.test_programs import VARIABLES, populations, seeds, unsound

X = Variable("x")
LARGEST = float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float32).tiny)
EXACT = {"neg", "min", "max", "abs", "sign", "clip", "not", "and", "or", "if"}
EXACT |= {"lt", "le", "gt", "ge", "eq", "ne"}
EDGES = (0.0, -0.0, 1.0, -2.5, 3.0, math.pi, 1e-45, -1e-45, 1e-30, 88.3, -104.0, 1e12, -1e30, LARGEST, -LARGEST)


def grid(low: float, high: float) -> list[float]:
    return np.linspace(low, high, 50_001).tolist()


# What is smaller than the last number counts as 0: subnormals, and where sine and cosine cross 0.
FUNCTIONS = {
    "tanh": (math.tanh, [*grid(-12, 12), *grid(-1e-3, 1e-3)], TINY),
    "exp": (lambda x: min(math.exp(x), LARGEST), [*grid(-100, 100), *grid(86, 89)], 2 * TINY),
    "log": (math.log, [*np.geomspace(1e-30, 1e30, 50_001).tolist(), *grid(0.5, 2)], TINY),
    "sin": (math.sin, [*grid(-10, 10), *grid(-1e4, 1e4)], 1e-6),
    "cos": (math.cos, [*grid(-10, 10), *grid(-1e4, 1e4)], 1e-6),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_good_to_four_units_in_the_last_place(name: str) -> None:
    function, grid, smallest = FUNCTIONS[name]
    inputs = np.maximum(np.float32(grid), np.float32(1e-30)) if name == "log" else np.float32(grid)
    found = values([Call(OPERATIONS[name], (X,))], [X], inputs[:, None], np.float32)[0]
    expected = np.array([function(x) for x in inputs.tolist()])
    unit = np.spacing(np.float32(np.clip(np.abs(expected), smallest, LARGEST / 2))).astype(float)
    off = np.abs(found - expected) / unit
    off[(np.abs(found) <= smallest) & (np.abs(expected) <= smallest)] = 0
    worst = int(off.argmax())
    assert off[worst] <= 4, (inputs[worst], found[worst], expected[worst])


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=str)
def test_every_operation_is_total(operation: Operation) -> None:
    names = tuple(Variable(name) for name in "abc"[: operation.arity])
    inputs = list(product(EDGES, repeat=operation.arity))
    found = values([unsound(call(operation, names))], names, inputs, np.float32)
    assert not found.any(), inputs[int(found[0].argmax())]


@populations
@given(st.lists(expressions(depth=3, constants=tame_numbers), min_size=10, max_size=40), seeds)
def test_programs_on_tame_values_agree_to_rounding(formulas: list[Expression], seed: int) -> None:
    rows = np.random.default_rng(seed).normal(0, 2, (4, len(VARIABLES))).astype(np.float32)
    found = values(formulas, VARIABLES, rows, np.float32)
    for formula, mine in zip(formulas, found.tolist(), strict=True):
        for row, a in zip(rows.tolist(), mine, strict=True):
            at = dict(zip(VARIABLES, row, strict=True))
            b = max(-LARGEST, min(evaluate(formula, at), LARGEST))
            if abs(a - b) > 1e-5 * abs(b) + TINY:
                assert abs(a - b) <= 10 * spread(formula, at, 1e-6, EXACT, seed), str(formula)


@pytest.mark.parametrize("function", [min, max])
def test_constants_keep_single_precision(function: Callable[[float, float], float]) -> None:
    formula = Call(OPERATIONS[function.__name__], (X, Call(OPERATIONS["neg"], (X,))))
    found = values([formula], [X], [[0.1], [-0.2]], np.float32)[0]
    assert found.tolist() == [function(x, -x) for x in np.float32([0.1, -0.2]).tolist()]
