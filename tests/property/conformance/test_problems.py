"""What every registered problem owes the loop."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.unit.problems.buildable import buildable
from tidepull.errors import DataError, ParameterError
from tidepull.experiments.loop import run_trial
from tidepull.parameters import describe
from tidepull.problems import build_problem, problems, shape_of
from tidepull.protocols import Problem
from tidepull.types import FloatArray

IDS = problems.ids()
PAPER = {
    "flipping-gaussian",
    "flipping-bernoulli",
    "sinusoidal-bernoulli",
    "circular-markov-chain",
    "flipping-digits",
    "wall-following",
    "flipping-vector",
    "rotating-vector-32",
    "rotating-vector-2048",
    "criteo-partial-flip",
    "criteo-flipping",
    "stationary-bernoulli",
    "stationary-vector",
}


def make(id: str, seed: int = 0) -> Problem:
    try:
        return build_problem(buildable(id), seed=seed)
    except DataError as error:
        if "TIDEPULL_DATA" in os.environ:
            raise
        pytest.skip(str(error))


def observe(problem: Problem, arms: list[int]) -> list[tuple[FloatArray, ...]]:
    seen = []
    for arm in arms:
        context = problem.context()
        parts = [p for p in (context.observation, context.arm_features) if p is not None]
        seen.append((problem.means(), np.array([problem.step(arm)]), *parts))
    return seen


every_problem = pytest.mark.parametrize("id", IDS)


def test_every_problem_of_the_paper_is_registered() -> None:
    assert set(IDS) >= PAPER


@every_problem
def test_problem_repeats_itself_when_the_seed_is_equal(id: str) -> None:
    first, again, other = (make(id, seed) for seed in (4, 4, 5))
    arms = [t % first.n_arms for t in range(50)]
    a, b, c = (observe(problem, arms) for problem in (first, again, other))
    assert all(
        np.array_equal(x, y)
        for left, right in zip(a, b, strict=True)
        for x, y in zip(left, right, strict=True)
    )
    differs = any(
        not np.array_equal(x, y)
        for left, right in zip(a, c, strict=True)
        for x, y in zip(left, right, strict=True)
    )
    assert differs == (id != "stream")  # a record is the same under every seed


@every_problem
def test_problem_shows_the_same_contexts_whatever_is_played(id: str) -> None:
    first, second = make(id), make(id)
    last = first.n_arms - 1
    for t in range(50):
        a, b = first.context(), second.context()
        for left, right in ((a.observation, b.observation), (a.arm_features, b.arm_features)):
            assert (left is None) == (right is None)
            if left is not None and right is not None:
                assert np.array_equal(left, right)
        first.step(0)
        second.step(t % last)


@every_problem
def test_problem_draws_the_same_noise_for_every_arm_whatever_was_played(id: str) -> None:
    if "bernoulli" in id:
        # A coin's noise shows only through its reward: equal arms must pay equally.
        first, second = make(id), make(id)
        for t in range(100):
            first.step(0)
            second.step(t % second.n_arms)
        assert [first.step(1) for _ in range(50)] == [second.step(1) for _ in range(50)]
        return
    first, second = make(id), make(id)
    for t in range(60):
        means = first.means(), second.means()
        arm = 1 if t == 59 else 0
        noise = first.step(arm) - means[0][arm]
        other = 1 if t == 59 else t % second.n_arms
        if other == arm:
            assert second.step(other) - means[1][other] == pytest.approx(noise, abs=1e-9)
        else:
            second.step(other)


@every_problem
def test_problem_answers_are_idempotent_and_not_aliased(id: str) -> None:
    problem = make(id)
    problem.step(0)
    first, means = problem.context(), problem.means().copy()
    kept = [None if p is None else p.copy() for p in (first.observation, first.arm_features)]
    for array in (first.observation, first.arm_features, problem.means()):
        if array is not None and array.flags.writeable:
            array[...] = -7.0
    second = problem.context()
    assert np.array_equal(problem.means(), means)
    for before, after in zip(kept, (second.observation, second.arm_features), strict=True):
        if before is not None and after is not None:
            assert np.array_equal(before, after)


@every_problem
def test_problem_means_agree_with_the_average_of_sampled_rewards(id: str) -> None:
    problem = make(id)
    rng = np.random.default_rng(0)
    errors = np.empty(10_000)
    for t in range(len(errors)):
        arm = int(rng.integers(problem.n_arms))
        expected = problem.means()[arm]
        errors[t] = problem.step(arm) - expected
    # at most: a record has no noise
    assert abs(errors.mean()) <= 4 * errors.std(ddof=1) / np.sqrt(len(errors))


@every_problem
def test_problem_parameters_are_refused_by_name_when_unknown_or_of_the_wrong_kind(id: str) -> None:
    with pytest.raises(ParameterError, match="no parameter 'nonsense'"):
        build_problem((id, {"nonsense": 1}), seed=0)
    for doc in describe(problems.entry(id).parameters):
        with pytest.raises(ParameterError, match=doc.name):
            build_problem((id, {doc.name: {"not": "a value"}}), seed=0)


@every_problem
def test_oracle_has_no_regret_and_random_has_some(id: str) -> None:
    problem = make(id)
    shape_of(problem)
    assert run_trial(buildable(id), "oracle", horizon=200, seed=1).regret[-1] == 0
    assert run_trial(buildable(id), "random", horizon=200, seed=1).regret[-1] > 0
