"""Small blocks without loops: the same bits as the loops, and what linear algebra says."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from tidepull.tide.models.algebra import factor, whiten
from tidepull.tide.models.small import LARGEST, learn_small, weigh_small
from tidepull.types import FloatArray

RIDGE = 0.1


def by_loops(
    A: FloatArray, eta: FloatArray, ridge: float, g: float, phi: FloatArray, d: int
) -> tuple[float, float]:
    """Mean and leverage of phi."""
    U, v, z = np.empty((d, d)), phi.copy(), np.empty(d)
    factor(A, ridge, g, d, U)
    for i in range(d):
        z[i] = g * eta[i]
    whiten(U, v, d)
    whiten(U, z, d)
    mean, leverage = 0.0, 0.0
    for i in range(d):
        mean += v[i] * z[i]
        leverage += v[i] * v[i]
    return mean, leverage


def lived(
    A: FloatArray, eta: FloatArray, ridge: float, g: float, phi: FloatArray, y: float, d: int
) -> tuple[float, float]:
    """The same by what is tested, and then the block learns."""
    mean, leverage = weigh_small(A, eta, ridge, g, phi, d)
    learn_small(A, eta, g, phi, y, d)
    return mean, leverage


@pytest.mark.parametrize("g", [1.0, 0.97, 0.5])
@pytest.mark.parametrize("d", range(1, LARGEST + 1))
def test_small_blocks_have_the_bits_of_loops_over_many_rewards(d: int, g: float) -> None:
    rng = np.random.default_rng(d)
    A, eta = np.zeros(d * d), np.zeros(d)
    for phi, y in zip(rng.normal(size=(300, d)), rng.normal(size=300).tolist(), strict=True):
        plain, before, past = by_loops(A, eta, RIDGE, g, phi, d), A.copy(), eta.copy()
        assert lived(A, eta, RIDGE, g, phi, y, d) == plain
        assert eta.tolist() == [g * past[i] + y * phi[i] for i in range(d)]
        for i, j in combinations_with_replacement(range(d), 2):
            assert A[i * d + j] == g * before[i * d + j] + phi[i] * phi[j]


@pytest.mark.parametrize("g", [1.0, 0.9])
@pytest.mark.parametrize("d", range(1, LARGEST + 1))
def test_small_blocks_are_ridge_regression_when_solved_densely(d: int, g: float) -> None:
    rng = np.random.default_rng(d)
    F, y = rng.normal(size=(30, d)), rng.normal(size=30)
    A, eta = np.zeros(d * d), np.zeros(d)
    for phi, reward in zip(F, y, strict=True):
        lived(A, eta, RIDGE, g, phi, float(reward), d)
    kept = g ** np.arange(30, 0, -1)  # as the next round will see them
    precision, new = RIDGE * np.eye(d) + (kept * F.T) @ F, rng.normal(size=d)
    mean, leverage = lived(A, eta, RIDGE, g, new, 0.0, d)
    assert mean == pytest.approx(new @ np.linalg.solve(precision, (kept * F.T) @ y), rel=1e-10)
    assert leverage == pytest.approx(new @ np.linalg.solve(precision, new), rel=1e-10)
