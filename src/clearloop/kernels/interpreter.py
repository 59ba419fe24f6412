"""The interpreter runs formulas node by node, over many lanes at once.

A program is postfix: each node finds its arguments on a stack whose entries are rows of lanes, so that all
lanes share the cost of decoding a node. `expression/nodes.py` defines what an operation means; the functions
here do the same, fast, and are tested against it.
"""

from typing import Any

import numpy as np

from clearloop.expression.nodes import NUMBER, OPERATIONS, READ_LIMIT, SMALLEST_LOGARITHM, VARIABLE
from clearloop.kernels import arithmetic
from clearloop.kernels.compilation import inlined, kernel, part
from clearloop.kernels.layout import LANES
from clearloop.kernels.vectors import (
    VECTOR,
    absolute,
    aligned,
    fetch,
    maximum,
    minimum,
    square_root,
    store,
    where,
)

_ADD, _SUB, _MUL, _DIV, _POW, _NEG = (
    OPERATIONS[n].opcode for n in ("add", "sub", "mul", "div", "pow", "neg")
)
_MIN, _MAX, _ABS, _SQRT, _SIGN, _CLIP = (
    OPERATIONS[n].opcode for n in ("min", "max", "abs", "sqrt", "sign", "clip")
)
_EXP, _LOG, _SIN, _COS, _TAN, _ATAN2, _TANH, _WRAP = (
    OPERATIONS[n].opcode for n in ("exp", "log", "sin", "cos", "tan", "atan2", "tanh", "wrap")
)
_LT, _LE, _GT, _GE, _EQ, _NE = (OPERATIONS[n].opcode for n in ("lt", "le", "gt", "ge", "eq", "ne"))
_AND, _OR, _NOT, _IF = (OPERATIONS[n].opcode for n in ("and", "or", "not", "if"))
_UNARY = tuple(o.opcode for o in OPERATIONS.values() if o.arity == 1)


@inlined
def _saturated(x: Any, largest: Any) -> Any:
    return minimum(maximum(x, -largest), largest)


@part
def _unary(code: int, rows: Any, x: int, lo: int, hi: int) -> None:
    if code == _NEG:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, -fetch(rows, x, i))
    elif code == _ABS:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, absolute(fetch(rows, x, i)))
    elif code == _TANH:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, arithmetic.tanh(fetch(rows, x, i)))
    elif code == _SQRT:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, square_root(maximum(fetch(rows, x, i), 0)))
    elif code == _EXP:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, arithmetic.exp(fetch(rows, x, i)))
    elif code == _LOG:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, arithmetic.log(maximum(fetch(rows, x, i), SMALLEST_LOGARITHM)))
    elif code == _SIN:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, arithmetic.sin(fetch(rows, x, i)))
    elif code == _COS:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, arithmetic.cos(fetch(rows, x, i)))
    elif code == _TAN:
        largest = np.finfo(rows.dtype).max
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, _saturated(arithmetic.tan(fetch(rows, x, i)), largest))
    elif code == _SIGN:
        for i in range(lo, hi, VECTOR):
            v = fetch(rows, x, i)
            store(rows, x, i, where(v > 0, 1, where(v < 0, -1, v)))
    elif code == _WRAP:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, arithmetic.wrap(fetch(rows, x, i)))
    elif code == _NOT:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, 1 - fetch(rows, x, i))


@part
def _binary(code: int, rows: Any, x: int, lo: int, hi: int) -> None:
    largest = np.finfo(rows.dtype).max
    y = x + 1
    if code == _ADD:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, _saturated(fetch(rows, x, i) + fetch(rows, y, i), largest))
    elif code == _SUB:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, _saturated(fetch(rows, x, i) - fetch(rows, y, i), largest))
    elif code == _MUL:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, _saturated(fetch(rows, x, i) * fetch(rows, y, i), largest))
    elif code == _DIV:
        for i in range(lo, hi, VECTOR):
            divisor = fetch(rows, y, i)
            quotient = _saturated(fetch(rows, x, i) / divisor, largest)
            store(rows, x, i, where(divisor == 0, 0, quotient))
    elif code in (_MIN, _AND):
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, minimum(fetch(rows, x, i), fetch(rows, y, i)))
    elif code in (_MAX, _OR):
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, maximum(fetch(rows, x, i), fetch(rows, y, i)))
    elif code == _POW:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, _saturated(arithmetic.power(fetch(rows, x, i), fetch(rows, y, i)), largest))
    elif code == _ATAN2:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, arithmetic.atan2(fetch(rows, x, i), fetch(rows, y, i)))
    else:
        _comparison(code, rows, x, lo, hi)


@part
def _comparison(code: int, rows: Any, x: int, lo: int, hi: int) -> None:
    y = x + 1
    if code == _LT:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, fetch(rows, x, i) < fetch(rows, y, i))
    elif code == _LE:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, fetch(rows, x, i) <= fetch(rows, y, i))
    elif code == _GT:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, fetch(rows, x, i) > fetch(rows, y, i))
    elif code == _GE:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, fetch(rows, x, i) >= fetch(rows, y, i))
    elif code == _EQ:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, fetch(rows, x, i) == fetch(rows, y, i))
    elif code == _NE:
        for i in range(lo, hi, VECTOR):
            store(rows, x, i, fetch(rows, x, i) != fetch(rows, y, i))


@part
def run_tile(
    code: Any, operand: Any, start: int, stop: int, rows: Any, inputs: int, stack: int, lo: int, hi: int
) -> None:
    """Write the value of code[start:stop] to rows[stack, lo:hi]; lo and hi are multiples of VECTOR.

    A variable of slot k is read from row `inputs` + k; the rows above `stack` are scratch.
    """
    x = stack - 1
    for at in range(start, stop):
        node = code[at]
        if node == VARIABLE:
            x += 1
            source = inputs + int(operand[at])
            for i in range(lo, hi, VECTOR):
                store(rows, x, i, _saturated(fetch(rows, source, i), READ_LIMIT))
        elif node == NUMBER:
            x += 1
            number = operand[at]
            for i in range(lo, hi, VECTOR):
                store(rows, x, i, number)
        elif node == _IF:
            x -= 2
            for i in range(lo, hi, VECTOR):
                store(rows, x, i, where(fetch(rows, x, i) != 0, fetch(rows, x + 1, i), fetch(rows, x + 2, i)))
        elif node == _CLIP:
            x -= 2
            for i in range(lo, hi, VECTOR):
                store(
                    rows,
                    x,
                    i,
                    minimum(maximum(fetch(rows, x, i), fetch(rows, x + 1, i)), fetch(rows, x + 2, i)),
                )
        elif node in _UNARY:
            _unary(node, rows, x, lo, hi)
        else:
            x -= 1
            _binary(node, rows, x, lo, hi)


@kernel
def _run_any(
    code: Any, operand: Any, start: int, stop: int, rows: Any, inputs: int, stack: int, lo: int, hi: int,
    tile: Any, slots: int,
) -> None:  # fmt: skip
    for begin in range(lo, hi, LANES):
        for i in range(LANES):
            lane = min(begin + i, hi - 1)
            for slot in range(slots):
                tile[slot, i] = rows[inputs + slot, lane]
        run_tile(code, operand, start, stop, tile, 0, slots, 0, LANES)
        for i in range(min(LANES, hi - begin)):
            rows[stack, begin + i] = tile[slots, i]


def run(
    code: Any, operand: Any, start: int, stop: int, rows: Any, inputs: int, stack: int, lo: int, hi: int
) -> None:
    """Run a program as `run_tile` does, but from Python, for rows of any length and any lanes of them."""
    reads = operand[start:stop][code[start:stop] == VARIABLE]
    slots = 1 + int(reads.max(initial=-1))
    tile = aligned(slots + stop - start, LANES, dtype=rows.dtype)
    _run_any(code, operand, start, stop, rows, inputs, stack, lo, hi, tile, slots)
