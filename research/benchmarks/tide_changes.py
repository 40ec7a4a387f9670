"""Published and drawn change-point worlds, each played many times: `tide` beside GLR-klUCB, world
by world.

    python -m research.benchmarks.tide_changes run --out research/results/tide_changes.csv
    python -m research.benchmarks.tide_changes table research/results/tide_changes.csv [--write]

A world is what its means are in every round: the two published ones, and of each kind that is drawn
(one arm changes at a time, or all at once; 3 to 6 arms, 3 to 9 changes in 5,000 rounds) as many as
`--worlds` says. Ten trials of a world differ in the noise of rewards and in what policies draw, and
the noise is the same for all policies; a world's ratio is one of mean regrets. A single trial's
ratio says little: now and then GLR-klUCB is lucky, and the specialist who is told the change times
loses to it, too. One row for each trial; what is in the file is not played again.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.glr import GLRklUCB
from research.benchmarks.regret_rows import write_between
from research.benchmarks.specialists import KnowsStretches
from research.benchmarks.world_trials import LAB, Book, Row, read_rows, same_settings
from tidepull.experiments.loop import run_trial
from tidepull.problems.arms import DriftingArms
from tidepull.problems.change_points import (
    ChangePointsParameters,
    Stretches,
    change_points_bernoulli,
)
from tidepull.problems.rewards import BernoulliReward
from tidepull.random import Streams

ROUNDS, FIRST, TRIALS = 5000, 67_000, 10
PUBLISHED, DRAWN = ("published-local", "published-global"), ("one-arm", "all-arms")
FIELDS = ("kind", "world", "seed", "policy", "parameters", "regret")


def stretches(kind: str, world: int) -> Stretches:
    """What arms pay on average, from which round on."""
    rng = np.random.default_rng([world, 9])
    if kind in PUBLISHED:
        parameters = ChangePointsParameters(levels=kind)  # type: ignore[arg-type]
    else:
        parameters = ChangePointsParameters(
            changes=int(rng.integers(3, 10)),
            n_arms=int(rng.integers(3, 7)),
            together=kind == "all-arms",
        )
    drift = change_points_bernoulli(parameters, Streams(world)).drift
    assert isinstance(drift, Stretches)
    return drift


def regret(drift: Stretches, seed: int, policy: str, settings: dict[str, Any]) -> float:
    """Of one trial."""
    problem = DriftingArms(drift, BernoulliReward(Streams(seed).generator("noise")))
    n_arms, changes = drift.values.shape[1], len(drift.starts) - 1
    learner: Any = ("tide", settings)
    if policy == "glr":
        learner = GLRklUCB(n_arms, ROUNDS, changes)
    elif policy == "specialist":
        learner = KnowsStretches(np.array([drift(t) for t in range(ROUNDS)]), None, seed)
    return float(run_trial(problem, learner, horizon=ROUNDS, seed=seed).regret[-1])


def worlds(first: int, count: int) -> Iterator[tuple[str, int]]:
    """The published ones, then those that are drawn."""
    for kind in PUBLISHED:
        yield kind, 0
    for world in range(first, first + count):
        for kind in DRAWN:
            yield kind, world


def run(
    out: Path, first: int, count: int, policies: Sequence[str], label: str, settings: dict[str, Any]
) -> None:
    """Whatever is not in the file yet, a trial of every world before the next one."""
    book = Book(out, FIELDS)
    same_settings((row for row in book.rows if row["policy"] == label), settings)
    done = {(row["kind"], int(row["world"]), int(row["seed"]), row["policy"]) for row in book.rows}
    for trial in range(TRIALS):
        for kind, world in worlds(first, count):
            seed = 10_000 * (1 + trial) + (world or first)
            for policy in (label if name == "tide" else name for name in policies):
                if (kind, world, seed, policy) in done:
                    continue
                found = regret(stretches(kind, world), seed, policy, settings)
                book.add(
                    {
                        "kind": kind, "world": world, "seed": seed, "policy": policy, "regret": round(found, 2),
                        "parameters": json.dumps(settings) if policy == label else "",
                    }
                )  # fmt: skip


def table(rows: Sequence[Row], label: str) -> str:
    """A line for each world: mean regrets over the trials that all have played, and both ratios to
    GLR-klUCB."""
    found: dict[tuple[str, int], dict[str, dict[int, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in rows:
        found[row["kind"], int(row["world"])][row["policy"]][int(row["seed"])] = float(
            row["regret"]
        )
    lines = [
        f"| world | trials | specialist | glr | {label} | specialist / glr | {label} / glr |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    ratios, told = [], []
    for (kind, world), played in found.items():
        names = ("specialist", "glr", label)
        common = set.intersection(*(set(played[name]) for name in names))
        if not common:
            continue
        knows, glr, ours = (
            float(np.mean([played[name][seed] for seed in common])) for name in names
        )
        ratios.append(ours / glr)
        told.append(knows / glr)
        name = kind if kind in PUBLISHED else f"{kind} {world}"
        lines.append(
            f"| {name} | {len(common)} | {knows:.1f} | {glr:.1f} | {ours:.1f} | {told[-1]:.2f} | "
            f"{ratios[-1]:.2f} |"
        )
    lines.append(f"| **mean** | | | | | {np.mean(told):.2f} | {np.mean(ratios):.2f} |")
    lines.append(f"| largest | | | | | {max(told):.2f} | {max(ratios):.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    running = what.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--first", type=int, default=FIRST)
    running.add_argument("--worlds", type=int, default=5, help="of each kind that is drawn")
    running.add_argument("--policies", default="specialist,glr,tide")
    running.add_argument("--tide", type=json.loads, default={}, help="JSON, parameters of tide")
    running.add_argument("--label", default="tide")
    showing = what.add_parser("table")
    showing.add_argument("file", type=Path)
    showing.add_argument("--of", default="tide")
    showing.add_argument("--write", action="store_true", help="into research/lab/tide.md")
    given = parser.parse_args()
    if given.what == "run":
        policies = given.policies.split(",")
        run(given.out, given.first, given.worlds, policies, given.label, given.tide)
        return
    made = table(read_rows(given.file), given.of)
    print(made)
    if given.write:
        write_between(LAB, "changes", made)


if __name__ == "__main__":
    main()
