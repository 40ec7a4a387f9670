"""Backtests of policies that learn beside running them for real in the same worlds: are they ranked
alike?

    python -m research.benchmarks.log_learners run [--worlds 12] [--rows 6000] [--seeds 5] [--tide]
    python -m research.benchmarks.log_learners table

Worlds are those of `log_estimators` (nothing changes, a daily swing, other means from the middle
on) with four arms, logged uniformly. A backtest takes about a quarter of the decisions; for real,
the policy plays every fourth row of the same means. Both are means over seeds. The table has
Spearman's rank correlation over policies, world by world.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from research.benchmarks.log_estimators import STEP, WORLDS, means_of
from tidepull.logs import Log
from tidepull.logs.log import ReadSummary
from tidepull.logs.models import RewardModel
from tidepull.logs.policies import play
from tidepull.policies import build_policy
from tidepull.registry import Named
from tidepull.types import Context, Event, FloatArray, ProblemShape

ARMS = 4
POLICIES: dict[str, Named] = {
    "random": "random",
    "first arm": ("fixed", {"arm": 0}),
    "ucb": "ucb",
    "ucb, xi 0.05": ("ucb", {"xi": 0.05}),
    "d-ucb, 0.99": ("d-ucb", {"discount": 0.99, "xi": 0.05}),
    "d-ucb, 0.95": ("d-ucb", {"discount": 0.95, "xi": 0.05}),
    "sw-ucb, 100": ("sw-ucb", {"window": 100, "xi": 0.1}),
    "sw-ucb, 30": ("sw-ucb", {"window": 30, "xi": 0.1}),
    "bernoulli-ts": "bernoulli-ts",
}
COLUMNS = ("world", "number", "policy", "rounds", "replay", "replay_dr", "real")


def logged(means: FloatArray, seed: int) -> Log:
    """A log of arms drawn uniformly."""
    rng = np.random.default_rng([seed, 99])
    rows = len(means)
    arm = rng.integers(ARMS, size=rows)
    reward = (rng.random(rows) < means[np.arange(rows), arm]).astype(float)
    labels = tuple(str(n) for n in range(ARMS))
    time, chance = STEP * np.arange(rows), np.full(rows, 1 / ARMS)
    return Log(
        labels,
        arm,
        reward,
        time,
        chance,
        None,
        None,
        {},
        False,
        "UTC",
        ReadSummary("made", "made", {}),
    )


def real(policy: Named, means: FloatArray, seed: int) -> float:
    """The mean expected reward of a policy that plays every fourth row."""
    rng = np.random.default_rng([seed, 98])
    learner = build_policy(policy, ProblemShape(ARMS), seed=seed)
    earned = []
    for n in range(0, len(means), ARMS):
        context = Context(time=STEP * n)
        arm = learner.choose(context)
        earned.append(means[n, arm])
        learner.learn(Event(context, arm, float(rng.random() < means[n, arm]), n // ARMS))
        while learner.upkeep():
            pass
    return float(np.mean(earned))


def world_rows(
    number: int, rows: int, seeds: int, policies: dict[str, Named]
) -> list[dict[str, Any]]:
    """Every policy in one world."""
    world = WORLDS[number % len(WORLDS)]
    means = means_of(world, ARMS, rows, np.random.default_rng([number, 97]))
    found = []
    for name, policy in policies.items():
        told = []
        for seed in range(seeds):
            log = logged(means, seed)
            played = play(log, policy, RewardModel(log), seed=seed)
            told.append(
                (len(played.rows), played.replay.value, played.dr.value, real(policy, means, seed))
            )
        taken, replay, dr, truth = np.mean(told, axis=0)
        found.append(
            {
                "world": world, "number": number, "policy": name, "rounds": f"{taken:.0f}", "replay": f"{replay:.5f}",
                "replay_dr": f"{dr:.5f}", "real": f"{truth:.5f}",
            }
        )  # fmt: skip
    return found


def correlations(rows: list[dict[str, Any]], column: str) -> dict[str, float]:
    """Spearman's rank correlation of a column with the truth, for every world."""
    made = {}
    for number in dict.fromkeys(row["number"] for row in rows):
        some = [row for row in rows if row["number"] == number]
        pairs = [(float(row[column]), float(row["real"])) for row in some]
        made[f"{some[0]['world']} {number}"] = float(stats.spearmanr(pairs).statistic)
    return made


def table(out: Path) -> None:
    """Markdown: rank correlation and mean error for every world."""
    with out.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    plain, robust = correlations(rows, "replay"), correlations(rows, "replay_dr")
    print("| world | rank correlation: `replay` | `replay-dr` |\n|---|---|---|")
    for world, value in plain.items():
        print(f"| {world} | {value:.2f} | {robust[world]:.2f} |")
    for column in ("replay", "replay_dr"):
        errors = [float(row[column]) - float(row["real"]) for row in rows]
        print(
            f"\n{column}: mean error {np.mean(errors):+.4f}, root mean square "
            f"{np.sqrt(np.mean(np.square(errors))):.4f}"
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=Path("research/results/log_learners.csv"))
    parser.add_argument("--worlds", type=int, default=12)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tide", action="store_true", help="tide too, which takes minutes a world")
    given = parser.parse_args()
    if given.what == "table":
        table(given.out)
        return
    policies = {**POLICIES, "tide": "tide"} if given.tide else POLICIES
    found: list[dict[str, Any]] = []
    for number in range(given.worlds):
        found += world_rows(number, given.rows, given.seeds, policies)
        with given.out.open("w", newline="") as handle:
            writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)


if __name__ == "__main__":
    main()
