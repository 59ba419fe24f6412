"""`encode` writes a formula as postfix arrays, which the kernels run."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clearloop.expression.nodes import (
    BY_OPCODE,
    NUMBER,
    VARIABLE,
    Call,
    Expression,
    Number,
    Variable,
    postorder,
)


class Program(NamedTuple):
    """A formula of n nodes for a stack machine, arguments before their operation."""

    code: NDArray[np.int32]
    """[n] opcodes"""
    operand: NDArray[np.float64]
    """[n] value of a number, slot of a variable, 0 for operations"""
    depth: int
    """number of values that the stack must hold"""


def encode(expression: Expression, slot: Callable[[Variable], int]) -> Program:
    """Return a formula as arrays; `slot` gives the row of the machine's inputs that holds a variable."""
    code, operand, height, depth = [], [], 0, 0
    for node in postorder(expression):
        match node:
            case Number(value):
                word = NUMBER, value
            case Variable():
                word = VARIABLE, float(slot(node))
            case Call(operation):
                word = operation.opcode, 0.0
                height -= operation.arity
        code.append(word[0])
        operand.append(word[1])
        height += 1
        depth = max(depth, height)
    return Program(np.array(code, np.int32), np.array(operand, np.float64), depth)


def decode(program: Program, variable: Callable[[int], Variable]) -> Expression:
    """Return the formula that `encode` wrote; `variable` gives the variable of a slot."""
    stack: list[Expression] = []
    for opcode, operand in zip(program.code.tolist(), program.operand.tolist(), strict=True):
        if opcode == NUMBER:
            stack.append(Number(operand))
        elif opcode == VARIABLE:
            stack.append(variable(int(operand)))
        else:
            operation = BY_OPCODE[opcode]
            first = len(stack) - operation.arity
            stack[first:] = [Call(operation, tuple(stack[first:]))]
    (expression,) = stack
    return expression
