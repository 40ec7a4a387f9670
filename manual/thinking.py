"""How `tide` works: `python -m manual.thinking` lets it play, draws the weights of its models and
writes them as a table.

One world, flipping-bernoulli: eight arms whose chances change from p to 1 - p every ten rounds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import tidepull
from manual.writing import between
from tidepull.reporting.figures import colour

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tide.md"
FIGURE = ROOT / "docs" / "figures" / "thinking.svg"
WORLD, SEED, HORIZON = "flipping-bernoulli", 30_000, 2048
LOOKS = (16, 32, 64, 128, 256, 512, 1024, 2048)


def main() -> None:
    """Play, look at it now and then, draw, write."""
    problem = tidepull.build_problem(WORLD, seed=SEED)
    policy: Any = tidepull.build_policy("tide", tidepull.shape_of(problem), seed=SEED)
    said: dict[int, Any] = {}

    def look(n: int) -> None:
        if n in LOOKS:
            said[n] = policy.explain(2).beliefs

    trial = tidepull.play(problem, policy, HORIZON, on_round=look)
    told = policy.explain(1)
    lost = np.diff(trial.regret, prepend=0.0)
    _draw(told, lost)
    between(PAGE, "beliefs", _table(said, lost))


def _draw(told: Any, lost: np.ndarray) -> None:
    plt.rcParams.update({"svg.hashsalt": "tidepull", "font.size": 9})
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(9, 5), sharex=True, height_ratios=(3, 2), layout="constrained"
    )
    seen = told.weights.max(axis=0) > 0.05  # the others would fill the legend, not the picture
    named = [family if large else "_" for family, large in zip(told.families, seen, strict=True)]
    above.stackplot(
        told.rounds + 1, told.weights.T, colors=[colour(f) for f in told.families], labels=named
    )
    above.set(ylabel="weight of each family", ylim=(0, 1), xscale="log", xlim=(1, HORIZON))
    above.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    smooth = np.convolve(lost, np.ones(20) / 20, mode="valid")  # one period
    below.plot(np.arange(20, HORIZON + 1), smooth, color="#0072b2")
    below.set(ylabel="regret in a round,\nmean of the last 20", xlabel="round", ylim=(0, None))
    figure.savefig(FIGURE, metadata={"Date": None})


def _table(said: dict[int, Any], lost: np.ndarray) -> str:
    lines = [
        "| round | leading model | second | regret in a round since |",
        "|---:|---|---|---:|",
    ]
    before = 0
    for n, beliefs in said.items():
        first, second = (f"{belief.words} ({belief.weight:.0%})" for belief in beliefs[:2])
        lines.append(f"| {n:,} | {first} | {second} | {lost[before:n].mean():.3f} |")
        before = n
    end = f"`python -m manual.thinking`: `{WORLD}`, seed {SEED:,}."
    return "\n".join([*lines, "", end])


if __name__ == "__main__":
    main()
