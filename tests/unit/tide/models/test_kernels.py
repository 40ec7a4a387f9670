"""The compiled bank against plain numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tidepull._internal.kernels import kernel
from tidepull.tide.jobs import finish
from tidepull.tide.models import kernels
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import RoundState, empty_state
from tidepull.tide.models.families import describe
from tidepull.tide.models.family import Layout, Window
from tidepull.tide.models.kernels import Bank
from tidepull.tide.models.lagged import (
    LAST_ARM,
    LAST_REWARD,
    LAST_SUCCESS,
    last_event,
    last_success,
)
from tidepull.tide.models.linear import discounted, fourier, seasons, square, stationary
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.spec import Spec
from tidepull.tide.models.turns import BELIEF, SCALE, turns
from tidepull.tide.models.weights import reweigh
from tidepull.types import FloatArray

EVERY: list[Spec] = [
    stationary(),
    stationary(contextual=True),
    discounted(0.9),
    discounted(0.95, contextual=True),
    fourier(7.3),
    fourier(12.0, 0.99),
    fourier(9.1, contextual=True),
    square(4.0, 3.0),
    square(5.5, 2.25, contextual=True),
    seasons(fourier(6.0), square(5.0, 1.0)),
    seasons(fourier(6.0), fourier(11.5)),
    seasons(square(3.0), square(7.0, 2.0)),
    seasons(fourier(6.0), fourier(11.5), added=True),
    last_event(),
    last_event(contextual=True),
    last_success(),
    turns(),
    turns(contextual=True),
]
N_ARMS, Q = 3, 4


def make(hypotheses: list[Spec], shared: bool = False, **settings: Any) -> ModelBank:
    specs, prior = list(hypotheses), NoisePrior(**settings)
    bank = ModelBank(Layout(N_ARMS, Q, shared), [[s] for s in specs], prior)
    for m, spec in enumerate(specs):
        bank.assign(m, spec)
    return bank


def rounds(n: int, seed: int = 0) -> list[tuple[RoundState, int, FloatArray, float]]:
    rng = np.random.default_rng(seed)
    made = []
    last_arm, last_reward, last_success = -1, 0.0, -1
    for t in range(n):
        arm, y = int(rng.integers(N_ARMS)), float(rng.normal())
        moment = empty_state(t, N_ARMS)
        moment.covariates[LAST_ARM.index], moment.covariates[LAST_REWARD.index] = (
            last_arm + 1,
            last_reward,
        )
        moment.covariates[LAST_SUCCESS.index] = last_success + 1
        moment.per_arm[BELIEF.index] = SCALE * rng.dirichlet(np.ones(N_ARMS))
        made.append((moment, arm, np.array([1.0, *rng.normal(size=Q - 1)]), y))
        last_arm, last_reward, last_success = arm, y, arm if y > 0 else last_success
    return made


@pytest.mark.parametrize("hypothesis", EVERY, ids=describe)
def test_kernel_locates_a_moment_as_the_hypothesis_says(hypothesis: Spec) -> None:
    bank = make([hypothesis])
    for moment, *_ in rounds(60):
        tau = np.empty(kernels.MAX_WIDTH)
        cell, width = kernels.fill_basis(bank.arrays, 0, moment.t, moment.covariates, tau)
        expected_cell, expected_tau = hypothesis.basis(moment, N_ARMS)
        assert cell == expected_cell < hypothesis.n_regimes(N_ARMS)
        assert width == hypothesis.width
        np.testing.assert_allclose(tau[:width], expected_tau, atol=1e-12)


@pytest.mark.parametrize("hypothesis", EVERY, ids=describe)
def test_hypothesis_survives_the_way_through_numbers(hypothesis: Spec) -> None:
    assert make([hypothesis]).spec(0) == hypothesis


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("hypothesis", EVERY, ids=describe)
def test_bank_equals_the_posterior_worked_out_from_the_whole_history(
    hypothesis: Spec, shared: bool
) -> None:
    """Lam, eta from weighted sums over all rounds; a, b from the recursion on exact one-step
    errors."""
    spec, prior = hypothesis, NoisePrior()
    bank = make([hypothesis], shared)
    ridge = float(bank.arrays.ridge[0])
    a, b = prior.a0, prior.b0
    seen: list[tuple[int, int, FloatArray, float]] = []
    for moment, arm, x, y in rounds(80):
        cell, tau = hypothesis.basis(moment, N_ARMS)
        block = cell * (1 if shared else N_ARMS) + (0 if shared else arm)
        phi = np.kron(tau, x) if spec.contextual else tau
        if spec.appended == BELIEF.index:
            phi = np.append(phi, moment.per_arm[BELIEF.index, arm])
        mine = [(t, p, r) for t, where, p, r in seen if where == block]
        lam = ridge * np.eye(len(phi))
        eta = np.zeros(len(phi))
        for t, p, r in mine:
            weight = spec.discount ** (moment.t - t)
            lam += weight * np.outer(p, p)
            eta += weight * p * r
        mean = float(phi @ np.linalg.solve(lam, eta))
        leverage = float(phi @ np.linalg.solve(lam, phi))
        expected = stats.t.logpdf(y, 2 * a, loc=mean, scale=math.sqrt(b / a * (1 + leverage)))
        score = bank.observe(moment, arm, x, y, binary=False)[0]
        assert score == pytest.approx(expected, abs=1e-8)
        h = prior.memory
        a = h * a + (1 - h) * prior.a0 + 0.5
        b = h * b + (1 - h) * prior.b0 + 0.5 * (y - mean) ** 2 / (1 + leverage)
        seen.append((moment.t, block, phi, y))
    assert bank.arrays.a[0] == pytest.approx(a)
    assert bank.arrays.b[0] == pytest.approx(b)


def test_noise_without_discount_is_the_conjugate_inverse_gamma() -> None:
    """b0 + (S - eta'mu) / 2, the textbook form, equals the sum of one-step errors."""
    bank = make([fourier(7.0)], memory=1.0)
    ridge, prior = float(bank.arrays.ridge[0]), NoisePrior()
    rows: dict[int, list[tuple[FloatArray, float]]] = {k: [] for k in range(N_ARMS)}
    for moment, arm, x, y in rounds(100):
        bank.observe(moment, arm, x, y, binary=False)
        rows[arm].append((fourier(7.0).basis(moment, N_ARMS)[1], y))
    total = prior.b0
    for pairs in rows.values():
        Phi, r = np.array([p for p, _ in pairs]), np.array([y for _, y in pairs])
        eta = Phi.T @ r
        total += 0.5 * (r @ r - eta @ np.linalg.solve(ridge * np.eye(3) + Phi.T @ Phi, eta))
    assert bank.arrays.b[0] == pytest.approx(total, rel=1e-10)


def test_binary_rewards_of_one_feature_are_beta_bernoulli() -> None:
    bank = make([stationary(), discounted(0.9)])
    rng = np.random.default_rng(1)
    counts = np.ones((2, N_ARMS, 2))
    for t in range(50):
        arm, won = int(rng.integers(N_ARMS)), bool(rng.random() < 0.7)
        scores = bank.observe(
            empty_state(t, N_ARMS), arm, np.ones(Q), 1.0 if won else -1.0, binary=True
        )
        chance = counts[:, arm, int(won)] / counts[:, arm].sum(axis=1)
        np.testing.assert_allclose(scores, np.log(chance), atol=1e-12)
        counts[:, arm, int(won)] += 1
        counts[1] = 1 + 0.9 * (counts[1] - 1)


def test_every_hypothesis_gives_probabilities_of_binary_rewards_that_add_up_to_one() -> None:
    first, second = make(EVERY), make(EVERY)
    for moment, arm, x, y in rounds(40):
        up = first.observe(moment, arm, x, 1.0, binary=True)
        down = second.observe(moment, arm, x, -1.0, binary=True)
        np.testing.assert_allclose(np.exp(up) + np.exp(down), 1.0, atol=1e-12)
        first, second = make(EVERY), make(EVERY)
        for each in (first, second):
            for earlier in rounds(moment.t + 1)[: moment.t + 1]:
                each.observe(*earlier[:3], math.copysign(1.0, y), binary=True)


@pytest.mark.parametrize("shared", [False, True])
def test_draws_have_the_mean_and_spread_of_the_posterior(shared: bool) -> None:
    hypothesis = fourier(9.0, contextual=True)
    bank = make([hypothesis], shared)
    for moment, arm, x, y in rounds(60):
        bank.observe(moment, arm, x, y, binary=False)
    X = np.random.default_rng(3).normal(size=(N_ARMS, Q))
    now = empty_state(60, N_ARMS)
    rng = np.random.default_rng(4)
    draws = np.array([bank.draw(0, now, X, False, rng) for _ in range(20_000)])
    if shared:
        draws_of_mean = np.array([0.0] * N_ARMS)
        kernels.shared_draw(bank.arrays, 0, 60, now.covariates, X, np.zeros(3 * Q), draws_of_mean)
        np.testing.assert_allclose(draws.mean(axis=0), draws_of_mean, atol=0.05)
        return
    means, leverages = bank.predict(0, now, X)
    noise = bank.arrays.b[0] / (bank.arrays.a[0] - 1)  # mean of the inverse gamma
    np.testing.assert_allclose(draws.mean(axis=0), means, atol=0.05)
    noise *= bank.prior.min_scale**2
    np.testing.assert_allclose(draws.var(axis=0), noise * leverages, rtol=0.06)


def test_replay_equals_observing_round_by_round() -> None:
    one, two = make(EVERY), make(EVERY)
    given = rounds(50)
    lived = np.array([one.observe(*each, binary=False) for each in given])
    window = Window(
        t=np.arange(50),
        covariates=np.array([moment.row(arm) for moment, arm, *_ in given]),
        arm=np.array([each[1] for each in given]),
        x=np.array([each[2] for each in given]),
        y=np.array([each[3] for each in given]),
    )
    for m in range(len(EVERY)):
        np.testing.assert_allclose(finish(two.replay(m, window, False)), lived[:, m], atol=1e-12)
    np.testing.assert_allclose(one.arrays.mat, two.arrays.mat, atol=1e-12)


def test_fixed_share_is_bayes_rule_and_then_a_little_of_the_prior() -> None:
    prior, scores = np.array([0.5, 0.3, 0.2]), np.array([-1.0, -2.0, -700.0])
    log_weights = np.log(prior)
    mixture = reweigh(log_weights, scores, prior, 0.01)
    expected = prior * np.exp(scores)
    assert mixture == pytest.approx(math.log(expected.sum()))
    np.testing.assert_allclose(np.exp(log_weights), 0.99 * expected / expected.sum() + 0.01 * prior)


@kernel(exact=False)
def _long_run(bank: Bank, n: int, noise: FloatArray) -> float:
    """n rounds of every kind of awkward feature; the least b at the end, or -1 if anything
    overflowed."""
    least: float
    size, q = bank.dim.shape[0], 4
    scores, past, x = np.empty(size), np.zeros(8), np.empty(q)
    for t in range(n):
        x[0], x[1], x[2], x[3] = 1.0, 1e-6 * math.cos(t), 1.0, noise[(7 * t) % 1009]
        y = noise[t % 1009] if t % 1000 else 50.0
        kernels.observe(bank, t, past, 0 if t % 5 else 2, x, y, False, scores)
        for m in range(size):
            if not math.isfinite(scores[m]):
                return -1.0
    least = bank.b.min()
    return least


def test_bank_stays_positive_definite_for_a_million_rounds() -> None:
    hypotheses: list[Spec] = [
        stationary(contextual=True),
        discounted(0.5, contextual=True),
        discounted(0.995),
        fourier(1e9),
        fourier(20.0, 0.99),
        square(10.0, contextual=True),
    ]
    bank = make(hypotheses)
    assert _long_run(bank.arrays, 1_000_000, np.random.default_rng(7).normal(size=1009)) > 0
    arrays = bank.arrays
    for m in range(len(hypotheses)):
        d, start = int(arrays.dim[m]), int(arrays.mat_at[m])
        block = arrays.mat[start : start + d * d].reshape(d, d)
        if arrays.inverse[m]:
            assert np.array_equal(block, block.T)
            assert np.linalg.eigvalsh(block).min() > 0
        else:
            full = np.triu(block) + np.triu(block, 1).T + arrays.ridge[m] * np.eye(d)
            assert np.linalg.eigvalsh(full).min() > 0.5 * arrays.ridge[m]
