"""What `learn` of the patterns in `tide` has to do in a round, and how far the bank's kernel is from
what the machine allows.

    python -m research.benchmarks.tide_operations [--rounds 1500]

Counted over the active hypotheses of the bank after so many rounds of the worlds in
`research/benchmarks/tails.py`: multiplications and additions, and the bytes of the blocks that a
reward touches. Measured: the kernel, arms in turn, a product as large as BLAS likes it, and a sum
over as many bytes that lie where blocks do (in an array as large as the whole bank). Prints the
table of research/lab/performance_tide.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from research.benchmarks.machine import describe
from research.benchmarks.tails import POLICIES, WORLDS
from tidepull._internal.system import one_blas_thread
from tidepull.policies import build_policy
from tidepull.tide.models import kernels
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import all_covariates
from tidepull.tide.patterns import Patterns
from tidepull.types import Event

POLICY = "tide"
HEAD = (
    "| world | hypotheses | operations | blocks touched | bank | kernel | of BLAS | of reading |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|"
)


def grown(world: str, rounds: int) -> ModelBank:
    """The bank after so many rounds."""
    shape, see = WORLDS[world]
    learner, rng = build_policy(POLICIES[POLICY], shape, seed=0), np.random.default_rng(0)
    for t in range(rounds):
        context, rewards = see(t, rng)
        arm = learner.choose(context)
        learner.learn(Event(context, arm, float(rewards[arm])))
        while learner.upkeep():
            pass
    patterns = getattr(learner.inner, "_patterns", None)
    assert isinstance(patterns, Patterns)
    return patterns._bank


def counted(bank: ModelBank) -> tuple[int, int]:
    """Multiplications and additions of a round, and bytes of the blocks that it touches."""
    arrays = bank.arrays
    d = arrays.dim[arrays.active]
    refactored = ~arrays.inverse[arrays.active]
    operations = 2 * (2 * d**2 + 4 * d) + np.where(refactored, 2 * (d**3 // 6), 0)
    return int(operations.sum()), int(8 * (d**2 + d).sum())


def fastest(call: Callable[[int], object], repeats: int) -> float:
    """Seconds of processor time of a call, the fastest tenth of them on average."""
    spent = []
    for i in range(repeats):
        started = time.thread_time()
        call(i)
        spent.append(time.thread_time() - started)
    return float(np.mean(np.sort(spent)[: max(1, repeats // 10)]))


def line(world: str, rounds: int) -> str:
    """The table's line of a world."""
    bank = grown(world, rounds)
    operations, touched = counted(bank)
    scores, covariates = np.empty(bank.size), np.zeros(len(all_covariates()))
    x, n_arms = np.full(bank.layout.context_dim, 0.1), bank.layout.n_arms
    arrays, t0 = bank.arrays, rounds
    kernel = fastest(
        lambda i: kernels.observe(arrays, t0 + i, covariates, i % n_arms, x, 0.1, False, scores),
        2000,
    )
    square = np.ones((512, 512))
    blas = 2 * 512**3 / fastest(lambda _: square @ square, 30)
    place = np.zeros(max(arrays.mat.size, touched // 8))
    pieces = max(1, len(place) * 8 // touched)
    size = touched // 8
    reading = fastest(lambda i: place[i % pieces * size : (i % pieces + 1) * size].sum(), 500)
    size_of_all = f"{touched / 1e3:,.0f} kB | {arrays.mat.nbytes / 1e6:.1f} MB"
    return (
        f"| {world} | {int(arrays.active.sum())} | {operations:,} | {size_of_all} "
        f"| {1e6 * kernel:.0f} µs | {operations / kernel / blas:.0%} of {blas / 1e9:.0f} GFLOP/s "
        f"| {2 * reading / kernel:.0%} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1500)
    given = parser.parse_args()
    with one_blas_thread():
        print(f"`python -m research.benchmarks.tide_operations`: {describe()}.\n\n{HEAD}")
        for world in ("arms", "vectors", "labels"):
            print(line(world, given.rounds), flush=True)


if __name__ == "__main__":
    main()
