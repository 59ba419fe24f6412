"""Small dense networks are evaluated for a tile of lanes.

A network is one flat array: for each layer the weights [inputs, outputs], then the biases [outputs].
"""

from itertools import pairwise
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from clearloop.kernels import arithmetic
from clearloop.kernels.compilation import emitted, inlined, part
from clearloop.kernels.layout import IDENTITY, LANES, RELU, SIGMOID, TANH, Networks
from clearloop.kernels.vectors import (
    CONTRACT,
    FLOAT,
    INT64,
    VECTOR,
    address,
    broadcast,
    fetch,
    maximum,
    store,
)

# The inner loop of a dense layer takes nine tenths of the engine's time. As in a matrix product, the sums of
# a panel of K outputs and N vectors of lanes stay in registers during the loop over inputs, so that K + N
# loaded numbers serve K · N multiply-adds. The number of inputs is free.

AVX512 = bool(llvm.get_host_cpu_features().get("avx512f"))
REGISTER_BYTES = 64 if AVX512 else 32
WIDE = 4 if AVX512 else 2  # vectors beside five outputs, as fit in 32 registers with AVX-512, in 16 without
BLOCK = 64  # lanes: a multiple of the lanes of any panel


class _Panel:
    """Emits the parts of a panel."""

    def __init__(self, builder: Any, element: Any, outputs: int) -> None:
        self.builder = builder
        self.vector = ir.VectorType(FLOAT[element], REGISTER_BYTES * 8 // element.bitwidth)
        self.outputs, self.vectors = range(outputs), range(WIDE if outputs > 1 else 4)
        self.lanes = len(self.vectors) * self.vector.count

    def begin(self) -> None:
        # Sums start at 0, which takes no instruction. Copies of a loaded bias would cost a fifth of the
        # speed.
        zero = ir.Constant(self.vector, None)
        self.sums = [
            [cgutils.alloca_once_value(self.builder, zero) for _ in self.vectors] for _ in self.outputs
        ]

    def add(self, row: Any, weights: Any) -> None:
        """Add one more input."""
        values = [self.builder.load(self._vector(row, j)) for j in self.vectors]
        for value in values:
            value.align = REGISTER_BYTES
        for k in self.outputs:
            weight = self._number(weights, k)
            for place, value in zip(self.sums[k], values, strict=True):
                product = self.builder.fmul(weight, value, flags=CONTRACT)
                total = self.builder.fadd(product, self.builder.load(place), flags=CONTRACT)
                self.builder.store(total, place)

    def finish(self, row: Any, numbers: Any, combine: Any) -> None:
        """Combine the sums of each output with its number, and store the result."""
        for k in self.outputs:
            number, target = self._number(numbers, k), self.builder.gep(row, [INT64(k * LANES)])
            for j, place in enumerate(self.sums[k]):
                value = combine(self.builder.load(place), number)
                self.builder.store(value, self._vector(target, j)).align = REGISTER_BYTES

    def _vector(self, pointer: Any, j: int) -> Any:
        moved = self.builder.gep(pointer, [INT64(j * self.vector.count)])
        return self.builder.bitcast(moved, self.vector.as_pointer())

    def _number(self, pointer: Any, k: int) -> Any:
        scalar = self.builder.load(self.builder.gep(pointer, [INT64(k)]))
        return broadcast(self.builder, scalar, self.vector.count)


def _panel(
    _typing: Any, outputs: Any, numbers: Any, _at: Any, _n_in: Any, _n_out: Any,
    rows: Any, _x: Any, _y: Any, _first: Any, _floored: Any, _lo: Any, _hi: Any,
) -> Any:  # fmt: skip
    """Compute K outputs of a layer from `first` on (K is literal) for the lanes [lo, hi), multiples of BLOCK.

    numbers[at:] holds weights [n_in, n_out], then for each output its bias or, if `floored`, its least value.
    Inputs are in the rows from x on, outputs in the rows from y on.
    """
    place = types.intp
    signature = types.none(
        outputs, numbers, place, place, place, rows, place, place, place, types.boolean, place, place
    )

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, numbers_, at, n_in, n_out, rows_, x, y, first, floored, lo, hi = arguments
        data = context.make_array(signature.args[1])(context, builder, numbers_).data
        weights = builder.gep(data, [builder.add(at, first)])
        last = builder.gep(weights, [builder.mul(n_in, n_out)])
        sums = _Panel(builder, rows.dtype, outputs.literal_value)
        with cgutils.for_range_slice(builder, lo, hi, INT64(sums.lanes)) as (lane, _):
            sums.begin()
            with cgutils.for_range(builder, n_in) as loop:
                row = address(context, builder, signature.args[5], rows_, builder.add(x, loop.index), lane)
                sums.add(row, builder.gep(weights, [builder.mul(loop.index, n_out)]))
            row = address(context, builder, signature.args[5], rows_, builder.add(y, first), lane)
            with builder.if_else(floored) as (then, otherwise):
                with then:
                    sums.finish(row, last, lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
                with otherwise:
                    sums.finish(row, last, builder.fadd)
        return context.get_dummy_value()

    return signature, generate


panel = emitted(_panel, prefer_literal=True)


@inlined
def _dense(
    numbers: Any, at: int, n_in: int, n_out: int, rows: Any, x: int, y: int, floored: bool, lo: int, hi: int
) -> None:
    """Compute one layer, in panels of five outputs, and smaller ones for the rest."""
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
            value = fetch(rows, row, i)
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
    """Evaluate a network for the lanes [lo, hi), multiples of BLOCK.

    The network must be folded (`fold_biases`) and starts at numbers[at]. Inputs are in the rows from x on,
    outputs in the rows from y on; two times `widest` rows from `hidden` on are scratch.
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
    """Return the length of a network's flat array."""
    count = 0
    for k in range(sizes.size - 1):
        count += (sizes[k] + 1) * sizes[k + 1]
    return count


def flatten(weights: list[Any], biases: list[Any]) -> Any:
    """Return the flat array of a network whose layers have weights [outputs, inputs]."""
    return np.concatenate(
        [np.concatenate([np.asarray(w).T.ravel(), b]) for w, b in zip(weights, biases, strict=True)]
    )


def fold_biases(numbers: Any, sizes: Any, activations: Any) -> Any:
    """Return networks [count, numbers of each] as `forward` needs them: with hidden ReLUs without biases.

    max(a + b, 0) = max(a, −b) + b: the sum a is floored at −b, which replaces b, and b is added to the biases
    of the next layer. This saves one addition for every hidden output.
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


def fold_networks(networks: Networks) -> Networks:
    """Return networks with folded biases (`fold_biases`)."""
    if not networks.sizes.size:
        return networks
    numbers = networks.numbers.reshape(networks.total, -1)
    return networks._replace(numbers=fold_biases(numbers, networks.sizes, networks.activations).ravel())
