from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.integrations.direct import direct, library_seed
from tidepull.experiments.loop import run_trial
from tidepull.policies import build_policy
from tidepull.types import Context, Event, ProblemShape

gittins: Any = pytest.importorskip("gittins")

SEED = 3


class ByHand:
    """The loop of gittins' own page."""

    def __init__(self, seed: int, n_arms: int, **settings: Any) -> None:
        self.state = gittins.create(**{"bits": 8, "horizon": 8192.0} | settings)
        self.salt = str(library_seed(seed))
        self.n_arms = n_arms
        self.now = 0.0
        self.decision = ""

    def choose(self, context: Context) -> int:
        self.now += 1
        gittins.expire(self.state, self.now)
        vectors = context.arm_features
        arms = [
            (f"arm{k}", {} if vectors is None else self.named("v", vectors[k]))
            for k in range(self.n_arms)
        ]
        seen = {} if context.observation is None else self.named("x", context.observation)
        record = gittins.decide(self.state, seen, arms, self.now, self.salt)
        self.decision = record.decision_id
        return int(record.chosen)

    def learn(self, context: Context, arm: int, reward: float) -> None:
        gittins.learn(self.state, self.decision, reward, self.now)

    def named(self, name: str, values: Any) -> dict[str, float]:
        return {f"{name}{i}": float(value) for i, value in enumerate(values)}


@pytest.mark.parametrize(
    ("problem", "n_arms"),
    [("flipping-bernoulli", 8), ("steady-contexts", 10), ("rotating-vector-32", 25)],
)
def test_a_trial_has_the_arms_of_gittins_driven_directly(problem: str, n_arms: int) -> None:
    hand = ByHand(SEED, n_arms)
    arms = direct(problem, 150, seed=SEED, choose=hand.choose, learn=hand.learn)
    assert run_trial(problem, "gittins", horizon=150, seed=SEED).arms.tolist() == arms
    assert len(set(arms)) > 2


def test_settings_reach_gittins() -> None:
    hand = ByHand(SEED, 8, bits=12, epsilon=0.3, forgetfulness=0.9)
    arms = direct("flipping-bernoulli", 150, seed=SEED, choose=hand.choose, learn=hand.learn)
    named = ("gittins", {"bits": 12, "epsilon": 0.3, "forgetfulness": 0.9})
    assert run_trial("flipping-bernoulli", named, horizon=150, seed=SEED).arms.tolist() == arms
    assert run_trial("flipping-bernoulli", "gittins", horizon=150, seed=SEED).arms.tolist() != arms


def test_events_of_a_log_are_learnt_as_decisions_for_their_arms() -> None:
    policy = build_policy("gittins", ProblemShape(4), seed=0)
    for k in range(80):
        policy.learn(Event(Context(), k % 4, float(k % 4 == 2)))
    assert np.mean([policy.choose(Context()) == 2 for _ in range(50)]) > 0.8
