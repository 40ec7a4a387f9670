"""Small compiled pieces of linear algebra and likelihood, made to be inlined into the bank's
kernels."""

from __future__ import annotations

import math

from tidepull._internal.kernels import kernel
from tidepull.types import FloatArray

compiled = kernel(nogil=True)
inlined = kernel(nogil=True, inline=True)
# Of the search for structure, where speed counts more: sums may be reordered (so that they
# vectorise); NaN and infinity keep their meaning.
_UNORDERED = {"reassoc", "contract"}
unordered = kernel(nogil=True, exact=False, fastmath=_UNORDERED)
unordered_inlined = kernel(nogil=True, exact=False, inline=True, fastmath=_UNORDERED)

TWO_PI = 2 * math.pi
_FARTHEST, _SUREST = 1e9, 40.0
"""Largest means and log odds, so that squares and exponentials stay finite."""


@inlined
def factor(A: FloatArray, ridge: float, scale: float, d: int, U: FloatArray) -> None:
    """The upper factor of ridge I + scale A, by rows."""
    for i in range(d):
        for j in range(i, d):
            U[i, j] = scale * A[i * d + j]
        U[i, i] += ridge
    for k in range(d):
        # A is a sum of squares, so the pivot is at least the ridge but for rounding.
        pivot = math.sqrt(max(U[k, k], 0.5 * ridge))
        U[k, k] = pivot
        for j in range(k + 1, d):
            U[k, j] /= pivot
        for i in range(k + 1, d):
            u = U[k, i]
            for j in range(i, d):
                U[i, j] -= u * U[k, j]


@inlined
def whiten(U: FloatArray, v: FloatArray, d: int) -> None:
    """v <- U'^-1 v."""
    for k in range(d):
        v[k] /= U[k, k]
        u = v[k]
        for j in range(k + 1, d):
            v[j] -= u * U[k, j]


@inlined
def _log_gamma_ratio(a: float) -> float:
    """log Gamma(a + 1/2) - log Gamma(a): the asymptotic series (error below 1e-9), of small a by
    Gamma(a + 1) = a Gamma(a). (`math.lgamma` is another one compiled.)"""
    product = 1.0
    while a <= 20:
        product *= a / (a + 0.5)
        a += 1.0
    return 0.5 * math.log(a) - 1 / (8 * a) + 1 / (192 * a * a * a) + math.log(product)


@inlined
def log_student(e: float, a: float, scale2: float) -> float:
    """Log density of Student's t with 2a degrees of freedom."""
    norm = _log_gamma_ratio(a) - 0.5 * math.log(TWO_PI * a * scale2)
    score: float = norm - (a + 0.5) * math.log1p(e * e / (2 * a * scale2))
    return score


@inlined
def log_binary(y: float, chance: float, leverage: float) -> float:
    """Log probability of a reward of 0 or 1 (y = -1 or 1); no model may be surer than its data
    allow."""
    least = max(0.002, leverage / (1 + 2 * leverage))
    chance = min(max(chance, least), 1 - least)
    return math.log(chance) if y > 0 else math.log(1 - chance)


@inlined
def log_two_point(y: float, mean: float, a: float, scale2: float) -> float:
    """Log probability of a reward of 0 or 1 (y = -1 or 1) from Student's t with 2a degrees of
    freedom about `mean`: p(1) / p(-1) = t(1 - mean) / t(-1 - mean)."""
    mean = min(max(mean, -_FARTHEST), _FARTHEST)
    near = (1 - mean) * (1 - mean) / (2 * a * scale2)
    far = (1 + mean) * (1 + mean) / (2 * a * scale2)
    odds = min(max((a + 0.5) * (math.log1p(far) - math.log1p(near)), -_SUREST), _SUREST)
    score: float = log_binary(y, 1 / (1 + math.exp(-odds)), 0.0)
    return score
