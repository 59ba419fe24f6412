"""Small dense networks over a tile of lanes.

A network is one flat array: for each layer the weights [inputs, outputs], then the biases [outputs].
"""

from itertools import pairwise
from typing import Any

import numpy as np

from clearloop.kernels import arithmetic
from clearloop.kernels.compilation import inlined, part
from clearloop.kernels.layout import IDENTITY, RELU, SIGMOID, TANH, Networks
from clearloop.kernels.panel import panel
from clearloop.kernels.rows import load, store
from clearloop.kernels.vectors import VECTOR, maximum


@inlined
def _dense(
    numbers: Any, at: int, n_in: int, n_out: int, rows: Any, x: int, y: int, floored: bool, lo: int, hi: int
) -> None:
    """One layer, in panels of five outputs, and smaller ones for what is left."""
    first = 0
    while n_out - first >= 5:
        panel(5, numbers, at, n_in, n_out, rows, x, y, first, floored, lo, hi)
        first += 5
    if n_out - first >= 3:
        panel(3, numbers, at, n_in, n_out, rows, x, y, first, floored, lo, hi)
        first += 3
    while first < n_out:
        panel(1, numbers, at, n_in, n_out, rows, x, y, first, floored, lo, hi)
        first += 1


@part
def _activate(kind: int, rows: Any, first: int, last: int, lo: int, hi: int) -> None:
    for row in range(first, last):
        for i in range(lo, hi, VECTOR):
            value = load(rows, row, i)
            if kind == RELU:
                store(rows, row, i, maximum(value, 0))
            elif kind == TANH:
                store(rows, row, i, arithmetic.tanh(value))
            elif kind == SIGMOID:  # 1/(1 + exp(−x)) = (1 + tanh(x/2))/2
                store(rows, row, i, 0.5 + 0.5 * arithmetic.tanh(0.5 * value))


@part
def forward(
    numbers: Any, at: int, sizes: Any, activations: Any,
    rows: Any, x: int, y: int, hidden: int, widest: int, lo: int, hi: int,
) -> None:  # fmt: skip
    """Answer in the rows from y on to the inputs in the rows from x on, for the lanes [lo, hi) (see `panel`).

    The network was folded and starts at numbers[at]; two times `widest` rows from `hidden` on are scratch.
    """
    layers = activations.size
    source = x
    for k in range(layers):
        n_in, n_out, last = sizes[k], sizes[k + 1], k == layers - 1
        target = y if last else hidden + k % 2 * widest
        floored = activations[k] == RELU and not last
        _dense(numbers, at, n_in, n_out, rows, source, target, floored, lo, hi)
        if not floored and activations[k] != IDENTITY:
            _activate(activations[k], rows, target, target + n_out, lo, hi)
        at += (n_in + 1) * n_out
        source = target


@inlined
def length(sizes: Any) -> int:
    """Of a network's flat array."""
    count = 0
    for k in range(sizes.size - 1):
        count += (sizes[k] + 1) * sizes[k + 1]
    return count


def flatten(weights: list[Any], biases: list[Any]) -> Any:
    """The flat array of a network whose layers have weights [outputs, inputs]."""
    return np.concatenate(
        [np.concatenate([np.asarray(w).T.ravel(), b]) for w, b in zip(weights, biases, strict=True)]
    )


def fold(numbers: Any, sizes: Any, activations: Any) -> Any:
    """Networks [count, numbers of each] as `forward` wants them: hidden ReLUs without biases.

    max(a + b, 0) = max(a, −b) + b: the sum a is floored at −b, which stands where b was, and b moves on into
    the biases of the next layer. That saves one addition for every hidden output.
    """
    folded, at = np.array(numbers, np.float64), 0
    carried = np.zeros((len(folded), sizes[0]))
    for k, (n_in, n_out) in enumerate(pairwise(sizes)):
        weights = folded[:, at : at + n_in * n_out].reshape(-1, n_in, n_out)
        biases = folded[:, at + n_in * n_out : at + (n_in + 1) * n_out]
        biases += np.einsum("ci,cio->co", carried, weights)
        floored = activations[k] == RELU and k < len(activations) - 1
        carried = biases.copy() if floored else np.zeros_like(biases)
        biases *= -1 if floored else 1
        at += (n_in + 1) * n_out
    return folded.astype(numbers.dtype)


def folded(networks: Networks) -> Networks:
    if not networks.sizes.size:
        return networks
    numbers = networks.numbers.reshape(networks.total, -1)
    return networks._replace(numbers=fold(numbers, networks.sizes, networks.activations).ravel())
