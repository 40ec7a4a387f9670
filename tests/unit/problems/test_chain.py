from __future__ import annotations

import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.problems.markov import CircularMarkovChain, CircularMarkovChainParameters
from tidepull.random import Streams


def make(seed: int = 0, **values: float) -> CircularMarkovChain:
    return CircularMarkovChain(CircularMarkovChainParameters.from_mapping(values), Streams(seed))


def test_chain_moves_on_only_when_the_best_arm_is_chosen() -> None:
    problem = make()
    start = int(np.argmax(problem.means()))
    for arm in range(8):
        if arm != start:
            problem.step(arm)
            assert int(np.argmax(problem.means())) == start
    for moves in range(1, 20):
        problem.step((start + moves - 1) % 8)
        assert int(np.argmax(problem.means())) == (start + moves) % 8


def test_chain_has_one_best_arm_with_the_papers_means() -> None:
    assert sorted(make().means()) == [0.0] * 7 + [1.0]
    assert sorted(make(mean=0.25, best_mean=0.75, n_arms=3).means()) == [0.25, 0.25, 0.75]


def test_chain_starts_at_any_arm_equally_often() -> None:
    starts = np.bincount([int(np.argmax(make(seed).means())) for seed in range(800)], minlength=8)
    # 100 expected for each, with a standard deviation of 9.4
    assert np.abs(starts - 100).max() < 4 * 9.4


def test_chain_noise_depends_on_the_seed_alone() -> None:
    first, second = make(), make()
    for t in range(40):
        first.step(t % 8)
        second.step(0)
    for _ in range(20):
        noise = [
            float(problem.step(5) - mean)
            for problem, mean in ((p, p.means()[5]) for p in (first, second))
        ]
        assert noise[0] == pytest.approx(noise[1], abs=1e-12)


def test_chain_rewards_scatter_around_the_means() -> None:
    problem = make()
    rng = np.random.default_rng(0)
    errors = np.empty(10_000)
    for t, arm in enumerate(rng.integers(8, size=10_000)):
        expected = problem.means()[arm]
        errors[t] = problem.step(int(arm)) - expected
    assert abs(errors.mean()) < 4 * 0.05 / 100
    assert errors.std() == pytest.approx(0.05, rel=0.03)


def test_random_regret_of_the_chain_is_seven_eighths_of_the_horizon() -> None:
    assert make().random_regret(4096) == 3584.0


def test_chain_refuses_a_best_mean_that_is_not_best() -> None:
    with pytest.raises(ParameterError, match="best_mean must be > mean"):
        make(best_mean=0.0)
