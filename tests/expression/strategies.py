"""Random formulas and values for property tests, hard cases among them."""

import math
from collections.abc import Callable, Mapping
from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from clearloop.expression import OPERATIONS, Call, Expression, Number, Variable, variables
from clearloop.expression.nodes import Kind

LARGEST = 1.7976931348623157e308
ROUND = (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, 0.1)
EDGES = (math.pi, -math.pi, 1e-30, -1e-30, 5e-324, -5e-324, 1e12, -1e12, 1e154, -1e154, LARGEST, -LARGEST)

ALL_OPERATIONS = tuple(OPERATIONS)


def floats() -> SearchStrategy[float]:
    """Finite doubles, half of them small and round or at some edge."""
    return st.sampled_from(ROUND + EDGES) | st.floats(allow_nan=False, allow_infinity=False)


def numbers() -> SearchStrategy[Number]:
    return floats().map(Number)


def tame_numbers() -> SearchStrategy[Number]:
    """Eighths from -5 to 5: sums and products of a few of them are exact."""
    return st.integers(-40, 40).map(lambda eighths: Number(eighths / 8))


def all_variables() -> SearchStrategy[Variable]:
    """Few names, so that a formula often has the same variable twice; all parts and lags."""
    plain = st.sampled_from([Variable("x"), Variable("theta_dot"), Variable("θ")])
    parts = st.sampled_from(("value", "error", "setpoint"))
    return plain | st.builds(Variable, st.just("rho"), parts, st.none() | st.integers(0, 12))


@cache
def expressions(
    kind: Kind = "number",
    depth: int = 4,
    operations: tuple[str, ...] = ALL_OPERATIONS,
    constants: Callable[[], SearchStrategy[Number]] = numbers,
) -> SearchStrategy[Expression]:
    """Formulas with at most `depth` nested `operations` (and a comparison where a condition must end)."""

    def call(name: str, depth: int) -> SearchStrategy[Expression]:
        operation = OPERATIONS[name]
        arguments = [expressions(kind, depth - 1, operations, constants) for kind in operation.kinds]
        return st.builds(Call, st.just(operation), st.tuples(*arguments))

    leaves = all_variables() | constants() if kind == "number" else call("lt", 1)
    names = [name for name in operations if OPERATIONS[name].kind == kind and depth > 0]
    return st.one_of(leaves, *[call(name, depth) for name in names])


def any_kind(depth: int = 4) -> SearchStrategy[Expression]:
    return expressions("number", depth) | expressions("condition", depth)


def values_for(expression: Expression) -> SearchStrategy[Mapping[Variable, float]]:
    """A value for each variable of the formula."""
    return st.fixed_dictionaries({variable: floats() for variable in variables(expression)})
