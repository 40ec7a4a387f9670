"""Qi, Guo and Zhu (Entropy 2025): ten arms, ten segments of 10,000 rounds, and SW-TS, DS-TS.

The means are the authors': numpy's `RandomState(0)`, U(0, 1) for Bernoulli arms; for Gaussian arms
5 N(0, 1) with deviations U(1, 5). The two methods draw N(mean, sigma^2 / n) for each arm, with mean
and n over a window, or discounted; an arm without evidence comes first. Settings are the authors':

    Bernoulli   sigma 1/2, window sqrt(T / 10) log T,   discount 1 - sqrt(10 / (T log T))
    Gaussian    sigma 5,   window 5 sqrt(T / 10) log T, discount 1 - sqrt(10 / (T log T)) / 5
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np

from research.papers.tables import TableDrift
from tidepull import Context, Entry, Event, add_policy, add_problem
from tidepull.parameters import Parameters, parameter
from tidepull.problems.arms import DriftingArms
from tidepull.problems.rewards import BernoulliReward, GaussianReward
from tidepull.random import Streams
from tidepull.types import FloatArray, ProblemShape

ROUNDS, ARMS, SEGMENT = 100_000, 10, 10_000


@dataclass(frozen=True, kw_only=True)
class QiParameters(Parameters):
    """Parameters of `qi`."""

    rewards: Literal["bernoulli", "gaussian"] = parameter("bernoulli", "kind of reward")


class OwnNoise(GaussianReward):
    """Gaussian rewards with a deviation for each arm and segment."""

    def __init__(self, deviations: FloatArray, rng: np.random.Generator) -> None:
        super().__init__(5.0, rng)
        self._deviations = deviations
        self._t = 0

    def __call__(self, means: FloatArray, arm: int) -> float:
        """Mean plus noise."""
        self.noise_std = float(self._deviations[self._t // SEGMENT % len(self._deviations), arm])
        self._t += 1
        return super().__call__(means, arm)


def problem(parameters: QiParameters, streams: Streams) -> DriftingArms:
    """The same means under every seed."""
    rng, noise = np.random.RandomState(0), streams.generator("noise")
    parts = ROUNDS // SEGMENT
    if parameters.rewards == "bernoulli":
        means = np.stack([rng.uniform(0, 1, ARMS) for _ in range(parts)])
        return DriftingArms(TableDrift(np.repeat(means, SEGMENT, axis=0)), BernoulliReward(noise))
    rows = [(5 * rng.randn(ARMS), rng.uniform(1, 5, ARMS)) for _ in range(parts)]
    means = np.repeat(np.stack([mean for mean, _ in rows]), SEGMENT, axis=0)
    return DriftingArms(TableDrift(means), OwnNoise(np.stack([std for _, std in rows]), noise))


@dataclass(frozen=True, kw_only=True)
class ForgettingTsParameters(Parameters):
    """Parameters of `qi-ts`; a discount below 1 takes the place of the window."""

    sigma: float = parameter(0.5, "deviation of rewards", gt=0)
    window: int = parameter(1151, "rounds that count", ge=1)
    discount: float = parameter(1.0, "weight of a round for each that it lies back", gt=0, le=1)


class ForgettingThompson:
    """Gaussian draws on a window, with or without a discount."""

    def __init__(
        self, values: ForgettingTsParameters, shape: ProblemShape, streams: Streams
    ) -> None:
        self._values = values
        self._rng = streams.generator("posterior")
        self._counts, self._sums = np.zeros((2, shape.n_arms))
        self._window: deque[tuple[int, float]] = deque()

    def choose(self, context: Context) -> int:
        """The largest draw."""
        known = self._counts > 1e-8
        count = np.where(known, self._counts, 1.0)
        widths = np.where(known, self._values.sigma / np.sqrt(count), 1e4)
        return int(np.argmax(self._rng.normal(np.where(known, self._sums / count, 0.0), widths)))

    def learn(self, event: Event) -> None:
        """Count the reward, and forget."""
        if self._values.discount < 1:
            self._counts *= self._values.discount
            self._sums *= self._values.discount
        else:
            self._window.append((event.arm, event.reward))
            if len(self._window) > self._values.window:
                arm, reward = self._window.popleft()
                self._counts[arm] -= 1
                self._sums[arm] -= reward
        self._counts[event.arm] += 1
        self._sums[event.arm] += event.reward


add_problem(Entry("qi", "ten arms, ten segments", QiParameters, problem, horizon=ROUNDS))
add_policy(Entry("qi-ts", "SW-TS and DS-TS", ForgettingTsParameters, ForgettingThompson))
