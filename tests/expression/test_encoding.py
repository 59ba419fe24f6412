import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearloop.expression import (
    OPERATIONS,
    Expression,
    Number,
    Program,
    Variable,
    decode,
    encode,
    evaluate,
    parse,
    simplify,
    to_latex,
    to_text,
    to_typst,
    variables,
)
from clearloop.expression.nodes import BY_OPCODE, NUMBER, VARIABLE, read
from tests.expression.strategies import any_kind, values_for

NAMES = (
    "add sub mul div pow neg min max abs sqrt exp log sin cos tan atan2 tanh sign clip wrap "
    "lt le gt ge eq ne and or not if"
)


def test_opcodes_are_fixed_because_files_and_kernels_rely_on_them() -> None:
    assert (NUMBER, VARIABLE) == (0, 1)
    assert [(name, operation.opcode) for name, operation in OPERATIONS.items()] == [
        (name, opcode) for opcode, name in enumerate(NAMES.split(), start=2)
    ]


def test_a_program_is_postfix() -> None:
    program = encode(parse("2*x - max(y, 3)"), {Variable("x"): 4, Variable("y"): 7}.__getitem__)
    words = [BY_OPCODE[code].name if code > 1 else code for code in program.code.tolist()]
    assert words == [NUMBER, VARIABLE, "mul", VARIABLE, NUMBER, "max", "sub"]
    assert program.operand.tolist() == [2, 4, 0, 7, 3, 0, 0]
    assert program.code.dtype == np.int32
    assert program.operand.dtype == np.float64
    assert program.depth == 3


def test_a_sum_needs_two_places_however_long() -> None:
    assert encode(parse("x" + " + x" * 100), lambda _: 0).depth == 2


@given(any_kind(5))
def test_decoding_gives_the_tree_again(expression: Expression) -> None:
    slots = variables(expression)
    assert decode(encode(expression, slots.index), slots.__getitem__) == expression


@given(st.data(), any_kind(5))
def test_a_stack_machine_of_that_depth_gives_the_same_value(
    data: st.DataObject, expression: Expression
) -> None:
    values = data.draw(values_for(expression))
    program = encode(expression, variables(expression).index)
    stack, top = np.zeros(program.depth), 0
    for code, operand in zip(program.code.tolist(), program.operand.tolist(), strict=True):
        if code == NUMBER:
            result = operand
        elif code == VARIABLE:
            result = read(values[variables(expression)[int(operand)]])
        else:
            top -= BY_OPCODE[code].arity
            result = BY_OPCODE[code].meaning(*stack[top : top + BY_OPCODE[code].arity].tolist())
        stack[top] = result
        top += 1
    assert top == 1
    assert stack[0] == evaluate(expression, values)


def positive_zero(expression: Expression) -> bool:
    return isinstance(expression, Number) and math.copysign(1.0, expression.value) == 1.0


@pytest.mark.parametrize("text", ["-0.0", "-0", "-0e5", "-1e-999", "0"])
def test_a_negative_zero_is_zero_on_every_way_there_and_back(text: str) -> None:
    zero = parse(text)
    assert positive_zero(zero)
    assert to_text(zero) == to_latex(zero) == to_typst(zero) == "0"
    program = encode(zero, lambda _: 0)
    assert not np.signbit(program.operand).any()
    assert positive_zero(decode(program._replace(operand=np.array([-0.0])), lambda _: Variable("x")))
    assert positive_zero(
        decode(Program(np.array([NUMBER], np.int32), np.array([-0.0]), 1), lambda _: Variable("x"))
    )


@pytest.mark.parametrize("text", ["-(0)", "0*-3", "-(0*x)", "0/-5", "min(-0.0, 0)", "x*-0.0", "-0.0 - 0"])
def test_simplification_leaves_no_negative_zero(text: str) -> None:
    simple = simplify(parse(text))
    assert positive_zero(simple)
    assert to_text(simple) == "0"


@pytest.mark.parametrize(("y", "x"), [(-0.0, -1.0), (0.0, -0.0), (-0.0, -0.0), (-0.0, 1.0)])
def test_the_sign_of_a_zero_never_turns_an_angle(y: float, x: float) -> None:
    angle = evaluate(parse("atan2(y, x)"), {Variable("y"): y, Variable("x"): x})
    assert angle == math.atan2(0.0, abs(x) if x == 0 else x)
