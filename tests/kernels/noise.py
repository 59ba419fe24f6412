"""How far rounding may carry a formula: its values when the result of each operation is a little off."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from clearloop.expression import Expression, Number, Operation, Variable, evaluate, fold
from clearloop.expression.nodes import read, saturated

TRIES = 12


def spread(
    formula: Expression, at: Mapping[Variable, float], noise: float, exact: AbstractSet[str], seed: int
) -> float:
    """The largest change in the value when every operation that is not exact is off by ±`noise` of it."""
    rng = np.random.default_rng(seed)

    def leaf(node: Number | Variable) -> float:
        return node.value if isinstance(node, Number) else read(at[node])

    def noisy(operation: Operation, arguments: Sequence[float]) -> float:
        value = operation.meaning(*arguments)
        if operation.name in exact:
            return value
        return saturated(value * (1 + noise * float(rng.choice([-1, -0.3, 0.3, 1]))))

    meant = evaluate(formula, at)
    return max(abs(fold(formula, leaf, noisy) - meant) for _ in range(TRIES))
