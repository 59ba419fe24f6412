import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.errors import ClearloopError
from clearloop.expression import (
    OPERATIONS,
    Call,
    Expression,
    FormulaError,
    Number,
    Variable,
    complexity,
    is_name,
    parse,
    substitute,
    variables,
)
from clearloop.expression.nodes import MAX_DEPTH
from tests.expression.strategies import any_kind

X, Y = Variable("x"), Variable("y")
PUBLISHED = "69.8*theta + 20*theta_dot + 10*rho + 9.4*rho_dot"


def nested(operation: str, levels: int) -> Expression:
    tree: Expression = X
    for _ in range(levels):
        tree = Call(OPERATIONS[operation], (tree,))
    return tree


def test_a_number_is_a_finite_double_without_negative_zero() -> None:
    assert Number(3) == Number(3.0)
    assert isinstance(Number(3).value, float)
    assert str(Number(-0.0)) == "0"
    with pytest.raises(FormulaError, match="inf is not a finite number"):
        Number(float("inf"))


@pytest.mark.parametrize("name", ["", "a b", "3x", "if", "and", "tanh", "x.y"])
def test_a_variable_has_a_name_that_can_be_read(name: str) -> None:
    assert not is_name(name)
    with pytest.raises(FormulaError, match="cannot be a name"):
        Variable(name)


@pytest.mark.parametrize("name", ["x", "θ", "θ̇", "_1", "t", "add", "Tanh", "温度"])
def test_identifiers_are_names(name: str) -> None:
    assert is_name(name)
    assert variables(parse(name)) == (Variable(name),)


def test_a_lag_is_never_in_the_future() -> None:
    with pytest.raises(FormulaError, match="not -1"):
        Variable("x", lag=-1)


@pytest.mark.parametrize(
    ("operation", "arguments", "message"),
    [
        ("add", (X,), "'add' takes number, number, not number"),
        ("not", (X,), "'not' takes condition, not number"),
        ("if", (X, X, X), "'if' takes condition, number, number, not number, number, number"),
    ],
)
def test_a_call_has_the_right_arguments(
    operation: str, arguments: tuple[Expression, ...], message: str
) -> None:
    with pytest.raises(FormulaError) as error:
        Call(OPERATIONS[operation], arguments)
    assert str(error.value) == message
    assert error.value.column is None
    assert isinstance(error.value, ClearloopError)


def test_a_tree_has_a_limited_depth() -> None:
    deepest = nested("sin", MAX_DEPTH - 1)
    assert deepest.depth == MAX_DEPTH
    with pytest.raises(FormulaError, match="deeper than 200 levels"):
        Call(OPERATIONS["sin"], (deepest,))
    with pytest.raises(FormulaError, match="deeper than 200 levels"):
        substitute(deepest, {X: nested("sin", 1)})


def test_the_deepest_tree_can_be_compared_hashed_and_shown() -> None:
    one, other = nested("sin", MAX_DEPTH - 1), nested("sin", MAX_DEPTH - 1)
    assert one == other
    assert hash(one) == hash(other)
    assert one != nested("sin", MAX_DEPTH - 2)
    assert repr(one).startswith("Call(sin, (Call(sin, (")


@given(any_kind(3), any_kind(3))
def test_equality_is_that_of_the_written_trees(one: Expression, other: Expression) -> None:
    assert (one == other) == (repr(one) == repr(other))


@given(any_kind())
def test_copies_are_equal(expression: Expression) -> None:
    for twin in (copy.deepcopy(expression), pickle.loads(pickle.dumps(expression))):  # noqa: S301
        assert twin == expression
        assert hash(twin) == hash(expression)


def test_complexity_of_the_published_equation() -> None:
    assert complexity(parse(PUBLISHED)) == 15


@pytest.mark.parametrize(
    ("formula", "weight"),
    [("x", 1), ("-3", 1), ("-x", 2), ("x/2", 4), ("x**2", 6), ("wrap(x)", 5), ("if(x < 1, 2, 3)", 13)],
)
def test_complexity_adds_weights(formula: str, weight: int) -> None:
    assert complexity(parse(formula)) == weight


def test_variables_come_in_order_of_appearance() -> None:
    expression = parse("rho.error[t-2]*theta + min(x, theta) - rho")
    assert [str(variable) for variable in variables(expression)] == ["rho.error[t-2]", "theta", "x", "rho"]


def test_substitution_replaces_all_at_once() -> None:
    replaced = substitute(parse("x - y*x"), {X: parse("y + 1"), Y: X})
    assert replaced == parse("(y + 1) - x*(y + 1)")
    assert isinstance(replaced, Call)
    assert isinstance(replaced.arguments, tuple)  # nothing can change them


@given(any_kind(), st.sampled_from([X, Variable("theta_dot")]))
def test_substitution_by_itself_changes_nothing(expression: Expression, variable: Variable) -> None:
    assert substitute(expression, {variable: variable}) == expression
