from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.integrations.direct import direct, library_seed
from tidepull.experiments.loop import run_trial
from tidepull.types import Context

pytest.importorskip("bayesianbandits")

from bayesianbandits import (
    Agent,
    Arm,
    ContextualAgent,
    NormalInverseGammaRegressor,
    ThompsonSampling,
    UpperConfidenceBound,
)

SEED = 3


def arms_with_learners(n: int) -> list[Any]:
    return [Arm(k, learner=NormalInverseGammaRegressor()) for k in range(n)]


@pytest.mark.parametrize(
    ("id", "rule"),
    [
        ("bayesianbandits-ts", ThompsonSampling()),
        ("bayesianbandits-ucb", UpperConfidenceBound(alpha=0.84)),
    ],
)
def test_a_trial_without_contexts_has_the_arms_of_its_plain_agent(id: str, rule: Any) -> None:
    agent = Agent(arms_with_learners(8), rule, random_seed=library_seed(SEED))
    arms = direct(
        "flipping-gaussian",
        40,
        seed=SEED,
        choose=lambda _: agent.pull()[0],
        learn=lambda _, arm, reward: agent.select_for_update(arm).update(np.array([reward])),
    )
    assert run_trial("flipping-gaussian", id, horizon=40, seed=SEED).arms.tolist() == arms
    assert len(set(arms)) > 3


def test_a_trial_with_contexts_has_the_arms_of_its_contextual_agent_that_forgets() -> None:
    agent = ContextualAgent(
        arms_with_learners(10), ThompsonSampling(), random_seed=library_seed(SEED)
    )

    def row(context: Context) -> Any:
        assert context.observation is not None
        return np.array([[1.0, *context.observation]])

    def choose(context: Context) -> int:
        agent.decay(decay_rate=0.9)
        return int(agent.pull(row(context))[0])

    def learn(context: Context, arm: int, reward: float) -> None:
        agent.select_for_update(arm).update(row(context), np.array([reward]))

    arms = direct("steady-contexts", 40, seed=SEED, choose=choose, learn=learn)
    named = ("bayesianbandits-ts", {"decay_rate": 0.9})
    assert run_trial("steady-contexts", named, horizon=40, seed=SEED).arms.tolist() == arms


def test_vectors_of_arms_are_read_by_one_regression_as_by_hand() -> None:
    learner = NormalInverseGammaRegressor(random_state=np.random.default_rng(library_seed(SEED)))

    def choose(context: Context) -> int:
        assert context.arm_features is not None
        return int(np.argmax(learner.sample(context.arm_features)[0]))

    def learn(context: Context, arm: int, reward: float) -> None:
        assert context.arm_features is not None
        learner.partial_fit(context.arm_features[[arm]], np.array([reward]))

    arms = direct("rotating-vector-2048", 60, seed=SEED, choose=choose, learn=learn)
    trial = run_trial("rotating-vector-2048", "bayesianbandits-ts", horizon=60, seed=SEED)
    assert trial.arms.tolist() == arms
    blind = run_trial("rotating-vector-2048", "random", horizon=60, seed=SEED)
    assert trial.regret[-1] < 0.5 * blind.regret[-1]
