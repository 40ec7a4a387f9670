"""Arms whose rewards are sometimes nothing like their means: heavy tails, or one absurd number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.parameters import Parameters, parameter
from tidepull.problems.rewards import GaussianReward
from tidepull.problems.structures import levels
from tidepull.random import Streams
from tidepull.types import Context, FloatArray, Structure


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


class WildRewards:
    """A world of `wild-rewards`; means are drawn uniformly from 0 to 1."""

    def __init__(self, parameters: WildRewardsParameters, streams: Streams) -> None:
        self.n_arms = parameters.n_arms
        self._parameters = parameters
        means = streams.generator("world").random(self.n_arms)
        self._phases = [means, 1 - means]
        for phase in self._phases:
            phase.flags.writeable = False
        self._wild = streams.generator("wild")
        self._reward = GaussianReward(parameters.noise_std, streams.generator("noise"))
        self._t = 0

    def context(self) -> Context:
        """Nothing is seen."""
        return Context()

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
        reward = self._reward(means, arm)
        chance = self._wild.random()
        tails = self._wild.standard_t(2, self.n_arms)
        if chance < self._parameters.share:
            reward = float(means[arm] + self._parameters.scale * tails[arm])
        self._t += 1
        return self._parameters.absurd if self._t == self._parameters.absurd_in else reward
