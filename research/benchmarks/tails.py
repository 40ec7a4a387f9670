"""What a round costs, and how long a caller waits at the worst: `choose`, `learn` and slices of
`upkeep`.

    python -m research.benchmarks.tails [--rounds 20000] [--policies tide] [--out research/results/tails.csv]

Every call is timed in processor time of its thread, so that other work on the machine does not
count, but for the caches that it takes. Kernels are compiled before.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.machine import describe
from tidepull._internal.system import one_blas_thread
from tidepull.policies import build_policy
from tidepull.types import Context, Event, ProblemShape

FIELDS = (
    "world",
    "policy",
    "call",
    "calls",
    "p50_ms",
    "p99_ms",
    "p99.9_ms",
    "max_ms",
    "mean_ms",
    "total_s",
    "machine",
)
World = Callable[[int, np.random.Generator], tuple[Context, np.ndarray[Any, Any]]]
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "tide": ("tide", {}),
    "bernoulli-ts": ("bernoulli-ts", {}),
    "lin-ts": ("lin-ts", {}),
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
    """Ten arms of which the one named by twenty numbers pays, two of them exchanged every 64
    rounds."""
    label = int(rng.integers(10))
    x = rng.normal(size=20) + 2 * np.eye(10, 20)[label]
    right = (label + 5) % 10 if t // 64 % 2 else label
    return Context(observation=x), (np.arange(10) == right).astype(float)


def hours(t: int, rng: np.random.Generator) -> tuple[Context, np.ndarray[Any, Any]]:
    """Eight arms that swing with the hour of the day, a decision every ten minutes."""
    now = 1.7e9 + 600.0 * t
    means = 0.5 + 0.5 * np.sin(2 * np.pi * (now / 86_400 + np.arange(8) / 8))
    return Context(time=now), (rng.random(8) < means).astype(float)


def shop(t: int, rng: np.random.Generator) -> tuple[Context, np.ndarray[Any, Any]]:
    """What an agent with five arms and five fields shows its policy: room for eight arms, fourteen
    numbers and the time, a decision every minute."""
    x = rng.normal(size=14)
    return Context(observation=x, time=1.78e9 + 60.0 * t), (
        rng.random(8) < 0.2 + 0.2 * (x[0] > 0)
    ).astype(float)


def many(_: int, rng: np.random.Generator) -> tuple[Context, np.ndarray[Any, Any]]:
    """A thousand arms that pay 0 or 1 and do not change."""
    return Context(), (rng.random(1000) < np.linspace(0.1, 0.9, 1000)).astype(float)


def many_vectors(_: int, rng: np.random.Generator) -> tuple[Context, np.ndarray[Any, Any]]:
    """A thousand arms with vectors of twenty numbers, whose weights do not change."""
    X = rng.normal(size=(1000, 20))
    return Context(arm_features=X), X @ np.linspace(-0.4, 0.4, 20) + 0.1 * rng.normal(size=1000)


WORLDS: dict[str, tuple[ProblemShape, World]] = {
    "arms": (ProblemShape(8), arms),
    "vectors": (ProblemShape(10, arm_dim=10), vectors),
    "labels": (ProblemShape(10, observation_dim=20), labels),
    "hours": (ProblemShape(8), hours),
    "shop": (ProblemShape(8, observation_dim=14), shop),
    "many": (ProblemShape(1000), many),
    "many vectors": (ProblemShape(1000, arm_dim=20), many_vectors),
}
CASES = [
    *(
        (world, "tide")
        for world in ("arms", "vectors", "labels", "hours", "shop", "many", "many vectors")
    ),
    ("arms", "bernoulli-ts"),
    ("many", "bernoulli-ts"),
    ("many vectors", "lin-ts"),
    ("arms", "rnlps"),
    ("arms", "rnlps, memory 1024"),
]
SHORTER = {"many": 10, "many vectors": 10}
"""Worlds of which so many times fewer rounds are played."""


def timed(world: str, policy: str, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of every call."""
    shape, see = WORLDS[world]
    learner = build_policy(POLICIES[policy], shape, seed=0)
    rng = np.random.default_rng(0)
    spent: dict[str, list[float]] = {"choose": [], "learn": [], "slice of upkeep": []}
    each_round: list[float] = []

    def clock(name: str, call: Callable[..., Any], *given: Any) -> Any:
        started = time.thread_time()
        result = call(*given)
        spent[name].append(1e3 * (time.thread_time() - started))
        return result

    for t in range(rounds):
        context, rewards = see(t, rng)
        arm = clock("choose", learner.choose, context)
        clock("learn", learner.learn, Event(context, arm, float(rewards[arm])))
        before = len(spent["slice of upkeep"])
        while clock("slice of upkeep", learner.upkeep):
            pass
        each_round.append(sum(spent["slice of upkeep"][before:]))
    spent["round"] = list(np.add(spent["choose"], spent["learn"]) + each_round)
    return spent


COLUMNS = [
    "world", "policy", "rounds", "round, mean", "`choose` 50%, 99.9%", "`learn` 50%, 99.9%", "slices 99.9%, most",
]  # fmt: skip


def cells(world: str, policy: str, found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a round of a policy costs on average, and the tails of its calls."""
    one, piece = found["round"], found["slice of upkeep"]
    spans = [
        f"{float(found[call]['p50_ms']):.2f}, {float(found[call]['p99.9_ms']):.2f}"
        for call in ("choose", "learn")
    ]
    slices = f"{float(piece['p99.9_ms']):.1f}, {float(piece['max_ms']):.1f}"
    counted, mean = f"{int(one['calls']):,}", f"{float(one['mean_ms']):.3f}"
    return [world, f"`{policy}`", counted, mean, *spans, slices]


def table(path: Path) -> str:
    """A line for every world and policy in a file."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            found.setdefault((row["world"], row["policy"]), {})[row["call"]] = row
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|---|---:|---:|---:|---:|---:|"]
    lines += ["| " + " | ".join(cells(*key, calls)) + " |" for key, calls in found.items()]
    return "\n".join(lines)


def measure(world: str, policy: str, rounds: int) -> dict[str, dict[str, Any]]:
    """The fields of every call."""
    timed(world, policy, min(300, rounds))  # compiles
    made = {}
    for call, each in timed(world, policy, max(1, rounds // SHORTER.get(world, 1))).items():
        quantiles = [round(float(np.percentile(each, q)), 4) for q in (50, 99, 99.9, 100)]
        mean, total = round(float(np.mean(each)), 4), round(sum(each) / 1e3, 1)
        values = (world, policy, call, len(each), *quantiles, mean, total, describe())
        made[call] = dict(zip(FIELDS, values, strict=True))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--table", action="store_true", help="print what --out has as a table, run nothing"
    )
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--policies", nargs="*", default=list(POLICIES))
    parser.add_argument("--out", type=Path, default=Path("research/results/tails.csv"))
    given = parser.parse_args()
    if given.table:
        print(table(given.out))
        return
    with given.out.open("w", newline="") as file, one_blas_thread():
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for world, policy in CASES:
            if policy in given.policies:
                rows = measure(world, policy, given.rounds).values()
                writer.writerows(rows)
                file.flush()
                for row in rows:
                    print(*list(row.values())[:-1], flush=True)


if __name__ == "__main__":
    main()
