import math

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from clearloop.expression import OPERATIONS, Call, Expression, Variable, evaluate, parse, to_sympy, variables
from clearloop.expression.nodes import Kind, Operation
from tests.expression.strategies import expressions, tame_numbers

SMOOTH = ("add", "sub", "mul", "neg", "min", "max", "clip", "abs", "sin", "cos", "tanh")


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("69.8*theta + 20*theta_dot - 3*rho", "69.8*theta + 20*theta_dot - 3*rho"),
        ("x - (x - 1)", "x - (x - 1)"),
        ("0*x + x**1", "0*x + x**1"),
        ("1/x", "1/x"),
        ("2/x", "2/x"),
        ("if(x < y, x, x)", "Piecewise((x, x < y), (x, True))"),
        ("theta[t-3]/(0.65 + x)", "theta[t-3]/(0.65 + x)"),
    ],
)
def test_nothing_is_evaluated(formula: str, text: str) -> None:
    assert sympy.sstr(to_sympy(parse(formula)), order="none") == text


def test_symbols_carry_the_text_of_their_variable() -> None:
    assert {symbol.name for symbol in to_sympy(parse("rho.error[t-2]*theta")).free_symbols} == {
        "rho.error[t-2]",
        "theta",
    }


def test_sympy_can_work_with_it() -> None:
    x = sympy.Symbol("x", real=True)
    assert sympy.diff(to_sympy(parse("3*x**2 + tanh(x)")), x).subs(x, 0) == 1
    assert sympy.simplify(to_sympy(parse("x*y/x")).doit()) == sympy.Symbol("y", real=True)


@given(st.data(), expressions("number", 3, SMOOTH, tame_numbers))
def test_sympy_agrees_where_no_guard_is_needed(data: st.DataObject, expression: Expression) -> None:
    values = {variable: data.draw(tame_numbers()).value for variable in variables(expression)}
    symbols = [sympy.Symbol(str(variable), real=True) for variable in values]
    real = {"conjugate": lambda x: x}  # what lambdify makes of a name with a dot is no longer real to it
    theirs = sympy.lambdify(symbols, to_sympy(expression), [real, "math"])
    assert math.isclose(evaluate(expression, values), theirs(*values.values()), rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("x", [-4.5, -1.0, 0.0, 1.0, 2.0, 40.0])
@pytest.mark.parametrize(
    "formula",
    [
        "1/(x - 3)",
        "x**2",
        "sqrt(abs(x))",
        "exp(x/10)",
        "log(x + 5)",
        "tan(x)",
        "atan2(x, 2)",
        "sign(x)",
        "wrap(x)",
        "if(x < 1, 2, 3)",
        "if(x <= 1, 2, 3)",
        "if(x > 1, 2, 3)",
        "if(x >= 1, 2, 3)",
        "if(x == 1, 2, 3)",
        "if(x != 1, 2, 3)",
        "if(x > 0 and x < 2 or not x > -2, 2, 3)",
    ],
)
def test_every_other_operation_has_its_counterpart(formula: str, x: float) -> None:
    theirs = to_sympy(parse(formula)).subs(sympy.Symbol("x", real=True), sympy.Rational(x))
    assert math.isclose(float(theirs), evaluate(parse(formula), {Variable("x"): x}), abs_tol=1e-12)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=str)
def test_no_operation_is_forgotten(operation: Operation) -> None:
    leaves: dict[Kind, Expression] = {"number": Variable("x"), "condition": parse("x < 1", kind="condition")}
    theirs = to_sympy(Call(operation, tuple(leaves[kind] for kind in operation.kinds)))
    assert isinstance(theirs, sympy.Expr) == (operation.kind == "number")
