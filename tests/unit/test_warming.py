"""What one process has compiled, no other compiles again."""

from __future__ import annotations

import subprocess
import sys

import tidepull

_SECOND = """
import numpy as np
import tidepull
from tidepull.policies import build_policy
from tidepull.encoders import compiling
from tidepull.types import Context, Event, ProblemShape

with compiling(lambda: None) as listener:
    for shape in (ProblemShape(3), ProblemShape(3, arm_dim=4)):
        policy, rng = build_policy("tide", shape, seed=1), np.random.default_rng(1)
        for t in range(40):
            seen = Context(arm_features=rng.normal(size=(3, 4)) if shape.arm_dim else None)
            policy.learn(Event(seen, policy.choose(seen), float(rng.normal())))
            while policy.upkeep():
                pass
    for context in ({}, {"age": float}):
        agent = tidepull.Agent.memory(arms=["a", "b"], context=context)
        for t in range(40):
            decision = agent.choose({"age": 30.0 + t} if context else {})
            agent.reward(decision.id, float(t % 2))
        agent.close()
print("compiled" if listener.seen else "found all")
"""


def test_other_process_finds_all_kernels_after_warm_up() -> None:
    tidepull.warm_up()
    told = subprocess.run(
        [sys.executable, "-c", _SECOND], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "found all"
