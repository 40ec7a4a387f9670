"""Arms without contexts: a drift of the arms' expected rewards, and a kind of reward.

Rewards are Gaussian, 0 or 1, or have heavy tails (`wild-rewards`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull._internal.system import require_memory
from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.drift import (
    Constant,
    Drift,
    Flip,
    FlipsRegularly,
    Oscillates,
    Sine,
    read_only,
)
from tidepull.problems.rewards import (
    BernoulliReward,
    GaussianReward,
    Names,
    Reward,
    World,
    levels,
    noise_of,
    waves,
)
from tidepull.random import Streams
from tidepull.types import FloatArray, Structure


class DriftingArms(World):
    """Arms whose expected rewards move by themselves."""

    def __init__(self, drift: Drift, reward: Reward) -> None:
        self.drift = drift
        self.n_arms = len(drift(0))
        self.reward = reward
        self._names = Names()
        self._begin(0)

    def structure(self) -> Structure:
        """Waves of known period and phase, levels that walk, or levels that hold again whenever
        they come back."""
        noise, moving = noise_of(self.reward), getattr(self.drift, "waves", None)
        if moving is not None:
            stretch = getattr(self.drift, "stretch", None)
            return waves(moving(self._t), noise, 0 if stretch is None else int(stretch[self._t]))
        step = getattr(self.drift, "step", 0.0)
        same = [None] * self.n_arms if step else self._means.tolist()
        return levels(self._names.of(enumerate(same)), noise, step)

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: the sum of max_k mu_k - mean_k mu_k."""
        return float(sum(mu.max() - mu.mean() for mu in map(self.drift, range(horizon))))

    def totals(self, horizon: int) -> FloatArray:
        """The sum of every arm's expected rewards."""
        return np.asarray(sum(map(self.drift, range(horizon)), np.zeros(self.n_arms)))

    def _advance(self, arm: int) -> None:
        self._begin(self._t + 1)

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
    reward = GaussianReward(parameters.noise_std, streams.generator("noise"))
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
        Flip(p, 1 - p, parameters.half_period), BernoulliReward(streams.generator("noise"))
    )


def sinusoidal_bernoulli(
    parameters: SinusoidalBernoulliParameters, streams: Streams
) -> DriftingArms:
    """p_k = 1/2 + sin(2 pi f t + 2 pi (k - 1) / K) / 2 for the arms k = 1 ... K."""
    drift = Sine(parameters.n_arms, parameters.period)
    return DriftingArms(drift, BernoulliReward(streams.generator("noise")))


def stationary_bernoulli(
    parameters: StationaryBernoulliParameters, streams: Streams
) -> DriftingArms:
    """Every arm's mean stays."""
    return DriftingArms(
        Constant(parameters.first_means(streams)), BernoulliReward(streams.generator("noise"))
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


class HeavyTailedArms(World):
    """A world of `wild-rewards`; means are drawn uniformly from 0 to 1."""

    def __init__(self, parameters: WildRewardsParameters, streams: Streams) -> None:
        self.n_arms = parameters.n_arms
        self._parameters = parameters
        means = streams.generator("world").random(self.n_arms)
        self._phases = [means, 1 - means]
        for phase in self._phases:
            phase.flags.writeable = False
        self._wild = streams.generator("wild")
        self.reward = GaussianReward(parameters.noise_std, streams.generator("noise"))
        self._t = 0

    def means(self) -> FloatArray:
        """What arms pay but for noise, which is symmetric."""
        return self._at(self._t)

    def structure(self) -> Structure:
        """Which phase it is; every arm has a level in each. Wild rewards are not announced."""
        half = self._parameters.half_period
        phase = (self._t // half) % 2 if half else 0
        return levels(np.arange(self.n_arms) + self.n_arms * phase, self._parameters.noise_std)

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: the sum of max_k mu_k - mean_k mu_k."""
        return float(sum(mu.max() - mu.mean() for mu in map(self._at, range(horizon))))

    def _at(self, t: int) -> FloatArray:
        half = self._parameters.half_period
        return np.asarray(self._phases[(t // half) % 2 if half else 0])

    def step(self, arm: int) -> float:
        """The reward of an arm, and on to the next round."""
        means = self.means()
        reward = self.reward(means, arm)
        chance = self._wild.random()
        tails = self._wild.standard_t(2, self.n_arms)
        if chance < self._parameters.share:
            reward = float(means[arm] + self._parameters.scale * tails[arm])
        self._t += 1
        return self._parameters.absurd if self._t == self._parameters.absurd_in else reward
