"""One decision and its update between trainings: how long a caller waits."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from tidepull._internal.system import one_blas_thread
from tidepull.policies import build_policy
from tidepull.registry import Named
from tidepull.types import Context, Event, ProblemShape

ROUNDS, TRAIN_EVERY = 4096, 512
CASES: dict[str, ProblemShape] = {
    "25 arms": ProblemShape(25),
    "25 arms with 10 features each": ProblemShape(25, arm_dim=10),
    "10 arms, an image of 784 pixels": ProblemShape(10, observation_dim=784),
}


@dataclass(frozen=True)
class DecisionRow:
    """Microseconds of `choose` + `learn`, of the processor."""

    policy: str
    case: str
    median: float
    p99: float


def measure(policy: str, case: str) -> DecisionRow:
    """Rounds in which no training is due, with 32 units in each layer."""
    shape, rng = CASES[case], np.random.default_rng(0)
    named: Named = (policy, {"units": [32, 32, 32], "train_every": TRAIN_EVERY, "epochs": 1})
    learner = build_policy(named, shape, seed=0)
    times = []
    with one_blas_thread():
        for t in range(ROUNDS):
            context = Context(
                observation=rng.random(shape.observation_dim) if shape.observation_dim else None,
                arm_features=rng.random((shape.n_arms, shape.arm_dim)) if shape.arm_dim else None,
            )
            reward = float(rng.random())
            started = time.thread_time_ns()
            arm = learner.choose(context)
            learner.learn(Event(context, arm, reward))
            if t % TRAIN_EVERY and t > 100:
                times.append(time.thread_time_ns() - started)
    median, p99 = np.percentile(times, [50, 99]) / 1e3
    return DecisionRow(policy, case, median, p99)
