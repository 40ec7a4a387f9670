"""How often each arm was played and what it paid, when old rounds count less or not at all.

Both tallies cost O(K) per round, whatever the horizon; without forgetting (discount 1) they are plain sums.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidepull.snapshots import read, read_array
from tidepull.types import FloatArray, Snapshot


class Tally(Protocol):
    """Weighted number of plays N_i and weighted sum of rewards of every arm i."""

    counts: FloatArray
    sums: FloatArray

    def add(self, arm: int, reward: float) -> None:
        """One more round."""

    def snapshot(self) -> Snapshot:
        """The whole state."""

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""


class DiscountedTally:
    """A round that lies k rounds back weighs discount^k: N_i = sum_s discount^(t-s) 1{I_s = i}."""

    def __init__(self, n_arms: int, discount: float) -> None:
        self.discount = discount
        self.counts: FloatArray = np.zeros(n_arms)
        self.sums: FloatArray = np.zeros(n_arms)

    def add(self, arm: int, reward: float) -> None:
        """Age all arms by one round, then count this one."""
        self.counts *= self.discount
        self.sums *= self.discount
        self.counts[arm] += 1.0
        self.sums[arm] += reward

    def snapshot(self) -> Snapshot:
        """The whole state."""
        return {"counts": self.counts.copy(), "sums": self.sums.copy()}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of as many arms."""
        counts = read_array(snapshot, "counts", self.counts.shape)
        self.sums = read_array(snapshot, "sums", self.sums.shape)
        self.counts = counts


class WindowedTally:
    """The last `window` rounds weigh 1, older ones 0: N_i = sum over s > t - window of 1{I_s = i}."""

    def __init__(self, n_arms: int, window: int) -> None:
        self.window = window
        self.counts: FloatArray = np.zeros(n_arms)
        self.sums: FloatArray = np.zeros(n_arms)
        self._rounds: deque[tuple[int, float]] = deque()
        self._dropped = 0

    def add(self, arm: int, reward: float) -> None:
        """Count this round and drop the one that leaves the window."""
        self._rounds.append((arm, reward))
        self.counts[arm] += 1.0
        self.sums[arm] += reward
        if len(self._rounds) > self.window:
            gone, lost = self._rounds.popleft()
            self.counts[gone] -= 1.0
            self.sums[gone] -= lost
            self._dropped += 1
            if self._dropped == self.window:
                self._sum_afresh()

    def _sum_afresh(self) -> None:
        # Adding and subtracting leaves rounding errors; once per window they go (O(1) a round on average).
        arms, rewards = self._history()
        self.sums = np.asarray(np.bincount(arms, weights=rewards, minlength=len(self.sums)), dtype=float)
        self._dropped = 0

    def _history(self) -> tuple[NDArray[np.int64], FloatArray]:
        return np.array([a for a, _ in self._rounds], np.int64), np.array([r for _, r in self._rounds], float)

    def snapshot(self) -> Snapshot:
        """The whole state."""
        arms, rewards = self._history()
        return {
            "counts": self.counts.copy(),
            "sums": self.sums.copy(),
            "arms": arms,
            "rewards": rewards,
            "dropped": self._dropped,
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of as many arms."""
        arms, rewards = read_array(snapshot, "arms", (None,)), read_array(snapshot, "rewards", (None,))
        counts = read_array(snapshot, "counts", self.counts.shape)
        self.sums = read_array(snapshot, "sums", self.sums.shape)
        self.counts = counts
        self._rounds = deque((int(a), float(r)) for a, r in zip(arms, rewards, strict=True))
        self._dropped = int(read(snapshot, "dropped"))
