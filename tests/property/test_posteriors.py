"""Posteriors: one observation at a time is all at once, a restored one is the one that was
saved."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.quick import QUICK
from tidepull.errors import SnapshotError
from tidepull.policies.arms import BetaBernoulli, DiscountedTally, WindowedTally
from tidepull.posteriors import kernels
from tidepull.posteriors.linear_gaussian import LinearGaussian
from tidepull.posteriors.linear_models import (
    DiscountedModels,
    StationaryModels,
    WideDiscountedModels,
    WindowedModels,
)
from tidepull.posteriors.normal_inverse_gamma import NormalInverseGamma
from tidepull.types import FloatArray

DIM = 3
X = np.array([[1.0, 0.0, 0.0], [0.5, -1.0, 2.0], [0.0, 0.3, 0.0]])

seeds, counts = st.integers(0, 10_000), st.integers(1, 25)
stds = st.sampled_from([0.1, 0.5, 1.0, 3.0])


def data(seed: int, n: int) -> tuple[FloatArray, FloatArray]:
    """Rows some of whose numbers are 0, and rewards."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, DIM)) * (rng.random((n, DIM)) < 0.8)
    return rows, rng.normal(size=n)


def late(seed: int, n: int) -> tuple[FloatArray, FloatArray, list[int], list[int]]:
    """The same with a model each, and rounds out of order, none twice."""
    rows, rewards = data(seed, n)
    rng = np.random.default_rng(seed + 1)
    return rows, rewards, rng.integers(2, size=n).tolist(), rng.permutation(2 * n)[:n].tolist()


@QUICK
@given(seeds, counts, stds, stds)
def test_linear_gaussian_is_the_same_one_by_one_and_at_once(
    seed: int, n: int, prior: float, noise: float
) -> None:
    rows, rewards = data(seed, n)
    one, all_ = (LinearGaussian(DIM, prior_std=prior, noise_std=noise) for _ in range(2))
    for x, y in zip(rows, rewards, strict=True):
        one.update(x, y)
        assert np.isfinite(one.mean).all()  # a mean that was asked for must not go stale
    all_.refit(rows, rewards)
    P = np.eye(DIM) / prior**2 + rows.T @ rows / noise**2
    mu = np.linalg.solve(P, rows.T @ rewards / noise**2)
    for posterior in (one, all_):
        np.testing.assert_allclose(posterior.precision, P, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            posterior.cholesky @ posterior.cholesky.T, P, rtol=1e-7, atol=1e-9
        )
        np.testing.assert_allclose(posterior.mean, mu, rtol=1e-6, atol=1e-8)
        for chosen in (X, X[1:2]):
            means, variances = posterior.predict(chosen)
            np.testing.assert_allclose(means, chosen @ mu, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(
                variances, np.einsum("ij,ji->i", chosen, np.linalg.solve(P, chosen.T))
            )


@QUICK
@given(seeds, st.integers(2, 12))
def test_linear_gaussian_gives_back_what_it_took_in(seed: int, n: int) -> None:
    rows, rewards = data(seed, n)
    one, other = LinearGaussian(DIM), LinearGaussian(DIM)
    for x, y in zip(rows, rewards, strict=True):
        one.update(x, y)
    one.downdate(rows[0], rewards[0])
    other.refit(rows[1:], rewards[1:])
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(one.precision, other.precision, atol=1e-8)
    np.testing.assert_allclose(one.predict(X)[1], other.predict(X)[1], rtol=1e-6)


@QUICK
@given(seeds, st.integers(1, 20), st.integers(1, 5))
def test_fresh_factors_change_nothing_but_rounding(seed: int, n: int, every: int) -> None:
    rows, rewards = data(seed, n)
    often, never = (
        LinearGaussian(DIM, refresh_every=every),
        LinearGaussian(DIM, refresh_every=10**9),
    )
    for i, (x, y) in enumerate(zip(rows, rewards, strict=True), 1):
        often.update(x, y)
        never.update(x, y)
        assert often.snapshot()["changes"] == i % every
        np.testing.assert_allclose(often.mean, never.mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(often.predict(X)[1], never.predict(X)[1])


def test_factors_are_made_afresh_once_in_512_changes_or_in_as_many_as_there_are_numbers() -> None:
    assert LinearGaussian(DIM).refresh_every == 512
    assert LinearGaussian(600).refresh_every == 600


@QUICK
@given(seeds, counts, stds)
def test_normal_inverse_gamma_is_the_same_one_by_one_and_at_once(
    seed: int, n: int, prior: float
) -> None:
    rows, rewards = data(seed, n)
    one, all_ = (NormalInverseGamma(DIM, prior_std=prior) for _ in range(2))
    for x, y in zip(rows, rewards, strict=True):
        one.update(x, y)
    all_.refit(rows, rewards)
    ridge = 0.05 / prior**2
    lam = ridge * np.eye(DIM) + rows.T @ rows
    mu = np.linalg.solve(lam, rows.T @ rewards)
    a = 1.0 + n / 2
    b = 0.05 + 0.5 * (rewards @ rewards - mu @ lam @ mu)
    for posterior in (one, all_):
        np.testing.assert_allclose(posterior.mean, mu, rtol=1e-5, atol=1e-7)
        assert posterior.noise_std == pytest.approx(np.sqrt(b / a), rel=1e-6)
        means, variances = posterior.predict(X)
        np.testing.assert_allclose(means, X @ mu, rtol=1e-5, atol=1e-7)
        spread = np.einsum("ij,ji->i", X, np.linalg.solve(lam, X.T))
        np.testing.assert_allclose(variances, b / (a - 1) * spread, rtol=1e-5)
    assert np.isinf(NormalInverseGamma(DIM, prior_std=prior).predict(X)[1]).all()


@QUICK
@given(
    seeds,
    counts,
    st.sampled_from([0.5, 0.9, 1.0]),
    st.sampled_from([DiscountedModels, WideDiscountedModels]),
)
def test_discounted_models_weigh_rounds_by_their_age_in_any_order(
    seed: int, n: int, g: float, kind: type[DiscountedModels] | type[WideDiscountedModels]
) -> None:
    rows, rewards, models, rounds = late(seed, n)
    made, lam = kind(2, DIM, 0.7, g), 0.7
    for x, y, model, t in zip(rows, rewards, models, rounds, strict=True):
        made.update(model, x, y, t)
    made.advance(2 * n + 1)
    for model in range(2):
        mine = [i for i in range(n) if models[i] == model]
        w = np.array([g ** (2 * n + 1 - rounds[i]) for i in mine])
        R, y = rows[mine].reshape(len(mine), DIM), rewards[mine]
        V = lam * np.eye(DIM) + R.T @ (w[:, None] * R)
        W = lam * np.eye(DIM) + R.T @ ((w**2)[:, None] * R)
        A = np.linalg.solve(V, X.T)
        means, variances = made.predict(model, X)
        np.testing.assert_allclose(means, (w * y) @ R @ A, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(variances, np.einsum("ik,ij,jk->k", A, W, A), rtol=1e-8)
        assert made.weights[model] == pytest.approx(np.sum(w**2))


@QUICK
@given(seeds, counts, st.sampled_from([0.5, 0.9]))
def test_slip_makes_the_squared_weights_from_the_new_sums(seed: int, n: int, g: float) -> None:
    rows, rewards, models, _ = late(seed, n)
    made = DiscountedModels(2, DIM, 0.7, g, slip=True)
    for t in range(n):
        made.update(models[t], rows[t], rewards[t], t)
        for model in range(2):
            w = [g ** (t - i) if models[i] == model else 0.0 for i in range(t + 1)]
            S = rows[: t + 1].T @ (np.array(w)[:, None] * rows[: t + 1])
            W = g**2 * S + (np.outer(rows[t], rows[t]) if models[t] == model else 0.0)
            A = np.linalg.solve(S + 0.7 * np.eye(DIM), X.T)
            expected = np.einsum("ik,ij,jk->k", A, W + 0.7 * np.eye(DIM), A)
            np.testing.assert_allclose(made.predict(model, X)[1], expected, rtol=1e-8)


@QUICK
@given(seeds, counts)
def test_stationary_models_count_every_round_alike(seed: int, n: int) -> None:
    rows, rewards, models, rounds = late(seed, n)
    made = StationaryModels(2, DIM, 0.7)
    for x, y, model, t in zip(rows, rewards, models, rounds, strict=True):
        made.update(model, x, y, t)
        made.advance(t)
    for model in range(2):
        mine = [i for i in range(n) if models[i] == model]
        V = 0.7 * np.eye(DIM) + rows[mine].T @ rows[mine]
        means, variances = made.predict(model, X)
        np.testing.assert_allclose(
            means, X @ np.linalg.solve(V, rows[mine].T @ rewards[mine]), atol=1e-8
        )
        np.testing.assert_allclose(variances, np.einsum("ij,ji->i", X, np.linalg.solve(V, X.T)))
        assert made.weights[model] == len(mine)


@QUICK
@given(seeds, counts, st.integers(1, 8))
def test_windowed_models_and_tallies_count_the_last_rounds_in_any_order(
    seed: int, n: int, window: int
) -> None:
    rows, rewards, arms, rounds = late(seed, n)
    models, tally = WindowedModels(2, DIM, 0.7, window), WindowedTally(2, window)
    latest = -1
    for i, t in enumerate(rounds):
        models.update(arms[i], rows[i], rewards[i], t)
        tally.add(arms[i], rewards[i], t)
        latest = max(latest, t)
        kept = [j for j in range(i + 1) if rounds[j] > latest - window]
        for arm in range(2):
            mine = [j for j in kept if arms[j] == arm]
            assert models.weights[arm] == tally.counts[arm] == len(mine)
            assert tally.sums[arm] == pytest.approx(sum(rewards[j] for j in mine), abs=1e-9)
            V = 0.7 * np.eye(DIM) + rows[mine].T @ rows[mine]
            mu = np.linalg.solve(V, rows[mine].T @ rewards[mine])
            means, variances = models.predict(arm, X)
            np.testing.assert_allclose(means, X @ mu, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(variances, np.einsum("ij,ji->i", X, np.linalg.solve(V, X.T)))


@QUICK
@given(seeds, counts, st.sampled_from([0.5, 0.9, 1.0]))
def test_discounted_tally_weighs_rounds_by_their_age_in_any_order(
    seed: int, n: int, g: float
) -> None:
    _, rewards, arms, rounds = late(seed, n)
    tally = DiscountedTally(2, g)
    for y, arm, t in zip(rewards, arms, rounds, strict=True):
        tally.add(arm, float(y), t)
    tally.advance(2 * n + 3)
    tally.advance(0)
    weights = g ** (2 * n + 3 - np.array(rounds))
    np.testing.assert_allclose(tally.counts, np.bincount(arms, weights, 2))
    np.testing.assert_allclose(tally.sums, np.bincount(arms, weights * rewards, 2))


@QUICK
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=30))
def test_beta_counts_successes_and_failures(plays: list[tuple[int, bool]]) -> None:
    made = BetaBernoulli(3, prior_successes=2.0, prior_failures=1.5)
    for arm, success in plays:
        made.update(arm, success)
    won = np.array([sum(a == k and s for a, s in plays) for k in range(3)])
    lost = np.array([sum(a == k and not s for a, s in plays) for k in range(3)])
    np.testing.assert_allclose(made.mean, (2 + won) / (3.5 + won + lost))
    drawn = made.sample(np.random.default_rng(0))
    np.testing.assert_array_equal(drawn, np.random.default_rng(0).beta(2 + won, 1.5 + lost))


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any, int, FloatArray, float], None]]] = {
    "linear gaussian": (
        lambda: LinearGaussian(DIM, refresh_every=4),
        lambda p, _, x, y: p.update(x, y),
    ),
    "normal-inverse-gamma": (
        lambda: NormalInverseGamma(DIM, prior_std=1.0),
        lambda p, _, x, y: p.update(x, y),
    ),
    "stationary models": (
        lambda: StationaryModels(2, DIM, 0.7),
        lambda p, t, x, y: p.update(t % 2, x, y, t),
    ),
    "windowed models": (
        lambda: WindowedModels(2, DIM, 0.7, 5),
        lambda p, t, x, y: p.update(t % 2, x, y, t),
    ),
    "discounted models": (
        lambda: DiscountedModels(2, DIM, 0.7, 0.9),
        lambda p, t, x, y: p.update(t % 2, x, y, t),
    ),
    "wide models": (
        lambda: WideDiscountedModels(2, DIM, 0.7, 0.9),
        lambda p, t, x, y: p.update(t % 2, x, y, t),
    ),
    "slipping models": (
        lambda: DiscountedModels(2, DIM, 0.7, 0.9, slip=True),
        lambda p, t, x, y: p.update(t % 2, x, y, t),
    ),
    "windowed tally": (lambda: WindowedTally(2, 3), lambda p, t, _, y: p.add(t % 2, y, t)),
    "discounted tally": (lambda: DiscountedTally(2, 0.9), lambda p, t, _, y: p.add(t % 2, y, t)),
    "beta": (lambda: BetaBernoulli(2), lambda p, t, _, y: p.update(t % 2, y > 0)),
}


def told(posterior: Any) -> list[FloatArray]:
    """All that it says, now."""
    if hasattr(posterior, "counts"):
        return [posterior.counts.copy(), posterior.sums.copy()]
    if hasattr(posterior, "weights"):
        return [posterior.weights.copy(), *(a for m in range(2) for a in posterior.predict(m, X))]
    if hasattr(posterior, "predict"):
        return [
            posterior.mean.copy(),
            *posterior.predict(X),
            posterior.sample(np.random.default_rng(1)),
        ]
    return [posterior.mean, posterior.sample(np.random.default_rng(1))]


@pytest.mark.parametrize("kind", KINDS)
@QUICK
@given(seeds, st.integers(1, 12), st.integers(0, 12))
def test_restored_posterior_says_what_the_saved_one_says_for_ever(
    kind: str, seed: int, n: int, other: int
) -> None:
    build, learn = KINDS[kind]
    rows, rewards = data(seed, n + other + 5)
    saved, restored = build(), build()
    for t in range(n):
        learn(saved, t, rows[t], float(rewards[t]))
    for t in range(other):
        learn(restored, t, rows[n + t], float(rewards[n + t]))
    told(restored)  # whatever it worked out before must not be said after
    snapshot = saved.snapshot()
    kept = copy.deepcopy(snapshot)
    restored.restore(snapshot)
    for t in range(5):
        for one, two in zip(told(saved), told(restored), strict=True):
            np.testing.assert_array_equal(one, two)
        for posterior in (saved, restored):
            learn(posterior, n + t, rows[-1 - t], float(rewards[-1 - t]))
    for name, value in kept.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, snapshot[name])


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "normal-inverse-gamma"])
def test_posterior_refuses_the_snapshot_of_another_size(kind: str) -> None:
    build, learn = KINDS[kind]
    posterior = build()
    learn(posterior, 0, X[1], 1.0)
    before = told(posterior)
    broken = {
        name: np.zeros((7, 7, 7)) if isinstance(value, np.ndarray) else value
        for name, value in posterior.snapshot().items()
    }
    with pytest.raises(SnapshotError):
        posterior.restore(broken)
    for one, two in zip(before, told(posterior), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "kind",
    ["windowed models", "discounted models", "wide models", "windowed tally", "discounted tally"],
)
def test_no_round_is_before_the_first(kind: str) -> None:
    posterior = KINDS[kind][0]()
    assert posterior.snapshot()["latest"] == -1
    with pytest.raises(SnapshotError, match="'latest' must be a whole number of at least -1"):
        posterior.restore({**posterior.snapshot(), "latest": -2})


def test_kernels_refuse_what_would_not_stay_positive_definite() -> None:
    P, b, U, z = np.eye(2), np.zeros(2), np.eye(2), np.zeros(2)
    for x in (np.array([1.0, 0.0]), np.array([0.8, 0.7])):
        assert not kernels.remove_row(P, b, U, z, x, 1.0)
        np.testing.assert_array_equal(U, np.eye(2))
        np.testing.assert_array_equal(P, np.eye(2))
    assert kernels.remove_row(P, b, U, z, np.array([0.9, 0.0]), 1.0)
    np.testing.assert_allclose(P, [[0.19, 0.0], [0.0, 1.0]])
    np.testing.assert_allclose(b, [-0.9, 0.0])
    assert not kernels.add_row(P, b, U, z, np.array([np.inf, 0.0]), 1.0)
    assert not kernels.add_row(P, b, U, z, np.array([1.0, 0.0]), np.nan)
    np.testing.assert_allclose(P, [[0.19, 0.0], [0.0, 1.0]])


def test_kernels_say_when_a_prediction_is_not_finite() -> None:
    means, variances = np.empty(2), np.empty(2)
    V = np.array([[1.0, np.inf], [0.0, 1.0]])
    assert not kernels.mean_and_variance(np.eye(2), np.zeros(2), V, means, variances)
    assert kernels.mean_and_variance(np.eye(2), np.ones(2), np.eye(2), means, variances)
    np.testing.assert_array_equal(means, [1.0, 1.0])
    np.testing.assert_array_equal(variances, [1.0, 1.0])
