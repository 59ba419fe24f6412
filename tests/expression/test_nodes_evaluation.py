import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.expression import OPERATIONS, Expression, FormulaError, Variable, evaluate, parse
from clearloop.expression.nodes import Operation
from tests.expression.strategies import LARGEST, any_kind, floats, values_for


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("1e308*10", LARGEST),
        ("-1e308*10", -LARGEST),
        ("1e308 + 1e308", LARGEST),
        ("-1e308 - 1e308", -LARGEST),
        ("1/0", 0.0),
        ("-1/-(0)", 0.0),
        ("0/0", 0.0),
        ("1/5e-324", LARGEST),
        ("-1e300/1e-300", -LARGEST),
        ("1e-300*1e-300", 0.0),
        ("2**10", 1024.0),
        ("(-2)**3", -8.0),
        ("(-2)**0.5", 0.0),
        ("0**-1", 0.0),
        ("0**0", 1.0),
        ("0**2", 0.0),
        ("10**400", LARGEST),
        ("(-10)**401", -LARGEST),
        ("(-10)**400", LARGEST),
        ("(-10)**-400", 0.0),
        ("5e-324**-1", LARGEST),
        ("-3**2", -9.0),
        ("sqrt(-4)", 0.0),
        ("sqrt(9)", 3.0),
        ("exp(1000)", LARGEST),
        ("exp(-1000)", 0.0),
        ("log(0)", math.log(1e-30)),
        ("log(-5)", math.log(1e-30)),
        ("log(1)", 0.0),
        ("atan2(-(0), -1)", math.pi),
        ("atan2(0, -(0))", 0.0),
        ("sign(-3)", -1.0),
        ("sign(-(0))", 0.0),
        ("clip(5, -1, 1)", 1.0),
        ("clip(0, 3, 1)", 1.0),
        ("wrap(3.5)", 3.5 - math.tau),
        ("wrap(1)", 1.0),
        (f"wrap({math.pi})", -math.pi),
        (f"wrap(-{math.pi})", -math.pi),
        ("if(1 < 2, 3, 4)", 3.0),
        ("if(not 1 < 2 or 1 != 1, 3, 4)", 4.0),
        ("1e13", 1e13),
    ],
)
def test_the_edges_of_the_operations(formula: str, value: float) -> None:
    assert evaluate(parse(formula), {}) == value


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons(name: str) -> None:
    operation = OPERATIONS[name]
    truth = {
        "<": (1, 0, 0),
        "<=": (1, 1, 0),
        ">": (0, 0, 1),
        ">=": (0, 1, 1),
        "==": (0, 1, 0),
        "!=": (1, 0, 1),
    }
    found = tuple(operation.meaning(a, b) for a, b in [(1.0, 2.0), (2.0, 2.0), (2.0, 1.0)])
    assert found == truth[operation.symbol]


def test_logic_is_the_truth_table() -> None:
    pairs = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]
    assert [OPERATIONS["and"].meaning(*pair) for pair in pairs] == [0, 0, 0, 1]
    assert [OPERATIONS["or"].meaning(*pair) for pair in pairs] == [0, 1, 1, 1]
    assert [OPERATIONS["not"].meaning(p) for p in (0.0, 1.0)] == [1, 0]


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "tanh", "exp", "sqrt", "log"])
@given(x=st.floats(0.1, 100))
def test_functions_are_those_of_the_mathematics_library(name: str, x: float) -> None:
    expected: Callable[[float], float] = getattr(math, name)
    assert OPERATIONS[name].meaning(x) == expected(x)


def test_a_variable_is_read_limited() -> None:
    x = Variable("x")
    assert evaluate(x, {x: 2e12}) == 1e12
    assert evaluate(x, {x: -1e300}) == -1e12
    assert evaluate(x, {x: 0.1}) == 0.1
    assert isinstance(evaluate(x, {x: 3}), float)


def test_a_missing_value_is_named() -> None:
    with pytest.raises(FormulaError, match=r"^'theta\[t-3\]' has no value$"):
        evaluate(parse("theta[t-3]"), {Variable("theta"): 1.0})


@given(st.data(), any_kind(5))
def test_finite_values_give_a_finite_result(data: st.DataObject, expression: Expression) -> None:
    result = evaluate(expression, data.draw(values_for(expression)))
    assert math.isfinite(result)
    assert expression.kind == "number" or result in (0.0, 1.0)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=str)
@given(st.data())
def test_the_sign_of_a_zero_never_matters(operation: Operation, data: st.DataObject) -> None:
    arguments = [data.draw(st.just(0.0) | floats()) for _ in operation.kinds]
    negated = [-x if x == 0 else x for x in arguments]
    assert operation.meaning(*arguments) == operation.meaning(*negated)


@given(floats() | st.floats(-100, 100))
def test_wrap_stays_in_its_interval_and_turns_by_whole_turns(x: float) -> None:
    angle = OPERATIONS["wrap"].meaning(x)
    assert -math.pi <= angle < math.pi
    if abs(x) < 1e6:
        turns = (x - angle) / math.tau
        assert abs(turns - round(turns)) < 1e-9
