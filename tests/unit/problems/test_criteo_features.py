"""One-hot, truncated SVD and least squares against dense computations."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull.errors import DataError
from tidepull.problems.criteo.prepare import fit_parameter, one_hot, truncated_svd


def categories(rows: int = 400, seed: int = 0) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.zipf(1.5, rows) % count * 1_000_003 for count in (30, 5, 12)]
    ).astype(np.int64)


def test_one_hot_marks_each_value_of_each_column() -> None:
    matrix = one_hot(np.array([[7, 7], [9, 8], [7, 8]]))
    np.testing.assert_array_equal(matrix.toarray(), [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1]])


def test_svd_features_are_those_of_a_dense_decomposition() -> None:
    matrix = one_hot(categories())
    features = truncated_svd(matrix, 6, np.random.default_rng(0))
    left, singular, _ = np.linalg.svd(matrix.toarray(), full_matrices=False)
    expected = left[:, :6] * singular[:6]
    np.testing.assert_allclose(np.abs(features), np.abs(expected), atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(features, axis=0), singular[:6])


def test_svd_features_do_not_depend_on_the_starting_vector() -> None:
    matrix = one_hot(categories())
    first = truncated_svd(matrix, 6, np.random.default_rng(0))
    np.testing.assert_allclose(truncated_svd(matrix, 6, np.random.default_rng(1)), first, atol=1e-8)


def test_svd_refuses_more_dimensions_than_the_categories_span() -> None:
    matrix = one_hot(categories())
    rank = int(np.linalg.matrix_rank(matrix.toarray()))
    assert rank < matrix.shape[1] - 1
    assert truncated_svd(matrix, rank, np.random.default_rng(0)).shape == (400, rank)
    for dim in (rank + 1, matrix.shape[1], 500):
        with pytest.raises(DataError, match="--dim"):
            truncated_svd(matrix, dim, np.random.default_rng(0))


def test_fit_agrees_with_least_squares_on_an_explicit_intercept() -> None:
    rng = np.random.default_rng(3)
    features = rng.standard_normal((500, 4)) + 2.0
    clicked = features @ [1.0, -2.0, 0.5, 0.0] + rng.standard_normal(500) > 1.0
    fit = fit_parameter(features, clicked)
    design = np.column_stack([features, np.ones(500)])
    solution, residual, *_ = np.linalg.lstsq(design, 2.0 * clicked - 1.0, rcond=None)
    np.testing.assert_allclose(fit.theta, solution[:4], atol=1e-10)
    target = 2.0 * clicked - 1.0
    assert fit.r_squared == pytest.approx(1 - residual[0] / np.sum((target - target.mean()) ** 2))
