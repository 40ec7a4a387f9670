from __future__ import annotations

import numpy as np
import pytest

from tidepull.errors import ParameterError
from tidepull.problems.linear import SteadyContexts, SteadyContextsParameters
from tidepull.random import Streams
from tidepull.types import FloatArray


def walk(problem: SteadyContexts, rounds: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What was seen, the means, and the rewards of arm 0."""
    seen, means, rewards = [], [], []
    for _ in range(rounds):
        context = problem.context()
        seen.append(context.arm_features if context.observation is None else context.observation)
        means.append(problem.means())
        rewards.append(problem.step(0))
    return np.array(seen), np.array(means), np.array(rewards)


def test_steady_contexts_pay_a_linear_function_of_the_observation_for_ever() -> None:
    problem = SteadyContexts(SteadyContextsParameters(n_arms=4, numbers=6), Streams(1))
    seen, means, rewards = walk(problem, 400)
    weights, residuals, _, _ = np.linalg.lstsq(seen, means, rcond=None)
    assert weights.shape == (6, 4)
    np.testing.assert_allclose(residuals, 0.0, atol=1e-20)
    assert np.std(rewards - means[:, 0]) == pytest.approx(0.1, rel=0.15)


def test_steady_contexts_pay_the_same_function_of_every_arms_vector_when_weights_are_shared() -> (
    None
):
    problem = SteadyContexts(SteadyContextsParameters(n_arms=4, numbers=6, shared=True), Streams(1))
    seen, means, _ = walk(problem, 100)
    assert seen.shape == (100, 4, 6)
    _, residuals, _, _ = np.linalg.lstsq(seen.reshape(-1, 6), means.ravel(), rcond=None)
    np.testing.assert_allclose(residuals, 0.0, atol=1e-20)


@pytest.mark.parametrize("shared", [False, True])
def test_steady_contexts_vary_in_as_many_directions_as_their_rank(shared: bool) -> None:
    parameters = SteadyContextsParameters(n_arms=3, numbers=40, rank=5, shared=shared)
    seen, _, _ = walk(SteadyContexts(parameters, Streams(2)), 600)
    assert np.linalg.matrix_rank(seen.reshape(-1, 40)) == 5
    spread = [SteadyContexts(parameters, Streams(seed)).means().std() for seed in range(200)]
    assert np.mean(spread) == pytest.approx(0.75, abs=0.15)  # of three normal numbers


def test_steady_contexts_refuse_a_rank_beyond_their_numbers() -> None:
    with pytest.raises(ParameterError, match="rank must be at most numbers"):
        SteadyContextsParameters(numbers=3, rank=4)
