"""Kinds of reward, and the structure of a round.

Each reward draws the noise of every arm in every round, so that the noise an arm meets in a round
does not depend on the arms that were played before. A structure (`types.Structure`) says which
rounds share a reward distribution, without its values; only the structure oracle `specialist` sees
it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Protocol

import numpy as np

from tidepull.errors import ArmError
from tidepull.types import Context, FloatArray, IntArray, Structure


class Reward(Protocol):
    """Turns expected rewards into a paid one."""

    def __call__(self, means: FloatArray, arm: int) -> float:
        """The reward of `arm` in this round."""


class GaussianReward:
    """N(mean, noise_std^2)."""

    def __init__(self, noise_std: float, rng: np.random.Generator) -> None:
        self.noise_std = noise_std
        self._rng = rng

    def __call__(self, means: FloatArray, arm: int) -> float:
        """The mean of the arm plus its own noise of this round."""
        check_arm(arm, len(means))
        noise = self._rng.standard_normal(len(means))
        return float(means[arm] + self.noise_std * noise[arm])


class HeavyReward(GaussianReward):
    """Gaussian rewards of which a share has Student noise of 2 degrees of freedom instead."""

    def __init__(
        self,
        noise_std: float,
        share: float,
        rng: np.random.Generator,
        *,
        wild: np.random.Generator | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__(noise_std, rng)
        self._share, self._scale, self._wild = share, scale, rng if wild is None else wild

    def __call__(self, means: FloatArray, arm: int) -> float:
        """The mean of the arm plus its own noise of this round, sometimes from far away."""
        ordinary = super().__call__(means, arm)
        far, tails = self._wild.random() < self._share, self._wild.standard_t(2, len(means))
        return float(means[arm] + self._scale * tails[arm]) if far else ordinary


class BernoulliReward:
    """1 with the probability `mean`, else 0."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def __call__(self, means: FloatArray, arm: int) -> float:
        """1 when the arm's own uniform number of this round lies below its mean."""
        check_arm(arm, len(means))
        thresholds = self._rng.random(len(means))
        return 1.0 if thresholds[arm] < means[arm] else 0.0


def check_arm(arm: int, n_arms: int) -> None:
    """An `ArmError` unless `arm` is one of the arms."""
    if not 0 <= arm < n_arms:
        raise ArmError(f"arm must be a whole number from 0 to {n_arms - 1}, got {arm!r}")


class SimulatedProblem:
    """A problem whose rewards are of one kind: an arm is paid by its mean, and the world moves on.

    Nothing is shown, and the means of the round are `_means`, unless a world says otherwise.
    """

    reward: Reward
    _means: FloatArray
    _t: int

    def context(self) -> Context:
        """Nothing to see."""
        return Context()

    def means(self) -> FloatArray:
        """The expected reward of every arm in this round."""
        return self._means

    def step(self, arm: int) -> float:
        """The reward of an arm, and on to the next round."""
        reward = self.reward(self.means(), arm)
        self._advance(arm)
        return reward

    def _advance(self, arm: int) -> None:
        """To the next round, after `arm` was played."""
        self._begin(self._t + 1)

    def _begin(self, t: int) -> None:
        """Set the round and what it shows."""
        raise NotImplementedError


Waves = Callable[[int], FloatArray]
"""From a round to a row for each arm, (1, waves of its known periods and phases)."""


class Names:
    """Small numbers for things that come back, in the order of their first appearance.

    >>> names = Names()
    >>> names.of([("a", 0.5), ("b", 0.5), ("a", 0.5)]).tolist()
    [0, 1, 0]
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def of(self, things: Iterable[Hashable]) -> IntArray:
        """The number of each."""
        known = self._known
        return np.array([known.setdefault(thing, len(known)) for thing in things], np.int64)


def noise_of(reward: Reward) -> float | None:
    """The standard deviation of Gaussian rewards; None for rewards of 0 and 1."""
    if isinstance(reward, BernoulliReward):
        return None
    assert isinstance(reward, GaussianReward)
    return reward.noise_std


def levels(groups: IntArray, noise: float | None, step: float = 0.0) -> Structure:
    """A level between 0 and 1 for each group."""
    ones, mean, std = np.ones((len(groups), 1)), np.array([0.5]), np.array([0.3])
    return Structure(groups, ones, noise, mean, std, step)


def waves(vectors: FloatArray, noise: float | None, stretch: int = 0) -> Structure:
    """For each arm a level and the heights of its waves, other ones in each stretch."""
    n_arms, size = vectors.shape
    mean = np.append(0.5, np.zeros(size - 1))
    return Structure(np.arange(n_arms) + n_arms * stretch, vectors, noise, mean, np.full(size, 0.3))


def weights(groups: IntArray, vectors: FloatArray, noise: float, step: float = 0.0) -> Structure:
    """Weights of about unit length on vectors; arms of one group share them."""
    size = vectors.shape[1]
    return Structure(groups, vectors, noise, np.zeros(size), np.full(size, 1 / np.sqrt(size)), step)
