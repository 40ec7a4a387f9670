"""Small policies of every id, contexts of every kind, and rounds to play."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.policies import build_policy, policies
from tidepull.policies.guard import Guarded, GuardedOracle
from tidepull.types import Context, Event, ProblemShape

QUICK: dict[str, dict[str, Any]] = {
    # Small networks and few epochs: conformance is about contracts, not about learning.
    "rnlps": {"units": [8, 8, 8], "epochs": 2, "train_every": 16},
    "nlps": {"units": [8, 8, 8], "epochs": 2, "train_every": 16},
}
SHAPES = {
    "plain": ProblemShape(n_arms=4),
    "observation": ProblemShape(n_arms=3, observation_dim=5),
    "vectors": ProblemShape(n_arms=6, arm_dim=3),
}
IDS = policies.ids()
every_policy = pytest.mark.parametrize("id", IDS)
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


def make(id: str, shape: ProblemShape, seed: int = 0) -> Guarded:
    return build_policy((id, QUICK.get(id, {})), shape, seed=seed)


def contexts(shape: ProblemShape, n: int, *, masked: bool = False) -> list[Context]:
    rng = np.random.default_rng(5)
    made = []
    for _ in range(n):
        available = None
        if masked:
            available = rng.random(shape.n_arms) < 0.5
            available[rng.integers(shape.n_arms)] = True
        made.append(
            Context(
                observation=rng.normal(size=shape.observation_dim)
                if shape.observation_dim
                else None,
                arm_features=rng.normal(size=(shape.n_arms, shape.arm_dim))
                if shape.arm_dim
                else None,
                available=available,
            )
        )
    return made


def choose(policy: Guarded, context: Context, n_arms: int) -> int:
    if isinstance(policy, GuardedOracle):
        return policy.choose_knowing(context, np.linspace(0, 1, n_arms))
    return policy.choose(context)


def learn(policy: Guarded, event: Event) -> None:
    """As the loop does: all work that falls due is done at once."""
    policy.learn(event)
    while policy.upkeep():
        pass


def play(policy: Guarded, given: list[Context], n_arms: int, seed: int = 9) -> list[int]:
    rng = np.random.default_rng(seed)
    arms = []
    for context in given:
        arm = choose(policy, context, n_arms)
        learn(policy, Event(context, arm, float(rng.integers(2))))
        arms.append(arm)
    return arms
