"""How the rounds of a world hang together, said without its values (`types.Structure`): for the specialist alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

import numpy as np

from tidepull.problems.rewards import BernoulliReward, GaussianReward, Reward
from tidepull.types import FloatArray, IntArray, Structure

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
        return np.array([self._known.setdefault(thing, len(self._known)) for thing in things], np.int64)


def noise_of(reward: Reward) -> float | None:
    """The standard deviation of Gaussian rewards; None for rewards of 0 and 1."""
    if isinstance(reward, BernoulliReward):
        return None
    assert isinstance(reward, GaussianReward)
    return reward.noise_std


def levels(groups: IntArray, noise: float | None, step: float = 0.0) -> Structure:
    """A level between 0 and 1 for each group."""
    return Structure(groups, np.ones((len(groups), 1)), noise, np.array([0.5]), np.array([0.3]), step)


def waves(vectors: FloatArray, noise: float | None, stretch: int = 0) -> Structure:
    """For each arm a level and the heights of its waves, other ones in each stretch."""
    n_arms, size = vectors.shape
    mean = np.append(0.5, np.zeros(size - 1))
    return Structure(np.arange(n_arms) + n_arms * stretch, vectors, noise, mean, np.full(size, 0.3))


def weights(groups: IntArray, vectors: FloatArray, noise: float, step: float = 0.0) -> Structure:
    """Weights of about unit length on vectors; arms of one group share them."""
    size = vectors.shape[1]
    return Structure(groups, vectors, noise, np.zeros(size), np.full(size, 1 / np.sqrt(size)), step)
