"""An agent in a tight loop, where no time is left to a thread: how often it plays the best arm.

    python -m research.benchmarks.tight_loop run [--seeds 54000:54010]
    python -m research.benchmarks.tight_loop table

Three arms; each pays .7 for 70 rounds in turn, else .3. 4,000 rounds, a millisecond apart. `inline`
does all work in its calls, `starved` is the default agent with a thread that never runs, `thread`
the same with one. Share of rounds with the best arm among the last 1,500. Writes to
research/results/tight_loop.csv, and goes on where it stopped; the figures are in research/lab/tide.md.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tidepull.agent.agent import Agent
from tidepull.agent.background import Background

OUT = Path(__file__).parents[1] / "results" / "tight_loop.csv"
FIELDS = ("seed", "work", "share", "earlier", "arms")
START, ROUNDS, LAST, TURN = 1_780_272_000.0, 4000, 1500, 70
WORK: dict[str, Any] = {"inline": "inline", "starved": "background", "thread": "background"}


def play(seed: int, work: str) -> dict[str, Any]:
    """One agent. `earlier` is the share of the best arm in the first 1,500 rounds, `arms` a hash of
    all arms."""
    luck = np.random.default_rng(seed).random(ROUNDS)
    agent = Agent.memory(
        arms=["0", "1", "2"], context={}, seed=seed, control=0.0, training=WORK[work]
    )
    arms = np.empty(ROUNDS, int)
    for n in range(ROUNDS):
        decision = agent.choose(at=START + 0.001 * n)
        arms[n] = int(decision.arm)
        rate = 0.7 if arms[n] == n // TURN % 3 else 0.3
        agent.reward(decision, float(luck[n] < rate), at=START + 0.001 * n)
    agent.close()
    best = arms == np.arange(ROUNDS) // TURN % 3
    shares = {"share": best[-LAST:].mean(), "earlier": best[:LAST].mean()}
    return {
        "seed": seed,
        "work": work,
        **{name: round(float(share), 4) for name, share in shares.items()},
        "arms": int(arms @ (np.arange(ROUNDS) % 9973 + 1)),
    }


def run(out: Path, first: int, stop: int) -> None:
    """All that is not in the file yet."""
    done = set()
    if out.exists():
        with out.open() as file:
            done = {(row["seed"], row["work"]) for row in csv.DictReader(file)}
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for seed in range(first, stop):
            for work in WORK:
                if (str(seed), work) not in done:
                    wake = Background.wake if work == "thread" else lambda _: None
                    with patch.object(Background, "wake", wake):
                        writer.writerow(play(seed, work))
                    file.flush()


def table(out: Path) -> str:
    """Shares of each seed, and whether a thread changed an arm."""
    rows: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    with out.open() as file:
        for row in csv.DictReader(file):
            rows[row["seed"]][row["work"]] = row
    lines = ["| seed | inline | starved | with a thread | same arms |", "|---|---:|---:|---:|---|"]
    for seed, found in rows.items():
        shares = " | ".join(f"{float(found[work]['share']):.3f}" for work in WORK)
        same = found["starved"]["arms"] == found["thread"]["arms"]
        lines.append(f"| {seed} | {shares} | {'yes' if same else 'no'} |")
    means = [np.mean([float(found[work]["share"]) for found in rows.values()]) for work in WORK]
    lines.append("| mean | " + " | ".join(f"{mean:.3f}" for mean in means) + " | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--seeds", default="54000:54010", help="first:stop")
    given = parser.parse_args()
    first, stop = map(int, given.seeds.split(":"))
    if given.what == "run":
        run(given.out, first, stop)
    print(table(given.out))


if __name__ == "__main__":
    main()
