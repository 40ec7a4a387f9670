"""Rewards in units that suit every problem: centre, spread, and what counts as a success."""

from __future__ import annotations

import math

import numpy as np

from tidepull.errors import SnapshotError
from tidepull.types import FloatArray, Snapshot


class RewardScale:
    """y = (r - centre) / spread. Every arm weighs the same in both, however often it was played.

    While all rewards are 0 or 1 the scale is fixed: y = -1 or 1. Totals are taken in always, but the
    scale in force changes only in `refit`, after which whoever used it must start anew.
    """

    def __init__(self, n_arms: int) -> None:
        self.centre, self.spread, self.threshold = 0.5, 0.5, 0.5
        self.binary = True
        self._totals = np.zeros((n_arms, 3))  # rounds, sum and sum of squares about the first reward
        self._first = math.nan

    def add(self, arm: int, reward: float) -> None:
        """Take in a reward."""
        if math.isnan(self._first):
            self._first = reward
        r = reward - self._first
        self._totals[arm] += (1.0, r, r * r)

    def fits(self, reward: float) -> bool:
        """Whether the reward is of the kind that the scale in force assumes."""
        return not self.binary or reward in (0.0, 1.0)

    def standardise(self, reward: FloatArray | float) -> FloatArray | float:
        """In units of the scale in force."""
        return (reward - self.centre) / self.spread

    def is_stale(self) -> bool:
        """Whether the totals say by now that the scale in force is more than a tenth of a spread out."""
        if self.binary:
            return False
        centre, spread = self._from_totals()
        return abs(centre - self.centre) > 0.1 * self.spread or not 0.9 < spread / self.spread < 1.1

    def refit(self, rewards: FloatArray) -> None:
        """A new scale from the totals, and the threshold of success from recent rewards."""
        self.binary = self.binary and bool(np.isin(rewards, (0.0, 1.0)).all())
        if self.binary:
            self.centre, self.spread, self.threshold = 0.5, 0.5, 0.5
        else:
            self.centre, self.spread = self._from_totals()
            self.threshold = two_means_threshold(rewards)

    def _from_totals(self) -> tuple[float, float]:
        n, s, q = self._totals[self._totals[:, 0] > 0].T
        centre = float(np.mean(s / n))
        variance = float(np.mean(q / n)) - centre**2
        size = abs(self._first) + math.sqrt(float(np.max(q / n)))
        spread = math.sqrt(variance) if variance > (1e-6 * size) ** 2 else (size or 1.0)
        return self._first + centre, spread

    def snapshot(self) -> Snapshot:
        """The whole state."""
        return {
            "scale": np.array([self.centre, self.spread, self.threshold, self._first]),
            "binary": self.binary,
            "totals": self._totals.copy(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        if np.shape(snapshot["totals"]) != self._totals.shape:
            raise SnapshotError("the snapshot belongs to a problem with another number of arms")
        self.centre, self.spread, self.threshold, self._first = map(float, snapshot["scale"])
        self.binary = bool(snapshot["binary"])
        self._totals[...] = snapshot["totals"]


def two_means_threshold(rewards: FloatArray) -> float:
    """The cut that leaves the least squares on both sides, half-way between the two means.

    >>> two_means_threshold(np.array([0.0, 0.1, 0.1, 1.0]))
    0.5333333333333333
    """
    ordered = np.sort(rewards)
    n = len(ordered)
    if n < 2 or ordered[0] == ordered[-1]:
        return float(ordered[0])
    below = np.cumsum(ordered)[:-1]
    sizes = np.arange(1, n)
    low, high = below / sizes, (ordered.sum() - below) / (n - sizes)
    cut = int(np.argmax(sizes * (n - sizes) * (high - low) ** 2))
    return float((low[cut] + high[cut]) / 2)
