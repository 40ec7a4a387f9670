from __future__ import annotations

import math

import numpy as np
import pytest

from tidepull.errors import ArmError, ParameterError
from tidepull.problems.drift import Constant, Flip
from tidepull.problems.linear import (
    FlippingVectorParameters,
    LinearProblem,
    PoolSampler,
    RotatingVectorParameters,
    StationaryVectorParameters,
    flipping_vector,
    rotating_vector,
    stationary_vector,
    unit_vectors,
)
from tidepull.protocols import HasVariationBudget, Problem
from tidepull.random import Streams
from tidepull.types import FloatArray

STREAMS = Streams(3)


def _w(problem: LinearProblem) -> FloatArray:
    features = problem.context().arm_features
    assert features is not None
    return np.linalg.lstsq(features, problem.means(), rcond=None)[0]


def test_flipping_vector_has_the_papers_shape_and_unit_vectors() -> None:
    problem = flipping_vector(FlippingVectorParameters(), STREAMS)
    features = problem.context().arm_features
    assert isinstance(problem, Problem)
    assert isinstance(problem, HasVariationBudget)
    assert features is not None
    assert features.shape == (25, 50)
    assert problem.n_arms == 25
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0)


def test_flipping_vector_changes_the_sign_of_w_every_64_rounds() -> None:
    problem = flipping_vector(FlippingVectorParameters(n_arms=60), STREAMS)
    first = _w(problem)
    assert np.linalg.norm(first) == pytest.approx(1.0)
    for t in range(200):
        sign = 1 if t < 64 or 128 <= t < 192 else -1
        np.testing.assert_allclose(_w(problem), sign * first, atol=1e-9, err_msg=f"round {t}")
        problem.step(0)


@pytest.mark.parametrize("period", [32, 2048])
def test_rotating_vector_follows_the_papers_formula(period: int) -> None:
    problem = rotating_vector(RotatingVectorParameters(period=period), STREAMS)
    for t in range(70):
        angle = 2 * math.pi * t / period
        np.testing.assert_allclose(_w(problem), [math.cos(angle), math.sin(angle)], atol=1e-9)
        problem.step(1)


def test_stationary_vector_keeps_its_w() -> None:
    problem = stationary_vector(StationaryVectorParameters(), STREAMS)
    first = _w(problem)
    for _ in range(300):
        problem.step(2)
    np.testing.assert_allclose(_w(problem), first, atol=1e-9)
    assert problem.variation_budget(4096) == 0.0


def test_variation_budgets_are_those_the_paper_used() -> None:
    flipping = flipping_vector(FlippingVectorParameters(), STREAMS)
    assert flipping.variation_budget(4096) == pytest.approx(128.0)
    slow = rotating_vector(RotatingVectorParameters(period=2048), STREAMS)
    assert slow.variation_budget(4096) == pytest.approx(4096 * 2 * math.sin(math.pi / 2048))


def test_lengths_are_the_longest_of_the_horizon_and_of_the_pools_on_offer() -> None:
    grows = Flip(np.array([3.0, 4.0]), np.array([0.0, 7.0]), half_period=10)
    pools = [(np.array([[0.0, 2.0], [1.0, 0.0]]), 1), (np.array([[9.0, 9.0]]), 0)]
    problem = LinearProblem(sampler=PoolSampler(pools), drift=grows, noise_std=0.1, streams=STREAMS)
    assert problem.linear_bounds(10) == (5.0, 2.0)
    assert problem.linear_bounds(11) == (7.0, 2.0)


def test_sampler_draws_every_row_equally_often_and_none_twice() -> None:
    pool = np.arange(40.0).reshape(20, 2)
    sampler = PoolSampler([(pool, 5)])
    rng = np.random.default_rng(0)
    counts = np.zeros((5, 20))
    for _ in range(4000):
        rows = sampler(rng)[:, 0].astype(int) // 2
        assert len(set(rows)) == 5
        counts[np.arange(5), rows] += 1
    # 4,000 draws with probability 1/20 each: mean 200, standard deviation 13.8
    assert np.abs(counts - 200).max() < 4.5 * 13.8


def test_sampler_takes_its_share_of_each_pool_in_random_order() -> None:
    sampler = PoolSampler([(np.zeros((9, 2)), 2), (np.ones((9, 2)), 3)])
    rng = np.random.default_rng(0)
    drawn = np.array([sampler(rng)[:, 0] for _ in range(2000)])
    np.testing.assert_array_equal(drawn.sum(axis=1), 3.0)
    # every place holds a row of the second pool 3 times in 5: standard deviation 0.011 over 2,000
    # rounds
    assert np.abs(drawn.mean(axis=0) - 0.6).max() < 4.5 * 0.011


def test_sampler_refuses_more_arms_than_the_pool_has() -> None:
    with pytest.raises(ParameterError, match="n_arms"):
        PoolSampler([(np.eye(3), 4)])
    with pytest.raises(ParameterError, match="pool_size"):
        FlippingVectorParameters(n_arms=30, pool_size=20)


def test_random_regret_equals_the_average_over_many_rounds() -> None:
    problem = stationary_vector(StationaryVectorParameters(pool_size=60, n_arms=4), STREAMS)
    gaps = []
    for _ in range(20_000):
        means = problem.means()
        gaps.append(means.max() - means.mean())
        problem.step(0)
    error = np.std(gaps) / math.sqrt(len(gaps))
    assert abs(np.mean(gaps) - problem.random_regret(1)) < 4 * error
    assert problem.random_regret(100) == pytest.approx(100 * problem.random_regret(1))


def test_unit_vectors_fill_the_cube_before_scaling() -> None:
    # In a cube the corners reach out: the fourth moment of a coordinate is below a sphere's 3 / (d
    # (d + 2)).
    vectors = unit_vectors(50_000, 3, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert np.abs(vectors.mean(axis=0)).max() < 0.012
    assert (vectors**4).mean() < 3 / 15 - 0.005


def test_noise_has_the_given_standard_deviation() -> None:
    problem = LinearProblem(
        sampler=PoolSampler([(np.eye(3), 3)]),
        drift=Constant(np.ones(3)),
        noise_std=0.3,
        streams=STREAMS,
    )
    noise = np.array([problem.step(t % 3) - 1.0 for t in range(10_000)])
    assert abs(noise.mean()) < 4 * 0.3 / 100
    assert noise.std() == pytest.approx(0.3, rel=0.03)


def test_step_refuses_an_arm_out_of_range() -> None:
    problem = rotating_vector(RotatingVectorParameters(), STREAMS)
    for arm in (-1, 25):
        with pytest.raises(ArmError, match="from 0 to 24"):
            problem.step(arm)
