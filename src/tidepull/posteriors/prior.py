"""What is believed of w before the first observation: N(w_0, V_0), as a precision and a moment.

    precision V_0^-1,    moment V_0^-1 w_0

so that adding Phi'Phi / sigma^2 to the one and Phi'r / sigma^2 to the other gives the posterior.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from tidepull.errors import ParameterError, SnapshotError
from tidepull.types import FloatArray, Snapshot


class Prior:
    """N(w_0, V_0) for d weights: zero and std^2 I, or what `mean` and `covariance` (a matrix, or variances) say."""

    def __init__(
        self, dim: int, std: float, mean: ArrayLike | None = None, covariance: ArrayLike | None = None
    ) -> None:
        self._dim, self._std = dim, std
        self._mean = None if mean is None else _vector(mean, dim)
        self._covariance = None if covariance is None else _matrix(covariance, dim)
        self._precision = None if self._covariance is None else _inverse(self._covariance)

    def start(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Fresh precision, its upper factor U (precision = U'U) and moment."""
        moment: FloatArray = np.zeros(self._dim)
        if self._precision is None:
            precision: FloatArray = np.eye(self._dim) / self._std**2
            factor: FloatArray | None = np.eye(self._dim) / self._std
        else:
            precision = self._precision.copy()
            factor = upper_factor(precision)
        if factor is None:
            raise ParameterError("prior_covariance is too close to singular for double precision")
        self._add_mean(moment)
        return precision, factor, moment

    def add_to(self, precision: FloatArray, moment: FloatArray) -> None:
        """Add the prior to what was observed, in place."""
        if self._precision is None:
            precision.flat[:: self._dim + 1] += 1.0 / self._std**2
        else:
            precision += self._precision
        self._add_mean(moment)

    def distance(self, w: FloatArray) -> float:
        """(w - w_0)' V_0^-1 (w - w_0), how far w lies from what was believed."""
        gap = w if self._mean is None else w - self._mean
        if self._precision is None:
            return float(1.0 / self._std**2 * (gap @ gap))
        return float(gap @ self._precision @ gap)

    def snapshot(self) -> Snapshot:
        """What was told beyond one standard deviation; nothing where that was all."""
        told = {"prior_mean": self._mean, "prior_covariance": self._covariance}
        return {name: value.copy() for name, value in told.items() if value is not None}

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot of a posterior with another prior."""
        mine = self.snapshot()
        for name in ("prior_mean", "prior_covariance"):
            same = np.array_equal(mine[name], snapshot[name]) if name in mine and name in snapshot else None
            if same is False or (name in mine) != (name in snapshot):
                raise SnapshotError(f"the snapshot belongs to another {name}")

    def _add_mean(self, moment: FloatArray) -> None:
        if self._mean is None:
            return
        moment += self._mean / self._std**2 if self._precision is None else self._precision @ self._mean


def scaled(covariance: ArrayLike, factor: float) -> FloatArray:
    """A prior covariance, or variances, times a number."""
    return _numbers(covariance, "prior_covariance") * factor


def upper_factor(precision: FloatArray) -> FloatArray | None:
    """U with U'U = P; None where P is not positive definite in double precision."""
    # LAPACK sees rows as columns: its lower factor of the symmetric P, read by rows, is U.
    lower, info = lapack.dpotrf(precision.T, lower=True, clean=True)
    return np.ascontiguousarray(lower.T) if info == 0 else None


def _vector(mean: ArrayLike, dim: int) -> FloatArray:
    vector = _numbers(mean, "prior_mean")
    if vector.shape != (dim,):
        raise ParameterError(
            f"prior_mean must be {dim} numbers, one for each feature, got the shape {vector.shape}"
        )
    return vector


def _matrix(covariance: ArrayLike, dim: int) -> FloatArray:
    given = _numbers(covariance, "prior_covariance")
    matrix = np.diag(given) if given.ndim == 1 else given
    if matrix.shape != (dim, dim):
        raise ParameterError(
            f"prior_covariance must be {dim} variances or a {dim} x {dim} matrix, got the shape {given.shape}"
        )
    if not np.array_equal(matrix, matrix.T):
        raise ParameterError("prior_covariance must be symmetric")
    return matrix


def _numbers(values: ArrayLike, name: str) -> FloatArray:
    try:
        array: FloatArray = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must hold numbers, in rows of equal length") from None
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} must be finite")
    return array


def _inverse(covariance: FloatArray) -> FloatArray:
    lower, info = lapack.dpotrf(covariance, lower=True, clean=True)
    if info != 0:
        raise ParameterError("prior_covariance must be positive definite")
    half, _ = lapack.dpotri(lower, lower=True)
    return np.asarray(np.tril(half) + np.tril(half, -1).T)
