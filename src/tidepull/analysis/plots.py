"""Pictures; with its sibling files named *plots.py the only place that imports matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy import special

from tidepull.analysis.colours import colour
from tidepull.types import FloatArray


def regret_curves(curves: Mapping[str, FloatArray], *, title: str, path: Path) -> None:
    """Cumulative regret of each policy (trials x rounds): mean with Student's 95% band, every policy
    named at the end of its line."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.8), layout="constrained")
    ends: list[tuple[float, str]] = []
    for name, regret in curves.items():
        trials, horizon = regret.shape
        rounds = np.arange(1, horizon + 1)
        mean = regret.mean(axis=0)
        axes.plot(rounds, mean, color=colour(name), lw=2)
        if trials > 1:
            half = special.stdtrit(trials - 1, 0.975) * regret.std(axis=0, ddof=1) / np.sqrt(trials)
            axes.fill_between(rounds, mean - half, mean + half, color=colour(name), alpha=0.18, lw=0)
        ends.append((float(mean[-1]), name))
    axes.set(title=title, xlabel="round", ylabel="cumulative regret (lower is better)")
    axes.set_xlim(0, horizon)
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    ends.sort()
    for name, height in zip(
        [n for _, n in ends], _spread([e for e, _ in ends], axes.get_ylim()[1]), strict=True
    ):
        axes.annotate(
            name,
            (horizon, height),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=colour(name),
            fontweight="bold",
            annotation_clip=False,
        )
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _spread(heights: list[float], top: float) -> list[float]:
    """Move labels (sorted upwards) apart so that they do not overlap."""
    gap, placed = top * 0.05, [-np.inf]
    for height in heights:
        placed.append(max(height, placed[-1] + gap))
    return placed[1:]
