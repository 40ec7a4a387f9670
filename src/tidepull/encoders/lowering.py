"""Functions of kernels that numba has to be told of; imported when kernels are compiled.

`tanh` and `sigmoid` let sums be reordered and fused; those of one step do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import overload

from tidepull.encoders import kernels, simd


@overload(kernels.clamp, jit_options=kernels.STRICT)
def _clamp(x: Any, limit: Any) -> Callable[..., Any]:  # noqa: ARG001
    def scalar(x: Any, limit: Any) -> Any:
        low = -limit if x < -limit else x
        return limit if low > limit else low

    def vector(x: Any, limit: Any) -> Any:
        return simd.clamp(x, limit)

    return vector if isinstance(x, simd.Vector) else scalar


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
        return simd.exact_tanh(x)

    if isinstance(x, simd.Vector):
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
