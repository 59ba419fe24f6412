"""Terms of equations: functions and products of errors, in the formula language."""

from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from typing import Any

import numpy as np

from clearloop.data.cells import Floats
from clearloop.explanation.signals import Signals
from clearloop.expression import Number, Operation, Variable, fold, parse

FUNCTIONS = ("{}**2", "{}**3", "abs({})", "sign({})", "sin({})", "cos({})")
FACTORS = ("{}", "abs({})", "sin({})", "cos({})")
MOST_NAMES = 12  # in products of two
MOST_FACTORED = 4  # in products of functions

_MEANINGS: dict[str, Callable[..., Any]] = {
    "mul": np.multiply,
    "pow": np.power,
    "abs": np.abs,
    "sign": np.sign,
    "sin": np.sin,
    "cos": np.cos,
}


def formulas(names: Sequence[str]) -> list[str]:
    """Names, the more important first; products of many would be too many."""
    singles = [function.format(name) for name in names[:MOST_NAMES] for function in FUNCTIONS]
    products = [f"{a}*{b}" for a, b in combinations(names[:MOST_NAMES], 2)]
    factors = [[factor.format(name) for factor in FACTORS] for name in names[:MOST_FACTORED]]
    within = [f"{a}*{b}" for same in factors for a, b in combinations(same, 2)]
    across = [f"{a}*{b}" for one, other in combinations(factors, 2) for a in one for b in other]
    squares = [f"{a}**2*{b}" for a, b in permutations(names[:MOST_FACTORED], 2)]
    return list(dict.fromkeys([*singles, *products, *within, *across, *squares]))


def values_of(formula: str, signals: Signals) -> Floats:
    """[n] in all rows."""
    errors = dict(zip(signals.task.state_names, signals.errors.T, strict=True))

    def leaf(node: Number | Variable) -> Any:
        return node.value if isinstance(node, Number) else errors[node.name]

    def call(operation: Operation, arguments: Sequence[Any]) -> Any:
        return _MEANINGS[operation.name](*arguments)

    values: Floats = fold(parse(formula, signals.task.state_names), leaf, call)
    return values
