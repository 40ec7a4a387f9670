"""How often each arm was played and what it paid, when old rounds count less or not at all.

Time is the number of the round in which an arm was chosen, not the moment at which its reward is
learnt: a late reward counts as little as its round, and rounds whose reward never comes age the
others. Both tallies cost O(K) a round, whatever the horizon; without forgetting (discount 1) they
are plain sums.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tidepull.state import Stateful, read_array, read_indices
from tidepull.types import FloatArray, Snapshot

_ByRound = TypeVar("_ByRound", bound=tuple[Any, ...])


def insert_by_round(rounds: deque[_ByRound], entry: _ByRound) -> None:
    """Put an entry, which begins with its round, into its place; O(1) unless it is late."""
    place = len(rounds)
    while place and rounds[place - 1][0] > entry[0]:
        place -= 1
    rounds.insert(place, entry)


class Tally(Protocol):
    """Weighted number of plays N_i and weighted sum of rewards of every arm i, as of the round
    `latest`."""

    counts: FloatArray
    sums: FloatArray

    def advance(self, latest: int) -> None:
        """Time passes up to that round, if it has not yet."""

    def add(self, arm: int, reward: float, decided: int) -> None:
        """The reward of the round `decided`, which may lie back."""

    def snapshot(self) -> Snapshot:
        """All that is remembered of the arms, sharing nothing with this object."""

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""


class DiscountedTally(Stateful):
    """A round that lies k rounds back weighs discount^k: N_i = sum_s discount^(t-s) 1{I_s = i}, t
    being `latest`."""

    state = ("counts", "sums", "latest")

    def __init__(self, n_arms: int, discount: float) -> None:
        self.discount = discount
        self.counts: FloatArray = np.zeros(n_arms)
        self.sums: FloatArray = np.zeros(n_arms)
        self._latest = -1

    def advance(self, latest: int) -> None:
        """Age all arms."""
        if latest > self._latest:
            age = self.discount ** (latest - self._latest)
            self.counts *= age
            self.sums *= age
            self._latest = latest

    def add(self, arm: int, reward: float, decided: int) -> None:
        """Count a round by its age."""
        self.advance(decided)
        weight = self.discount ** (self._latest - decided)
        self.counts[arm] += weight
        self.sums[arm] += weight * reward


class WindowedTally(Stateful):
    """The last `window` rounds weigh 1, older ones 0: N_i = sum over s > t - window of 1{I_s = i},
    t being `latest`."""

    state = ("counts", "sums", "latest", "dropped")

    def __init__(self, n_arms: int, window: int) -> None:
        self.window = window
        self.counts: FloatArray = np.zeros(n_arms)
        self.sums: FloatArray = np.zeros(n_arms)
        # (decided, arm, reward), oldest first.
        self._rounds: deque[tuple[int, int, float]] = deque()
        self._latest = -1
        self._dropped = 0

    def advance(self, latest: int) -> None:
        """Drop the rounds that have left the window."""
        self._latest = max(self._latest, latest)
        while self._rounds and self._rounds[0][0] <= self._latest - self.window:
            _, gone, lost = self._rounds.popleft()
            self.counts[gone] -= 1.0
            self.sums[gone] -= lost
            self._dropped += 1
            if self._dropped == self.window:
                self._sum_afresh()

    def add(self, arm: int, reward: float, decided: int) -> None:
        """Count a round, unless it has left the window already."""
        if decided > self._latest - self.window:
            insert_by_round(self._rounds, (decided, arm, reward))
            self.counts[arm] += 1.0
            self.sums[arm] += reward
        self.advance(decided)

    def _sum_afresh(self) -> None:
        # Adding and subtracting leaves rounding errors; once per window they go (O(1) a round on
        # average).
        _, arms, rewards = self._history()
        self.sums = np.asarray(
            np.bincount(arms, weights=rewards, minlength=len(self.sums)), dtype=float
        )
        self._dropped = 0

    def _history(self) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        decided, arms, rewards = zip(*self._rounds, strict=True) if self._rounds else ((), (), ())
        return np.array(decided, np.int64), np.array(arms, np.int64), np.array(rewards, np.float64)

    def snapshot(self) -> Snapshot:
        """Counts and sums of the window, and the rounds that are in it."""
        decided, arms, rewards = self._history()
        return super().snapshot() | {"decided": decided, "arms": arms, "rewards": rewards}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of as many arms."""
        decided = read_indices(snapshot, "decided")
        arms = read_indices(snapshot, "arms", length=len(decided), below=len(self.counts))
        rewards = read_array(snapshot, "rewards", (len(decided),))
        super().restore(snapshot)
        self._rounds = deque(zip(decided.tolist(), arms.tolist(), rewards.tolist(), strict=True))
