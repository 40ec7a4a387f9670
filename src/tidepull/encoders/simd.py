"""What kernels are compiled with: vectors as values, functions that numba has to be told of, and the
recurrence of an LSTM. It is imported when kernels are compiled.

A compiler vectorises a plain loop over a row, but it will not keep a whole row of sums in registers
while it walks down a matrix. These few operations say so explicitly. They are LLVM's portable
vectors, so they work on every machine; lanes beyond what its registers hold are split by LLVM.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, overload, register_model

from tidepull.encoders import kernels
from tidepull.encoders.layers import REGISTERS
from tidepull.types import FloatArray

FLAGS = ("contract", "arcp", "nsz", "afn")
INT32, INTP = ir.IntType(32), ir.IntType(types.intp.bitwidth)


class Vector(types.Type):
    """Some numbers of one dtype, side by side."""

    def __init__(self, dtype: Any, lanes: int) -> None:
        self.dtype, self.lanes = dtype, lanes
        super().__init__(name=f"Vector({dtype} x {lanes})")


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """A vector is one LLVM value."""

    def __init__(self, manager: Any, vector: Vector) -> None:
        element = manager.lookup(vector.dtype).get_value_type()
        super().__init__(manager, vector, ir.VectorType(element, vector.lanes))


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    kind = ir.VectorType(value.type, lanes)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, INT32(0))
    mask = ir.Constant(ir.VectorType(INT32, lanes), [0] * lanes)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), mask)


def _arithmetic(op: Callable[..., Any], name: str) -> None:
    """Let `op` work on two vectors, or on a vector and a number of its dtype."""

    @infer_global(op)
    class Template(AbstractTemplate):
        def generic(self, args: Any, _: Any) -> Any:
            vectors = [kind for kind in args if isinstance(kind, Vector)]
            if len(args) != 2 or not vectors:
                return None
            return signature(
                vectors[0], *(k if isinstance(k, Vector) else vectors[0].dtype for k in args)
            )

    def lower(_: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = sig.return_type.lanes
        a, b = (
            v if isinstance(k, Vector) else _splat(builder, v, lanes)
            for k, v in zip(sig.args, args, strict=True)
        )
        return getattr(builder, name)(a, b, flags=FLAGS)

    for left, right in ((Vector, Vector), (Vector, types.Float), (types.Float, Vector)):
        lower_builtin(op, left, right)(lower)


_arithmetic(operator.add, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")
_arithmetic(operator.truediv, "fdiv")


def _address(context: Any, builder: Any, array: Any, value: Any, index: Any, lanes: int) -> Any:
    data = context.make_array(array)(context, builder, value).data
    pointer = builder.gep(data, [index], inbounds=True)
    return builder.bitcast(pointer, ir.VectorType(data.type.pointee, lanes).as_pointer())


@intrinsic(prefer_literal=True)
def load(_: Any, array: Any, index: Any, lanes: Any) -> Any:
    """The `lanes` numbers of a contiguous array that begin at `index`."""
    kind = Vector(array.dtype, lanes.literal_value)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _address(context, builder, sig.args[0], args[0], args[1], kind.lanes)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return kind(array, types.intp, lanes), lower


@intrinsic
def store(_: Any, array: Any, index: Any, vector: Any) -> Any:
    """Write a vector into a contiguous array, from `index` on."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _address(context, builder, sig.args[0], args[0], args[1], sig.args[2].lanes)
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), lower


@intrinsic
def clamp(_: Any, x: Any, limit: Any) -> Any:
    """x within ±limit, lane by lane; what is not a number stays so."""

    def lower(_: Any, builder: Any, sig: Any, args: Any) -> Any:
        value, high = args[0], _splat(builder, args[1], sig.args[0].lanes)
        low = builder.fneg(high)
        value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
        return builder.select(builder.fcmp_ordered(">", value, high), high, value)

    return x(x, limit), lower


@intrinsic
def exact_tanh(_: Any, x: Any) -> Any:
    """The library's hyperbolic tangent, lane by lane."""

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        scalar = context.get_function(math.tanh, x.dtype(x.dtype))
        result = args[0]
        for lane in range(x.lanes):
            value = scalar(builder, [builder.extract_element(args[0], INT32(lane))])
            result = builder.insert_element(result, value, INT32(lane))
        return result

    return x(x), lower


@intrinsic(prefer_literal=True)
def add_product(
    _: Any,
    out: Any,
    at: Any,
    x: Any,
    start: Any,
    W: Any,
    rows: Any,
    columns: Any,
    lanes: Any,
    upward: Any,
) -> Any:
    """out[at:] += x[start:] W, with the sums of several columns in registers.

    W is packed, and `out`, `x` and W are contiguous; sizes are known to the compiler. A caller that
    walks through W `upward` every other time finds in the first-level cache what it read last,
    which matters when W is larger than that cache.
    """

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = [context.make_array(sig.args[i])(context, builder, args[i]).data for i in (0, 2, 4)]
        product = _Product(
            builder=builder,
            out=builder.gep(data[0], [args[1]]),
            x=builder.gep(data[1], [args[3]]),
            W=data[2],
            rows=rows.literal_value,
            columns=columns.literal_value,
            lanes=lanes.literal_value,
        )
        with builder.if_else(context.cast(builder, args[8], sig.args[8], types.boolean)) as (
            then,
            otherwise,
        ):
            with then:
                product.write(upward=True)
            with otherwise:
                product.write(upward=False)
        return context.get_dummy_value()

    intp = types.intp
    return types.void(out, intp, x, intp, W, rows, columns, lanes, types.boolean), lower


@dataclass(frozen=True)
class _Product:
    """Writes the LLVM code of `add_product`."""

    builder: Any
    out: Any
    x: Any
    W: Any
    rows: int
    columns: int
    lanes: int

    @property
    def vector(self) -> Any:
        return ir.VectorType(self.out.type.pointee, self.lanes)

    def write(self, *, upward: bool) -> None:
        """All blocks of columns, from the first or from the last."""
        blocks = range(0, self.columns, REGISTERS * self.lanes)
        for first in reversed(blocks) if upward else blocks:
            self._block(first, upward)

    def _block(self, first: int, upward: bool) -> None:
        """Columns from `first` on, as many as there are registers; narrow ones in several chains of
        sums."""
        b, n = self.builder, min(REGISTERS, (self.columns - first) // self.lanes)
        chains = max(c for c in (1, 2, 4, 8) if self.rows % c == 0 and c * n <= REGISTERS)
        targets = [self._at(self.out, INTP(first + j * self.lanes)) for j in range(n)]
        zero = ir.Constant(self.vector, [0.0] * self.lanes)
        sums = [[cgutils.alloca_once_value(b, zero) for _ in range(n)] for _ in range(chains)]
        for c in range(chains):
            for j in range(n):
                b.store(zero if c else self._load(targets[j]), sums[c][j])
        with cgutils.for_range_slice(b, INTP(0), INTP(self.rows), INTP(chains)) as (step, _):
            row = b.sub(INTP(self.rows - chains), step) if upward else step
            for c in range(chains):
                self._add_row(b.add(row, INTP(c)), first, sums[c])
        for j in range(n):
            total = b.load(sums[0][j])
            for c in range(1, chains):
                total = b.fadd(total, b.load(sums[c][j]), flags=FLAGS)
            b.store(total, targets[j], align=self._bytes)

    def _add_row(self, row: Any, first: int, sums: list[Any]) -> None:
        """sums += x[row] * (a row of the block)."""
        b = self.builder
        factor = _splat(b, b.load(b.gep(self.x, [row])), self.lanes)
        begin = b.add(b.mul(row, INTP(len(sums) * self.lanes)), INTP(first * self.rows))
        for j, cell in enumerate(sums):
            weights = self._load(self._at(self.W, b.add(begin, INTP(j * self.lanes))))
            b.store(b.call(self._multiply_add(), [factor, weights, b.load(cell)]), cell)

    def _multiply_add(self) -> Any:
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fmuladd.v{self.lanes}f{8 * self._bytes}"
        return cgutils.get_or_insert_function(self.builder.module, kind, name)

    def _at(self, pointer: Any, index: Any) -> Any:
        b = self.builder
        return b.bitcast(b.gep(pointer, [index], inbounds=True), self.vector.as_pointer())

    def _load(self, pointer: Any) -> Any:
        return self.builder.load(pointer, align=self._bytes)

    @property
    def _bytes(self) -> int:
        return 4 if isinstance(self.out.type.pointee, ir.FloatType) else 8


# `tanh` and `sigmoid` let sums be reordered and fused; those of one step do not.


@overload(kernels.clamp, jit_options=kernels.STRICT)
def _clamp(x: Any, limit: Any) -> Callable[..., Any]:
    def scalar(x: Any, limit: Any) -> Any:
        low = -limit if x < -limit else x
        return limit if low > limit else low

    def vector(x: Any, limit: Any) -> Any:
        return clamp(x, limit)

    return vector if isinstance(x, Vector) else scalar


def _tanh(x: Any) -> Callable[..., Any]:
    def rational(x: Any) -> Any:
        y = kernels.clamp(x, kernels.TANH_LIMIT)
        s = y * y
        n = y * ((kernels.N5 * s + kernels.N3) * s + kernels.N1)
        d = ((kernels.D6 * s + kernels.D4) * s + kernels.D2) * s + kernels.D0
        m = n * d
        return (m + m) / (n * n + d * d)

    def exact(x: Any) -> Any:
        return math.tanh(x)

    def exact_vector(x: Any) -> Any:
        return exact_tanh(x)

    if isinstance(x, Vector):
        return rational if x.dtype == types.float32 else exact_vector
    return rational if x == types.float32 else exact


def _sigmoid(x: Any) -> Callable[..., Any]:
    def rational(x: Any) -> Any:
        y = kernels.clamp(x, kernels.SIGMOID_LIMIT)
        s = y * y
        n = y * ((kernels.HN5 * s + kernels.HN3) * s + kernels.HN1)
        d = ((kernels.HD6 * s + kernels.HD4) * s + kernels.HD2) * s + kernels.D0
        return kernels.HALF + n * d / (n * n + d * d)

    def exact(x: Any) -> Any:
        return kernels.HALF + kernels.HALF * kernels.tanh(kernels.HALF * x)

    return rational if getattr(x, "dtype", x) == types.float32 else exact


overload(kernels.tanh, jit_options=kernels.OPTIONS)(_tanh)
overload(kernels.sigmoid, jit_options=kernels.OPTIONS)(_sigmoid)
overload(kernels.step_tanh, jit_options=kernels.STRICT)(_tanh)
overload(kernels.step_sigmoid, jit_options=kernels.STRICT)(_sigmoid)


@functools.cache
def recurrence(hidden: int) -> tuple[kernels.Kernel, kernels.Kernel]:
    """Forward and backward loops of an LSTM whose size is known to the compiler.

    The four gates lie side by side in a row: input, forget, output, candidate. The recurrent matrix
    W and its transpose WT are packed (`layers.pack`).
    """
    H2, H3, H4 = 2 * hidden, 3 * hidden, 4 * hidden
    lanes = kernels.lanes_of(hidden)

    @kernels.compiled
    def forward(G: FloatArray, W: FloatArray, H: FloatArray, C: FloatArray, TC: FloatArray) -> None:
        """G holds x_t Wx + b and becomes the gates; row t + 1 of H and C the state after round
        t."""
        for t in range(G.shape[0]):
            row, now, after = t * H4, t * hidden, (t + 1) * hidden
            add_product(G, row, H, now, W, hidden, H4, lanes, t % 2 == 1)
            for j in range(0, hidden, lanes):
                i = kernels.sigmoid(load(G, row + j, lanes))
                f = kernels.sigmoid(load(G, row + hidden + j, lanes))
                o = kernels.sigmoid(load(G, row + H2 + j, lanes))
                a = kernels.tanh(load(G, row + H3 + j, lanes))
                # c_t = f c_{t-1} + i a and h_t = o tanh(c_t)
                c = f * load(C, now + j, lanes) + i * a
                tc = kernels.tanh(c)
                store(G, row + j, i)
                store(G, row + hidden + j, f)
                store(G, row + H2 + j, o)
                store(G, row + H3 + j, a)
                store(C, after + j, c)
                store(TC, now + j, tc)
                store(H, after + j, o * tc)

    @kernels.compiled
    def backward(
        G: FloatArray, WT: FloatArray, C: FloatArray, TC: FloatArray, DH: FloatArray, window: int
    ) -> None:
        """G holds the gates and becomes the loss's gradient before them; DH is that of the outputs
        h.

        No gradient passes from one window of rounds to the one before it.
        """
        last = G.shape[0] - 1
        one = G.dtype.type(1)
        DC = np.zeros(hidden, G.dtype)
        for t in range(last, -1, -1):
            row, now = t * H4, t * hidden
            if (t + 1) % window == 0:
                for j in range(hidden):
                    DC[j] = 0
            elif t < last:
                add_product(DH, now, G, row + H4, WT, H4, hidden, lanes, t % 2 == 1)
            for j in range(0, hidden, lanes):
                i, f = load(G, row + j, lanes), load(G, row + hidden + j, lanes)
                o, a = load(G, row + H2 + j, lanes), load(G, row + H3 + j, lanes)
                tc, dh = load(TC, now + j, lanes), load(DH, now + j, lanes)
                dc = load(DC, j, lanes) + dh * o * (one - tc * tc)
                df = dc * f
                store(DC, j, df)
                store(G, row + j, dc * a * i * (one - i))
                store(G, row + hidden + j, df * load(C, now + j, lanes) * (one - f))
                store(G, row + H2 + j, dh * tc * o * (one - o))
                store(G, row + H3 + j, dc * i * (one - a * a))

    return forward, backward
