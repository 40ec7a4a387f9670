"""Figures of `tide`: weights of the families over the rounds, and the performance profile.

python research/benchmarks/tide_figures.py weights --out research/lab/figures/tide_weights.png python
research/benchmarks/tide_figures.py weights --rows --seed 20020 --out
research/lab/figures/tide_weights_rows.png python research/benchmarks/tide_figures.py profile
research/results/tide_dev.csv --out research/lab/figures/tide_profile.svg
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from tidepull.experiments.loop import play
from tidepull.policies import build_policy
from tidepull.problems import build_problem, shape_of
from tidepull.registry import Named
from tidepull.reporting.figures import colour
from tidepull.tide.models.families import FAMILIES

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.patches import Rectangle

SHOWN = (
    ("arms-stationary", 50001), ("arms-flip", 50000), ("arms-sine", 50000),
    ("arms-chain", 50000), ("arms-walk", 50000), ("outside-parity", 50000),
)  # fmt: skip


ROWS = {
    "flipping-gaussian": 4096, "flipping-bernoulli": 4096, "sinusoidal-bernoulli": 4096,
    "circular-markov-chain": 4096, "flipping-vector": 4096, "rotating-vector-32": 4096,
    "rotating-vector-2048": 4096, "stationary-bernoulli": 4096, "stationary-vector": 4096,
    "wall-following": 5455, "flipping-digits": 4095,
}  # fmt: skip
TUNED = ("d-ucb", "sw-ucb", "d-lin-ucb", "sw-lin-ucb")
COLOURS = {family: colour(family) for family in FAMILIES}


def weights(out: Path, shown: list[tuple[str, Named, int, int]]) -> None:
    """A panel for each of (title, problem, seed, horizon)."""
    lines = -(-len(shown) // 3)
    figure, panels = plt.subplots(lines, 3, figsize=(13, 3 * lines), sharey=True, squeeze=False)
    for axes, (title, named, seed, horizon) in zip(panels.flat, shown, strict=False):
        problem = build_problem(named, seed=seed)
        policy: Any = build_policy("tide", shape_of(problem), seed=seed)
        play(problem, policy, horizon)
        told = policy.explain(1)
        axes.stackplot(
            told.rounds, told.weights.T, colors=[COLOURS[name] for name in told.families]
        )
        axes.set_title(f"{title}\n{told.beliefs[0]}", fontsize=8)
        axes.set_xscale("log")
        axes.set_xlabel("round")
    for axes in panels.flat[len(shown) :]:
        axes.axis("off")
    for axes in panels[:, 0]:
        axes.set_ylabel("weight")
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in COLOURS.values()]
    figure.legend(handles, list(COLOURS), loc="lower center", ncol=9, fontsize=8)
    figure.tight_layout(rect=(0, 0.15 / lines, 1, 1))
    figure.savefig(out, dpi=110)


def profile(table: Path, out: Path) -> None:
    """Share of worlds (y) on which a policy's regret, divided by random's, is at most x. `tuned` is
    the better of the two conventional policies of each world, each with its best setting in
    hindsight."""
    values: dict[str, dict[str, float]] = defaultdict(dict)
    with table.open() as file:
        for row in csv.DictReader(file):
            if row["parameters"] != "{}" and row["policy"] == "tide":
                continue
            value, world = float(row["normalised"]), row["world"]
            if row["policy"] in TUNED:
                value = min(value, values["tuned D-/SW-(Lin)UCB"].get(world, value))
                values["tuned D-/SW-(Lin)UCB"][world] = value
            elif row["policy"] in ("tide", "rnlps", "nlps"):
                values[row["policy"]][world] = value
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for policy, found in values.items():
        ordered = np.sort(list(found.values()))
        share = np.arange(1, len(ordered) + 1) / len(ordered)
        axes.step(
            ordered,
            share,
            where="post",
            label=f"{policy} ({len(ordered)} worlds)",
            color=colour("d-ucb" if policy.startswith("tuned") else policy),
        )
    axes.axvline(1, color="grey", lw=0.8, ls=":")
    axes.set_xscale("log")
    axes.set_xlabel("regret / regret of random")
    axes.set_ylabel("share of worlds")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(out, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", choices=("weights", "profile"))
    parser.add_argument("table", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--horizon", type=int, default=2048)
    parser.add_argument(
        "--rows", action="store_true", help="the paper's rows instead of random worlds"
    )
    parser.add_argument("--seed", type=int, default=20030, help="of the rows")
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    if given.figure == "weights" and given.rows:
        weights(
            given.out, [(name, (name, {}), given.seed, horizon) for name, horizon in ROWS.items()]
        )
    elif given.figure == "weights":
        weights(
            given.out,
            [
                (kind, ("random-world", {"world": world, "kind": kind}), world, given.horizon)
                for kind, world in SHOWN
            ],
        )
    else:
        profile(given.table, given.out)


if __name__ == "__main__":
    main()
