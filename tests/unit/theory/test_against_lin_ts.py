from __future__ import annotations

from tidepull.paper.theory.bound import LinearSetting
from tidepull.paper.theory.measurement_error import Scenario, play
from tidepull.policies.linear import LinearThompson, LinearThompsonParameters
from tidepull.random import Streams
from tidepull.types import Context, Event, ProblemShape


def test_zero_error_without_inflation_plays_the_arms_of_the_lin_ts_policy() -> None:
    d, k, sigma, seeds = 4, 7, 0.3, 3
    setting = LinearSetting(d=d, k=k, epsilon=0.0, sigma=sigma)
    parameters = LinearThompsonParameters(regularisation=1.0, noise_std=sigma)
    # The policy's stream "posterior" under the same path holds the same draws.
    policies = [
        LinearThompson(parameters, ProblemShape(k, arm_dim=d), Streams(seed).child("theory"))
        for seed in range(seeds)
    ]
    for played in play(setting, Scenario(horizon=700, seeds=seeds, inflate=False)):
        contexts = [Context(arm_features=played.observed[j]) for j in range(seeds)]
        arms = [policy.choose(context) for policy, context in zip(policies, contexts, strict=True)]
        assert arms == played.arms.tolist(), f"in round {played.t}"
        rewards = [float(played.rewards[j]) for j in range(seeds)]
        for policy, context, arm, reward in zip(policies, contexts, arms, rewards, strict=True):
            policy.learn(Event(context, arm, reward))
