"""Vectors of a few numbers as values inside numba kernels, for loops that must stay in registers.

A compiler vectorises a plain loop over a row, but it will not keep a whole row of sums in registers
while it walks down a matrix. These few operations say so explicitly. They are LLVM's portable vectors,
so they work on every machine; lanes beyond what its registers hold are split by LLVM.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

FLAGS = ("contract", "arcp", "nsz", "afn")
INT32 = ir.IntType(32)


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
            return signature(vectors[0], *(k if isinstance(k, Vector) else vectors[0].dtype for k in args))

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
    _: Any, out: Any, at: Any, x: Any, start: Any, W: Any, rows: Any, columns: Any, lanes: Any
) -> Any:
    """out[at:] += x[start:] W, with the sums of several columns in registers.

    `out`, `x` and W (rows x columns) are contiguous; sizes are known to the compiler.
    """
    n, m, width = rows.literal_value, columns.literal_value, lanes.literal_value
    size = out.dtype.bitwidth // 8

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        arrays = [context.make_array(sig.args[i])(context, builder, args[i]).data for i in (0, 2, 4)]
        target, source = builder.gep(arrays[0], [args[1]]), builder.gep(arrays[1], [args[3]])
        kind = ir.VectorType(target.type.pointee, width)
        fma = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fmuladd.v{width}f{8 * size}"
        )

        def vector_at(pointer: Any, index: Any) -> Any:
            return builder.bitcast(builder.gep(pointer, [index], inbounds=True), kind.as_pointer())

        index = context.get_value_type(types.intp)
        for block in range(0, m, REGISTERS * width):
            count = min(REGISTERS, (m - block) // width)
            chains = max(c for c in (1, 2, 4, 8) if n % c == 0 and c * count <= REGISTERS)
            zero = ir.Constant(kind, [0.0] * width)
            cells = [[cgutils.alloca_once_value(builder, zero) for _ in range(count)] for _ in range(chains)]
            for c, row in enumerate(cells):
                for j, cell in enumerate(row):
                    begin = (
                        zero if c else builder.load(vector_at(target, index(block + j * width)), align=size)
                    )
                    builder.store(begin, cell)
            with cgutils.for_range_slice(builder, index(0), index(n), index(chains)) as (k, _):
                for c, row in enumerate(cells):
                    k_c = builder.add(k, index(c))
                    factor = _splat(builder, builder.load(builder.gep(source, [k_c])), width)
                    base = builder.add(builder.mul(k_c, index(m)), index(block))
                    for j, cell in enumerate(row):
                        pointer = vector_at(arrays[2], builder.add(base, index(j * width)))
                        weight = builder.load(pointer, align=size)
                        builder.store(builder.call(fma, [factor, weight, builder.load(cell)]), cell)
            for j in range(count):
                pointer = vector_at(target, index(block + j * width))
                total = builder.load(cells[0][j])
                for row in cells[1:]:
                    total = builder.fadd(total, builder.load(row[j]), flags=FLAGS)
                builder.store(total, pointer, align=size)
        return context.get_dummy_value()

    intp = types.intp
    return types.void(out, intp, x, intp, W, rows, columns, lanes), lower


REGISTERS = 8
"""Vectors of sums that are kept at once: enough to hide the latency of a multiply-add."""
