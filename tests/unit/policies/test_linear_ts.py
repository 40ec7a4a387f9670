from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tidepull.policies import build_policy
from tidepull.policies.guard import Guarded
from tidepull.policies.linear import LinearThompson
from tidepull.types import Context, Event, ProblemShape

LAMBDA, SIGMA, FACTOR = 0.3, 0.4, 1.7


def make(shape: ProblemShape) -> Guarded:
    settings = {"regularisation": LAMBDA, "noise_std": SIGMA, "exploration": FACTOR}
    policy = build_policy(("lin-ts", settings), shape, seed=1)
    assert isinstance(policy.inner, LinearThompson)
    return policy


def test_two_arms_are_chosen_as_often_as_the_closed_form_says() -> None:
    policy = make(ProblemShape(n_arms=2, arm_dim=3))
    rng = np.random.default_rng(0)
    V, b = LAMBDA * np.eye(3), np.zeros(3)
    for _ in range(6):
        features = rng.normal(size=(2, 3))
        reward = float(rng.normal())
        policy.learn(Event(Context(arm_features=features), 1, reward))
        V, b = V + np.outer(features[1], features[1]), b + reward * features[1]
    features = rng.normal(size=(2, 3)) * 0.3
    difference = features[0] - features[1]
    inverse = np.linalg.inv(V)
    z = difference @ inverse @ b / (FACTOR * SIGMA * np.sqrt(difference @ inverse @ difference))
    chance = stats.norm.cdf(z)
    assert 0.1 < chance < 0.9
    n = 6000
    share = np.mean([policy.choose(Context(arm_features=features)) == 0 for _ in range(n)])
    assert abs(share - chance) < 4.5 * np.sqrt(chance * (1 - chance) / n)


@pytest.mark.parametrize(
    "shape", [ProblemShape(n_arms=3), ProblemShape(n_arms=3, observation_dim=2)]
)
def test_best_arm_is_found_without_arm_vectors(shape: ProblemShape) -> None:
    policy = make(shape)
    rng = np.random.default_rng(2)
    chosen = []
    for _ in range(300):
        observation = rng.normal(size=2) if shape.observation_dim else None
        given = Context(observation=observation)
        best = 1 if observation is None else (0 if observation[0] > 0 else 2)
        arm = policy.choose(given)
        chosen.append(arm == best)
        mean = (
            [0.2, 1.0, 0.0][arm]
            if observation is None
            else [observation[0], -1.0, -observation[0]][arm]
        )
        policy.learn(Event(given, arm, mean + 0.1 * float(rng.normal())))
    assert np.mean(chosen[150:]) > 0.9
