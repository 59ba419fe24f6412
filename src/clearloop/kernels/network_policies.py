"""What controllers with a network do with a tile of lanes (see `policies.py`)."""

from typing import Any

import numpy as np

from clearloop.kernels.compilation import inlined, part
from clearloop.kernels.network import forward, length
from clearloop.kernels.panel import BLOCK
from clearloop.kernels.rows import load, put, splat, store
from clearloop.kernels.vectors import VECTOR, maximum, where


@inlined
def _gather(features: Any, rows: Any, at: Any, begin: int, end: int) -> None:
    """What a network reads, in the rows from at.stack on."""
    for k in range(features.size):
        for i in range(begin, end, VECTOR):
            store(rows, at.stack + k, i, load(rows, at.features + features[k], i))


@part
def network(numbers: Any, p: int, sizes: Any, n_actions: int, rows: Any, at: Any, lo: int, hi: int) -> None:
    """sizes: number of layers L, L + 1 sizes, L activations, the features that enter.

    numbers[p]: the network (`network.py`), then a scale for each action.
    """
    layers = sizes[0]
    shape, activations = sizes[1 : layers + 2], sizes[layers + 2 : 2 * layers + 2]
    begin, end = lo // BLOCK * BLOCK, (hi + BLOCK - 1) // BLOCK * BLOCK
    _gather(sizes[2 * layers + 2 :], rows, at, begin, end)
    forward(numbers[p], 0, shape, activations, rows, at.stack, at.scores, at.hidden, at.widest, begin, end)
    for a in range(n_actions):
        scale = numbers[p, numbers.shape[1] - n_actions + a]
        for i in range(lo // VECTOR * VECTOR, hi, VECTOR):
            put(rows, at.action + a, i, scale * load(rows, at.scores + a, i), lo, hi)


@part
def greedy(numbers: Any, p: int, sizes: Any, n_actions: int, rows: Any, at: Any, lo: int, hi: int) -> None:
    """Sec. 3.3 of the paper: of the listed actions the one with the highest Q, the first of equals.

    sizes: as for `network`; the features are followed, as inputs, by the A actions.
    numbers[p]: the network, then the listed actions, A numbers for each.
    """
    layers = sizes[0]
    shape, activations = sizes[1 : layers + 2], sizes[layers + 2 : 2 * layers + 2]
    begin, end = lo // BLOCK * BLOCK, (hi + BLOCK - 1) // BLOCK * BLOCK
    _gather(sizes[2 * layers + 2 :], rows, at, begin, end)
    first, chosen, highest = length(shape), at.stack + shape[0] - n_actions, at.stack + shape[0]
    for i in range(lo // VECTOR * VECTOR, hi, VECTOR):
        store(rows, highest, i, -np.finfo(rows.dtype).max)
        for a in range(n_actions):
            put(rows, at.action + a, i, splat(rows, numbers[p, first + a]), lo, hi)
    for choice in range(first, numbers.shape[1], n_actions):
        for a in range(n_actions):
            for i in range(begin, end, VECTOR):
                store(rows, chosen + a, i, numbers[p, choice + a])
        forward(
            numbers[p], 0, shape, activations, rows, at.stack, at.scores, at.hidden, at.widest, begin, end
        )
        for i in range(lo // VECTOR * VECTOR, hi, VECTOR):
            score, best = load(rows, at.scores, i), load(rows, highest, i)
            store(rows, highest, i, maximum(score, best))
            for a in range(n_actions):
                action = where(score > best, load(rows, chosen + a, i), load(rows, at.action + a, i))
                put(rows, at.action + a, i, action, lo, hi)
