"""Compiled kernels on the upper factor U of a precision matrix, U'U = P, and on z = U'^-1 b.

(U, z) is the square-root form of a Gaussian: its mean is U^-1 z, a draw is U^-1 (z + eps), and one
triangular solve v = U'^-1 x gives both the mean v.z and the variance v.v of w.x. U is kept by rows,
so that every inner loop runs over neighbours in memory. All arrays are float64.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull._internal.kernels import kernel
from tidepull.types import FloatArray

_compiled = kernel(nogil=True)


@_compiled
def add_row(
    P: FloatArray, b: FloatArray, U: FloatArray, z: FloatArray, x: FloatArray, y: float
) -> bool:
    """P += x x', b += y x, and U, z to match, by Givens rotations in O(d^2); x is used up.

    Returns False, having changed nothing, when the result would not be finite.
    """
    d = x.shape[0]
    if not _finite_after(P, b, x, y, 1.0):
        return False
    for i in range(d):
        for j in range(i, d):
            P[i, j] += x[i] * x[j]
        b[i] += x[i] * y
    for k in range(d):
        if x[k] == 0.0:
            continue
        r = math.sqrt(U[k, k] * U[k, k] + x[k] * x[k])
        c, s = U[k, k] / r, x[k] / r
        for j in range(k, d):
            u = U[k, j]
            U[k, j] = c * u + s * x[j]
            x[j] = c * x[j] - s * u
        u = z[k]
        z[k] = c * u + s * y
        y = c * y - s * u
    return True


@_compiled
def remove_row(
    P: FloatArray, b: FloatArray, U: FloatArray, z: FloatArray, x: FloatArray, y: float
) -> bool:
    """P -= x x', b -= y x, and U, z to match, in O(d^2) (the method of LINPACK's dchdd).

    Returns False, having changed nothing, when P - x x' is not safely positive definite.
    """
    d = x.shape[0]
    if not _finite_after(P, b, x, y, -1.0):
        return False
    p = x.copy()
    _solve_transposed(U, p)
    rest = 1.0
    for k in range(d):
        rest -= p[k] * p[k]
    if not rest > 1e-10:
        return False
    for i in range(d):
        for j in range(i, d):
            P[i, j] -= x[i] * x[j]
        b[i] -= x[i] * y
    alpha = math.sqrt(rest)
    cosines, carry = np.empty(d), np.zeros(d)
    for k in range(d - 1, -1, -1):
        r = math.sqrt(alpha * alpha + p[k] * p[k])
        c, s = alpha / r, p[k] / r
        alpha = r
        cosines[k] = c
        p[k] = s
        for j in range(k, d):
            u = U[k, j]
            U[k, j] = c * u - s * carry[j]
            carry[j] = c * carry[j] + s * u
    for k in range(d):
        z[k] = (z[k] - p[k] * y) / cosines[k]
        y = cosines[k] * y - p[k] * z[k]
    return True


@_compiled
def solve(U: FloatArray, v: FloatArray) -> None:
    """v <- U^-1 v, in place."""
    d = v.shape[0]
    for k in range(d - 1, -1, -1):
        total = 0.0
        for j in range(k + 1, d):
            total += U[k, j] * v[j]
        v[k] = (v[k] - total) / U[k, k]


def _solve_columns_in_numpy(U: FloatArray, V: FloatArray) -> None:
    for k in range(len(U)):
        V[k] *= 1.0 / U[k, k]
        V[k + 1 :] -= np.multiply.outer(U[k, k + 1 :], V[k])
    for k in range(len(U) - 1, -1, -1):
        V[k] *= 1.0 / U[k, k]
        V[:k] -= np.multiply.outer(U[:k, k], V[k])


@kernel(nogil=True, until_compiled=_solve_columns_in_numpy)
def solve_columns(U: FloatArray, V: FloatArray) -> None:
    """V <- P^-1 V = U^-1 U'^-1 V, in place.

    Rows are multiplied by the inverse of the diagonal, as BLAS does: before the first reward, arms
    of equal length differ in the last bit alone, and that decides.
    """
    d, n = V.shape
    for k in range(d):
        inverse = 1.0 / U[k, k]
        for i in range(n):
            V[k, i] *= inverse
        for j in range(k + 1, d):
            for i in range(n):
                V[j, i] -= U[k, j] * V[k, i]
    for k in range(d - 1, -1, -1):
        for j in range(d - 1, k, -1):
            for i in range(n):
                V[k, i] -= U[k, j] * V[j, i]
        inverse = 1.0 / U[k, k]
        for i in range(n):
            V[k, i] *= inverse


@_compiled
def whiten(U: FloatArray, v: FloatArray) -> None:
    """v <- U'^-1 v, in place."""
    _solve_transposed(U, v)


@_compiled
def mean_and_variance(
    U: FloatArray, z: FloatArray, V: FloatArray, means: FloatArray, variances: FloatArray
) -> bool:
    """Mean and variance of w . x for every column x of V, which is used up; False if not finite."""
    d, n = V.shape
    if n == 1:
        _solve_transposed(U, V.reshape(d))
    else:
        _solve_transposed_columns(U, V)
    means[:] = 0.0
    variances[:] = 0.0
    for k in range(d):
        for i in range(n):
            means[i] += V[k, i] * z[k]
            variances[i] += V[k, i] * V[k, i]
    return math.isfinite(np.sum(np.abs(means)) + np.sum(variances))


@_compiled
def _solve_transposed(U: FloatArray, v: FloatArray) -> None:
    d = v.shape[0]
    for k in range(d):
        v[k] /= U[k, k]
        for j in range(k + 1, d):
            v[j] -= v[k] * U[k, j]


@_compiled
def _solve_transposed_columns(U: FloatArray, V: FloatArray) -> None:
    d, n = V.shape
    for k in range(d):
        for i in range(n):
            V[k, i] /= U[k, k]
        for j in range(k + 1, d):
            for i in range(n):
                V[j, i] -= U[k, j] * V[k, i]


@_compiled
def _finite_after(P: FloatArray, b: FloatArray, x: FloatArray, y: float, sign: float) -> bool:
    """Finite diagonal, finite factor: a column of U has the norm sqrt(P_jj)."""
    total = y * y
    for j in range(x.shape[0]):
        total += abs(P[j, j] + sign * x[j] * x[j]) + abs(b[j] + sign * x[j] * y)
    return math.isfinite(total)
