"""Formulas, run node by node over many lanes at once.

A program is postfix: each node finds its arguments on a stack whose entries are rows of lanes, so that the
cost of decoding a node is shared by all of them. What an operation means is said in
`expression/operations.py`; this is the same, fast, and is tested against it.
"""

import math
from typing import Any

import numpy as np

from clearloop.expression.meanings import READ_LIMIT
from clearloop.expression.operations import NUMBER, OPERATIONS, VARIABLE
from clearloop.kernels import arithmetic
from clearloop.kernels.compilation import kernel

_ADD, _SUB, _MUL, _DIV, _POW, _NEG = (OPERATIONS[n].opcode for n in ("add", "sub", "mul", "div", "pow", "neg"))
_MIN, _MAX, _ABS, _SQRT, _SIGN, _CLIP = (
    OPERATIONS[n].opcode for n in ("min", "max", "abs", "sqrt", "sign", "clip")
)
_EXP, _LOG, _SIN, _COS, _TAN, _ATAN2, _TANH, _WRAP = (
    OPERATIONS[n].opcode for n in ("exp", "log", "sin", "cos", "tan", "atan2", "tanh", "wrap")
)
_LT, _LE, _GT, _GE, _EQ, _NE = (OPERATIONS[n].opcode for n in ("lt", "le", "gt", "ge", "eq", "ne"))
_AND, _OR, _NOT, _IF = (OPERATIONS[n].opcode for n in ("and", "or", "not", "if"))


@kernel
def _saturated(x: Any, largest: Any) -> Any:
    return min(max(x, -largest), largest)


@kernel
def _power(x: Any, y: Any, largest: Any) -> Any:
    whole = math.floor(y) == y
    if (x < 0 and not whole) or (x == 0 and y < 0):
        return largest - largest
    return _saturated(math.pow(x, y), largest)


@kernel
def _wrapped(x: Any, pi: Any) -> Any:
    turn = pi + pi
    angle = x - turn * math.floor((x + pi) / turn)
    angle = angle - turn if angle >= pi else angle
    return -pi if angle >= pi or angle < -pi else angle


@kernel
def _unary(code: int, rows: Any, x: int, lo: int, hi: int) -> None:
    one = rows.dtype.type(1)
    zero = rows.dtype.type(0)
    if code == _NEG:
        for i in range(lo, hi):
            rows[x, i] = -rows[x, i]
    elif code == _ABS:
        for i in range(lo, hi):
            rows[x, i] = abs(rows[x, i])
    elif code == _TANH:
        for i in range(lo, hi):
            rows[x, i] = arithmetic.tanh(rows[x, i])
    elif code == _SQRT:
        for i in range(lo, hi):
            rows[x, i] = math.sqrt(max(rows[x, i], zero))
    elif code == _EXP:
        for i in range(lo, hi):
            rows[x, i] = arithmetic.exp(rows[x, i])
    elif code == _LOG:
        smallest = rows.dtype.type(1e-30)
        for i in range(lo, hi):
            rows[x, i] = arithmetic.log(max(rows[x, i], smallest))
    elif code == _SIN:
        for i in range(lo, hi):
            rows[x, i] = arithmetic.sin(rows[x, i])
    elif code == _COS:
        for i in range(lo, hi):
            rows[x, i] = arithmetic.cos(rows[x, i])
    elif code == _TAN:
        largest = np.finfo(rows.dtype).max
        for i in range(lo, hi):
            rows[x, i] = _saturated(math.tan(rows[x, i]), largest)
    elif code == _SIGN:
        for i in range(lo, hi):
            rows[x, i] = one if rows[x, i] > zero else (-one if rows[x, i] < zero else zero)
    elif code == _WRAP:
        pi = rows.dtype.type(math.pi)
        for i in range(lo, hi):
            rows[x, i] = _wrapped(rows[x, i], pi)
    elif code == _NOT:
        for i in range(lo, hi):
            rows[x, i] = one - rows[x, i]


@kernel
def _binary(code: int, rows: Any, x: int, lo: int, hi: int) -> None:
    largest = np.finfo(rows.dtype).max
    zero = rows.dtype.type(0)
    y = x + 1
    if code == _ADD:
        for i in range(lo, hi):
            rows[x, i] = _saturated(rows[x, i] + rows[y, i], largest)
    elif code == _SUB:
        for i in range(lo, hi):
            rows[x, i] = _saturated(rows[x, i] - rows[y, i], largest)
    elif code == _MUL:
        for i in range(lo, hi):
            rows[x, i] = _saturated(rows[x, i] * rows[y, i], largest)
    elif code == _DIV:
        for i in range(lo, hi):
            quotient = _saturated(rows[x, i] / rows[y, i], largest)
            rows[x, i] = zero if rows[y, i] == zero else quotient
    elif code == _MIN:
        for i in range(lo, hi):
            rows[x, i] = min(rows[x, i], rows[y, i])
    elif code == _MAX:
        for i in range(lo, hi):
            rows[x, i] = max(rows[x, i], rows[y, i])
    elif code == _POW:
        for i in range(lo, hi):
            rows[x, i] = _power(rows[x, i], rows[y, i], largest)
    elif code == _ATAN2:
        for i in range(lo, hi):
            rows[x, i] = math.atan2(rows[x, i] + zero, rows[y, i] + zero)
    else:
        _comparison(code, rows, x, lo, hi)


@kernel
def _comparison(code: int, rows: Any, x: int, lo: int, hi: int) -> None:
    one = rows.dtype.type(1)
    zero = rows.dtype.type(0)
    y = x + 1
    if code == _LT:
        for i in range(lo, hi):
            rows[x, i] = one if rows[x, i] < rows[y, i] else zero
    elif code == _LE:
        for i in range(lo, hi):
            rows[x, i] = one if rows[x, i] <= rows[y, i] else zero
    elif code == _GT:
        for i in range(lo, hi):
            rows[x, i] = one if rows[x, i] > rows[y, i] else zero
    elif code == _GE:
        for i in range(lo, hi):
            rows[x, i] = one if rows[x, i] >= rows[y, i] else zero
    elif code == _EQ:
        for i in range(lo, hi):
            rows[x, i] = one if rows[x, i] == rows[y, i] else zero
    elif code == _NE:
        for i in range(lo, hi):
            rows[x, i] = one if rows[x, i] != rows[y, i] else zero
    elif code == _AND:
        for i in range(lo, hi):
            rows[x, i] = min(rows[x, i], rows[y, i])
    elif code == _OR:
        for i in range(lo, hi):
            rows[x, i] = max(rows[x, i], rows[y, i])


@kernel
def run(
    code: Any, operand: Any, start: int, stop: int, rows: Any, inputs: int, stack: int, lo: int, hi: int
) -> None:
    """Leave in rows[stack, lo:hi] the value of the program code[start:stop].

    A variable of slot k is read from row `inputs` + k; the rows above `stack` are scratch.
    """
    limit = rows.dtype.type(READ_LIMIT)
    x = stack - 1
    for at in range(start, stop):
        node = code[at]
        if node == VARIABLE:
            x += 1
            source = inputs + int(operand[at])
            for i in range(lo, hi):
                rows[x, i] = min(max(rows[source, i], -limit), limit)
        elif node == NUMBER:
            x += 1
            number = operand[at]
            for i in range(lo, hi):
                rows[x, i] = number
        elif node == _IF:
            x -= 2
            for i in range(lo, hi):
                rows[x, i] = rows[x + 1, i] if rows[x, i] != 0 else rows[x + 2, i]
        elif node == _CLIP:
            x -= 2
            for i in range(lo, hi):
                rows[x, i] = min(max(rows[x, i], rows[x + 1, i]), rows[x + 2, i])
        elif node in _UNARY:
            _unary(node, rows, x, lo, hi)
        else:
            x -= 1
            _binary(node, rows, x, lo, hi)


_UNARY = tuple(o.opcode for o in OPERATIONS.values() if o.arity == 1)
