"""The inner loop of a dense layer, written in vector instructions.

LLVM vectorises a loop over lanes only when the loop over inputs inside it is unrolled at compile time. That
would mean one compilation for every size of network. So this one loop is spelled out: a panel of K outputs
and N vectors of lanes is summed in registers over any number of inputs, as in a matrix product.
"""

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from clearloop.kernels.layout import LANES

AVX512 = bool(llvm.get_host_cpu_features().get("avx512f"))
VECTOR_BYTES = 64 if AVX512 else 32
# Vectors in a panel of three to five outputs: what fits in 32 registers with AVX-512, in 16 without.
WIDE = 4 if AVX512 else 2

_IR = {types.float32: ir.FloatType(), types.float64: ir.DoubleType()}
_INT = ir.IntType(64)


class _Rows:
    """Vectors in an array [row, LANES] that starts on a whole vector."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any) -> None:
        self.builder = builder
        self.size = array_type.dtype.bitwidth // 8
        self.vector = ir.VectorType(_IR[array_type.dtype], VECTOR_BYTES // self.size)
        self.data = context.make_array(array_type)(context, builder, array).data

    def at(self, row: Any, lane: Any) -> Any:
        return self.builder.gep(self.data, [self.builder.add(self.builder.mul(row, _INT(LANES)), lane)])

    def _vector(self, pointer: Any, number: int) -> Any:
        moved = self.builder.gep(pointer, [_INT(number * self.vector.count)])
        return self.builder.bitcast(moved, self.vector.as_pointer())

    def load(self, pointer: Any, number: int) -> Any:
        value = self.builder.load(self._vector(pointer, number))
        value.align = VECTOR_BYTES
        return value

    def store(self, value: Any, pointer: Any, number: int) -> None:
        self.builder.store(value, self._vector(pointer, number)).align = VECTOR_BYTES

    def splat(self, scalar: Any) -> Any:
        nothing = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(nothing, scalar, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.vector.count), [0] * self.vector.count)
        return self.builder.shuffle_vector(first, nothing, zeros)


@intrinsic(prefer_literal=True)  # type: ignore[misc]
def panel(
    _typing: Any, outputs: Any, vectors: Any, weights: Any, at: Any, n_in: Any, n_out: Any,
    rows: Any, x: Any, y: Any, first: Any, lane: Any, relu: Any,
) -> Any:  # fmt: skip
    """rows[y + first + k, lanes] = bias + Σᵢ weight[i, first + k] · rows[x + i, lanes] for k < outputs.

    `weights` holds [n_in, n_out] numbers from index `at`, then n_out biases. `outputs` and `vectors` are
    literals; lanes are the `vectors` whole vectors from `lane`.
    """
    signature = types.none(
        outputs, vectors, weights, types.intp, types.intp, types.intp,
        rows, types.intp, types.intp, types.intp, types.intp, types.boolean,
    )  # fmt: skip
    n_outputs, n_vectors = outputs.literal_value, vectors.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, weights_, at_, n_in_, n_out_, rows_, x_, y_, first_, lane_, relu_ = arguments
        lanes = _Rows(context, builder, signature.args[6], rows_)
        numbers = context.make_array(signature.args[2])(context, builder, weights_).data
        weight = builder.gep(numbers, [builder.add(at_, first_)])
        bias = builder.gep(weight, [builder.mul(n_in_, n_out_)])
        sums = []
        for k in range(n_outputs):
            start = lanes.splat(builder.load(builder.gep(bias, [_INT(k)])))
            sums.append([cgutils.alloca_once_value(builder, start) for _ in range(n_vectors)])
        with cgutils.for_range(builder, n_in_) as loop:
            row = lanes.at(builder.add(x_, loop.index), lane_)
            values = [lanes.load(row, j) for j in range(n_vectors)]
            weight_row = builder.gep(weight, [builder.mul(loop.index, n_out_)])
            for k in range(n_outputs):
                factor = lanes.splat(builder.load(builder.gep(weight_row, [_INT(k)])))
                for j in range(n_vectors):
                    product = builder.fmul(factor, values[j], flags=("contract",))
                    total = builder.fadd(product, builder.load(sums[k][j]), flags=("contract",))
                    builder.store(total, sums[k][j])
        # The floor of ReLU is 0, that of no activation is the smallest number there is.
        zero, lowest = _IR[signature.args[2].dtype](0.0), _IR[signature.args[2].dtype](float("-inf"))
        floor = lanes.splat(builder.select(relu_, zero, lowest))
        for k in range(n_outputs):
            row = lanes.at(builder.add(builder.add(y_, first_), _INT(k)), lane_)
            for j in range(n_vectors):
                value = builder.load(sums[k][j])
                above = builder.fcmp_ordered(">", value, floor)
                lanes.store(builder.select(above, value, floor), row, j)
        return context.get_dummy_value()

    return signature, generate

