import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clearloop.expression import OPERATIONS, Call, Expression, FormulaError, Number, Variable, parse
from clearloop.expression.nodes import NAMED_FUNCTIONS, Kind
from clearloop.expression.parsing import MAX_CHARACTERS, MAX_TOKENS

NAMES = ("theta", "theta_dot", "rho", "rho_dot", "force")
A, B, C, X = (Variable(name) for name in "abcx")


def call(operation: str, *arguments: Expression) -> Call:
    return Call(OPERATIONS[operation], arguments)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b*c", call("add", A, call("mul", B, C))),
        ("a - b - c", call("sub", call("sub", A, B), C)),
        ("a/b*c", call("mul", call("div", A, B), C)),
        ("a**b**c", call("pow", A, call("pow", B, C))),
        ("-a**b", call("neg", call("pow", A, B))),
        ("a**-b**c", call("pow", A, call("neg", call("pow", B, C)))),
        ("-a*b", call("mul", call("neg", A), B)),
        ("a*-b", call("mul", A, call("neg", B))),
        ("-3*x", call("mul", Number(-3), X)),
        ("- 3*x", call("mul", Number(-3), X)),
        ("-(3)", call("neg", Number(3))),
        ("--3", call("neg", Number(-3))),
        ("-3**2", call("neg", call("pow", Number(3), Number(2)))),
        ("(-3)**2", call("pow", Number(-3), Number(2))),
        ("2**-3", call("pow", Number(2), Number(-3))),
        ("2**-3**2", call("pow", Number(2), call("neg", call("pow", Number(3), Number(2))))),
        ("a - -3", call("sub", A, Number(-3))),
        ("+a - +3", call("sub", A, Number(3))),
        (" ( ( a ) ) \n+ 1", call("add", A, Number(1))),
        (".5e1 + 2.", call("add", Number(5), Number(2))),
        ("clip(a, -1, b)", call("clip", A, Number(-1), B)),
        ("if(a < b, a, b)", call("if", call("lt", A, B), A, B)),
    ],
)
def test_numbers(text: str, tree: Expression) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("not a < b", call("not", call("lt", A, B))),
        ("not not a < b", call("not", call("not", call("lt", A, B)))),
        (
            "a < b or b < c and a != c",
            call("or", call("lt", A, B), call("and", call("lt", B, C), call("ne", A, C))),
        ),
        ("not a < b and b < c", call("and", call("not", call("lt", A, B)), call("lt", B, C))),
        ("(a + 1) >= (b)", call("ge", call("add", A, Number(1)), B)),
    ],
)
def test_conditions(text: str, tree: Expression) -> None:
    assert parse(text, kind="condition") == tree


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("theta", Variable("theta")),
        ("theta[t]", Variable("theta", lag=0)),
        ("theta[t-3]", Variable("theta", lag=3)),
        ("theta [ t - 3 ]", Variable("theta", lag=3)),
        ("theta[t-0]", Variable("theta", lag=0)),
        ("theta[t-1000000]", Variable("theta", lag=1_000_000)),
        ("rho.error", Variable("rho", "error")),
        ("rho.setpoint[t-2]", Variable("rho", "setpoint", 2)),
        ("t[t-1]", Variable("t", lag=1)),
    ],
)
def test_variables(text: str, variable: Variable) -> None:
    assert parse(text) == variable


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("69.8*thta", "unknown name 'thta' at column 6; did you mean 'theta'?"),
        ("voltage", "unknown name 'voltage' at column 1"),
        ("theta + (rho < 1)", "expected a number, found a condition at column 9"),
        ("theta + 1 < rho", "expected a number, found a condition at column 1"),
        ("-(rho < 1)", "expected a number, found a condition at column 2"),
        ("+(rho < 1)", "expected a number, found a condition at column 2"),
        ("if(theta, 1, 2)", "expected a condition, found a number at column 4"),
        ("if(theta < 1 < rho, 1, 2)", "chained comparison at column 14; join two comparisons with 'and'"),
        ("", "expected a value, found the end of the formula at column 1"),
        ("theta + ", "expected a value, found the end of the formula at column 9"),
        ("theta + * rho", "expected a value, found '*' at column 9"),
        ("and", "expected a value, found 'and' at column 1"),
        ("(theta", "expected ')', found the end of the formula at column 7"),
        ("theta)", "expected an operator, found ')' at column 6"),
        ("2 theta", "expected an operator, found 'theta' at column 3; write '*' to multiply"),
        ("(2 theta)", "expected an operator, found 'theta' at column 4; write '*' to multiply"),
        ("2(theta)", "expected an operator, found '(' at column 2; write '*' to multiply"),
        ("theta AND rho", "expected an operator, found 'AND' at column 7; did you mean 'and'?"),
        ("sin theta", "expected '(' after 'sin', found 'theta' at column 5"),
        ("SIN(theta)", "unknown function 'SIN' at column 1; did you mean 'sin'?"),
        ("min(theta)", "'min' takes 2 arguments, found 1 at column 1"),
        ("1 + abs(theta, rho)", "'abs' takes 1 argument, found 2 at column 5"),
        ("abs()", "expected a value, found ')' at column 5"),
        ("theta^2", "unexpected character '^' at column 6; did you mean '**'?"),
        ("theta − rho", "unexpected character '−' at column 7; did you mean '-'?"),  # noqa: RUF001
        ("theta−rho", "unexpected character '−' at column 6; did you mean '-'?"),  # noqa: RUF001
        ("theta = 1", "unexpected character '=' at column 7; did you mean '=='?"),
        ("theta <> 1", "unexpected character '<>' at column 7; did you mean '!='?"),
        ("theta $", "unexpected character '$' at column 7"),
        ("theta\x00", "unexpected character '\\x00' at column 6"),
        ("theta²", "unexpected character '²' at column 6; did you mean '**2'?"),
        ("1e999*theta", "number '1e999' is too large at column 1"),
        ("theta[t+1]", "expected '-', found '+' at column 8"),
        ("theta[3]", "expected 't', found '3' at column 7"),
        ("theta[t-1.5]", "expected a whole number of steps, found '1.5' at column 9"),
        ("theta[t-1", "expected ']', found the end of the formula at column 10"),
        ("theta[t-1000001]", "lag of more than 1,000,000 steps at column 9"),
        ("theta[t-9999999]", "lag of more than 1,000,000 steps at column 9"),
        ("rho.eror", "expected 'error' or 'setpoint', found 'eror' at column 5"),
        ("x" * 80, f"unknown name '{'x' * 59}…' at column 1"),
    ],
)
def test_errors_say_what_where_and_what_instead(text: str, message: str) -> None:
    with pytest.raises(FormulaError) as error:
        parse(text, NAMES)
    assert str(error.value) == message
    assert error.value.column is not None
    assert f"at column {error.value.column}" in message


def test_a_condition_can_be_asked_for() -> None:
    assert parse("theta < 1", kind="condition").kind == "condition"
    with pytest.raises(FormulaError, match="expected a condition, found a number at column 2"):
        parse(" theta", kind="condition")
    with pytest.raises(FormulaError, match="expected a number, found a condition at column 1"):
        parse("theta < 1")


@pytest.mark.parametrize(
    "text",
    [
        "-" * 200_000,
        "+" * 200_000 + "x",
        "(" * 200_000,
        "not " * 200_000,
        "x + " * 200_000 + "x",
        "2**" * 200_000 + "2",
        "abs(" * 200_000,
        "if(x < 1 or x < 2 and x < 3 + 4 * " * 20_000,
    ],
)
def test_deep_nesting_is_refused_fast(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(FormulaError, match="nested deeper than 200 levels at column"):
        parse(text)
    assert time.perf_counter() - start < 1


def test_a_nearly_full_stack_is_no_way_around_the_error() -> None:
    def deeper(text: str) -> Expression:
        try:
            return deeper(text)
        except RecursionError:
            return parse(text)

    with pytest.raises(FormulaError, match="nested deeper"):
        deeper("(" * 150 + "x" + ")" * 150)


def test_long_text_is_refused() -> None:
    with pytest.raises(FormulaError, match=f"longer than {MAX_TOKENS:,} numbers, names and signs at column"):
        parse("+".join(["(x" + "+x" * 98 + ")"] * 100))
    with pytest.raises(FormulaError, match=f"longer than {MAX_CHARACTERS:,} characters"):
        parse("x" * (MAX_CHARACTERS + 1))
    assert parse("x".ljust(MAX_CHARACTERS)) == Variable("x")


def test_a_long_sum_of_parts_is_accepted() -> None:
    part = "(" + " + ".join(["x"] * 30) + ")"
    assert parse(" + ".join([part] * 100)).depth < 200


@given(st.text(), st.sampled_from(["number", "condition"]))
@example("\ud800", "number")
@example("x[t-" + "9" * 5000 + "]", "number")
@example("9" * 5000, "number")
@example("٣ + x", "number")
def test_any_text_gives_a_tree_or_a_formula_error(text: str, kind: Kind) -> None:
    try:
        assert parse(text, kind=kind).kind == kind
    except FormulaError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right


SIGNS = ("+", "-", "*", "/", "**", "(", ")", "[", "]", ",", ".", "<", "<=", "==", "!=", "^", "=")
WORDS = (
    *NAMED_FUNCTIONS,
    *SIGNS,
    "and",
    "or",
    "not",
    "x",
    "theta",
    "t",
    "error",
    "[t-1]",
    "1",
    "2.5",
    ".5",
    "3e400",
)


@given(st.lists(st.sampled_from(WORDS), max_size=30), st.sampled_from(["", " "]))
def test_any_words_give_a_tree_or_a_formula_error(words: list[str], separator: str) -> None:
    text = separator.join(words)
    try:
        parse(text, ["x", "theta"])
    except FormulaError as error:
        assert error.column is not None  # noqa: PT017 - both outcomes are right
        assert 1 <= error.column <= len(text) + 1  # noqa: PT017
