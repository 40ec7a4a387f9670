"""Chen, Wang and Wang (Operations Research 2025): every arm has a period of its own.

Their model, with numbers of ours, as theirs could not be had: arms with periods 7, 12 and 20, a
mean of U(0, 1) for each phase of each arm, drawn from the seed, noise N(0, .2^2), 5,000 rounds.
`two-stage` follows the abstract: stage one plays each arm for a stretch of its own, and Fourier
analysis gives its period; stage two plays the highest confidence bound of the phases

    stage one   4 M rounds for each arm, M = 24 the longest period that is told
                the period of the p <= M whose harmonics explain most, by BIC
    stage two   mean + noise sqrt(2 log T / n) for the phase of each arm
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from research.papers.tables import TableDrift
from tidepull import Context, Entry, Event, NoParameters, add_policy, add_problem
from tidepull.parameters import Parameters, parameter
from tidepull.problems.arms import DriftingArms
from tidepull.problems.rewards import GaussianReward
from tidepull.random import Streams
from tidepull.types import FloatArray, ProblemShape

ROUNDS, PERIODS, NOISE = 5000, (7, 12, 20), 0.2


def problem(_: NoParameters, streams: Streams) -> DriftingArms:
    """Gaussian arms; the table has a row for each round until all arms begin again."""
    rng, t = streams.generator("arms"), np.arange(math.lcm(*PERIODS))
    means = np.stack([rng.random(period)[t % period] for period in PERIODS], axis=1)
    return DriftingArms(TableDrift(means), GaussianReward(NOISE, streams.generator("noise")))


@dataclass(frozen=True, kw_only=True)
class TwoStageParameters(Parameters):
    """Parameters of `two-stage`."""

    longest: int = parameter(24, "longest period", ge=2)
    noise: float = parameter(NOISE, "deviation of rewards", gt=0)
    rounds: int = parameter(ROUNDS, "the horizon", ge=2)


class TwoStage:
    """Periods first, then bounds for every phase."""

    def __init__(self, values: TwoStageParameters, shape: ProblemShape, _: Streams) -> None:
        self._values, self._n_arms = values, shape.n_arms
        self._stretch = 4 * values.longest
        self._rewards: list[float] = []
        self._t = 0

    def choose(self, context: Context) -> int:
        """A stretch for each arm, then the highest bound."""
        if self._t < self._n_arms * self._stretch:
            return self._t // self._stretch
        if self._t == self._n_arms * self._stretch:
            self._begin()
        phase = self._t % self._periods
        counts, sums = self._counts[self._arms, phase], self._sums[self._arms, phase]
        width = self._values.noise * np.sqrt(
            2 * math.log(self._values.rounds) / np.maximum(1, counts)
        )
        return int(np.argmax(np.where(counts > 0, sums / np.maximum(1, counts) + width, np.inf)))

    def learn(self, event: Event) -> None:
        """Keep the reward of stage one, or count it for its phase."""
        if self._t < self._n_arms * self._stretch:
            self._rewards.append(event.reward)
        else:
            self._count(event.arm, self._t, event.reward)
        self._t += 1

    def _begin(self) -> None:
        self._arms = np.arange(self._n_arms)
        stretches = np.array(self._rewards).reshape(self._n_arms, self._stretch)
        self._periods = np.array([period(row, self._values.longest) for row in stretches])
        self._counts, self._sums = np.zeros((2, self._n_arms, self._values.longest))
        for t, reward in enumerate(self._rewards):
            self._count(t // self._stretch, t, reward)

    def _count(self, arm: int, t: int, reward: float) -> None:
        phase = t % self._periods[arm]
        self._counts[arm, phase] += 1
        self._sums[arm, phase] += reward


def period(rewards: FloatArray, longest: int) -> int:
    """The period whose harmonics explain most, by BIC.

    >>> period(np.tile([0.0, 1.0, 0.4], 20), 12)
    3
    """
    n, t = len(rewards), np.arange(len(rewards))

    def bic(p: int) -> float:
        angles = 2 * np.pi * np.outer(t, np.arange(1, p // 2 + 1)) / p
        basis = np.hstack([np.ones((n, 1)), np.cos(angles), np.sin(angles)])
        fitted = basis @ np.linalg.lstsq(basis, rewards, rcond=None)[0]
        return n * math.log(float(np.mean((rewards - fitted) ** 2)) + 1e-12) + p * math.log(n)

    return min(range(1, longest + 1), key=bic)


add_problem(Entry("chen", "arms with periods of their own", NoParameters, problem, horizon=ROUNDS))
add_policy(
    Entry("two-stage", "periods by Fourier analysis, then UCB", TwoStageParameters, TwoStage)
)
