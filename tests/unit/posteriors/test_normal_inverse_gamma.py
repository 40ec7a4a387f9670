from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tidepull.posteriors.normal_inverse_gamma import NormalInverseGamma
from tidepull.state import dump, load
from tidepull.types import FloatArray

A0, B0, PRIOR_STD = 1.5, 0.2, 0.7
RIDGE = B0 / A0 / PRIOR_STD**2


def _data(n: int, dim: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, dim))
    return X, X @ rng.normal(size=dim) + 0.3 * rng.normal(size=n)


def _textbook(X: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray, float, float]:
    """Mean, scale matrix, a and b, in the form b = b0 + (y'y - m'Lm)/2 of the textbooks."""
    precision = RIDGE * np.eye(X.shape[1]) + X.T @ X
    mean = np.linalg.inv(precision) @ X.T @ Y
    b = B0 + float(Y @ Y - mean @ precision @ mean) / 2
    return mean, np.linalg.inv(precision), A0 + len(Y) / 2, b


def _new(dim: int) -> NormalInverseGamma:
    return NormalInverseGamma(dim, prior_std=PRIOR_STD, shape=A0, scale=B0)


@pytest.mark.parametrize("way", ["refit", "updates"])
def test_posterior_equals_the_closed_form(way: str) -> None:
    X, Y = _data(60, 4)
    posterior = _new(4)
    if way == "refit":
        posterior.update(np.ones(4), 9.0)
        posterior.refit(X, Y)
    else:
        for x, y in zip(X, Y, strict=True):
            posterior.update(x, float(y))
    mean, scale, a, b = _textbook(X, Y)
    np.testing.assert_allclose(posterior.mean, mean, rtol=1e-10)
    assert posterior.noise_std == pytest.approx(np.sqrt(b / a), rel=1e-10)
    means, variances = posterior.predict(X[:5])
    np.testing.assert_allclose(means, X[:5] @ mean, rtol=1e-10)
    np.testing.assert_allclose(
        variances, b / (a - 1) * np.diag(X[:5] @ scale @ X[:5].T), rtol=1e-10
    )


def test_posterior_equals_brute_force_integration_when_one_dimensional() -> None:
    X, Y = _data(8, 1)
    posterior = _new(1)
    posterior.refit(X, Y)
    w = np.linspace(-6, 6, 3001)[:, None]
    variance = np.exp(np.linspace(-8, 6, 1501))[None, :]
    log_density = stats.invgamma.logpdf(variance, A0, scale=B0) + np.log(variance)
    log_density = log_density + stats.norm.logpdf(w, 0, np.sqrt(variance / RIDGE))
    for x, y in zip(X[:, 0], Y, strict=True):
        log_density = log_density + stats.norm.logpdf(y, w * x, np.sqrt(variance))
    marginal = np.exp(log_density - log_density.max()).sum(axis=1)
    marginal /= marginal.sum()
    mean = float(marginal @ w[:, 0])
    means, variances = posterior.predict(np.ones((1, 1)))
    assert means[0] == pytest.approx(mean, rel=1e-4)
    assert variances[0] == pytest.approx(float(marginal @ (w[:, 0] - mean) ** 2), rel=1e-3)


def test_samples_follow_the_student_t_of_the_closed_form() -> None:
    X, Y = _data(6, 3)
    posterior = _new(3)
    posterior.refit(X, Y)
    mean, scale, a, b = _textbook(X, Y)
    x = np.array([0.3, -1.0, 0.5])
    rng = np.random.default_rng(1)
    draws = np.array([posterior.sample(rng) @ x for _ in range(20_000)])
    standardised = (draws - x @ mean) / np.sqrt(b / a * (x @ scale @ x))
    assert stats.kstest(standardised, stats.t(2 * a).cdf).pvalue > 0.01
    assert stats.kstest(standardised, stats.norm.cdf).pvalue < 1e-4


def test_variance_is_infinite_before_the_noise_is_known() -> None:
    posterior = NormalInverseGamma(2, prior_std=0.5)
    assert np.isinf(posterior.predict(np.eye(2))[1]).all()


def test_restored_posterior_continues_bit_for_bit() -> None:
    X, Y = _data(40, 3)
    first, second = _new(3), _new(3)
    first.refit(X[:20], Y[:20])
    second.restore(load(dump(first.snapshot())))
    for posterior in (first, second):
        for x, y in zip(X[20:], Y[20:], strict=True):
            posterior.update(x, float(y))
    draws = [posterior.sample(np.random.default_rng(2)) for posterior in (first, second)]
    np.testing.assert_array_equal(draws[0], draws[1])
