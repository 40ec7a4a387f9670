"""Widths, saturated arms and events against direct loops; the lemmas behind them, and their printed
slips."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tidepull.paper.theory import bound as theory


def random_round(seed: int) -> tuple[theory.Floats, ...]:
    rng = np.random.default_rng(seed)
    past = rng.normal(size=(3, 20, 4)) / 4
    precision = np.eye(4) + np.einsum("sti,stj->sij", past, past)
    contexts = rng.normal(size=(3, 6, 4)) / 3
    return precision, contexts, rng.normal(size=(3, 6)), rng.normal(size=(3, 6))


def test_widths_are_norms_under_the_inverse_precision() -> None:
    precision, contexts, _, _ = random_round(0)
    s = theory.widths(contexts, precision)
    for seed in range(3):
        inverse = np.linalg.inv(precision[seed])
        for k in range(6):
            x = contexts[seed, k]
            assert s[seed, k] == pytest.approx(math.sqrt(x @ inverse @ x), rel=1e-12)


def test_saturated_set_and_events_follow_their_definitions() -> None:
    precision, contexts, means, estimates = random_round(1)
    s = theory.widths(contexts, precision)
    theta = estimates + np.random.default_rng(2).normal(size=estimates.shape)
    some = set()
    for g, reach, nu, c, epsilon in [
        (0.1, 0.5, 0.3, 1.0, 0.2),
        (1.0, 3.0, 2.0, 2.0, 0.4),
        (30.0, 9.0, 5.0, 4.0, 0.0),
    ]:
        C = theory.saturated(means, s, g, epsilon)
        E_w = theory.event_w(estimates, means, s, reach, epsilon)
        E_theta = theory.event_theta(theta, estimates, s, nu, c)
        for i in range(3):
            best = max(means[i])
            assert C[i].tolist() == [
                bool(best - m > s[i, k] * g + 2 * epsilon) for k, m in enumerate(means[i])
            ]
            far = [abs(estimates[i, k] - means[i, k]) > reach * s[i, k] + epsilon for k in range(6)]
            assert E_w[i] == (not any(far))
            off = [abs(theta[i, k] - estimates[i, k]) > nu * s[i, k] * c for k in range(6)]
            assert E_theta[i] == (not any(off))
            some |= {("C", bool(C[i].any())), ("w", bool(E_w[i])), ("theta", bool(E_theta[i]))}
    assert len(some) == 6, "the cases must show each event both ways"


def test_best_arm_is_never_saturated() -> None:
    means = np.array([[0.3, 0.9, -0.2]])
    C = theory.saturated(means, np.zeros_like(means), 1.0, 0.0)
    assert C.tolist() == [[True, False, True]]


def test_promise_of_event_theta_holds_exactly_in_both_branches() -> None:
    t = np.unique(np.geomspace(2, 1e6, 60).round())
    for d in (1, 2, 3, 5, 10, 50, 200):
        # |Theta - x . w^| <= nu s ||z|| with z standard normal: the dimension branch is a
        # chi-squared tail.
        tail = stats.chi2.logsf(4 * d * np.log(t), d)
        assert (tail + 2 * np.log(t) <= 0).all()
    for K in (1, 2, 10, 1000):
        tail = np.log(2 * K) + stats.norm.logsf(2 * np.sqrt(np.log(t * K)))
        assert (tail + 2 * np.log(t) <= 0).all()


def test_optimism_constant_is_below_the_normal_tail_at_one() -> None:
    assert stats.norm.sf(1.0) > theory.OPTIMISM > 0.05


def test_lemma_4_constant_holds_from_round_five_only() -> None:
    def price(t: int) -> float:
        probability = theory.OPTIMISM - 1 / t**2
        return 2 / probability + 1 if probability > 0 else math.inf

    assert all(price(t) <= theory.LEMMA_4 for t in range(5, 2000))
    assert price(4) > theory.LEMMA_4


def test_potential_lemma_needs_the_updated_precision() -> None:
    # One round, d = 1: ||x_1||_{B_1^-1} = 1 exceeds sqrt(log 2); with B_2 the lemma holds.
    limit = math.sqrt(1 * 1 * math.log(2))
    assert limit < 1.0
    assert 1 / math.sqrt(2) <= limit


@pytest.mark.parametrize("d", [1, 3, 8])
def test_bias_of_the_estimate_stays_below_both_forms_of_p(d: int) -> None:
    rng = np.random.default_rng(d)
    for n in (1, 5, 60):
        X = rng.normal(size=(n, d))
        X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
        B = np.eye(d) + X.T @ X
        # The worst v with |v_i| <= 1 for one direction: the signs that line up with it.
        for direction in rng.normal(size=(20, d)):
            v = np.sign(X @ np.linalg.solve(B, direction))
            size = math.sqrt(v @ X @ np.linalg.solve(B, X.T @ v))
            setting = theory.LinearSetting(d=d, k=2)
            assert size <= float(theory.p(n + 1, setting))
            assert size <= math.sqrt(n) * (1 + 1e-12)
            tight = theory.LinearSetting(d=d, k=2, tight=True)
            assert float(theory.p(n + 1, tight)) == math.sqrt(n)
