"""A thousand arms: `tide` beside the policy that knows how the world is made.

    python -m research.benchmarks.many_arms [--rounds 2000] [--seeds 2] [--out research/results/many_arms.csv]

`arms`: a thousand arms pay 0 or 1 with chances drawn uniformly; who knows that is `bernoulli-ts`.
`vectors`: a thousand new vectors of twenty numbers in every round, rewards linear in them with
noise 0.1; who knows that is `lin-ts`, told the noise.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.machine import describe
from tidepull._internal.system import one_blas_thread
from tidepull.policies import build_policy
from tidepull.types import Context, Event, FloatArray, ProblemShape

ARMS, LENGTH, NOISE = 1000, 20, 0.1
FIELDS = ("world", "policy", "seed", "rounds", "regret", "ms_a_round", "machine")
TIDE: tuple[str, dict[str, Any]] = ("tide", {})
WORLDS: dict[str, tuple[ProblemShape, list[tuple[str, dict[str, Any]]]]] = {
    "arms": (ProblemShape(ARMS), [("bernoulli-ts", {}), TIDE]),
    "vectors": (ProblemShape(ARMS, arm_dim=LENGTH), [("lin-ts", {"noise_std": NOISE}), TIDE]),
}


def rounds_of(
    world: str, rounds: int, seed: int
) -> Iterator[tuple[Context, FloatArray, FloatArray]]:
    """Contexts, expected rewards and rewards of every arm."""
    rng = np.random.default_rng(seed)
    chances, weights = rng.random(ARMS), rng.normal(size=LENGTH) / np.sqrt(LENGTH)
    for _ in range(rounds):
        if world == "arms":
            yield Context(), chances, (rng.random(ARMS) < chances).astype(float)
        else:
            X = rng.normal(size=(ARMS, LENGTH))
            means = X @ weights
            yield Context(arm_features=X), means, means + NOISE * rng.normal(size=ARMS)


def played(
    world: str, policy: tuple[str, dict[str, Any]], rounds: int, seed: int
) -> tuple[float, float]:
    """Regret, and milliseconds of processor time a round."""
    learner, regret, spent = build_policy(policy, WORLDS[world][0], seed=seed), 0.0, 0.0
    for context, means, rewards in rounds_of(world, rounds, seed):
        started = time.thread_time()
        arm = learner.choose(context)
        learner.learn(Event(context, arm, float(rewards[arm])))
        while learner.upkeep():
            pass
        spent += time.thread_time() - started
        regret += float(means.max() - means[arm])
    return regret, 1e3 * spent / rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("research/results/many_arms.csv"))
    given = parser.parse_args()
    with given.out.open("w", newline="") as file, one_blas_thread():
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        for seed in range(given.seeds):
            for world, (_, policies) in WORLDS.items():
                for policy in policies:
                    regret, ms = played(world, policy, given.rounds, seed)
                    row = (world, policy[0], seed, given.rounds, round(regret, 1), round(ms, 4))
                    writer.writerow((*row, describe()))
                    file.flush()
                    print(*row, flush=True)


if __name__ == "__main__":
    main()
