"""Formulas as postfix arrays, which is how they reach the kernels."""

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
    """A formula of n nodes for a stack machine: arguments first, the result is what remains."""

    code: NDArray[np.int32]
    """Opcodes, [n]."""
    operand: NDArray[np.float64]
    """A number's value, a variable's slot, 0 for operations, [n]."""
    depth: int
    """How many values the stack must hold."""


def encode(expression: Expression, slot: Callable[[Variable], int]) -> Program:
    """The formula as arrays; `slot` says in which row of the machine's inputs a variable stands."""
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
    """The inverse of `encode`; `variable` says which variable stands in a slot."""
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
