from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tidepull import state as snapshots
from tidepull.errors import RewardError
from tidepull.policies import build_policy
from tidepull.policies.arms import BernoulliThompson, BetaBernoulli
from tidepull.policies.guard import Guarded
from tidepull.types import Context, Event, ProblemShape


def make(n_arms: int = 3) -> Guarded:
    policy = build_policy("bernoulli-ts", ProblemShape(n_arms=n_arms), seed=0)
    assert isinstance(policy.inner, BernoulliThompson)
    return policy


def test_beta_beliefs_have_the_textbook_mean_and_distribution() -> None:
    beliefs = BetaBernoulli(2, prior_successes=2.0, prior_failures=3.0)
    for success in (True, True, False, True):
        beliefs.update(0, success)
    np.testing.assert_allclose(beliefs.mean, [5 / 9, 2 / 5])
    rng = np.random.default_rng(0)
    draws = np.array([beliefs.sample(rng) for _ in range(4000)])
    assert stats.kstest(draws[:, 0], stats.beta(5, 4).cdf).pvalue > 1e-4
    assert stats.kstest(draws[:, 1], stats.beta(2, 3).cdf).pvalue > 1e-4


def test_arm_is_chosen_as_often_as_it_is_likely_to_be_best() -> None:
    policy = make(2)
    for reward in (1.0, 1.0, 0.0):
        policy.learn(Event(Context(), 0, reward))
    share = np.mean([policy.choose(Context()) == 0 for _ in range(4000)])
    # Arm 0 has Beta(3, 2), arm 1 Beta(1, 1): P(p_0 > p_1) = E[p_0] = 3/5.
    assert abs(share - 0.6) < 4 * np.sqrt(0.24 / 4000)


@pytest.mark.parametrize("reward", [0.5, -1.0, 2.0])
def test_reward_other_than_zero_or_one_is_refused_and_nothing_changes(reward: float) -> None:
    policy = make()
    before = snapshots.dump(policy.snapshot())
    with pytest.raises(RewardError, match="must be 0 or 1"):
        policy.learn(Event(Context(), 0, reward))
    assert snapshots.dump(policy.snapshot()) == before
