"""Contexts of any length whose weights never change: the plainest world with contexts, in which no arm may be lost.

    observations    r = w_k . c + noise, c ~ N(0, I) in `rank` directions, every arm's w_k ~ N(0, I / rank)
    arm vectors     r = w . x_k + noise, the same with one w for all arms and a vector x_k for each

so that expected rewards have standard deviation 1 whatever the length.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tidepull.errors import ParameterError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.rewards import GaussianReward
from tidepull.problems.structures import weights
from tidepull.random import Streams
from tidepull.types import Context, FloatArray, Structure


@dataclass(frozen=True, kw_only=True)
class SteadyContextsParameters(Parameters):
    """Parameters of `steady-contexts`."""

    n_arms: int = parameter(10, "arms", ge=2, le=1000)
    numbers: int = parameter(10, "numbers in a context", ge=1, le=10_000)
    rank: int = parameter(0, "directions in which contexts vary (0: all)", ge=0)
    noise_std: float = parameter(0.1, "standard deviation of the reward's noise", ge=0)
    shared: bool = parameter(
        False, "one weight vector and a vector for each arm, instead of weights for each arm"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank > self.numbers:
            raise ParameterError(f"rank must be at most numbers ({self.numbers}), got {self.rank}")

    @property
    def directions(self) -> int:
        """In how many directions contexts vary."""
        return self.rank or self.numbers


class SteadyContexts:
    """A world of `steady-contexts`."""

    def __init__(self, parameters: SteadyContextsParameters, streams: Streams) -> None:
        self.n_arms = parameters.n_arms
        self._shared, self._rank = parameters.shared, parameters.directions
        world = streams.generator("world")
        self._spread: FloatArray | None = None
        if parameters.rank:
            self._spread = np.linalg.qr(world.standard_normal((parameters.numbers, self._rank)))[0].T
        models = 1 if self._shared else self.n_arms
        self._weights = world.standard_normal((models, self._rank)) / np.sqrt(self._rank)
        self._streams = streams
        self._contexts = self._drawn()
        self._reward = GaussianReward(parameters.noise_std, streams.generator("noise"))
        self._begin()

    def context(self) -> Context:
        """The observation, or the arms' vectors."""
        return Context(arm_features=self._seen) if self._shared else Context(observation=self._seen[0])

    def means(self) -> FloatArray:
        """w_k . c, or w . x_k."""
        return self._means

    def step(self, arm: int) -> float:
        """The reward of an arm, and on to the next context."""
        reward = self._reward(self._means, arm)
        self._begin()
        return reward

    def structure(self) -> Structure:
        """Weights that never change, of every arm or of all; also the directions in which contexts vary are known."""
        groups = np.zeros(self.n_arms, np.int64) if self._shared else np.arange(self.n_arms)
        inner = np.broadcast_to(self._inner, (self.n_arms, self._rank))
        return weights(groups, inner, self._reward.noise_std)

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: the sum of max_k mu_k - mean_k mu_k over the contexts."""
        means = [(inner @ self._weights.T).ravel() for inner in itertools.islice(self._drawn(), horizon)]
        return float(sum(mu.max() - mu.mean() for mu in means))

    def _drawn(self) -> Iterator[FloatArray]:
        """What is seen in every round, in the directions in which contexts vary."""
        rng = self._streams.generator("contexts")
        while True:
            yield rng.standard_normal((self.n_arms if self._shared else 1, self._rank))

    def _begin(self) -> None:
        inner = self._inner = next(self._contexts)
        self._seen = inner if self._spread is None else inner @ self._spread
        self._means: FloatArray = (inner @ self._weights.T).ravel()
        self._seen.flags.writeable = self._means.flags.writeable = False
