from __future__ import annotations

import numpy as np
import pytest

from tidepull.errors import ArmError, InputError, ParameterError, RewardError
from tidepull.policies import build_policy
from tidepull.protocols import NeedsMeans
from tidepull.types import Context, Event, ProblemShape

SHAPE = ProblemShape(n_arms=4)


def test_random_policy_plays_every_arm() -> None:
    policy = build_policy("random", SHAPE, seed=0)
    assert {policy.choose(Context()) for _ in range(200)} == {0, 1, 2, 3}


def test_fixed_policy_plays_its_arm_and_refuses_when_it_is_not_available() -> None:
    policy = build_policy(("fixed", {"arm": 2}), SHAPE, seed=0)
    assert policy.choose(Context()) == 2
    with pytest.raises(ArmError, match="arm 2 is not available"):
        policy.choose(Context(available=np.array([True, True, False, True])))


def test_fixed_policy_refuses_an_arm_that_the_problem_does_not_have() -> None:
    with pytest.raises(ParameterError, match="arm must be less than the 4 arms"):
        build_policy(("fixed", {"arm": 4}), SHAPE, seed=0)


def test_oracle_plays_the_best_available_arm_when_it_knows_the_means() -> None:
    policy = build_policy("oracle", SHAPE, seed=0)
    assert isinstance(policy, NeedsMeans)
    means = np.array([0.1, 0.9, 0.5, 0.2])
    assert policy.choose_knowing(Context(), means) == 1
    assert policy.choose_knowing(Context(available=np.array([True, False, True, True])), means) == 2


def test_oracle_says_that_only_the_loop_may_run_it() -> None:
    with pytest.raises(InputError, match="only run_trial"):
        build_policy("oracle", SHAPE, seed=0).choose(Context())


@pytest.mark.parametrize("arm", [-1, 4, 1.0, True, None])
def test_learn_names_the_range_when_the_arm_is_not_one(arm: int) -> None:
    with pytest.raises(ArmError, match="from 0 to 3"):
        build_policy("random", SHAPE, seed=0).learn(Event(Context(), arm, 0.0))


@pytest.mark.parametrize("reward", [np.nan, np.inf, 1e101, "high", None])
def test_learn_names_the_reward_when_it_is_not_finite(reward: float) -> None:
    with pytest.raises(RewardError, match="reward must be"):
        build_policy("ucb", SHAPE, seed=0).learn(Event(Context(), 0, reward))
