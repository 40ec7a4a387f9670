"""`tide` when rewards come late, beside no delay and random play.

    python -m research.benchmarks.late_rewards run [--seeds 20100:20110] [--out
    research/results/late_rewards.csv] python -m research.benchmarks.late_rewards table

The first resumes: trials that are in the file already are not run again. The second prints the
table of research/lab/tide.md.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from research.benchmarks.machine import describe
from tidepull.experiments.loop import run_trial

RANDOM_DELAY = "geometric:20:0.05"
ROWS: dict[str, tuple[int, tuple[str, ...]]] = {
    "sinusoidal-bernoulli": (4096, ("0", "8", "50", RANDOM_DELAY)),
    "flipping-gaussian": (4096, ("0", "5", RANDOM_DELAY)),
    "flipping-bernoulli": (4096, ("0", "50", RANDOM_DELAY)),
    "rotating-vector-32": (4096, ("0", "10", RANDOM_DELAY)),
    "wall-following": (5455, ("0", "3", RANDOM_DELAY)),
}
FIELDS = (
    "problem",
    "horizon",
    "seed",
    "policy",
    "delay",
    "regret",
    "blind",
    "seconds",
    "explanation",
    "machine",
)


def trial(problem: str, horizon: int, seed: int, policy: str, delay: str) -> dict[str, Any]:
    """One row; `blind` is the regret of the rounds before the first reward came."""
    started = time.process_time()
    result = run_trial(problem, policy, horizon=horizon, seed=seed, delay=delay)
    first = int(delay) if delay.isdigit() else 0
    return {
        "problem": problem,
        "horizon": horizon,
        "seed": seed,
        "policy": policy,
        "delay": delay,
        "regret": round(float(result.regret[-1]), 3),
        "blind": round(float(result.regret[first]), 3) if first else 0.0,
        "seconds": round(time.process_time() - started, 2),
        "explanation": result.diagnostics.get("explanation", ""),
        "machine": describe(),
    }


def run(out: Path, first: int, stop: int, rows: list[str]) -> None:
    """All trials that are not in the file yet."""
    done: set[tuple[str, str, str, str]] = set()
    if out.exists():
        with out.open() as file:
            done = {
                (r["problem"], r["seed"], r["policy"], r["delay"]) for r in csv.DictReader(file)
            }
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not done:
            writer.writeheader()
        for seed in range(first, stop):
            for problem in rows:
                horizon, delays = ROWS[problem]
                wanted = [("random", "0"), *(("tide", delay) for delay in delays)]
                for policy, delay in wanted:
                    if (problem, str(seed), policy, delay) not in done:
                        writer.writerow(trial(problem, horizon, seed, policy, delay))
                        file.flush()


def table(out: Path) -> str:
    """Means and standard deviations, and what the rounds before the first reward cost."""
    cells: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    with out.open() as file:
        for row in csv.DictReader(file):
            key = row["problem"], row["policy"], row["delay"]
            cells[key].append((float(row["regret"]), float(row["blind"])))
    lines = [
        "| problem | rewards come | `tide` | of which before the first | `tide` without delay | "
        "random | trials |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for (problem, policy, delay), values in cells.items():
        if policy == "random" or delay == "0":
            continue
        regret, blind = np.array(values).T
        at_once = np.array([r for r, _ in cells[problem, "tide", "0"]])
        chance = np.mean([r for r, _ in cells[problem, "random", "0"]])
        late = f"{delay} rounds late" if delay.isdigit() else "20 rounds late on average, 5% never"
        lines.append(
            f"| `{problem}` | {late} | {regret.mean():.1f} ± {regret.std(ddof=1):.1f} "
            f"| {blind.mean():.1f} | {at_once.mean():.1f} ± {at_once.std(ddof=1):.1f} "
            f"| {chance:,.0f} | {len(regret)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=Path("research/results/late_rewards.csv"))
    parser.add_argument("--seeds", default="20100:20110", help="first:stop")
    parser.add_argument("--rows", default=",".join(ROWS))
    given = parser.parse_args()
    if given.what == "run":
        first, stop = map(int, given.seeds.split(":"))
        run(given.out, first, stop, given.rows.split(","))
    else:
        print(table(given.out))


if __name__ == "__main__":
    main()
