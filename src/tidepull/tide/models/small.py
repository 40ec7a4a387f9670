"""A block of one to three features that is kept as moments (A, eta): prediction and update without a
loop.

With U'U = lam0 I + g A, v = U'^-1 phi and z = g U'^-1 eta it is the mean v.z and the leverage v.v,
bit by bit as `algebra.factor` and `algebra.whiten` make them.
"""

from __future__ import annotations

import math

from tidepull.tide.models.algebra import inlined
from tidepull.types import FloatArray

LARGEST = 3
"""Most features of such a block: up to this number, a new factor in every round is cheapest."""


@inlined
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
    p1 = math.sqrt(max(g * A[d + 1] + ridge - u01 * u01, least))
    v1, z1 = (phi[1] - v0 * u01) / p1, (g * eta[1] - z0 * u01) / p1
    mean, leverage = mean + v1 * z1, leverage + v1 * v1
    if d == 2:
        return mean, leverage
    u02 = g * A[2] / p0
    u12 = (g * A[5] - u01 * u02) / p1
    p2 = math.sqrt(max(g * A[8] + ridge - u02 * u02 - u12 * u12, least))
    v2 = (phi[2] - v0 * u02 - v1 * u12) / p2
    z2 = (g * eta[2] - z0 * u02 - z1 * u12) / p2
    return mean + v2 * z2, leverage + v2 * v2


@inlined
def learn_small(
    A: FloatArray, eta: FloatArray, g: float, phi: FloatArray, y: float, d: int
) -> None:
    """A <- g A + phi phi' on the diagonal and above it, eta <- g eta + phi y."""
    eta[0] = g * eta[0] + y * phi[0]
    A[0] = g * A[0] + phi[0] * phi[0]
    if d == 1:
        return
    eta[1] = g * eta[1] + y * phi[1]
    A[1] = g * A[1] + phi[0] * phi[1]
    A[d + 1] = g * A[d + 1] + phi[1] * phi[1]
    if d == 2:
        return
    eta[2] = g * eta[2] + y * phi[2]
    A[2] = g * A[2] + phi[0] * phi[2]
    A[5] = g * A[5] + phi[1] * phi[2]
    A[8] = g * A[8] + phi[2] * phi[2]
