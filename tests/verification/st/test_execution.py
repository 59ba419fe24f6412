"""The interpreter of Structured Text: precedence and types of IEC 61131-3, state, errors with their lines."""

import math
from contextlib import suppress
from struct import pack, unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.verification.st import Block, StructuredTextError, parse_st


def single(value: float) -> float:
    found: float = unpack("<f", pack("<f", value))[0]
    return found


def function_block(body: str, declarations: str = "", kind: str = "LREAL") -> str:
    return (
        f"FUNCTION_BLOCK test VAR_INPUT x : {kind}; y : {kind}; END_VAR VAR_OUTPUT u : {kind}; END_VAR\n"
        f"{declarations}\n{body}\nEND_FUNCTION_BLOCK"
    )


def value(expression: str, x: float = 0.0, y: float = 0.0, kind: str = "LREAL") -> float:
    return float(Block(function_block(f"u := {expression};", kind=kind)).step({"x": x, "y": y})["u"])


def condition(expression: str, x: float = 0.0, y: float = 0.0) -> bool:
    text = function_block(f"IF {expression} THEN u := 1.0; ELSE u := 0.0; END_IF;")
    return Block(text).step({"x": x, "y": y})["u"] == 1.0


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("1.0 + 2.0 * 3.0", 7.0),
        ("(1.0 + 2.0) * 3.0", 9.0),
        ("8.0 - 2.0 - 1.0", 5.0),
        ("8.0 / 2.0 / 2.0", 2.0),
        ("-2.0 * -3.0", 6.0),
        ("- x + y", 2.0),
        ("ABS(x - y)", 2.0),
        ("MIN(x, y) + 10.0 * MAX(x, y)", 31.0),
        ("LIMIT(-1.0, y, 2.5)", 2.5),
        ("SEL(x < y, 5.0, 7.0)", 7.0),
        ("EXPT(-x - 1.0, 3)", -8.0),
        ("EXPT(y, 0.5) - SQRT(y)", 0.0),
        ("LN(EXP(y))", 3.0),
        ("ATAN(TAN(x))", 1.0),
        ("DINT_TO_LREAL(TRUNC(-2.7))", -2.0),
        ("DINT_TO_LREAL(-7 / 2) + 10.0 * DINT_TO_LREAL(-7 MOD 2)", -13.0),
        ("LINT_TO_LREAL(LREAL_TO_LINT(2.5))", 2.0),
        ("LREAL#1.5E-1 + 1_0.0", 10.15),
        ("sel(Bool#true, 1.0, (* a comment *) 2.0) // and one more\n", 2.0),
    ],
)
def test_expressions(expression: str, wanted: float) -> None:
    assert value(expression, 1.0, 3.0) == pytest.approx(wanted, abs=1e-15)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("NOT x > y AND TRUE", None),  # NOT binds tighter than >, so this compares a BOOL
        ("NOT (x > y) AND TRUE", True),
        ("TRUE OR FALSE AND FALSE", True),
        ("TRUE XOR TRUE OR TRUE", True),
        ("TRUE XOR TRUE AND FALSE", True),
        ("x < y = TRUE", True),
        ("x <> y & x <= y", True),
        ("x >= y", False),
    ],
)
def test_conditions(expression: str, wanted: bool | None) -> None:
    if wanted is None:
        with pytest.raises(StructuredTextError, match="expected BOOL"):
            condition(expression, 1.0, 3.0)
    else:
        assert condition(expression, 1.0, 3.0) is wanted


@given(st.floats(-1e3, 1e3, width=32), st.floats(-1e3, 1e3, width=32))
def test_real_rounds_after_every_operation(x: float, y: float) -> None:
    assert value("x * 0.1 + y", x, y, "REAL") == single(single(x * single(0.1)) + y)
    assert value("SQRT(ABS(x))", x, y, "REAL") == single(math.sqrt(abs(x)))


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_lreal_is_double_precision(x: float, y: float) -> None:
    assert value("x * 0.1 + y", x, y) == x * 0.1 + y
    assert value("x - y * (x - y)", x, y) == x - y * (x - y)


def test_state_stays_until_the_reset_and_temporary_values_do_not() -> None:
    text = function_block(
        """
        FOR i := 2 TO 2 BY -1 DO
            past[i] := past[i - 1];
        END_FOR;
        past[1] := x;
        sum := 0.0;
        FOR i := 1 TO 2 DO
            sum := sum + weight[i] * past[i];
        END_FOR;
        u := sum;
        calls := calls + 1;
        """,
        """
        VAR past : ARRAY [1..2] OF LREAL; calls : DINT; END_VAR
        VAR CONSTANT weight : ARRAY[1..2] OF LREAL := [10.0, -1.0]; END_VAR
        VAR_TEMP sum : LREAL; i : DINT; END_VAR
        """,
    )
    block = Block(text)
    assert (block.name, block.inputs, block.outputs) == ("test", ("x", "y"), ("u",))
    assert [block.step({"X": x})["u"] for x in (1.0, 2.0, 3.0)] == [10.0, 19.0, 28.0]
    assert block.step({})["u"] == 27.0
    assert block.value("Calls") == 4
    block.reset()
    assert block.step({"x": 1.0})["u"] == 10.0


def test_functions_have_no_state_and_return_early() -> None:
    text = """
    FUNCTION Half : LREAL
    VAR_INPUT x : LREAL; END_VAR
    VAR calls : DINT; factor : LREAL := 0.5; END_VAR
        calls := calls + 1;
        IF x > 10.0 THEN Half := 10.0 * DINT_TO_LREAL(calls); RETURN;
        ELSIF x > 5.0 THEN ;
        END_IF;
        HALF := x * factor;
    END_FUNCTION
    """ + function_block("u := half(half(x)) + Half(y);")
    assert Block(text).step({"x": 4.0, "y": 11.0})["u"] == 11.0


@pytest.mark.parametrize(
    ("body", "x", "message"),
    [
        ("u := 1.0 / x;", 0.0, "line 4: division by zero"),
        ("u := x * x;", 1e200, "line 4: a result is too large for LREAL"),
        ("u := EXP(x);", 1e3, "line 4: math range error"),
        ("u := SQRT(x);", -1.0, "line 4: SQRT of -1.0"),
        ("u := LN(x);", 0.0, "line 4: LN of 0.0"),
        ("u := EXPT(x, 0.5);", -1.0, "line 4: EXPT of -1.0"),
        ("u := EXPT(x, -1);", 0.0, "line 4: EXPT of 0 "),
        ("u := a[TRUNC(x)];", 3.0, r"line 4: A\[3\] is outside 0..2"),
        ("u := DINT_TO_LREAL(TRUNC(x));", 1e10, "line 4: a result is too large for DINT"),
        ("u := t;", 0.0, "line 4: T is read before it has a value"),
        ("u := SEL(x = 0.0, 1.0 / x, 0.0);", 0.0, "line 4: division by zero"),
        ("IF x <> 0.0 AND 1.0 / x > 1.0 THEN u := 1.0; END_IF;", 0.0, "line 4: division by zero"),
        ("u := F(x);", -1.0, "line 1: F returns without a value"),
    ],
)
def test_what_a_plc_might_stumble_over_is_an_error(body: str, x: float, message: str) -> None:
    function = (
        "FUNCTION F : LREAL VAR_INPUT x : LREAL; END_VAR IF x > 0.0 THEN F := x; END_IF; END_FUNCTION\n"
    )
    declarations = "VAR a : ARRAY[0..2] OF LREAL; END_VAR VAR_TEMP t : LREAL; END_VAR"
    block = Block(function + function_block(body, declarations))
    block.step({"x": 1.0}) if "t;" not in body else None
    with pytest.raises(StructuredTextError, match=message):
        block.step({"x": x})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("u := x +;", "line 3: expected a value, found ';'"),
        ("u = x;", "line 3: expected ':=', found '='"),
        ("u := 1;", "ANY_INT and LREAL cannot be mixed"),
        ("u := x + REAL#1.0;", "LREAL and REAL cannot be mixed"),
        ("u := x * 2;", "LREAL and ANY_INT cannot be mixed"),
        ("u := x > 1.0;", "BOOL and LREAL cannot be mixed"),
        ("u := 1E5;", "a real number is written 1.0E5"),
        ("u := z;", "Z is not declared"),
        ("u := G(x);", "G is not declared before it is called"),
        ("u := SIN(x, y);", "SIN takes 1 arguments, found 2"),
        ("x := 1.0;", "X cannot be assigned to"),
        ("u := x__y;", "must not have two underscores together"),
        ("u := x; (* not closed", "a comment does not end"),
        ("u := x; (* one (* two *)", "a comment begins inside a comment"),
        ("u := x ** 2.0;", "expected a value"),
        ("u := x ? y;", "unexpected '?'"),
        ("WHILE TRUE DO u := x; END_WHILE;", "WHILE is not part of the subset"),
        ("IF x > y THEN u := x;", "expected a statement"),
        ("u := 1.0E999;", "too large"),
        ("u := LREAL#x;", "not a literal"),
        ("RETURN", "expected ';'"),
    ],
)
def test_texts_that_are_wrong_are_refused(body: str, message: str) -> None:
    with pytest.raises(StructuredTextError, match=r"line \d+: ") as caught:
        Block(function_block(body))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no FUNCTION_BLOCK"),
        ("TYPE t END_TYPE", "not part of the subset"),
        (function_block("u := x;", "VAR X : LREAL; END_VAR"), "X is declared twice"),
        (function_block("u := x;", "VAR a : ARRAY[0..1] OF LREAL := [1.0]; END_VAR"), "has 1 initial values"),
        (function_block("u := x;", "VAR a : ARRAY[1..0] OF LREAL; END_VAR"), "cannot run from 1 to 0"),
        (function_block("u := x;", "VAR a : STRING; END_VAR"), "STRING is not part of the subset"),
        ("FUNCTION sin : LREAL sin := 1.0; END_FUNCTION\n" + function_block("u := x;"), "standard function"),
        ("FUNCTION f : LREAL f := f(1.0); END_FUNCTION", "not declared before it is called"),
    ],
)
def test_declarations_that_are_wrong_are_refused(text: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        Block(text)


WORDS = ("IF", "x", ":=", "(", "1.0", ";", "END_IF", "[", "VAR", "*", "(*", "*)", "END_FUNCTION_BLOCK")


@given(st.text(max_size=60) | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with suppress(StructuredTextError):
        parse_st("FUNCTION_BLOCK b " + text)


def test_a_program_calls_instances_of_a_block() -> None:
    counter = """
    FUNCTION_BLOCK counter
    VAR_INPUT more : LREAL := 1.0; END_VAR
    VAR_OUTPUT total : LREAL; END_VAR
        total := total + more;
    END_FUNCTION_BLOCK
    """
    program = """
    PROGRAM main
    VAR one, two : counter; sum : LREAL; END_VAR
        one(more := 2.0);
        two(more := one.total * 10.0);
        two(more := 0.5);
        sum := one.total + two.total;
    END_PROGRAM
    """
    block = Block(counter + program)
    for wanted in (22.5, 65.0):
        block.step({})
        assert block.value("sum") == wanted
    block.reset()
    block.step({})
    assert block.value("sum") == 22.5
    for wrong, message in (
        ("one(amount := 1.0);", "ONE has no AMOUNT"),
        ("sum := one.sum;", "ONE has no SUM"),
    ):
        with pytest.raises(StructuredTextError, match=message):
            Block(counter + program.replace("one(more := 2.0);", wrong))
    with pytest.raises(StructuredTextError, match="COUNTER is not declared"):
        Block(program)
