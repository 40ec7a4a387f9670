"""A policy beside its twin, which is restored from a snapshot in the middle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidepull.policies import build_policy
from tidepull.types import Context, Event, ProblemShape

Round = Callable[[np.random.Generator], tuple[Context, Callable[[int], float]]]
"""What is seen in a round, and what each arm pays."""


def arms_after_restoring(
    shape: ProblemShape, see: Round, rounds: int, at: int
) -> tuple[list[int], list[int]]:
    """What `tide` plays from round `at` on, and what its twin plays that was restored then."""
    rng = np.random.default_rng(7)
    first = build_policy("tide", shape, seed=5)
    policies, played = [first], [list[int](), list[int]()]
    for i in range(rounds):
        context, paid = see(rng)
        if i == at:
            policies.append(build_policy("tide", shape, seed=9))
            policies[1].restore(first.snapshot())
        for policy, arms in zip(policies, played, strict=False):
            arms.append(policy.choose(context))
            policy.learn(Event(context, arms[-1], paid(arms[-1])))
            while policy.upkeep():
                pass
    return played[0][at:], played[1]
