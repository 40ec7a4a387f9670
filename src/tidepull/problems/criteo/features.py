"""From categories to vectors: one-hot, truncated singular value decomposition, least squares.

Nothing here but `fit_parameter` is given the clicks, so the label cannot enter the vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from tidepull.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The linear parameter theta, and the share of the label's variance that it explains."""

    theta: NDArray[np.float64]
    r_squared: float


def one_hot(categories: NDArray[np.int64]) -> sparse.csr_array:
    """A sparse indicator matrix: one column for each distinct value of each categorical column."""
    n_rows, n_columns = categories.shape
    positions = np.empty((n_rows, n_columns), np.int64)
    width = 0
    for column in range(n_columns):
        values, inverse = np.unique(categories[:, column], return_inverse=True)
        positions[:, column] = inverse + width
        width += len(values)
    row_starts = np.arange(0, n_rows * n_columns + 1, n_columns)
    return sparse.csr_array((np.ones(positions.size), positions.ravel(), row_starts), shape=(n_rows, width))


def truncated_svd(matrix: sparse.csr_array, dim: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The rows of `matrix` in the basis of its `dim` leading right singular vectors: X V = U S.

    Not normalised. The starting vector comes from `rng`; signs are fixed by making the largest entry of
    each singular vector positive. Both make the result repeatable.
    """
    if dim >= min(matrix.shape):
        raise DataError(
            f"the sample has {matrix.shape[0]} rows and {matrix.shape[1]} distinct categories, "
            f"too few for {dim} features; give a larger file or a smaller --dim"
        )
    start = rng.standard_normal(min(matrix.shape))
    _, singular, right = svds(matrix, k=dim, v0=start)
    order = np.argsort(-singular, kind="stable")
    if singular[order[-1]] < 1e-6 * singular[order[0]]:
        raise DataError(f"the sample's categories span fewer than {dim} dimensions; give a smaller --dim")
    basis = right[order].T
    basis = basis * np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(dim)])
    return np.asarray(matrix @ basis)


def fit_parameter(features: NDArray[np.float64], clicked: NDArray[np.bool_]) -> Fit:
    """Least squares of the features on 2 * click - 1, with an intercept that is dropped."""
    target = np.where(clicked, 1.0, -1.0)
    centred, residual = features - features.mean(axis=0), target - target.mean()
    theta = np.linalg.lstsq(centred, residual, rcond=None)[0]
    unexplained = float(np.sum((residual - centred @ theta) ** 2))
    return Fit(theta, 1.0 - unexplained / float(np.sum(residual**2)))
