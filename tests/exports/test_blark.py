"""An independent parser of IEC 61131-3 accepts what is exported. It is slow, so these are few texts."""

import json

import pytest
from blark.parse import new_parser, parse_source_code

from clearloop.controllers import Controller, from_json
from clearloop.exports.guard import OPTIONS
from clearloop.exports.spans import DOUBLE, SINGLE, Precision
from clearloop.exports.structured_text.functions import HELPER_TEMPLATES
from clearloop.exports.structured_text.printing import functions, pous, structured_text
from clearloop.exports.structured_text.units import pou_text
from clearloop.verification.st import StructuredTextError, parse_st
from clearloop.verification.testbench import CallRows, bench_program

PARSER = new_parser(start=["iec_source"])


def accepted(text: str) -> bool:
    """With as little white space as will do, which costs it much time."""
    found = parse_source_code("\n".join(line.strip() for line in text.splitlines()), parser=PARSER)
    return found.exception is None


def controller(**table: object) -> Controller:
    return from_json(json.dumps({"clearloop": 1, "limits": {"u": [-1, 1]}, "dt": 0.1, **table}))


EQUATION = controller(
    kind="equation",
    steps={"u": 0.5},
    setpoint={"x": 1.0},
    outputs={"u": "if(x > 0.1 and not (y <= -2 or x != y), x[t-2]**2, -max(y, 1e-9))*u[t-1] + sqrt(abs(x))"},
)
FUZZY = controller(
    kind="fuzzy",
    outputs={
        "u": {
            "scale": 1,
            "alpha": 2,
            "rules": [
                {"if": {"x": {"center": 0, "width": 1}}, "then": 1},
                {"if": {"x": {"center": 3, "width": 2}}, "then": -1},
            ],
        }
    },
)
LOOPS = {"u": {"loops": [{"input": "x", "kp": 1, "ki": 0.1, "kd": 2, "window": 4}]}}


@pytest.mark.parametrize(
    ("of", "precision", "options"),
    [
        (EQUATION, DOUBLE, ()),
        (FUZZY, SINGLE, ()),
        (controller(kind="linear", gains={"u": {"x": 1e-7, "y[t-1]": -2}}), DOUBLE, ()),
        (controller(kind="pid", outputs=LOOPS), SINGLE, OPTIONS),
    ],
    ids=["equation", "fuzzy", "linear", "pid"],
)
def test_exports_are_accepted(of: Controller, precision: Precision, options: tuple[str, ...]) -> None:
    units = pous(of, "test", precision, frozenset(options))
    assert parse_st(structured_text(units))
    assert accepted(pou_text(units[-1]))


@pytest.mark.parametrize("name", HELPER_TEMPLATES)
def test_functions_that_come_along_are_accepted(name: str) -> None:
    assert accepted(structured_text(functions(f"{name}(", DOUBLE)[-1:]))


WRONG = (
    "u := x +;",
    "u = x;",
    "IF x > y THEN u := x;",
    "u := (x;",
    "FOR k := 1 DO u := x; END_FOR;",
)


@pytest.mark.parametrize("body", WRONG)
def test_both_refuse_what_is_wrong(body: str) -> None:
    text = f"FUNCTION_BLOCK b\nVAR x, y, u : LREAL; k : DINT; END_VAR\n{body}\nEND_FUNCTION_BLOCK"
    assert not accepted(text)
    with pytest.raises(StructuredTextError):
        parse_st(text)


def test_both_accept_what_is_right() -> None:
    text = """
    FUNCTION_BLOCK b
    VAR_INPUT x, y : LREAL; END_VAR
    VAR a : ARRAY [0..3] OF LREAL := [4(0.5)]; k : DINT := -1; on : BOOL := TRUE; END_VAR
    VAR_OUTPUT u : LREAL; END_VAR
    IF x > y THEN u := LREAL#1.0E-3; ELSIF NOT on THEN u := -a[k MOD 4]; ELSE ; END_IF;
    FOR k := 3 TO 0 BY -1 DO a[k] := SEL(x <> y, a[k], MIN(x, y)); END_FOR;
    RETURN;
    END_FUNCTION_BLOCK"""
    assert parse_st(text.replace(" on", " active"))
    assert accepted(text)


def test_a_test_bench_is_accepted() -> None:
    block = pous(controller(kind="linear", gains={"u": {"x": 1, "y[t-1]": -2}}), "law", DOUBLE)[-1]
    rows = CallRows(
        inputs=[[1, 2], [3, 4]],
        actions=[[0.5], [-1]],
        ranges=[[2], [2]],
        first=[True, False],
        compared=[True, True],
        tolerance=1e-12,
    )
    assert accepted(bench_program(block, rows, DOUBLE))
