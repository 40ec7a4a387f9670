"""Arms that follow hour and weekday while traffic comes and goes: no period is constant in
rounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tidepull.parameters import Parameters, parameter
from tidepull.problems.drift import read_only
from tidepull.problems.rewards import BernoulliReward, World, waves
from tidepull.random import Streams
from tidepull.types import Context, FloatArray, Structure

DAY, WEEK = 86_400.0, 604_800.0
MONDAY = 1_767_571_200.0  # 5 January 2026, 00:00


@dataclass(frozen=True, kw_only=True)
class WallClockParameters(Parameters):
    """Parameters of `wall-clock-bernoulli`."""

    n_arms: int = parameter(6, "number of arms", ge=1, le=10**4)
    per_day: float = parameter(215.0, "rounds on a mean day", gt=0, le=1e7)
    night: float = parameter(
        0.1, "traffic of the quietest hour as a share of the busiest", gt=0, le=1
    )
    weekend: float = parameter(
        0.6, "traffic of a day of the weekend as a share of a weekday", gt=0, le=1
    )
    daily: float = parameter(0.2, "how far an arm's probability swings over the day", ge=0, le=0.5)
    weekly: float = parameter(0.1, "how far it moves on weekends", ge=0, le=0.5)


class WallClockArms(World):
    """p_k = 1/2 + daily cos(2 pi (hour - h_k) / 24) + weekly c_k on weekends (- on weekdays),
    within 0.02 and 0.98.

    Rounds come one by one after exponential times, faster by day (a cosine with its peak at 16:00)
    and on weekdays.
    """

    def __init__(
        self,
        parameters: WallClockParameters,
        streams: Streams,
        arms: np.random.Generator | None = None,
    ) -> None:
        self.n_arms = parameters.n_arms
        self._p = parameters
        world = streams.generator("arms") if arms is None else arms
        self._peak = world.uniform(0, 24, parameters.n_arms)
        self._tilt = world.uniform(-1, 1, parameters.n_arms)
        self._streams = streams
        self._visits = self._traffic()
        self.reward = BernoulliReward(streams.generator("noise"))
        self._begin()

    def context(self) -> Context:
        """The time is all there is to see."""
        return Context(time=self._time)

    def structure(self) -> Structure:
        """A daily wave whose peak is known, and the weekend, for every arm."""
        hour, weekend = self._time % DAY / 3600, 1.0 if _is_weekend(self._time) else -1.0
        swing = np.cos(2 * np.pi * (hour - self._peak) / 24)
        return waves(
            np.stack([np.ones(self.n_arms), swing, np.full(self.n_arms, weekend)], axis=1), None
        )

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: the sum of max_k p_k - mean_k p_k over the
        visits."""
        probabilities = [self.at(time) for time in itertools.islice(self._traffic(), horizon)]
        return float(sum(p.max() - p.mean() for p in probabilities))

    def at(self, time: float) -> FloatArray:
        """The arms' probabilities at any time."""
        hour, weekend = time % DAY / 3600, _is_weekend(time)
        swing = self._p.daily * np.cos(2 * np.pi * (hour - self._peak) / 24)
        tilt = self._p.weekly * self._tilt * (1 if weekend else -1)
        return read_only(np.clip(0.5 + swing + tilt, 0.02, 0.98))

    def _advance(self, arm: int) -> None:
        self._begin()

    def _begin(self) -> None:
        self._time = next(self._visits)
        self._means = self.at(self._time)

    def _traffic(self) -> Iterator[float]:
        """The times of all visits."""
        p, rng, time = self._p, self._streams.generator("traffic"), MONDAY
        mean_rate = (1 + p.night) / 2 * (5 + 2 * p.weekend) / 7
        while True:
            by_hour = (
                p.night
                + (1 - p.night) * (1 + math.cos(2 * math.pi * (time % DAY / 3600 - 16) / 24)) / 2
            )
            rate = by_hour * (p.weekend if _is_weekend(time) else 1.0)
            time += float(rng.exponential(DAY / p.per_day * mean_rate / rate))
            yield time


def _is_weekend(time: float) -> bool:
    return (time - MONDAY) % WEEK >= 5 * DAY
