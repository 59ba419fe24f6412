"""Every example on the language's page is true."""

import doctest
import re
from pathlib import Path

import pytest

from clearloop.expression import (
    OPERATIONS,
    Call,
    FormulaError,
    Number,
    complexity,
    evaluate,
    parse,
    simplify,
    to_text,
    variables,
)
from clearloop.expression.nodes import Kind
from clearloop.expression.simplification import COMPARISON_LAWS, CONDITION_LAWS, NUMBER_LAWS

PAGE = Path(__file__).parents[2] / "docs" / "language.md"
TEXT = PAGE.read_text(encoding="utf-8")


def table(*header: str) -> list[list[str]]:
    """The rows of the table with this header, without the marks of code."""
    lines = TEXT.split(f"| {' | '.join(header)} |\n", 1)[1].splitlines()[1:]
    rows = lines[: next(i for i, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip().strip("`") for cell in row.strip("|").split(" | ")] for row in rows]


def kind_of(formula: str) -> Kind:
    return "condition" if "<" in formula and not formula.startswith("if(") else "number"


def test_examples_in_python() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert tried >= 6
    assert failed == 0


def test_the_formulas_at_the_top_are_formulas() -> None:
    for formula in TEXT.split("```\n")[1].splitlines():
        assert to_text(parse(formula, kind=kind_of(formula))) == formula


@pytest.mark.parametrize(("written", "meant"), table("you write", "it is read as"))
def test_precedence(written: str, meant: str) -> None:
    assert parse(written, kind=kind_of(written)) == parse(meant, kind=kind_of(written))


@pytest.mark.parametrize(("written", "_"), table("you write", "what it is"))
def test_variables(written: str, _: str) -> None:
    assert [str(variable) for variable in variables(parse(written))] == [written]


def test_all_operations_and_their_complexity() -> None:
    documented = {}
    for formula, _, weight in table("operation", "value", "complexity"):
        symbol = re.search("[<>=!]=?", formula)
        call = parse(formula, kind="condition" if symbol and "if" not in formula else "number")
        assert isinstance(call, Call)
        documented[call.operation.name] = int(weight)
        assert complexity(call) == int(weight) + sum(map(complexity, call.arguments))
    assert list(documented) == list(OPERATIONS)


@pytest.mark.parametrize(("formula", "value"), table("formula", "value"))
def test_values(formula: str, value: str) -> None:
    assert str(Number(evaluate(parse(formula), {}))) == value


@pytest.mark.parametrize(("formula", "message"), table("formula", "error"))
def test_errors(formula: str, message: str) -> None:
    with pytest.raises(FormulaError) as error:
        parse(formula, ["theta", "theta_dot", "rho", "force"])
    assert str(error.value) == message


def test_all_laws_are_listed() -> None:
    listed = [tuple(line.split(" → ")) for line in TEXT.splitlines() if re.match("[^|]* → ", line)]
    generated = set(COMPARISON_LAWS) - set(COMPARISON_LAWS[:7])  # shown for < only
    assert listed == [law for law in NUMBER_LAWS + CONDITION_LAWS if law not in generated]


@pytest.mark.parametrize(("before", "after"), table("before", "after"))
def test_simplification(before: str, after: str) -> None:
    assert to_text(simplify(parse(before))) == after
