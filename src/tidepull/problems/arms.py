"""Arms without contexts: a drift of the arms' expected rewards, and a kind of reward.

Rewards are Gaussian, 0 or 1, or have heavy tails (`wild-rewards`). Arms of `wall-clock-bernoulli`
follow hour and weekday while traffic comes and goes: no period is constant in rounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from tidepull._internal.system import require_memory
from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.problems import rewards
from tidepull.problems.drift import (
    Constant,
    Drift,
    Flip,
    FlipsRegularly,
    Oscillates,
    Sine,
    read_only,
)
from tidepull.problems.tables import DAY, MONDAY, WEEK
from tidepull.random import Streams
from tidepull.types import Context, FloatArray, Structure


class DriftingArms(rewards.SimulatedProblem):
    """Arms whose expected rewards move by themselves."""

    def __init__(self, drift: Drift, reward: rewards.Reward) -> None:
        self.drift = drift
        self.n_arms = len(drift(0))
        self.reward = reward
        self._names = rewards.Names()
        self._begin(0)

    def structure(self) -> Structure:
        """Waves of known period and phase, levels that walk, or levels that hold again whenever
        they come back."""
        noise, moving = rewards.noise_of(self.reward), getattr(self.drift, "waves", None)
        if moving is not None:
            stretch = getattr(self.drift, "stretch", None)
            return rewards.waves(
                moving(self._t), noise, 0 if stretch is None else int(stretch[self._t])
            )
        step = getattr(self.drift, "step", 0.0)
        same = [None] * self.n_arms if step else self._means.tolist()
        return rewards.levels(self._names.of(enumerate(same)), noise, step)

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: the sum of max_k mu_k - mean_k mu_k."""
        return float(sum(mu.max() - mu.mean() for mu in map(self.drift, range(horizon))))

    def totals(self, horizon: int) -> FloatArray:
        """The sum of every arm's expected rewards."""
        return np.asarray(sum(map(self.drift, range(horizon)), np.zeros(self.n_arms)))

    def _begin(self, t: int) -> None:
        self._t = t
        self._means = self.drift(t)


@dataclass(frozen=True, kw_only=True)
class InitialMeans(Parameters):
    """The arms' expected rewards in the first round."""

    means: tuple[float, ...] | None = parameter(
        None,
        "expected rewards in the first round (auto: evenly spaced from 0.1 to 0.9 without 0.5)",
    )
    n_arms: int | None = parameter(
        None, "number of arms (auto: one for each of means, else 8)", ge=1, le=10**6
    )
    shuffle: bool = parameter(False, "put the arms in an order drawn from the seed")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.means is not None and len(self.means) != (self.n_arms or len(self.means)):
            raise ParameterError(f"n_arms is {self.n_arms} but means has {len(self.means)} values")
        if self.means == ():
            raise ParameterError("means must have at least one value")

    def first_means(self, streams: Streams) -> FloatArray:
        """The values in the order of the arms."""
        means = np.array(evenly_spaced(self.n_arms or 8) if self.means is None else self.means)
        return streams.generator("arms").permutation(means) if self.shuffle else means


@dataclass(frozen=True, kw_only=True)
class InitialProbabilities(InitialMeans):
    """The arms' probabilities of a reward in the first round."""

    means: tuple[float, ...] | None = parameter(
        None,
        "probabilities of a reward in the first round (auto: evenly spaced from 0.1 to 0.9 without "
        "0.5)",
        ge=0,
        le=1,
    )


def evenly_spaced(n_arms: int) -> list[float]:
    """Values from 0.1 to 0.9 that leave out 0.5, which a flip would not move.

    >>> evenly_spaced(8)
    [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    """
    spaced = np.linspace(0.1, 0.9, n_arms + 1).round(12).tolist()
    del spaced[n_arms // 2]
    return [float(value) for value in spaced]


@dataclass(frozen=True, kw_only=True)
class OneBestArm(Parameters):
    """Rewards where one arm pays `best_mean` and all others `mean`."""

    mean: float = parameter(0.0, "expected reward of all arms but the best")
    best_mean: float = parameter(1.0, "expected reward of the best arm")
    noise_std: float = parameter(0.05, "standard deviation of the reward's noise", ge=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.best_mean <= self.mean:
            raise ParameterError(
                f"best_mean must be > mean ({self.mean:g}), got {self.best_mean:g}"
            )

    def rows(self, n_arms: int) -> list[FloatArray]:
        """The arms' expected rewards, once for each arm that may be the best."""
        require_memory(8 * n_arms**2, f"{n_arms:,} arms")
        others = np.full(n_arms, self.mean)
        return [
            read_only(np.where(np.arange(n_arms) == best, self.best_mean, others))
            for best in range(n_arms)
        ]


@dataclass(frozen=True, kw_only=True)
class FlippingGaussianParameters(FlipsRegularly, InitialMeans):
    """Parameters of `flipping-gaussian`."""

    half_period: int = parameter(10, "rounds between two changes of sign", ge=1)
    noise_std: float = parameter(0.1, "standard deviation of the reward's noise", ge=0)


def flipping_gaussian(parameters: FlippingGaussianParameters, streams: Streams) -> DriftingArms:
    """Every arm's mean changes from mu_k to -mu_k every half period."""
    mu = parameters.first_means(streams)
    reward = rewards.GaussianReward(parameters.noise_std, streams.generator("noise"))
    return DriftingArms(Flip(mu, -mu, parameters.half_period), reward)


@dataclass(frozen=True, kw_only=True)
class FlippingBernoulliParameters(FlipsRegularly, InitialProbabilities):
    """Parameters of `flipping-bernoulli`."""

    half_period: int = parameter(10, "rounds between two flips", ge=1)


@dataclass(frozen=True, kw_only=True)
class SinusoidalBernoulliParameters(Oscillates, Parameters):
    """Parameters of `sinusoidal-bernoulli`."""

    n_arms: int = parameter(5, "number of arms", ge=1, le=10**6)
    period: float = parameter(32.0, "rounds in one oscillation, 1/f", gt=0)


@dataclass(frozen=True, kw_only=True)
class StationaryBernoulliParameters(InitialProbabilities):
    """Parameters of `stationary-bernoulli`."""


def flipping_bernoulli(parameters: FlippingBernoulliParameters, streams: Streams) -> DriftingArms:
    """Every arm's mean changes from p_k to 1 - p_k every half period."""
    p = parameters.first_means(streams)
    return DriftingArms(
        Flip(p, 1 - p, parameters.half_period), rewards.BernoulliReward(streams.generator("noise"))
    )


def sinusoidal_bernoulli(
    parameters: SinusoidalBernoulliParameters, streams: Streams
) -> DriftingArms:
    """p_k = 1/2 + sin(2 pi f t + 2 pi (k - 1) / K) / 2 for the arms k = 1 ... K."""
    drift = Sine(parameters.n_arms, parameters.period)
    return DriftingArms(drift, rewards.BernoulliReward(streams.generator("noise")))


def stationary_bernoulli(
    parameters: StationaryBernoulliParameters, streams: Streams
) -> DriftingArms:
    """Every arm's mean stays."""
    return DriftingArms(
        Constant(parameters.first_means(streams)),
        rewards.BernoulliReward(streams.generator("noise")),
    )


@dataclass(frozen=True, kw_only=True)
class WildRewardsParameters(Parameters):
    """Parameters of `wild-rewards`."""

    n_arms: int = parameter(8, "arms", ge=2, le=1000)
    noise_std: float = parameter(0.1, "standard deviation of ordinary noise", ge=0)
    half_period: int = parameter(0, "rounds after which means become 1 - means (0: never)", ge=0)
    share: float = parameter(
        0.01, "share of rewards with Student noise of 2 degrees of freedom instead", ge=0, le=1
    )
    scale: float = parameter(1.0, "scale of that noise", ge=0)
    absurd_in: int = parameter(0, "round in which the reward is absurd (0: none)", ge=0)
    absurd: float = parameter(1e14, "that reward", ge=-1e15, le=1e15)


class WildReward(rewards.HeavyReward):
    """Heavy-tailed rewards, and an absurd one in one round."""

    def __init__(self, parameters: WildRewardsParameters, streams: Streams) -> None:
        noise, wild = streams.generator("noise"), streams.generator("wild")
        p = parameters
        super().__init__(p.noise_std, p.share, noise, wild=wild, scale=p.scale)
        self._absurd_in, self._absurd, self._paid = p.absurd_in, p.absurd, 0

    def __call__(self, means: FloatArray, arm: int) -> float:
        """The reward of this round."""
        reward = super().__call__(means, arm)
        self._paid += 1
        return self._absurd if self._paid == self._absurd_in else reward


def wild_rewards(parameters: WildRewardsParameters, streams: Streams) -> DriftingArms:
    """Means are drawn uniformly from 0 to 1, and stay or become 1 - means every half period."""
    means, half_period = (
        streams.generator("world").random(parameters.n_arms),
        parameters.half_period,
    )
    drift = Flip(means, 1 - means, half_period) if half_period else Constant(means)
    return DriftingArms(drift, WildReward(parameters, streams))


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


class WallClockArms(rewards.SimulatedProblem):
    """p_k = 1/2 + daily cos(2 pi (hour - h_k) / 24) + weekly c_k on weekends (- on weekdays),
    within 0.02 and 0.98.

    Rounds come one by one after exponential times, faster by day (a cosine with its peak at 16:00)
    and on weekdays.
    """

    def __init__(
        self, parameters: WallClockParameters, streams: Streams, arms: Generator | None = None
    ) -> None:
        self.n_arms = parameters.n_arms
        self._p = parameters
        world = streams.generator("arms") if arms is None else arms
        self._peak = world.uniform(0, 24, parameters.n_arms)
        self._tilt = world.uniform(-1, 1, parameters.n_arms)
        self._streams = streams
        self._visits = self._traffic()
        self.reward = rewards.BernoulliReward(streams.generator("noise"))
        self._begin(0)

    def context(self) -> Context:
        """The time is all there is to see."""
        return Context(time=self._time)

    def structure(self) -> Structure:
        """A daily wave whose peak is known, and the weekend, for every arm."""
        hour, weekend = self._time % DAY / 3600, 1.0 if _is_weekend(self._time) else -1.0
        swing = np.cos(2 * np.pi * (hour - self._peak) / 24)
        return rewards.waves(
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

    def _begin(self, t: int) -> None:
        self._t, self._time = t, next(self._visits)
        self._means = self.at(self._time)

    def _traffic(self) -> Iterator[float]:
        """The times of all visits."""
        p, rng, time = self._p, self._streams.generator("traffic"), MONDAY
        mean_rate = (1 + p.night) / 2 * (5 + 2 * p.weekend) / 7
        while True:
            swing = math.cos(2 * math.pi * (time % DAY / 3600 - 16) / 24)
            by_hour = p.night + (1 - p.night) * (1 + swing) / 2
            rate = by_hour * (p.weekend if _is_weekend(time) else 1.0)
            time += float(rng.exponential(DAY / p.per_day * mean_rate / rate))
            yield time


def _is_weekend(time: float) -> bool:
    return (time - MONDAY) % WEEK >= 5 * DAY
