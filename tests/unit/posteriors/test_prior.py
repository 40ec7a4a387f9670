"""A general prior N(w_0, V_0) against the closed form of the paper's section 2.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.stats import norm

from tidepull.errors import ParameterError, SnapshotError
from tidepull.policies import build_policy
from tidepull.posteriors.linear_gaussian import LinearGaussian
from tidepull.posteriors.normal_inverse_gamma import NormalInverseGamma
from tidepull.registry import policies
from tidepull.types import Context, Event, FloatArray, ProblemShape

SIGMA = 0.3
MEAN = np.array([1.0, -2.0, 0.5])
COVARIANCE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])


def data(n: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.normal(size=n)


def closed_form(
    X: FloatArray, Y: FloatArray, mean: FloatArray, covariance: FloatArray
) -> tuple[Any, Any]:
    """mu and Sigma as the paper prints them, with plain inverses."""
    prior = np.linalg.inv(covariance)
    sigma = np.linalg.inv(prior + X.T @ X / SIGMA**2)
    return sigma @ X.T @ Y / SIGMA**2 + sigma @ prior @ mean, sigma


@pytest.mark.parametrize("refitted", [False, True])
@pytest.mark.parametrize(
    ("mean", "covariance", "full"),
    [
        (MEAN, COVARIANCE, COVARIANCE),
        (MEAN, [0.5, 2.0, 3.0], np.diag([0.5, 2.0, 3.0])),
        (MEAN, None, 0.49 * np.eye(3)),
        (None, COVARIANCE, COVARIANCE),
    ],
    ids=["both", "variances", "mean", "covariance"],
)
@pytest.mark.parametrize("n", [0, 1, 40])
def test_posterior_equals_the_closed_form(
    mean: ArrayLike | None, covariance: ArrayLike | None, full: FloatArray, n: int, refitted: bool
) -> None:
    X, Y = data(n)
    posterior = LinearGaussian(
        3,
        prior_std=0.7,
        noise_std=SIGMA,
        prior_mean=mean,
        prior_covariance=covariance,
        refresh_every=7,
    )
    if refitted:
        posterior.update(np.ones(3), 5.0)
        posterior.refit(X, Y)
    else:
        for x, y in zip(X, Y, strict=True):
            posterior.update(x, y)
    mu, sigma = closed_form(X, Y, np.zeros(3) if mean is None else np.asarray(mean), full)
    np.testing.assert_allclose(posterior.mean, mu, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(posterior.precision, np.linalg.inv(sigma), rtol=1e-9, atol=1e-9)
    means, variances = posterior.predict(np.eye(3))
    np.testing.assert_allclose(means, mu, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(variances, np.diag(sigma), rtol=1e-9)


def test_draws_have_mean_and_covariance_of_the_closed_form() -> None:
    X, Y = data(4)
    posterior = LinearGaussian(3, noise_std=SIGMA, prior_mean=MEAN, prior_covariance=COVARIANCE)
    posterior.refit(X, Y)
    rng = np.random.default_rng(1)
    draws = np.array([posterior.sample(rng) for _ in range(20_000)])
    mu, sigma = closed_form(X, Y, MEAN, COVARIANCE)
    scale = np.sqrt(np.diag(sigma))
    assert np.abs((draws.mean(axis=0) - mu) / scale).max() < 0.03
    assert np.abs((np.cov(draws.T) - sigma) / np.outer(scale, scale)).max() < 0.04


def test_taking_back_every_observation_leaves_the_prior() -> None:
    X, Y = data(5)
    posterior = LinearGaussian(3, noise_std=SIGMA, prior_mean=MEAN, prior_covariance=COVARIANCE)
    for x, y in zip(X, Y, strict=True):
        posterior.update(x, y)
    for x, y in zip(X, Y, strict=True):
        posterior.downdate(x, y)
    np.testing.assert_allclose(posterior.mean, MEAN, rtol=1e-8)


def test_default_prior_is_bit_for_bit_zero_and_the_same_width() -> None:
    posterior = LinearGaussian(4, prior_std=0.7)
    assert posterior.snapshot()["precision"].tobytes() == (np.eye(4) / 0.7**2).tobytes()
    assert posterior.snapshot()["factor"].tobytes() == (np.eye(4) / 0.7).tobytes()
    assert posterior.snapshot()["whitened"].tobytes() == np.zeros(4).tobytes()
    assert not {"prior_mean", "prior_covariance"} & set(posterior.snapshot())


def test_inferred_noise_with_a_general_prior_refits_to_what_updates_give() -> None:
    X, Y = data(30)
    one, all_ = (
        NormalInverseGamma(3, prior_std=1.0, prior_mean=MEAN, prior_covariance=COVARIANCE)
        for _ in range(2)
    )
    for x, y in zip(X, Y, strict=True):
        one.update(x, y)
    all_.refit(X, Y)
    np.testing.assert_allclose(one.mean, all_.mean, rtol=1e-9)
    assert one.noise_std == pytest.approx(all_.noise_std, rel=1e-9)


def test_inferred_noise_starts_from_the_given_prior_where_the_noise_is_as_expected() -> None:
    X, _ = data(3)
    inferred = NormalInverseGamma(
        3, prior_std=1.0, prior_mean=MEAN, prior_covariance=COVARIANCE, scale=0.09
    )
    told = LinearGaussian(3, noise_std=0.3, prior_mean=MEAN, prior_covariance=COVARIANCE)
    inferred.update(X[0], float(X[0] @ MEAN))
    told.update(X[0], float(X[0] @ MEAN))
    np.testing.assert_allclose(inferred.mean, told.mean, rtol=1e-12)
    # Means of other rewards lie between prior and data as the ratio of noise and prior width says.
    inferred.update(X[1], 3.0)
    told.update(X[1], 3.0)
    np.testing.assert_allclose(inferred.mean, told.mean, rtol=1e-9)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ({"prior_mean": [1.0, 2.0]}, "prior_mean must be 3 numbers"),
        ({"prior_mean": [1.0, np.nan, 2.0]}, "prior_mean must be finite"),
        (
            {"prior_covariance": [1.0, 2.0]},
            "prior_covariance must be 3 variances or a 3 x 3 matrix",
        ),
        ({"prior_covariance": [1.0, -2.0, 1.0]}, "prior_covariance must be positive definite"),
        ({"prior_covariance": np.triu(np.ones((3, 3)))}, "prior_covariance must be symmetric"),
        (
            {"prior_covariance": [[1.0, 2.0], [1.0]]},
            "prior_covariance must hold numbers, in rows of equal length",
        ),
    ],
)
def test_wrong_priors_are_refused_by_name(prior: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        LinearGaussian(3, **prior)


def test_snapshot_of_another_prior_is_refused() -> None:
    snapshot = LinearGaussian(3, prior_mean=MEAN, prior_covariance=COVARIANCE).snapshot()
    LinearGaussian(3, prior_mean=MEAN, prior_covariance=COVARIANCE).restore(snapshot)
    with pytest.raises(SnapshotError, match="another prior_mean"):
        LinearGaussian(3, prior_mean=MEAN + 1, prior_covariance=COVARIANCE).restore(snapshot)
    with pytest.raises(SnapshotError, match="another prior_covariance"):
        LinearGaussian(3, prior_mean=MEAN).restore(snapshot)


@pytest.mark.parametrize("exploration", [1.0, 3.0])
def test_lin_ts_plays_the_closed_form_of_its_prior(exploration: float) -> None:
    given = {"prior_mean": MEAN.tolist(), "prior_covariance": COVARIANCE.tolist()}
    shape = ProblemShape(n_arms=2, arm_dim=3)
    policy = build_policy(
        ("lin-ts", {**given, "noise_std": SIGMA, "exploration": exploration}), shape, seed=0
    )
    X, Y = data(6)
    for x, y in zip(X, Y, strict=True):
        context = Context(arm_features=np.array([x, x]))
        policy.choose(context)
        policy.learn(Event(context, 0, float(y)))
    mu, sigma = closed_form(X, Y, MEAN, COVARIANCE)
    # Of x and 0 it plays x when a draw of w . x is positive.
    x = np.array([1.0, 0.3, 0.0]) - mu * (0.3 * mu[1] + mu[0]) / (mu @ mu)
    x += 0.4 * np.sqrt(x @ sigma @ x) * mu / (mu @ mu)
    offered = Context(arm_features=np.array([x, np.zeros(3)]))
    share = np.mean([policy.choose(offered) == 0 for _ in range(4000)])
    z = x @ mu / (exploration * np.sqrt(x @ sigma @ x))
    assert share == pytest.approx(norm.cdf(z), abs=0.03)


@pytest.mark.parametrize("id", ["rnlps", "nlps"])
def test_networks_take_a_prior_of_their_last_layer(id: str) -> None:
    shape = ProblemShape(n_arms=2)
    setting = {
        "units": [4, 4, 4],
        "prior_mean": [0.1, 0.2, 0.3, 0.4],
        "prior_covariance": [1.0, 2.0, 3.0, 4.0],
    }
    for noise in (0.1, "infer"):
        policy = build_policy((id, {**setting, "noise_std": noise}), shape, seed=0)
        state = policy.snapshot()["state"]["posterior"]
        unit = state.get("unit", state)
        np.testing.assert_array_equal(unit["prior_mean"], np.array(setting["prior_mean"]))
        scale = 20.0 if noise == "infer" else 1.0  # s0^2 = 0.05
        np.testing.assert_allclose(
            np.diag(unit["precision"]), 1 / (scale * np.array([1.0, 2.0, 3.0, 4.0]))
        )
    with pytest.raises(ParameterError, match="prior_mean must be 4 numbers"):
        build_policy((id, {**setting, "prior_mean": [1.0]}), shape, seed=0)
    with pytest.raises(ParameterError, match="give one of them"):
        build_policy((id, {**setting, "prior_std": 1.0}), shape, seed=0)


@pytest.mark.parametrize("id", ["lin-ts", "rnlps", "nlps"])
def test_parameters_without_a_prior_are_stored_as_before_there_was_one(id: str) -> None:
    entry = policies.entry(id)
    assert not {"prior_mean", "prior_covariance"} & set(entry.parse({}).to_mapping())
    given = entry.parse({"prior_mean": [1.0], "prior_covariance": [[2.0]]})
    assert entry.parse(given.to_mapping()) == given
    assert given.to_mapping()["prior_covariance"] == [[2.0]]
