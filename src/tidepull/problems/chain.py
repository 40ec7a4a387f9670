"""The circular Markov chain: one arm pays well until it is chosen, then the next one does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.parameters import parameter
from tidepull.problems.one_best import OneBestArm
from tidepull.problems.rewards import GaussianReward
from tidepull.problems.structures import levels
from tidepull.random import Streams
from tidepull.types import Context, FloatArray, Structure


@dataclass(frozen=True, kw_only=True)
class CircularMarkovChainParameters(OneBestArm):
    """Parameters of `circular-markov-chain`."""

    n_arms: int = parameter(8, "number of arms", ge=1, le=10**6)


class CircularMarkovChain:
    """When the best arm is chosen it trades places with the next arm; the start is drawn from the seed.

    The noise and the start depend on the seed alone. Where the chain stands depends on what was played.
    """

    def __init__(self, parameters: CircularMarkovChainParameters, streams: Streams) -> None:
        self.n_arms = parameters.n_arms
        self._rows = parameters.rows(parameters.n_arms)
        self._gap = parameters.best_mean - parameters.mean
        self._best = int(streams.generator("start").integers(parameters.n_arms))
        self._reward = GaussianReward(parameters.noise_std, streams.generator("noise"))

    def context(self) -> Context:
        """Nothing to see."""
        return Context()

    def means(self) -> FloatArray:
        """`best_mean` for one arm, `mean` for all others."""
        return self._rows[self._best]

    def step(self, arm: int) -> float:
        """The reward of an arm; the chain moves on when it was the best."""
        reward = self._reward(self.means(), arm)
        if arm == self._best:
            self._best = (self._best + 1) % self.n_arms
        return reward

    def structure(self) -> Structure:
        """Whose turn it is; what an arm pays in its turn and out of turn is to be learnt."""
        return levels((np.arange(self.n_arms) == self._best).astype(np.int64), self._reward.noise_std)

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: all but one in K miss, wherever the chain stands."""
        return horizon * self._gap * (1 - 1 / self.n_arms)
