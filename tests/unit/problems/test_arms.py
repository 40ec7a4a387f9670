from __future__ import annotations

import math

import numpy as np
import pytest

from tidepull.errors import ArmError, ParameterError
from tidepull.problems.arms import (
    DriftingArms,
    FlippingBernoulliParameters,
    FlippingGaussianParameters,
    SinusoidalBernoulliParameters,
    StationaryBernoulliParameters,
    evenly_spaced,
    flipping_bernoulli,
    flipping_gaussian,
    sinusoidal_bernoulli,
    stationary_bernoulli,
)
from tidepull.random import Streams

MEANS = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
STREAMS = Streams(11)


def means_of_rounds(
    problem: DriftingArms, horizon: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    rows = []
    for _ in range(horizon):
        rows.append(np.array(problem.means(), dtype=np.float64))
        problem.step(0)
    return np.array(rows)


def test_flipping_gaussian_changes_sign_every_ten_rounds() -> None:
    means = means_of_rounds(flipping_gaussian(FlippingGaussianParameters(), STREAMS), 40)
    for t in range(40):
        sign = 1 if t < 10 or 20 <= t < 30 else -1
        np.testing.assert_array_equal(means[t], sign * np.array(MEANS))


def test_flipping_bernoulli_mirrors_probabilities_every_ten_rounds() -> None:
    means = means_of_rounds(flipping_bernoulli(FlippingBernoulliParameters(), STREAMS), 40)
    for t in range(40):
        expected = MEANS if t < 10 or 20 <= t < 30 else [1 - p for p in MEANS]
        np.testing.assert_array_equal(means[t], expected)


def test_sinusoidal_bernoulli_follows_the_papers_formula() -> None:
    means = means_of_rounds(sinusoidal_bernoulli(SinusoidalBernoulliParameters(), STREAMS), 100)
    for t in range(100):
        for k in range(1, 6):
            p = 1 / 2 + math.sin(2 * math.pi * (1 / 32) * t + 2 * math.pi * (k - 1) / 5) / 2
            assert means[t, k - 1] == pytest.approx(p, abs=1e-12)


def test_stationary_bernoulli_never_changes() -> None:
    means = means_of_rounds(stationary_bernoulli(StationaryBernoulliParameters(), STREAMS), 50)
    np.testing.assert_array_equal(means, np.tile(MEANS, (50, 1)))


def test_gaussian_rewards_of_a_world_have_the_papers_spread() -> None:
    problem = flipping_gaussian(FlippingGaussianParameters(), STREAMS)
    noise = []
    for t in range(10_000):
        expected = problem.means()[t % 8]
        noise.append(problem.step(t % 8) - expected)
    assert abs(np.mean(noise)) < 4 * 0.1 / 100
    assert np.std(noise) == pytest.approx(0.1, rel=0.03)


def test_bernoulli_rewards_are_ones_and_zeros_at_the_right_rate_for_every_arm() -> None:
    problem = stationary_bernoulli(StationaryBernoulliParameters(), STREAMS)
    rewards = np.array([[problem.step(k) for k in range(8)] for _ in range(5000)])
    assert set(np.unique(rewards)) == {0.0, 1.0}
    for k, p in enumerate(MEANS):
        assert abs(rewards[:, k].mean() - p) < 4 * math.sqrt(p * (1 - p) / 5000)


@pytest.mark.parametrize("noise_std", [0.1, 0.0])
def test_noise_of_an_arm_does_not_depend_on_earlier_arms(noise_std: float) -> None:
    parameters = FlippingGaussianParameters(noise_std=noise_std)
    first, second = flipping_gaussian(parameters, STREAMS), flipping_gaussian(parameters, STREAMS)
    for t in range(30):
        first.step(t % 8)
        second.step(7)
    assert [first.step(3) for _ in range(20)] == [second.step(3) for _ in range(20)]


def test_shuffle_reorders_the_same_means_by_the_seed() -> None:
    parameters = FlippingGaussianParameters(shuffle=True)
    orders = {tuple(flipping_gaussian(parameters, Streams(seed)).means()) for seed in range(5)}
    assert len(orders) > 1
    assert all(sorted(order) == MEANS for order in orders)


def test_given_means_decide_the_number_of_arms() -> None:
    problem = flipping_bernoulli(
        FlippingBernoulliParameters(means=(0.2, 0.7), half_period=1), STREAMS
    )
    assert problem.n_arms == 2
    np.testing.assert_allclose(means_of_rounds(problem, 2), [[0.2, 0.7], [0.8, 0.3]])
    assert flipping_gaussian(FlippingGaussianParameters(n_arms=3), STREAMS).n_arms == 3


@pytest.mark.parametrize("n_arms", range(1, 12))
def test_evenly_spaced_means_are_distinct_and_never_one_half(n_arms: int) -> None:
    values = evenly_spaced(n_arms)
    assert len(set(values)) == n_arms
    assert 0.5 not in values
    assert min(values) >= 0.1
    assert max(values) <= 0.9


def test_means_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ParameterError, match="n_arms is 3 but means has 2 values"):
        FlippingGaussianParameters(n_arms=3, means=(0.1, 0.2))
    with pytest.raises(ParameterError, match="means must have at least one value"):
        FlippingGaussianParameters(means=())
    with pytest.raises(ParameterError, match="means must be ≤ 1"):
        FlippingBernoulliParameters(means=(0.5, 1.5))
    with pytest.raises(ParameterError, match="half_period must be ≥ 1"):
        FlippingBernoulliParameters(half_period=0)


def test_step_refuses_an_arm_out_of_range() -> None:
    problem = stationary_bernoulli(StationaryBernoulliParameters(), STREAMS)
    with pytest.raises(ArmError, match="from 0 to 7"):
        problem.step(-1)


def test_random_regret_has_the_known_values() -> None:
    flipping = flipping_gaussian(FlippingGaussianParameters(), STREAMS)
    assert flipping.random_regret(4096) == pytest.approx(1638.4)  # 0.4 a round in either phase
    sinusoidal = sinusoidal_bernoulli(SinusoidalBernoulliParameters(), STREAMS)
    assert sinusoidal.random_regret(4096) == pytest.approx(1915.6, abs=0.05)
