"""`tide` beside its controls where nothing was decided: other zones of electricity, other shops.

    python -m research.benchmarks.tide_held_out run [--worlds electricity,shops] [--seeds 58000:58010]
    python -m research.benchmarks.tide_held_out table

Electricity: prices of zones that the stream `electricity` does not have, and the first six zones
from 2023 on. `value` is the mean price that was paid in the second half, USD/MWh. Shops: `value` is
the regret of a whole trial. Writes to research/results/tide_held_out.csv, and goes on where it
stopped; the figures are in research/lab/tide.md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from tidepull.experiments.loop import run_trial
from tidepull.problems.shops import SHOPS
from tidepull.problems.streams import electricity_rewards, path_of
from tidepull.problems.tables import TableWorld, WorldTable
from tidepull.types import FloatArray

OUT = Path(__file__).parents[1] / "results" / "tide_held_out.csv"
FIELDS = ("world", "seed", "policy", "value")
POLICIES = {"electricity": ("tide", "hand-ts", "hour-weekend-table"), "shops": ("tide", "hand-ts")}
NO_SHOPS = ("early-clicks", "wear-out")
"""Not among the ten shops."""
ZONES = {
    "electricity, last six zones": (slice(2, 8), 0),
    "electricity, all eight zones": (slice(0, 8), 0),
    "electricity, first six zones from 2023 on": (slice(0, 6), 8760),
}
"""Columns of prices, and the first hour."""


def prices(name: str) -> WorldTable:
    """The world of some zones."""
    columns, start = ZONES[name]
    with gzip.open(path_of("electricity"), "rt") as file:
        rows = np.loadtxt(file, delimiter=",", skiprows=1)[start:]
    rewards = electricity_rewards(rows[:, 1:][:, columns])
    return WorldTable(rewards, rewards, rows[:, 0])


def second_half(rewards: FloatArray) -> float:
    """Mean price of the second half."""
    return -float(rewards[len(rewards) // 2 :].mean())


def play_electricity(name: str, seed: int, policy: str) -> float:
    """The mean price that a policy pays."""
    table = prices(name)
    trial = run_trial(TableWorld(table), policy, horizon=len(table), seed=seed)
    return second_half(trial.rewards)


def play_shop(kind: str, seed: int, policy: str) -> float:
    """The regret of a policy."""
    trial = run_trial(("shop", {"kind": kind}), policy, horizon=SHOPS[kind].rounds, seed=seed)
    return float(trial.regret[-1])


def run(out: Path, worlds: list[str], seeds: range, kinds: list[str]) -> None:
    """All trials that are not in the file yet; electricity is the same under every seed."""
    done = set()
    if out.exists():
        with out.open() as file:
            done = {(row["world"], row["seed"], row["policy"]) for row in csv.DictReader(file)}
    jobs: list[tuple[str, int, Any]] = []
    if "electricity" in worlds:
        jobs += [(name, seed, play_electricity) for name in ZONES for seed in seeds[:3]]
    if "shops" in worlds:
        jobs += [(kind, seed, play_shop) for kind in kinds for seed in seeds]
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for name, seed, play in jobs:
            for policy in POLICIES["electricity" if name in ZONES else "shops"]:
                if (name, str(seed), policy) not in done:
                    value = round(play(name, seed, policy), 3)
                    writer.writerow(dict(zip(FIELDS, (name, seed, policy, value), strict=True)))
                    file.flush()


def table(out: Path) -> str:
    """Prices beside the best fixed zone and the oracle; regrets over that of `hand-ts`."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with out.open() as file:
        for row in csv.DictReader(file):
            found[row["world"]][row["policy"]].append(float(row["value"]))
    lines = ["| | oracle | best fixed zone | `hour-weekend-table` | `hand-ts` | `tide` |",
             "|---|---:|---:|---:|---:|---:|"]  # fmt: skip
    for name in found:
        if name in ZONES:
            rewards = prices(name).rewards
            later = rewards[len(rewards) // 2 :]
            values = [second_half(rewards.max(axis=1)), -float(later.mean(axis=0).max())]
            values += [
                float(np.mean(found[name][p])) for p in ("hour-weekend-table", "hand-ts", "tide")
            ]
            lines.append(f"| {name} | " + " | ".join(f"{v:.1f}" for v in values) + " |")
    lines += ["", "| shop | seeds | `hand-ts` | `tide` | ratio | difference, 95% |",
              "|---|---:|---:|---:|---:|---|"]  # fmt: skip
    ratios = []
    for kind in found:
        if kind not in ZONES:
            count = min(map(len, found[kind].values()))
            hand, tide = (np.array(found[kind][p][:count]) for p in ("hand-ts", "tide"))
            gap, error = (tide - hand).mean(), 1.96 * (tide - hand).std(ddof=1) / np.sqrt(count)
            ratios.append(tide.mean() / hand.mean())
            lines.append(
                f"| `{kind}` | {count} | {hand.mean():,.0f} | {tide.mean():,.0f} | {ratios[-1]:.2f} "
                f"| {gap:,.0f} ± {error:,.0f} |"
            )
    lines.append(f"| **geometric mean** | | | | {np.exp(np.mean(np.log(ratios))):.2f} | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--worlds", default="electricity,shops")
    parser.add_argument("--kinds", default=",".join(k for k in SHOPS if k not in NO_SHOPS))
    parser.add_argument("--seeds", default="58000:58010", help="first:stop")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    seeds = range(*map(int, given.seeds.split(":")))
    if given.what == "run":
        run(given.out, given.worlds.split(","), seeds, given.kinds.split(","))
    print(table(given.out))


if __name__ == "__main__":
    main()
