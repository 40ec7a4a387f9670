from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from tidepull.policies.exploration import (
    Boltzmann,
    EpsilonGreedy,
    ExplorationRule,
    PosteriorSampling,
)
from tidepull.posteriors.linear_gaussian import LinearGaussian
from tidepull.types import FloatArray, IntArray

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7], [-1.0, -1.0]])
ALL = np.arange(4)


def _posterior() -> LinearGaussian:
    posterior = LinearGaussian(2, prior_std=1.0, noise_std=0.5)
    posterior.refit(np.array([[1.0, 0.2], [0.1, 1.0], [0.5, 0.4]]), np.array([0.4, 0.5, 0.3]))
    return posterior


def _frequencies(rule: ExplorationRule, open_arms: IntArray = ALL, n: int = 20_000) -> FloatArray:
    rng = np.random.default_rng(3)
    posterior = _posterior()
    chosen = [rule(FEATURES, posterior, open_arms, rng) for _ in range(n)]
    return np.bincount(chosen, minlength=4) / n


def test_posterior_sampling_plays_each_arm_as_often_as_it_is_optimal() -> None:
    posterior = _posterior()
    covariance = np.linalg.inv(posterior.precision)
    draws = np.random.default_rng(11).multivariate_normal(posterior.mean, covariance, size=200_000)
    optimal = np.bincount(np.argmax(draws @ FEATURES.T, axis=1), minlength=4) / len(draws)
    np.testing.assert_allclose(_frequencies(PosteriorSampling()), optimal, atol=0.012)


@pytest.mark.parametrize("epsilon", [0.01, 0.03, 0.05, 0.1])
def test_epsilon_greedy_plays_the_best_mean_except_for_a_share_of_epsilon(epsilon: float) -> None:
    expected = np.full(4, epsilon / 4)
    expected[np.argmax(FEATURES @ _posterior().mean)] += 1 - epsilon
    np.testing.assert_allclose(_frequencies(EpsilonGreedy(epsilon)), expected, atol=0.006)


@pytest.mark.parametrize("temperature", [0.001, 0.005, 0.01, 0.05, 0.5])
def test_boltzmann_plays_by_the_softmax_of_the_mean(temperature: float) -> None:
    expected = softmax(FEATURES @ _posterior().mean / temperature)
    np.testing.assert_allclose(_frequencies(Boltzmann(temperature)), expected, atol=0.012)


@pytest.mark.parametrize("rule", [PosteriorSampling(), EpsilonGreedy(0.5), Boltzmann(1.0)])
def test_every_rule_plays_open_arms_only(rule: ExplorationRule) -> None:
    frequencies = _frequencies(rule, np.array([1, 3]), n=500)
    assert frequencies[[0, 2]].sum() == 0
    assert frequencies.sum() == pytest.approx(1)
