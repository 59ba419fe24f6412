"""Random programs in double precision mean what `evaluate` says, whatever the numbers in them."""

from collections.abc import Sequence

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clearloop.expression import OPERATIONS, Call, Expression, Number, Variable, evaluate
from tests.expression import strategies
from tests.kernels.noise import spread
from tests.kernels.rig import values

LIBRARY = {"pow", "exp", "log", "sin", "cos", "tan", "atan2", "tanh"}
EXACT = tuple(name for name in OPERATIONS if name not in LIBRARY)

VARIABLES = [Variable(name) for name in ("x", "theta_dot", "θ")] + [
    Variable("rho", part, lag) for part in ("value", "error", "setpoint") for lag in (None, *range(13))
]
LARGEST = Number(strategies.LARGEST)

# Every example is a population of programs. They stay the same, so that the verdict does.
populations = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
seeds = st.integers(0, 2**32 - 1)


def inputs(seed: int, scale: float = 1.0) -> list[list[float]]:
    """Values for all variables, some of them at edges."""
    rng = np.random.default_rng(seed)
    wild = rng.choice(np.array(strategies.ROUND + strategies.EDGES), (2, len(VARIABLES)))
    tame = rng.normal(0, scale, (2, len(VARIABLES)))
    return [*wild.tolist(), *tame.tolist()]


def expected(formulas: Sequence[Expression], rows: list[list[float]]) -> list[list[float]]:
    return [[evaluate(f, dict(zip(VARIABLES, row, strict=True))) for row in rows] for f in formulas]


def unsound(formula: Expression) -> Expression:
    """Whether the formula gives NaN or infinity, as a formula."""
    is_nan = Call(OPERATIONS["ne"], (formula, formula))
    is_infinite = Call(OPERATIONS["gt"], (Call(OPERATIONS["abs"], (formula,)), LARGEST))
    return Call(OPERATIONS["or"], (is_nan, is_infinite))


@populations
@given(st.lists(strategies.expressions(depth=4, operations=EXACT), min_size=10, max_size=40), seeds)
def test_exact_operations_give_the_same_bits(formulas: list[Expression], seed: int) -> None:
    rows = inputs(seed)
    assert values(formulas, VARIABLES, rows, np.float64).tolist() == expected(formulas, rows)


@populations
@given(st.lists(strategies.expressions(depth=4), min_size=10, max_size=40), seeds)
def test_all_operations_agree_to_rounding(formulas: list[Expression], seed: int) -> None:
    rows = inputs(seed)
    found = values(formulas, VARIABLES, rows, np.float64)
    for formula, mine, meant in zip(formulas, found, expected(formulas, rows), strict=True):
        for row, a, b in zip(rows, mine, meant, strict=True):
            if abs(a - b) > 1e-12 * abs(b):
                at = dict(zip(VARIABLES, row, strict=True))
                assert abs(a - b) <= 10 * spread(formula, at, 1e-15, set(EXACT), seed), str(formula)


@populations
@given(st.lists(strategies.expressions(depth=4), min_size=10, max_size=40), seeds)
def test_nothing_is_ever_nan_or_infinite(formulas: list[Expression], seed: int) -> None:
    for dtype in (np.float32, np.float64):
        found = values([unsound(formula) for formula in formulas], VARIABLES, inputs(seed), dtype)
        assert not found.any(), str(formulas[int(found.any(axis=1).argmax())])
