"""How large the snapshots of the default networks are after 4,096 rounds, and how long they take.

python -m research.benchmarks.snapshot_size    print the table, and put it into research/lab/neural.md
"""

from __future__ import annotations

import time

from research.benchmarks.regret_rows import ROOT, write_between
from tidepull import state as snapshots
from tidepull.policies import build_policy
from tidepull.problems import build_problem, shape_of
from tidepull.protocols import Policy
from tidepull.types import Event

ROUNDS = 4096
PROBLEMS = ("sinusoidal-bernoulli", "rotating-vector-32", "wall-following", "flipping-digits")


def measure(id: str, problem: str) -> str:
    world = build_problem(problem, seed=0)
    policy = build_policy((id, {"train_every": ROUNDS + 1}), shape_of(world), seed=0)
    assert isinstance(policy, Policy)
    n_arms = world.n_arms
    for t in range(ROUNDS):
        context = world.context()
        policy.learn(Event(context, t % n_arms, world.step(t % n_arms)))
    started = time.perf_counter()
    data = snapshots.dump(policy.snapshot())
    taken = time.perf_counter()
    policy.restore(snapshots.load(data))
    restored = time.perf_counter()
    return (
        f"| `{id}` | `{problem}` | {len(data) / 1e6:.2f} MB | "
        f"{1e3 * (taken - started):.0f} ms | {1e3 * (restored - taken):.0f} ms |"
    )


def main() -> None:
    lines = ["| policy | problem | size | to bytes | from bytes |", "|---|---|---:|---:|---:|"]
    lines += [measure(id, problem) for id in ("rnlps", "nlps") for problem in PROBLEMS]
    text = "\n".join(lines)
    print(text)
    write_between(ROOT / "research" / "lab" / "neural.md", "snapshot-size", text)


if __name__ == "__main__":
    main()
