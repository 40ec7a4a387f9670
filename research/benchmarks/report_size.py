"""Time and memory of a report of 14,000 trials: a store of made-up rounds in the shape of the
paper's search.

python -m research.benchmarks.report_size [--trials 14000] [--out DIR]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from tidepull.experiments.loop import Trial
from tidepull.experiments.rows import compact, plan_of, write_plan
from tidepull.experiments.spec import Result
from tidepull.experiments.store import Store
from tidepull.experiments.suite import Suite, parse_suite
from tidepull.reporting.build import build_report

PROBLEMS = (
    "flipping-gaussian",
    "flipping-bernoulli",
    "sinusoidal-bernoulli",
    "circular-markov-chain",
)
SEEDS, ROUNDS = 5, 2048


def suite_of(trials: int) -> Suite:
    settings = max(2, trials // (len(PROBLEMS) * SEEDS) - 2)
    windows = ", ".join(str(window) for window in range(2, 2 + settings // 6))
    discounts = ", ".join(
        f"{1 - 0.5 * (i + 1) / settings:.6f}" for i in range(settings - settings // 6)
    )
    worlds = "".join(f'[[problems]]\nid = "{problem}"\n' for problem in PROBLEMS)
    text = (
        f'name = "made-up"\nseeds = "0-{SEEDS - 1}"\nhorizon = {ROUNDS}\n{worlds}'
        '[[policies]]\nname = "random"\n[[policies]]\nname = "ucb"\n'
        f'[[policies]]\nname = "d-ucb"\ngrid = {{ discount = [{discounts}] }}\n'
        f'[[policies]]\nname = "sw-ucb"\ngrid = {{ window = [{windows}] }}\n'
    )
    return parse_suite(text, where="made-up", folder=Path())


def fill(store: Store, suite: Suite) -> None:
    """Trials that were never played: only their number and size matter here."""
    rng = np.random.default_rng(0)
    for spec in suite.specs:
        trial = Trial(
            arms=rng.integers(8, size=ROUNDS),
            rewards=rng.normal(0.5, 0.1, ROUNDS),
            regret=np.cumsum(rng.choice([0.0, 0.1, 0.3, 0.6], ROUNDS) * rng.random()),
            optimal=np.full(ROUNDS, 0.9),
            seconds=1.0,
        )
        store.write(Result(spec, trial, cpu_seconds=1.0, machine="made up"))
    write_plan(store, plan_of(suite.name, suite.text, suite.specs))
    compact(store)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=14_000)
    parser.add_argument("--out", type=Path, default=None)
    words = parser.parse_args()
    directory = words.out or Path(tempfile.mkdtemp(prefix="tidepull-report-"))
    store = Store.create(directory / "store")
    suite = suite_of(words.trials)
    fill(store, suite)
    before, started, cpu = peak(), time.perf_counter(), time.process_time()
    made = build_report([store], directory / "report")
    print(
        f"{len(suite.specs):,} trials: {time.perf_counter() - started:.1f} s, "
        f"{time.process_time() - cpu:.1f} s of CPU "
        f"time, peak memory {peak():.2f} GB ({before:.2f} before), page "
        f"{made.page.stat().st_size / 1e6:.1f} MB"
    )


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
