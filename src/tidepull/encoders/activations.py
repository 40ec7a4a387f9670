"""Hyperbolic tangent and logistic function inside compiled kernels, for numbers and for vectors of them.

Rational in float32, so that they vectorise, and within 4 units in the last place; exact in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.extending import overload

from tidepull.encoders import simd

Kernel: TypeAlias = Callable[..., Any]

OPTIONS: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "arcp", "nsz", "afn"},
    "error_model": "numpy",  # a division that may raise would not vectorise
    "cache": True,
}
INSIDE = {name: value for name, value in OPTIONS.items() if name != "cache"}

HALF = np.float32(0.5)

# tanh(x) = 2 n d / (n^2 + d^2) with n / d ~ tanh(x / 2): errors of n and d fade where tanh saturates.
# Minimax fit on [0, 9.2], then a search over neighbouring float32 values: below 4 ulp over all of float32.
TANH_LIMIT = np.float32(9.2)
N5, N3 = np.float32(9.663548553362489e-05), np.float32(0.025247810408473015)
N1, D6 = np.float32(0.848471462726593), np.float32(2.072878714898252e-06)
D4, D2 = np.float32(0.002044444205239415), np.float32(0.19190743565559387)
D0 = np.float32(1.696942925453186)

# The same fit in x / 2, exact in binary: sigmoid(x) = 1/2 + tanh(x / 2) / 2.
SIGMOID_LIMIT = np.float32(2.0) * TANH_LIMIT
HN5, HN3, HN1 = N5 / np.float32(32.0), N3 / np.float32(8.0), N1 / np.float32(2.0)
HD6, HD4, HD2 = D6 / np.float32(64.0), D4 / np.float32(16.0), D2 / np.float32(4.0)


def tanh(x: Any) -> Any:
    """Hyperbolic tangent inside a kernel: rational in float32, exact in float64."""
    raise NotImplementedError("only inside a kernel")


def sigmoid(x: Any) -> Any:
    """Logistic function inside a kernel."""
    raise NotImplementedError("only inside a kernel")


def clamp(x: Any, limit: Any) -> Any:
    """x within ±limit inside a kernel; what is not a number stays so."""
    raise NotImplementedError("only inside a kernel")


@overload(clamp, jit_options=INSIDE)
def _clamp(x: Any, limit: Any) -> Kernel:  # noqa: ARG001
    def scalar(x: Any, limit: Any) -> Any:
        low = -limit if x < -limit else x
        return limit if low > limit else low

    def vector(x: Any, limit: Any) -> Any:
        return simd.clamp(x, limit)

    return vector if isinstance(x, simd.Vector) else scalar


@overload(tanh, jit_options=INSIDE)
def _tanh(x: Any) -> Kernel:
    def rational(x: Any) -> Any:
        y = clamp(x, TANH_LIMIT)
        s = y * y
        n = y * ((N5 * s + N3) * s + N1)
        d = ((D6 * s + D4) * s + D2) * s + D0
        m = n * d
        return (m + m) / (n * n + d * d)

    def exact(x: Any) -> Any:
        return math.tanh(x)

    def exact_vector(x: Any) -> Any:
        return simd.exact_tanh(x)

    if isinstance(x, simd.Vector):
        return rational if x.dtype == types.float32 else exact_vector
    return rational if x == types.float32 else exact


@overload(sigmoid, jit_options=INSIDE)
def _sigmoid(x: Any) -> Kernel:
    def rational(x: Any) -> Any:
        y = clamp(x, SIGMOID_LIMIT)
        s = y * y
        n = y * ((HN5 * s + HN3) * s + HN1)
        d = ((HD6 * s + HD4) * s + HD2) * s + D0
        return HALF + n * d / (n * n + d * d)

    def exact(x: Any) -> Any:
        return HALF + HALF * tanh(HALF * x)

    return rational if getattr(x, "dtype", x) == types.float32 else exact
