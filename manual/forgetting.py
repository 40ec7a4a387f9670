"""Why forgetting is not enough: `python -m manual.forgetting play` plays, `draw` draws from what
was played.

One world, sinusoidal-bernoulli (five arms on one sine of 32 rounds), ten seeds. Every window and
every discount, each with the exploration that was best for it in hindsight, beside `tide`, which is
not tuned, and the specialist, which knows the season.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import tidepull
from manual.writing import between
from tidepull.registry import Named

ROOT = Path(__file__).parents[1]
CSV = ROOT / "research" / "results" / "forgetting.csv"
PAGE = ROOT / "docs" / "explanation" / "forgetting.md"
FIGURE = ROOT / "docs" / "figures" / "forgetting.svg"
WORLD, PERIOD, HORIZON, SEEDS = "sinusoidal-bernoulli", 32, 4096, range(30_000, 30_010)
MEMORIES = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
EXPLORATIONS = (0.005, 0.02, 0.1, 0.5, 2.0)
FORGETTERS = {"sw-ucb": "a window", "d-ucb": "a discount"}


def settings() -> Iterator[tuple[str, int, float, Named]]:
    """Policy, memory in rounds (0: none of its own), exploration, and how to build it."""
    for memory in MEMORIES:
        for xi in EXPLORATIONS:
            yield "sw-ucb", memory, xi, ("sw-ucb", {"window": memory, "xi": xi})
            yield "d-ucb", memory, xi, ("d-ucb", {"discount": 1 - 1 / memory, "xi": xi})
    for policy in ("random", "specialist", "tide"):
        yield policy, 0, 0.0, policy


def play() -> None:
    """All trials that are missing: the regret of every cycle of the season, mean of the seeds."""
    header = ["policy", "memory", "xi", "regret", *(f"cycle_{n}" for n in range(HORIZON // PERIOD))]
    known = {tuple(row[:3]) for row in csv.reader(CSV.open())} if CSV.exists() else set()
    with CSV.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not known:
            writer.writerow(header)
        for policy, memory, xi, named in settings():
            if (policy, str(memory), str(xi)) in known:
                continue
            cycles = np.mean([_by_cycle(named, seed) for seed in SEEDS], axis=0)
            writer.writerow(
                [policy, memory, xi, f"{cycles.sum():.1f}", *(f"{value:.3f}" for value in cycles)]
            )
            file.flush()


def _by_cycle(named: Named, seed: int) -> np.ndarray:
    regret = tidepull.run_trial(WORLD, named, horizon=HORIZON, seed=seed).regret
    return np.diff(regret[PERIOD - 1 :: PERIOD], prepend=0.0)


def draw() -> None:
    """The figure, and the sentence below it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = list(csv.DictReader(CSV.open()))
    best = {policy: {m: _least(rows, policy, m) for m in MEMORIES} for policy in FORGETTERS}
    lines = {policy: _least(rows, policy, 0) for policy in ("random", "specialist", "tide")}
    champion = min((row for found in best.values() for row in found.values()), key=_regret)
    plt.rcParams.update({"svg.hashsalt": "tidepull", "font.size": 9})
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for (policy, name), colour in zip(FORGETTERS.items(), ("#d55e00", "#e69f00"), strict=True):
        left.plot(
            MEMORIES, [_regret(best[policy][m]) for m in MEMORIES], "o-", color=colour, label=name
        )
    for policy, colour in COLOURS.items():
        left.axhline(_regret(lines[policy]), color=colour, linestyle="--", label=NAMES[policy])
    left.set(
        xscale="log",
        xlabel="rounds remembered",
        ylabel=f"regret after {HORIZON:,} rounds",
        ylim=(0, None),
    )
    left.axvline(PERIOD, color="#999999", linewidth=0.8)
    left.annotate("one season", (PERIOD * 1.1, 300), color="#666666")
    left.legend(fontsize=8)
    for row, colour, name in (
        (lines["random"], COLOURS["random"], NAMES["random"]),
        (champion, "#d55e00", "the best forgetting policy"),
        (lines["tide"], COLOURS["tide"], NAMES["tide"]),
    ):
        right.plot(
            range(1, HORIZON // PERIOD + 1), _cycles(row), color=colour, label=name, linewidth=1
        )
    right.set(xlabel="season", ylabel="regret of that season", ylim=(0, None))
    right.legend(fontsize=8)
    figure.savefig(FIGURE, metadata={"Date": None})
    between(PAGE, "forgetting", _sentence(champion, lines))


def _sentence(champion: dict[str, str], lines: dict[str, dict[str, str]]) -> str:
    late = slice(HORIZON // PERIOD // 2, None)
    again = {
        name: float(np.mean(_cycles(row)[late]))
        for name, row in {"best": champion, **lines}.items()
    }
    return (
        f"Random arms have a regret of {_regret(lines['random']):,.0f} in {HORIZON:,} rounds. The best "
        f"of all {len(FORGETTERS) * len(MEMORIES) * len(EXPLORATIONS)} forgetting policies "
        f"(`{champion['policy']}`, {champion['memory']} rounds, exploration {champion['xi']}), "
        f"chosen in hindsight, has {_regret(champion):,.0f}. `tide`, without hindsight, has "
        f"{_regret(lines['tide']):,.0f}. The specialist, which knows the period, has "
        f"{_regret(lines['specialist']):,.0f}. In the second half, a season of {PERIOD} rounds "
        f"costs that forgetting policy {again['best']:.1f} and `tide` {again['tide']:.2f}.\n\n"
        f"`python -m manual.forgetting play`, then `draw` (`research/results/forgetting.csv`): "
        f"mean of seeds {SEEDS[0]:,} to {SEEDS[-1]:,}."
    )


def _least(rows: list[dict[str, str]], policy: str, memory: int) -> dict[str, str]:
    """Of a policy with that memory, the exploration that had the least regret."""
    return min(
        (r for r in rows if r["policy"] == policy and int(r["memory"]) == memory), key=_regret
    )


def _regret(row: dict[str, str]) -> float:
    return float(row["regret"])


def _cycles(row: dict[str, str]) -> list[float]:
    return [float(value) for name, value in row.items() if name.startswith("cycle_")]


COLOURS = {"random": "#777777", "tide": "#0072b2", "specialist": "#000000"}
NAMES = {"random": "random arms", "tide": "tide", "specialist": "the specialist"}

if __name__ == "__main__":
    {"play": play, "draw": draw}[sys.argv[1]]()
