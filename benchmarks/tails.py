"""How long a caller waits at the worst: `choose`, `learn` and slices of `upkeep` over 20,000 rounds.

    python -m benchmarks.tails [--rounds 20000] [--out results/tails.csv]

Every call is timed in processor time of its thread, so that other work on the machine does not count, but for
the caches that it takes. Kernels are compiled before.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe
from tidepull.building import build_policy
from tidepull.threads import one_blas_thread
from tidepull.types import Context, Event, ProblemShape

FIELDS = ("world", "policy", "call", "calls", "p50_ms", "p99_ms", "p99.9_ms", "max_ms", "total_s", "machine")
World = Callable[[int, np.random.Generator], tuple[Context, np.ndarray[Any, Any]]]
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "tide": ("tide", {}),
    "rnlps": ("rnlps", {}),
    "rnlps, memory 1024": ("rnlps", {"memory": 1024}),
}


def arms(t: int, rng: np.random.Generator) -> tuple[Context, np.ndarray[Any, Any]]:
    """Eight arms that swing with a period of 37.3 rounds and pay 0 or 1."""
    means = 0.5 + 0.5 * np.sin(2 * np.pi * (t / 37.3 + np.arange(8) / 8))
    return Context(), (rng.random(8) < means).astype(float)


def vectors(t: int, rng: np.random.Generator) -> tuple[Context, np.ndarray[Any, Any]]:
    """Ten arms with vectors of ten numbers; the weights change sign every 64 rounds."""
    X = rng.normal(size=(10, 10))
    w = np.linspace(-1, 1, 10) * (1 if t // 64 % 2 else -1)
    return Context(arm_features=X), X @ w + 0.1 * rng.normal(size=10)


def labels(t: int, rng: np.random.Generator) -> tuple[Context, np.ndarray[Any, Any]]:
    """Ten arms of which the one named by twenty numbers pays, two of them exchanged every 64 rounds."""
    label = int(rng.integers(10))
    x = rng.normal(size=20) + 2 * np.eye(10, 20)[label]
    right = (label + 5) % 10 if t // 64 % 2 else label
    return Context(observation=x), (np.arange(10) == right).astype(float)


WORLDS: dict[str, tuple[ProblemShape, World]] = {
    "arms": (ProblemShape(8), arms),
    "vectors": (ProblemShape(10, arm_dim=10), vectors),
    "labels": (ProblemShape(10, observation_dim=20), labels),
}


def timed(world: str, policy: str, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of every call."""
    shape, see = WORLDS[world]
    learner = build_policy(POLICIES[policy], shape, seed=0)
    rng = np.random.default_rng(0)
    spent: dict[str, list[float]] = {"choose": [], "learn": [], "slice of upkeep": []}

    def clock(name: str, call: Callable[..., Any], *given: Any) -> Any:
        started = time.thread_time()
        result = call(*given)
        spent[name].append(1e3 * (time.thread_time() - started))
        return result

    for t in range(rounds):
        context, rewards = see(t, rng)
        arm = clock("choose", learner.choose, context)
        clock("learn", learner.learn, Event(context, arm, float(rewards[arm])))
        while clock("slice of upkeep", learner.upkeep):
            pass
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("results/tails.csv"))
    given = parser.parse_args()
    cases = [(world, "tide") for world in WORLDS] + [("arms", "rnlps"), ("arms", "rnlps, memory 1024")]
    with given.out.open("w", newline="") as file, one_blas_thread():
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        for world, policy in cases:
            timed(world, policy, 300)  # compiles
            for call, each in timed(world, policy, given.rounds).items():
                row = [round(float(np.percentile(each, q)), 4) for q in (50, 99, 99.9, 100)]
                writer.writerow([world, policy, call, len(each), *row, round(sum(each) / 1e3, 1), describe()])
                print(world, policy, call, len(each), row, f"{sum(each) / 1e3:.1f} s", flush=True)


if __name__ == "__main__":
    main()
