"""A block of conjugate weights kept as (P, mu): P = Lam^-1 by rows, mu = P eta. Made to be inlined
into kernels.

A reward costs one product v = P phi and one outer product, both at the width of the processor.
"""

from __future__ import annotations

import math

from tidepull.tide.models.algebra import factor, inlined
from tidepull.types import FloatArray


# A row is cut out before it is read: an index that is a sum might be negative, and then nothing
# vectorises.
@inlined
def weigh_inverse(
    P: FloatArray, mu: FloatArray, phi: FloatArray, d: int, v: FloatArray
) -> tuple[float, float]:
    """v <- P phi of a block (P, mu): the mean phi.mu and the leverage phi.v."""
    for j in range(d):
        v[j] = 0.0
    for i in range(d):
        row, x = P[i * d : i * d + d], phi[i]  # P is symmetric: a row is a column
        for j in range(d):
            v[j] += x * row[j]
    mean, leverage = 0.0, 0.0
    for i in range(d):
        mean += phi[i] * mu[i]
        leverage += phi[i] * v[i]
    return mean, max(leverage, 0.0)


@inlined
def learn_inverse(
    P: FloatArray, mu: FloatArray, v: FloatArray, e: float, leverage: float, d: int
) -> None:
    """P <- P - v v' / (1 + leverage) and mu <- mu + v e / (1 + leverage), v = P phi; v is used
    up."""
    step, root = e / (1 + leverage), 1 / math.sqrt(1 + leverage)
    for i in range(d):
        mu[i] += v[i] * step
        v[i] *= root
    for i in range(d):
        row, u = P[i * d : i * d + d], v[i]
        for j in range(d):
            row[j] -= u * v[j]  # u * v[j] is v[j] * u, so P stays symmetric


@inlined
def begin_inverse(P: FloatArray, mu: FloatArray, ridge: float, d: int) -> None:
    """Nothing learnt yet: P = I / ridge, mu = 0."""
    for i in range(d * d):
        P[i] = 0.0
    for i in range(d):
        P[i * d + i] = 1 / ridge
        mu[i] = 0.0


@inlined
def weigh_prior(phi: FloatArray, ridge: float, d: int, v: FloatArray) -> float:
    """The leverage of phi for a block that has learnt nothing; v <- P phi."""
    leverage = 0.0
    for i in range(d):
        v[i] = phi[i] / ridge
        leverage += phi[i] * v[i]
    return leverage


@inlined
def draw_inverse(
    P: FloatArray, noise: FloatArray, d: int, U: FloatArray, errors: FloatArray
) -> None:
    """errors <- U' noise with U'U = P: what a draw of the weights is away from their mean, for s2 =
    1."""
    largest = 0.0
    for i in range(d):
        largest = max(largest, P[i * d + i])
    factor(P, 1e-15 * largest, 1.0, d, U)
    for j in range(d):
        errors[j] = 0.0
    for i in range(d):
        for j in range(i, d):
            errors[j] += noise[i] * U[i, j]
