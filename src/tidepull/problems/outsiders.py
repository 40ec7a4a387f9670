"""Worlds whose rule is in no list of ours: what happens depends on what was played, in hidden ways."""

from __future__ import annotations

import numpy as np

from tidepull.problems.drift import read_only
from tidepull.problems.rewards import Reward
from tidepull.problems.structures import levels, noise_of
from tidepull.types import Context, FloatArray, Structure


class ParityMachine:
    """Two hidden states; the state switches after every second success.

    A success is a play of the arm that is best in the present state.
    """

    def __init__(self, regimes: FloatArray, reward: Reward) -> None:
        self.n_arms = regimes.shape[1]
        self._regimes = [read_only(row) for row in regimes]
        self._reward = reward
        self._successes = 0

    def context(self) -> Context:
        """Nothing to see."""
        return Context()

    def means(self) -> FloatArray:
        """The expected rewards of the present state."""
        return self._regimes[self._successes // 2 % 2]

    def step(self, arm: int) -> float:
        """The reward of an arm; the machine counts successes."""
        means = self.means()
        reward = self._reward(means, arm)
        self._successes += int(arm == int(np.argmax(means)))
        return reward

    def structure(self) -> Structure:
        """Which state it is in; every arm has a level in each."""
        groups = np.arange(self.n_arms) + self.n_arms * (self._successes // 2 % 2)
        return levels(groups, noise_of(self._reward))


class TwoStepChain:
    """One arm pays; when it is played, the next one to pay depends on the last two that did.

    Inside: next = successor[two ago][one ago], a table of random permutations.
    """

    def __init__(self, successor: np.ndarray[tuple[int, int], np.dtype[np.int64]], reward: Reward) -> None:
        self.n_arms = len(successor)
        self._successor = successor
        self._rows = [read_only(row) for row in np.eye(self.n_arms)]
        self._reward = reward
        self._before, self._now = 0, int(successor[0, 0])

    def context(self) -> Context:
        """Nothing to see."""
        return Context()

    def means(self) -> FloatArray:
        """1 for the arm whose turn it is, 0 for all others."""
        return self._rows[self._now]

    def step(self, arm: int) -> float:
        """The reward of an arm; the chain moves on when it was the right one."""
        reward = self._reward(self.means(), arm)
        if arm == self._now:
            self._before, self._now = self._now, int(self._successor[self._before, self._now])
        return reward

    def structure(self) -> Structure:
        """Whose turn it is; what an arm pays in its turn and out of turn is to be learnt."""
        return levels((np.arange(self.n_arms) == self._now).astype(np.int64), noise_of(self._reward))
