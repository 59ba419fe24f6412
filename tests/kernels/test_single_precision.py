"""Single precision, which is for search only: close to the meaning, and total."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.expression import OPERATIONS, Expression, Operation, Variable, evaluate, parse
from tests.expression.strategies import expressions, tame_numbers
from tests.kernels.noise import spread
from tests.kernels.rig import values
from tests.kernels.test_operations import call
from tests.kernels.test_programs import VARIABLES, populations, seeds, unsound

X = Variable("x")
LARGEST = float(np.finfo(np.float32).max)
READ = float(np.float32(1e12))
TINY = float(np.finfo(np.float32).tiny)
EXACT = {"neg", "min", "max", "abs", "sign", "clip", "not", "and", "or", "if"}
EXACT |= {"lt", "le", "gt", "ge", "eq", "ne"}
EDGES = (
    0.0,
    -0.0,
    1.0,
    -2.5,
    3.0,
    math.pi,
    1e-45,
    -1e-45,
    1e-30,
    88.3,
    -104.0,
    1e12,
    -1e30,
    LARGEST,
    -LARGEST,
)


def grid(low: float, high: float) -> Any:
    return np.linspace(low, high, 50_001)


# formula, meaning, where, and what counts as 0: subnormals, and where sine and cosine cross it
FUNCTIONS = {
    "tanh": ("tanh(x)", math.tanh, [*grid(-12, 12), *grid(-1e-3, 1e-3)], TINY),
    "exp": ("exp(x)", lambda x: min(math.exp(x), LARGEST), [*grid(-100, 100), *grid(86, 89)], 2 * TINY),
    "log": ("log(x)", math.log, [*np.geomspace(1.01e-30, 1e12, 50_001).tolist(), *grid(0.5, 2)], TINY),
    "log of large": (f"log({2**60}*x)", lambda x: math.log(2**60 * x), np.geomspace(1, 1e12, 9999), TINY),
    "sin": ("sin(x)", math.sin, [*grid(-10, 10), *grid(-1e4, 1e4)], 1e-6),
    "cos": ("cos(x)", math.cos, [*grid(-10, 10), *grid(-1e4, 1e4)], 1e-6),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_good_to_four_units_in_the_last_place(name: str) -> None:
    text, function, where, smallest = FUNCTIONS[name]
    inputs = np.array(where, np.float32)
    found = values([parse(text)], [X], inputs[:, None], np.float32)[0]
    expected = np.array([function(x) for x in inputs.tolist()])
    unit = np.spacing(np.float32(np.clip(np.abs(expected), smallest, LARGEST / 2))).astype(float)
    off = np.abs(found - expected) / unit
    off[(np.abs(found) <= smallest) & (np.abs(expected) <= smallest)] = 0
    worst = int(off.argmax())
    assert off[worst] <= 4, (inputs[worst], found[worst], expected[worst])


def on_edges(operation: Operation) -> tuple[tuple[Variable, ...], list[tuple[float, ...]]]:
    names = tuple(Variable(name) for name in "abc"[: operation.arity])
    return names, list(product(np.array(EDGES, np.float32).tolist(), repeat=operation.arity))


@pytest.mark.parametrize("operation", [o for o in OPERATIONS.values() if o.kind == "number"], ids=str)
def test_every_operation_is_total(operation: Operation) -> None:
    names, inputs = on_edges(operation)
    found = values([unsound(call(operation, names))], names, inputs, np.float32)
    assert not found.any(), inputs[int(found[0].argmax())]


@pytest.mark.parametrize("operation", [o for o in OPERATIONS.values() if o.name in EXACT], ids=str)
def test_what_does_not_round_is_exact(operation: Operation) -> None:
    names, inputs = on_edges(operation)
    formula = call(operation, names)
    found = values([formula], names, inputs, np.float32)[0]
    read = np.clip(inputs, -READ, READ).tolist()
    assert found.tolist() == [evaluate(formula, dict(zip(names, row, strict=True))) for row in read]


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
