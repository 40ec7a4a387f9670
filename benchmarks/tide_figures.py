"""Figures of `tide`: weights of the families over the rounds, and the performance profile.

python benchmarks/tide_figures.py weights --out docs/figures/tide_weights.png
python benchmarks/tide_figures.py profile results/tide_dev.csv --out docs/figures/tide_profile.png
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path

import matplotlib
import numpy as np

from tidepull.bench.trial import build_policy, build_problem, play, shape_of
from tidepull.policies.tide import Tide

matplotlib.use("Agg")
from matplotlib import pyplot as plt

SHOWN = (
    ("arms-stationary", 50001), ("arms-flip", 50000), ("arms-sine", 50000),
    ("arms-chain", 50000), ("arms-walk", 50000), ("outside-parity", 50000),
)  # fmt: skip


def weights(out: Path, horizon: int) -> None:
    """A panel for each of six random worlds."""
    figure, panels = plt.subplots(2, 3, figsize=(13, 6), sharey=True)
    for axes, (kind, world) in zip(panels.flat, SHOWN, strict=True):
        problem = build_problem(("random-world", {"world": world, "kind": kind}), seed=world)
        policy = build_policy("tide", shape_of(problem), seed=world)
        assert isinstance(policy, Tide)
        play(problem, policy, horizon)
        told = policy.explain(1)
        axes.stackplot(told.rounds, told.weights.T, labels=told.groups)
        axes.set_title(f"{kind}\n{told.beliefs[0]}", fontsize=8)
        axes.set_xscale("log")
        axes.set_xlabel("round")
    panels[0, 0].set_ylabel("weight")
    panels[1, 0].set_ylabel("weight")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncol=8, fontsize=8)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(out, dpi=110)


def profile(table: Path, out: Path) -> None:
    """Share of worlds (y) on which a policy's regret, divided by random's, is at most x."""
    values: dict[str, list[float]] = defaultdict(list)
    with table.open() as file:
        for row in csv.DictReader(file):
            values[row["policy"]].append(float(row["normalised"]))
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for policy, found in values.items():
        if policy != "random":
            ordered = np.sort(found)
            share = np.arange(1, len(ordered) + 1) / len(ordered)
            axes.step(ordered, share, where="post", label=f"{policy} ({len(ordered)} worlds)")
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
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    if given.figure == "weights":
        weights(given.out, given.horizon)
    else:
        profile(given.table, given.out)


if __name__ == "__main__":
    main()
