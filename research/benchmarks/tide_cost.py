"""Cost of a round of the bank against the number of hypotheses, in CPU time of one thread.

    python research/benchmarks/tide_cost.py --out research/results/tide_cost.csv

Fourier hypotheses, three features for each of 8 arms (24 in all), half of them with a discount; a
round is one posterior draw and one update of every hypothesis with its likelihood. The last rows
are whole rounds of `tide` (births, rebuilding and training included) on a random world.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from tidepull.experiments.loop import run_trial
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import empty_state
from tidepull.tide.models.family import Layout
from tidepull.tide.models.linear import fourier
from tidepull.tide.models.noise import NoisePrior


def bank_round(n: int, rounds: int) -> tuple[float, float]:
    """Median and 99th percentile of milliseconds per round with n hypotheses."""
    specs = [fourier(3.0 * 1.01**i, 1.0 if i % 2 else 0.99) for i in range(n)]
    bank = ModelBank(Layout(8, 1, False), [[spec] for spec in specs], NoisePrior())
    for m, spec in enumerate(specs):
        bank.assign(m, spec)
    rng = np.random.default_rng(0)
    X, spent = np.ones((8, 1)), np.empty(rounds)
    for t in range(-50, rounds):
        moment, arm, y = empty_state(max(t, 0), 8), int(rng.integers(8)), float(rng.normal())
        started = time.process_time_ns()
        bank.draw(int(rng.integers(n)), moment, X, False, rng)
        bank.observe(moment, arm, X[0], y, False)
        spent[max(t, 0)] = (time.process_time_ns() - started) / 1e6
    return float(np.median(spent)), float(np.percentile(spent, 99))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("research/results/tide_cost.csv"))
    parser.add_argument("--rounds", type=int, default=2000)
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("what", "hypotheses", "median_ms", "p99_ms"))
        for n in (75, 150, 300, 600, 1200):
            writer.writerow(("bank", n, *(round(ms, 4) for ms in bank_round(n, given.rounds))))
        for kind in ("arms-flip", "vectors-flip", "labels-flip"):
            started = time.process_time()
            problem = ("random-world", {"world": 50000, "kind": kind})
            trial = run_trial(problem, "tide", horizon=given.rounds, seed=50000)
            mean = 1e3 * (time.process_time() - started) / given.rounds
            writer.writerow(
                (f"tide on {kind} (mean)", trial.diagnostics["hypotheses"], round(mean, 4), "")
            )


if __name__ == "__main__":
    main()
