from __future__ import annotations

import numpy as np
import pytest

from tidepull import state as snapshots
from tidepull.errors import ContextError, NumericalError, SnapshotError
from tidepull.posteriors.linear_gaussian import LinearGaussian
from tidepull.types import FloatArray

PRIOR, NOISE = 0.5, 0.3


def history(n: int, d: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


def closed_form(X: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance by the textbook formulas, with explicit inverses."""
    precision = np.eye(X.shape[1]) / PRIOR**2 + X.T @ X / NOISE**2
    covariance = np.linalg.inv(precision)
    return covariance @ X.T @ Y / NOISE**2, covariance


def assert_matches(
    posterior: LinearGaussian, X: FloatArray, Y: FloatArray, queries: FloatArray
) -> None:
    mean, covariance = closed_form(X, Y)
    np.testing.assert_allclose(posterior.mean, mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(posterior.precision, np.linalg.inv(covariance), rtol=1e-9, atol=1e-9)
    means, variances = posterior.predict(queries)
    np.testing.assert_allclose(means, queries @ mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(variances, np.diag(queries @ covariance @ queries.T), rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 7, 33])
def test_update_matches_the_closed_form_after_every_observation(d: int) -> None:
    X, Y = history(40, d)
    queries, _ = history(5, d, seed=1)
    posterior = LinearGaussian(d, prior_std=PRIOR, noise_std=NOISE)
    assert_matches(posterior, X[:0], Y[:0], queries)
    for t in range(40):
        posterior.update(X[t], Y[t])
        assert_matches(posterior, X[: t + 1], Y[: t + 1], queries)


def test_refit_forgets_what_came_before_and_matches_the_closed_form() -> None:
    X, Y = history(60, 9)
    posterior = LinearGaussian(9, prior_std=PRIOR, noise_std=NOISE)
    posterior.update(X[3], 100.0)
    posterior.refit(X, Y)
    assert_matches(posterior, X, Y, X[:4])
    posterior.refit(X[:0], Y[:0])
    assert_matches(posterior, X[:0], Y[:0], X[:1])


def test_downdate_undoes_update_in_a_sliding_window() -> None:
    X, Y = history(200, 6)
    posterior = LinearGaussian(6, prior_std=PRIOR, noise_std=NOISE)
    for t in range(200):
        posterior.update(X[t], Y[t])
        if t >= 10:
            posterior.downdate(X[t - 10], Y[t - 10])
        assert_matches(posterior, X[max(0, t - 9) : t + 1], Y[max(0, t - 9) : t + 1], X[:3])


def test_cholesky_factor_is_lower_and_multiplies_to_the_precision() -> None:
    X, Y = history(50, 5)
    posterior = LinearGaussian(5, prior_std=PRIOR, noise_std=NOISE)
    for x, y in zip(X, Y, strict=True):
        posterior.update(x, y)
    lower = posterior.cholesky
    assert np.array_equal(lower, np.tril(lower))
    np.testing.assert_allclose(
        lower @ lower.T, np.linalg.inv(closed_form(X, Y)[1]), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        lower, np.linalg.cholesky(posterior.precision), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("refresh_every", [1, 3, 10**9])
def test_refresh_changes_nothing_but_rounding(refresh_every: int) -> None:
    X, Y = history(30, 4)
    posterior = LinearGaussian(4, prior_std=PRIOR, noise_std=NOISE, refresh_every=refresh_every)
    for x, y in zip(X, Y, strict=True):
        posterior.update(x, y)
    assert_matches(posterior, X, Y, X[:5])


def test_refresh_keeps_the_error_below_1e_8_over_100_000_rounds() -> None:
    n, d = 100_000, 8
    X, Y = history(n, d, seed=3)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    posterior = LinearGaussian(d, prior_std=PRIOR, noise_std=NOISE)
    for x, y in zip(X, Y, strict=True):
        posterior.update(x, y)
    mean, covariance = closed_form(X, Y)
    means, variances = posterior.predict(X[:50])
    assert np.abs(posterior.mean - mean).max() < 1e-8
    assert np.abs(means - X[:50] @ mean).max() < 1e-8
    exact = np.diag(X[:50] @ covariance @ X[:50].T)
    assert (np.abs(variances - exact) / exact).max() < 1e-8


def test_sample_has_the_posterior_mean_and_covariance() -> None:
    X, Y = history(6, 3)
    posterior = LinearGaussian(3, prior_std=PRIOR, noise_std=NOISE)
    posterior.refit(X, Y)
    rng = np.random.default_rng(5)
    n = 20_000
    draws = np.array([posterior.sample(rng) for _ in range(n)])
    mean, covariance = closed_form(X, Y)
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(0) - mean) < 4.5 * spread / np.sqrt(n)).all()
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.06 * spread.max() ** 2)


def test_sample_is_the_mean_plus_the_solved_noise() -> None:
    X, Y = history(12, 4)
    posterior = LinearGaussian(4, prior_std=PRIOR, noise_std=NOISE)
    posterior.refit(X, Y)
    draw = posterior.sample(np.random.default_rng(8))
    noise = np.random.default_rng(8).standard_normal(4)
    np.testing.assert_allclose(
        draw, posterior.mean + np.linalg.solve(posterior.cholesky.T, noise), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize(
    ("x", "y"), [([1.0, np.nan], 0.0), ([1.0, 2.0], np.inf), ([1e200, 0.0], 1.0)]
)
def test_update_refuses_what_is_not_finite_and_keeps_its_state(x: list[float], y: float) -> None:
    posterior = LinearGaussian(2)
    posterior.update(np.array([1.0, -1.0]), 0.5)
    before = snapshots.dump(posterior.snapshot())
    with pytest.raises(NumericalError, match="not finite or too large"):
        posterior.update(np.array(x), y)
    assert snapshots.dump(posterior.snapshot()) == before


def test_downdate_refuses_a_row_that_was_never_added_and_keeps_its_state() -> None:
    posterior = LinearGaussian(2)
    before = snapshots.dump(posterior.snapshot())
    with pytest.raises(NumericalError, match="cannot be taken back"):
        posterior.downdate(np.array([1.0, 1.0]), 0.0)
    assert snapshots.dump(posterior.snapshot()) == before


@pytest.mark.parametrize("bad", [np.nan, 1e200])
def test_refit_refuses_what_is_not_finite_and_keeps_its_state(bad: float) -> None:
    posterior = LinearGaussian(2)
    posterior.update(np.array([1.0, -1.0]), 0.5)
    before = snapshots.dump(posterior.snapshot())
    with pytest.raises(NumericalError, match="not finite"):
        posterior.refit(np.array([[1.0, bad]]), np.array([0.0]))
    with pytest.raises(NumericalError, match="singular"):
        posterior.refit(np.array([[1e12, 1e12], [1e12, 1e12]]), np.zeros(2))
    assert snapshots.dump(posterior.snapshot()) == before


def test_shapes_are_checked_with_the_expected_length_in_the_message() -> None:
    posterior = LinearGaussian(3)
    with pytest.raises(ContextError, match="x must be 3 numbers"):
        posterior.update(np.zeros(2), 0.0)
    with pytest.raises(ContextError, match="3 columns"):
        posterior.predict(np.zeros((4, 2)))
    with pytest.raises(ContextError, match="n x 3 features"):
        posterior.refit(np.zeros((4, 3)), np.zeros(5))
    with pytest.raises(NumericalError, match="features are not finite"):
        posterior.predict(np.full((4, 3), np.nan))


def test_inputs_are_neither_changed_nor_kept() -> None:
    X, Y = history(20, 4)
    x = X[0].copy()
    posterior = LinearGaussian(4)
    posterior.refit(X, Y)
    posterior.update(x, 1.0)
    posterior.predict(X)
    np.testing.assert_array_equal(X, history(20, 4)[0])
    np.testing.assert_array_equal(x, X[0])
    read_only = X.copy()
    read_only.flags.writeable = False
    posterior.update(read_only[0], 1.0)
    mean = posterior.mean.copy()
    x[:], X[:] = 9.0, 9.0
    np.testing.assert_array_equal(posterior.mean, mean)


def test_restore_continues_to_the_last_bit() -> None:
    X, Y = history(60, 5)
    first, second = (
        LinearGaussian(5, prior_std=PRIOR, noise_std=NOISE, refresh_every=7) for _ in range(2)
    )
    for x, y in zip(X[:30], Y[:30], strict=True):
        first.update(x, y)
    second.restore(snapshots.load(snapshots.dump(first.snapshot())))
    for x, y in zip(X[30:], Y[30:], strict=True):
        first.update(x, y)
        second.update(x, y)
        assert (
            first.sample(np.random.default_rng(1)).tobytes()
            == second.sample(np.random.default_rng(1)).tobytes()
        )
    assert first.mean.tobytes() == second.mean.tobytes()


def test_snapshot_shares_nothing_with_the_posterior() -> None:
    posterior = LinearGaussian(2)
    snapshot = posterior.snapshot()
    posterior.update(np.ones(2), 1.0)
    np.testing.assert_array_equal(snapshot["moment"], np.zeros(2))


def test_restore_refuses_another_shape_or_setting() -> None:
    with pytest.raises(SnapshotError, match="precision"):
        LinearGaussian(3).restore(LinearGaussian(2).snapshot())
    with pytest.raises(SnapshotError, match="noise_std"):
        LinearGaussian(2).restore(LinearGaussian(2, noise_std=0.1).snapshot())
    with pytest.raises(SnapshotError, match="has no 'precision'"):
        LinearGaussian(2).restore({"prior_std": 1.0, "noise_std": 1.0, "changes": 0})
