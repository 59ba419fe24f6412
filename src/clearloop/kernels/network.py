"""Small dense networks over a tile of lanes.

A network is one flat array: for each layer the weights [inputs, outputs], then the biases [outputs].
"""

from typing import Any

import numpy as np

from clearloop.kernels import arithmetic
from clearloop.kernels.compilation import inlined, kernel
from clearloop.kernels.layout import LANES, RELU, SIGMOID, TANH
from clearloop.kernels.simd import VECTOR_BYTES, WIDE, panel


@inlined
def _dense(weights: Any, at: int, n_in: int, n_out: int, rows: Any, x: int, y: int, relu: bool) -> None:
    """One layer, in panels of five outputs and one of what is left."""
    width = VECTOR_BYTES // weights.itemsize
    o = 0
    whole = n_out - 4
    while o < whole:
        for lane in range(0, LANES, WIDE * width):
            panel(5, WIDE, weights, at, n_in, n_out, rows, x, y, o, lane, relu)
        o += 5
    rest = n_out - o
    if rest == 4:
        for lane in range(0, LANES, WIDE * width):
            panel(4, WIDE, weights, at, n_in, n_out, rows, x, y, o, lane, relu)
    elif rest == 3:
        for lane in range(0, LANES, WIDE * width):
            panel(3, WIDE, weights, at, n_in, n_out, rows, x, y, o, lane, relu)
    elif rest == 2:
        for lane in range(0, LANES, 4 * width):
            panel(2, 4, weights, at, n_in, n_out, rows, x, y, o, lane, relu)
    elif rest == 1:
        for lane in range(0, LANES, 8 * width):
            panel(1, 8, weights, at, n_in, n_out, rows, x, y, o, lane, relu)


@kernel
def _activate(kind: int, rows: Any, first: int, last: int) -> None:
    if kind == TANH:
        for row in range(first, last):
            for i in range(LANES):
                rows[row, i] = arithmetic.tanh(rows[row, i])
    elif kind == SIGMOID:
        # 1/(1 + exp(−x)) = (1 + tanh(x/2))/2
        half = rows.dtype.type(0.5)
        for row in range(first, last):
            for i in range(LANES):
                rows[row, i] = half + half * arithmetic.tanh(half * rows[row, i])


@kernel
def forward(
    numbers: Any, at: int, sizes: Any, activations: Any, rows: Any, x: int, y: int, hidden: int, widest: int
) -> None:
    """Answer in the rows from y on to the inputs in the rows from x on; two times `widest` rows are scratch."""
    layers = activations.size
    source = x
    for k in range(layers):
        n_in, n_out = sizes[k], sizes[k + 1]
        target = y if k == layers - 1 else hidden + k % 2 * widest
        _dense(numbers, at, n_in, n_out, rows, source, target, activations[k] == RELU)
        if activations[k] > RELU:
            _activate(activations[k], rows, target, target + n_out)
        at += (n_in + 1) * n_out
        source = target


def flatten(weights: list[Any], biases: list[Any]) -> Any:
    """The flat array of a network whose layers have weights [outputs, inputs]."""
    return np.concatenate([np.concatenate([np.asarray(w).T.ravel(), b]) for w, b in zip(weights, biases, strict=True)])
