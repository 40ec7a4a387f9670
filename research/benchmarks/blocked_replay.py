"""What the bank's kernel would gain if hypotheses of hardly any weight slept and learnt many
rewards at once.

    python -m research.benchmarks.blocked_replay [--rounds 1500] [--behind 4 16 64]

Plays the worlds of `research/benchmarks/tails.py`, then lets copies of the bank live through the
same further rewards in two ways that end in the same bits: every hypothesis learns every reward
when it comes, or with every reward one in `behind` hypotheses learns the latest `behind` of them,
with its blocks staying in the first-level cache. The two take turns; processor time a reward, the
median over stretches of 64. Nobody is left out: this is the most that sleeping and exact replay
could gain. Also told: how many arms were played in 16 rounds, that is how many blocks of a cell are
touched. Prints the table of research/lab/performance_tide.md.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from research.benchmarks.machine import describe
from research.benchmarks.tails import WORLDS
from tidepull._internal.system import one_blas_thread
from tidepull.policies import build_policy
from tidepull.tide.models import kernels
from tidepull.tide.models.algebra import compiled
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.family import Window
from tidepull.tide.models.kernels import MAX_WIDTH, Bank, observe_one
from tidepull.tide.patterns import Patterns
from tidepull.types import Event, FloatArray, IntArray

_REWARDS = 512
_REPEATS = 6
_STRETCH = 64
"""Rewards over which times are averaged: groups of hypotheses do not cost the same."""


@compiled
def follow(
    bank: Bank,
    slots: IntArray,
    window: Window,
    start: int,
    stop: int,
    binary: bool,
    scores: FloatArray,
) -> None:
    """Each of some slots lives through rows `start` to `stop`, one slot after the other."""
    most = 1
    for m in slots:
        most = max(most, bank.dim[m])
    tau, phi, v, z, U = (
        np.empty(MAX_WIDTH),
        np.empty(most),
        np.empty(most),
        np.empty(most),
        np.empty((most, most)),
    )
    for m in slots:
        for i in range(start, stop):
            scores[i, m] = observe_one(
                bank, m, window.t[i], window.covariates[i], window.arm[i], window.x[i], window.y[i], binary,
                tau, phi, v, z, U,
            )  # fmt: skip


def played(world: str, rounds: int) -> tuple[ModelBank, Window, bool]:
    """The bank after so many rounds, and what it saw in `_REWARDS` more."""
    shape, see = WORLDS[world]
    learner, rng = build_policy("tide", shape, seed=0), np.random.default_rng(0)
    tide = learner.inner
    assert isinstance(tide, Patterns)
    bank = tide._bank
    for t in range(rounds + _REWARDS):
        if t == rounds:
            bank = tide._bank.copy()
        context, rewards = see(t, rng)
        arm = learner.choose(context)
        learner.learn(Event(context, arm, float(rewards[arm])))
        while t < rounds and learner.upkeep():
            pass
    units = tide._scale.units
    return bank, tide._recent.window(units, rounds), units.binary


def finish_counted(bank: ModelBank, window: Window, binary: bool) -> list[float]:
    """Seconds of each reward where everybody learns it when it comes."""
    spent, scores = [], np.empty(bank.size)
    for t, covariates, arm, x, y in zip(*window, strict=True):
        started = time.thread_time()
        kernels.observe(bank.arrays, int(t), covariates, int(arm), x, float(y), binary, scores)
        spent.append(time.thread_time() - started)
    return spent


def in_blocks(bank: ModelBank, window: Window, binary: bool, behind: int) -> list[float]:
    """The same where one in `behind` learns the latest `behind` of them."""
    spent, rewards = [], len(window.t)
    scores, active = np.empty((rewards, bank.size)), np.flatnonzero(bank.arrays.active)
    groups, done = [active[i::behind].copy() for i in range(behind)], [0] * behind
    for i in range(rewards):
        g = i % behind
        started = time.thread_time()
        follow(bank.arrays, groups[g], window, done[g], i + 1, binary, scores)
        spent.append(time.thread_time() - started)
        done[g] = i + 1
    for group, start in zip(groups, done, strict=True):
        follow(bank.arrays, group, window, start, rewards, binary, scores)
    return spent


def line(world: str, rounds: int, lags: list[int]) -> str:
    """The table's line of a world."""
    bank, window, binary = played(world, rounds)
    spent: dict[int, list[float]] = {lag: [] for lag in (0, *lags)}
    for repeat in range(_REPEATS):
        one = bank.copy()
        now = {0: finish_counted(one, window, binary)}
        for lag in lags:
            two = bank.copy()
            now[lag] = in_blocks(two, window, binary, lag)
            for name in ("a", "b", "stamp", "vec", "mat"):
                assert getattr(one.arrays, name).tobytes() == getattr(two.arrays, name).tobytes()
        for lag, each in now.items():
            if repeat:  # the first compiles
                spent[lag] += np.reshape(each, (-1, _STRETCH))[1:].mean(axis=1).tolist()
    median = {lag: 1e6 * float(np.median(each)) for lag, each in spent.items()}
    arms = np.mean([len(np.unique(window.arm[i : i + 16])) for i in range(0, len(window.t), 16)])
    gains = " | ".join(f"{median[lag]:.0f} µs ({median[0] / median[lag]:.2f})" for lag in lags)
    return (
        f"| {world} | {int(bank.arrays.active.sum())} | {arms:.1f} | {median[0]:.0f} µs | {gains} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1500)
    parser.add_argument("--behind", type=int, nargs="*", default=[4, 16, 64])
    parser.add_argument(
        "--worlds", nargs="*", default=["arms", "hours", "vectors", "labels", "shop"]
    )
    given = parser.parse_args()
    with one_blas_thread():
        print(f"`python -m research.benchmarks.blocked_replay`: {describe()}.\n")
        heads = " | ".join(f"{lag} at once" for lag in given.behind)
        print(f"| world | hypotheses | arms in 16 rounds | one by one | {heads} |")
        print("|---|---:|---:|---:|" + "---:|" * len(given.behind))
        for world in given.worlds:
            print(line(world, given.rounds, given.behind), flush=True)


if __name__ == "__main__":
    main()
