"""Arms that wear out while they are played and recover while they rest."""

from __future__ import annotations

import numpy as np

from tidepull.problems.drift import read_only
from tidepull.problems.rewards import Reward
from tidepull.problems.structures import noise_of
from tidepull.types import Context, FloatArray, Structure


class RottingArms:
    """mean_k = fresh_k (1 - depth_k load_k). The load of an arm that is played moves towards 1, that of all others
    towards 0, by 1 / patience of the way in every round."""

    def __init__(self, fresh: FloatArray, depth: FloatArray, patience: float, reward: Reward) -> None:
        self.n_arms = len(fresh)
        self._fresh, self._depth, self._patience, self._reward = fresh, depth, patience, reward
        self._load = np.zeros(self.n_arms)

    def context(self) -> Context:
        """Nothing to see."""
        return Context()

    def means(self) -> FloatArray:
        """What the arms are worth as worn as they are."""
        return read_only(self._fresh * (1 - self._depth * self._load))

    def step(self, arm: int) -> float:
        """The reward of an arm; it wears out, the others recover."""
        reward = self._reward(self.means(), arm)
        self._load += (np.eye(self.n_arms)[arm] - self._load) / self._patience
        return reward

    def structure(self) -> Structure:
        """How worn every arm is; what it is worth when fresh is to be learnt."""
        vectors = (1 - self._depth * self._load)[:, None]
        return Structure(
            np.arange(self.n_arms), vectors, noise_of(self._reward), np.array([0.5]), np.array([0.3])
        )
