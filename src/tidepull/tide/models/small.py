"""A block of one to three features that is kept as moments (A, eta): what it says of phi, without a
loop.

With U'U = lam0 I + g A, v = U'^-1 phi and z = g U'^-1 eta it is the mean v.z and the leverage v.v,
bit by bit as `algebra.factor` and `algebra.whiten` make them. A sum with a product is rounded once
where it is written `_fma`, all else is rounded at every step, so that it does not hang on what else
a compiler sees.
"""

from __future__ import annotations

import math
from typing import Any

from numba.core import types
from numba.extending import intrinsic

from tidepull._internal.kernels import kernel
from tidepull.types import FloatArray

# Who names no flag inherits the caller's; "nsz" concerns the signs of zeros alone.
_exact = kernel(nogil=True, fastmath={"nsz"}, forceinline=True, _nrt=False)

LARGEST = 3
"""Features of such a block: up to so many, factoring afresh in every round is cheaper than anything
else."""


@intrinsic
def _fma(_: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once."""

    def lower(_: Any, builder: Any, __: Any, given: Any) -> Any:
        return builder.fma(*given)

    return types.float64(a, b, c), lower


@_exact
def weigh_small(
    A: FloatArray, eta: FloatArray, ridge: float, g: float, phi: FloatArray, d: int
) -> tuple[float, float]:
    """Mean phi.mu and leverage phi' Lam^-1 phi."""
    least = 0.5 * ridge
    p0 = math.sqrt(max(g * A[0] + ridge, least))
    v0, z0 = phi[0] / p0, g * eta[0] / p0
    mean, leverage = v0 * z0, v0 * v0
    if d == 1:
        return mean, leverage
    u01 = g * A[1] / p0
    p1 = math.sqrt(max(_fma(-u01, u01, g * A[d + 1] + ridge), least))
    v1, z1 = _fma(-v0, u01, phi[1]) / p1, _fma(-z0, u01, g * eta[1]) / p1
    mean, leverage = _fma(v1, z1, mean), _fma(v1, v1, leverage)
    if d == 2:
        return mean, leverage
    u02 = g * A[2] / p0
    u12 = _fma(-u01, u02, g * A[5]) / p1
    p2 = math.sqrt(max(_fma(-u12, u12, _fma(-u02, u02, g * A[8] + ridge)), least))
    v2 = _fma(-v1, u12, _fma(-v0, u02, phi[2])) / p2
    z2 = _fma(-z1, u12, _fma(-z0, u02, g * eta[2])) / p2
    return _fma(v2, z2, mean), _fma(v2, v2, leverage)


@_exact
def learn_small(
    A: FloatArray, eta: FloatArray, g: float, phi: FloatArray, y: float, d: int
) -> None:
    """A <- g A + phi phi' on the diagonal and above it, eta <- g eta + phi y."""
    eta[0] = _fma(g, eta[0], y * phi[0])
    A[0] = _fma(g, A[0], phi[0] * phi[0])
    if d == 1:
        return
    eta[1] = _fma(g, eta[1], y * phi[1])
    A[1] = _fma(g, A[1], phi[0] * phi[1])
    A[d + 1] = _fma(g, A[d + 1], phi[1] * phi[1])
    if d == 2:
        return
    eta[2] = _fma(g, eta[2], y * phi[2])
    A[2] = _fma(g, A[2], phi[0] * phi[2])
    A[5] = _fma(g, A[5], phi[1] * phi[2])
    A[8] = _fma(g, A[8], phi[2] * phi[2])
