"""The table on the front page: `python -m manual.front play` plays what is missing, `write` writes
it into the README.

Policies of other libraries at the settings that their documentation recommends, beside `tide`, in
five kinds of world whose rewards are 0 and 1 and in which nothing is seen, so that all of them can
play. Same seeds for all.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path

import numpy as np

import tidepull
from manual.writing import between

ROOT = Path(__file__).parents[1]
CSV = ROOT / "research" / "results" / "front.csv"
HORIZON, SEEDS = 2048, range(40_000, 40_010)
WORLDS = {
    "sinusoidal-bernoulli": "a season of 32 rounds",
    "flipping-bernoulli": "two phases of 10 rounds",
    "returning-regimes": "regimes that return, irregularly",
    "change-points-bernoulli": "abrupt changes, nothing returns",
    "stationary-bernoulli": "nothing changes",
}
POLICIES = {
    "tide": "`tide`",
    "vw-squarecb": "Vowpal Wabbit, SquareCB",
    "mabwiser-thompson": "mabwiser, Thompson",
    "river-ucb": "river, UCB",
    "bayesianbandits-ts": "bayesianbandits, Thompson",
    "smpy-discounted-ts": "SMPyBandits, discounted Thompson",
    "smpy-glr-klucb": "SMPyBandits, GLR-klUCB",
    "random": "random arms",
}
PACKAGES = ("vowpalwabbit", "mabwiser", "river", "bayesianbandits", "SMPyBandits")


def play() -> None:
    known = {tuple(row[:3]) for row in csv.reader(CSV.open())} if CSV.exists() else set()
    with CSV.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not known:
            writer.writerow(["problem", "policy", "seed", "regret", "seconds"])
        for seed in SEEDS:
            for world in WORLDS:
                for policy in POLICIES:
                    if (world, policy, str(seed)) not in known:
                        trial = tidepull.run_trial(world, policy, horizon=HORIZON, seed=seed)
                        writer.writerow(
                            [world, policy, seed, f"{trial.regret[-1]:.2f}", f"{trial.seconds:.2f}"]
                        )
                        file.flush()


def write() -> None:
    rows = _complete(list(csv.DictReader(CSV.open())))
    head = ["", *(f"{says}<br>`{world}`" for world, says in WORLDS.items())]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * len(WORLDS)]
    means = {
        (policy, world): np.array(
            [float(r["regret"]) for r in rows if r["policy"] == policy and r["problem"] == world]
        )
        for policy in POLICIES
        for world in WORLDS
    }
    least = {world: min(means[policy, world].mean() for policy in POLICIES) for world in WORLDS}
    for policy, name in POLICIES.items():
        cells = [_cell(means[policy, world], least[world]) for world in WORLDS]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    seeds = sorted({int(row["seed"]) for row in rows})
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    played = f"{HORIZON:,} rounds, seeds {seeds[0]} to {seeds[-1]} ({len(seeds)})"
    said = f"{played}; tidepull {tidepull.__version__}, {packages}."
    between(ROOT / "README.md", "front", "\n".join([*lines, "", said]))


def _complete(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows of seeds under which everybody has played everywhere."""
    played = Counter(row["seed"] for row in rows)
    return [row for row in rows if played[row["seed"]] == len(WORLDS) * len(POLICIES)]


def _cell(values: np.ndarray, least: float) -> str:
    text = f"{values.mean():,.0f} ± {values.std(ddof=1):,.0f}"
    return f"**{text}**" if values.mean() == least else text


if __name__ == "__main__":
    {"play": play, "write": write}[sys.argv[1]]()
