"""VG-dTS (MG-05/VG-dTS, 2026): eight worlds of four Bernoulli arms and 5,000 rounds, and its method.

The worlds are fixed: what is drawn comes from numpy generators of fixed seeds, in the order of the
published definitions, so that the tables are the published ones (drawn with another release of
numpy, `breakpoints` differs). `vg-dts` is volatility-gated discounted Thompson sampling at the
published setting:

    theta = max(draw of Beta(a, b), a / (a + b)),   the largest is played, r is its reward
    surprise of the played arm   e = min(8, |r - p| / sqrt(p (1 - p))),   p = a / (a + b)
    m <- .88 m + .12 e,   v <- .88 v + .12 (e - m)^2
    discount   g = .995 - .875 min(1, sqrt(v) / 2.6), .45 where an arm has no evidence
    (a, b) <- 1 + g (a - 1, b - 1) for all arms, then r counts for the played one
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from research.papers.tables import clicks
from tidepull import Entry, NoParameters, add_policy, add_problem
from tidepull.parameters import Parameters, parameter
from tidepull.problems.arms import DriftingArms
from tidepull.problems.drift import Sine
from tidepull.problems.rewards import BernoulliReward
from tidepull.random import Streams
from tidepull.types import Context, Event, FloatArray, ProblemShape

ROUNDS, ARMS = 5000, 4
LEAST, LARGEST = 0.05, 0.95
_SHORTEST = 33
"""Rounds of the shortest segment of `breakpoints`."""


def abrupt() -> FloatArray:
    """A cycle of 250 rounds in which the arms wake up one after the other."""
    place = np.arange(ROUNDS)[:, None] % 250
    awake = place >= np.array([50, 100, 150, 200])
    return np.where(awake, np.array([0.10, 0.37, 0.63, 0.90]), 0.0)


def mixed() -> FloatArray:
    """A constant arm, one that grows, one with bursts, one that switches between two levels."""
    rng = np.random.default_rng(11)
    means = np.empty((ROUNDS, ARMS))
    means[:, 0] = 0.65
    means[:, 1] = np.linspace(0.20, 0.85, ROUNDS)
    means[:, 2] = 0.10
    for t in range(ROUNDS):
        if rng.random() < 0.05:
            end = t + int(rng.integers(1, 21))
            means[t:end, 2] = rng.uniform(0.5 * (0.10 + 0.95), 0.95)
    t, level, every = 0, 0.15, ROUNDS // 8
    while t < ROUNDS:
        end = t + int(rng.integers(every // 2, int(1.5 * every) + 1))
        means[t:end, 3] = level
        t, level = end, 0.15 + 0.85 - level
    return means


def breakpoints() -> FloatArray:
    """Each arm has 4 to 16 changes of its own, of at least .1."""
    rng = np.random.default_rng(21)
    columns = []
    for _ in range(ARMS):
        count = int(rng.integers(4, 17)) + 1
        spare = rng.multinomial(ROUNDS - count * _SHORTEST, np.full(count, 1 / count))
        levels = [rng.uniform(LEAST, LARGEST)]
        while len(levels) < count:
            candidate = rng.uniform(LEAST, LARGEST)
            if abs(candidate - levels[-1]) >= 0.1:
                levels.append(candidate)
        columns.append(np.repeat(levels, spare + _SHORTEST))
    return np.stack(columns, axis=1)


def drift() -> FloatArray:
    """Sines whose heights walk, and a slow walk beside them."""
    rng, t = np.random.default_rng(31), np.arange(ROUNDS)
    columns = []
    for _ in range(ARMS):
        base, phase = rng.uniform(0.2, 0.8), rng.uniform(0, 2 * np.pi)
        period, weight = float(rng.integers(80, 1001)), rng.uniform(0.02, 0.12)
        height = np.empty(ROUNDS)
        height[0] = rng.uniform(0.05, 0.30)
        for i, step in enumerate(rng.normal(0, 0.015, ROUNDS - 1), 1):
            height[i] = np.clip(height[i - 1] + step, 0.05, 0.30)
        walk = np.cumsum(rng.normal(0, 0.006, ROUNDS))
        walk /= np.abs(walk).max()
        columns.append(base + height * np.sin(2 * np.pi * t / period + phase) + weight * walk)
    return np.clip(np.stack(columns, axis=1), 0, 1)


def switching(seed: int, *, together: bool) -> FloatArray:
    """Means that are drawn anew with chance .02 in every round, all at once or each by itself."""
    rng = np.random.default_rng(seed)
    means = np.empty((ROUNDS, ARMS))
    means[0] = rng.uniform(LEAST, LARGEST, ARMS)
    for t in range(1, ROUNDS):
        means[t] = means[t - 1]
        moved = np.full(ARMS, rng.random() < 0.02) if together else rng.random(ARMS) < 0.02
        if moved.any():
            means[t, moved] = rng.uniform(LEAST, LARGEST, int(moved.sum()))
    return means


Kind = Literal[
    "slow", "fast", "abrupt", "mixed", "breakpoints", "drift", "global", "per-arm"
]  # fmt: skip
TABLES: dict[str, Callable[[], FloatArray]] = {
    "abrupt": abrupt,
    "mixed": mixed,
    "breakpoints": breakpoints,
    "drift": drift,
    "global": lambda: switching(41, together=True),
    "per-arm": lambda: switching(51, together=False),
}


@dataclass(frozen=True, kw_only=True)
class VgdtsParameters(Parameters):
    """Parameters of `vgdts`."""

    kind: Kind = parameter("slow", "the world")


def problem(parameters: VgdtsParameters, streams: Streams) -> DriftingArms:
    """Bernoulli arms; the same means under every seed."""
    if parameters.kind in TABLES:
        return clicks(TABLES[parameters.kind](), streams)
    period = 1000 if parameters.kind == "slow" else 100
    return DriftingArms(Sine(ARMS, period), BernoulliReward(streams.generator("noise")))


class VolatilityGated:
    """VG-dTS at its published setting."""

    def __init__(self, _: NoParameters, shape: ProblemShape, streams: Streams) -> None:
        self._rng = streams.generator("posterior")
        self._successes, self._failures = np.ones((2, shape.n_arms))
        self._mean, self._variance = np.zeros((2, shape.n_arms))

    def choose(self, context: Context) -> int:
        """The largest of draw and mean."""
        draws = self._rng.beta(self._successes, self._failures)
        return int(np.argmax(np.maximum(draws, self._expected())))

    def learn(self, event: Event) -> None:
        """Surprise of the played arm, discount of all, and the reward."""
        arm, p = event.arm, float(self._expected()[event.arm])
        evidence = self._successes + self._failures > 2
        surprise = min(8.0, abs(event.reward - p) / np.sqrt(max(p * (1 - p), 1e-12)))
        self._mean[arm] += 0.12 * (surprise - self._mean[arm])
        gap = surprise - self._mean[arm]
        self._variance[arm] += 0.12 * (gap**2 - self._variance[arm])
        gated = 0.995 - 0.875 * np.minimum(1.0, np.sqrt(self._variance) / 2.6)
        discount = np.where(evidence, gated, 0.45)
        self._successes = 1 + discount * (self._successes - 1)
        self._failures = 1 + discount * (self._failures - 1)
        self._successes[arm] += event.reward
        self._failures[arm] += 1 - event.reward

    def _expected(self) -> FloatArray:
        return np.asarray(self._successes / (self._successes + self._failures))


add_problem(Entry("vgdts", "the eight worlds of VG-dTS", VgdtsParameters, problem, horizon=ROUNDS))
add_policy(Entry("vg-dts", "volatility-gated discounted TS", NoParameters, VolatilityGated))
