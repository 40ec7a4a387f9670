"""A million rounds of a season that returns: does a round cost, and remember, and lose what it did
at first?

    python -m research.benchmarks.million run [--world swings|flips] [--rounds 1000000]
    python -m research.benchmarks.million draw

Eight arms pay 0 or 1: chances swing with a period of 37.3 rounds, or two sets of chances take turns
every 64 rounds. A row for every 10,000 rounds (research/results/million_WORLD.csv): processor time
of `choose`, `learn` and `upkeep` together, resident memory, and regret (the best arm's chance minus
that of the arm played). Numerical warnings are errors. `draw` makes research/lab/figures/million.png.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np

from research.benchmarks.machine import describe
from tidepull._internal.system import one_blas_thread
from tidepull.policies import build_policy
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape

PERIOD, STAY, ARMS, STRETCH = 37.3, 64, 8, 10_000
WORLDS = ("swings", "flips")
OUT = "research/results/million_{}.csv"
FIGURE = Path("research/lab/figures/million.png")
FIELDS = ("rounds", "ms_a_round", "resident_mb", "regret", "explanation", "machine")


def resident_mb() -> float:
    """Memory that the process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def chances_of(world: str, t: IntArray) -> FloatArray:
    """Every arm's chance to pay in these rounds, one a row."""
    if world == "swings":
        return np.asarray(
            0.5 + 0.5 * np.sin(2 * np.pi * (t[:, None] / PERIOD + np.arange(ARMS) / ARMS))
        )
    levels = np.linspace(0.1, 0.9, ARMS)
    return np.where((t // STAY % 2 == 1)[:, None], levels, levels[::-1])


def run(world: str, rounds: int, out: Path) -> None:
    """Play, and write a row for every stretch as soon as it is over."""
    policy, rng = build_policy("tide", ProblemShape(ARMS), seed=0), np.random.default_rng(0)
    context = Context()
    with out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(FIELDS)
        for first in range(0, rounds, STRETCH):
            chances = chances_of(world, np.arange(first, min(first + STRETCH, rounds)))
            pays = (rng.random((len(chances), 1)) < chances).astype(float).tolist()
            arms: list[int] = []
            started = time.thread_time()
            for each in pays:
                arm = policy.choose(context)
                policy.learn(Event(context, arm, each[arm]))
                while policy.upkeep():
                    pass
                arms.append(arm)
            spent = time.thread_time() - started
            regret = float((chances.max(axis=1) - chances[np.arange(len(arms)), arms]).sum())
            told = policy.explain().beliefs[0].words
            row = (
                round(1e3 * spent / len(arms), 4),
                round(resident_mb(), 1),
                round(regret, 2),
                told,
            )
            writer.writerow((first + len(arms), *row, describe()))
            file.flush()


def draw() -> None:
    """Cost, memory and regret over the rounds of both worlds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = {
        "ms_a_round": "milliseconds a round",
        "resident_mb": "resident memory, MB",
        "regret": "regret in 10,000 rounds",
    }
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.2))
    for world, colour in zip(WORLDS, ("#0072b2", "#d55e00"), strict=True):
        with Path(OUT.format(world)).open() as file:
            rows = list(csv.DictReader(file))
        x = np.array([int(row["rounds"]) for row in rows]) / 1e6
        for axis, (name, label) in zip(axes, names.items(), strict=True):
            axis.plot(x, [float(row[name]) for row in rows], color=colour, linewidth=1, label=world)
            axis.set(xlabel="million rounds", ylabel=label)
    for axis, top in zip(axes, (0.4, 300, 1000), strict=True):
        axis.set_ylim(0, top)
    axes[2].set_yscale("symlog", linthresh=1)
    axes[2].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(FIGURE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "draw"))
    parser.add_argument("--world", choices=WORLDS, default="swings")
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.what == "draw":
        draw()
        return
    warnings.simplefilter("error")
    with one_blas_thread(), np.errstate(over="raise", divide="raise", invalid="raise"):
        run(given.world, given.rounds, given.out or Path(OUT.format(given.world)))


if __name__ == "__main__":
    main()
