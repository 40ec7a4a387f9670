"""The latest rounds, kept so that hypotheses born later can live through them: memory bounded for ever."""

from __future__ import annotations

import numpy as np

from tidepull.hypotheses.kernels import Window
from tidepull.types import FloatArray, IntArray, Snapshot

_KEPT = ("_arm", "_reward", "_recent", "_x", "_raw", "_evidence", "_network")


class RecentRounds:
    """A ring of `capacity` rounds. What contexts looked like before the map is kept for `raw_capacity`
    rounds only, counted from the first: after that the map no longer changes."""

    def __init__(self, capacity: int, raw_capacity: int, context_dim: int, raw_dim: int) -> None:
        self.capacity, self.raw_capacity = capacity, raw_capacity
        self.count = 0
        self._arm = np.zeros(capacity, np.int64)
        self._reward = np.zeros(capacity)
        self._recent = np.zeros((capacity, 4))
        self._x = np.zeros((capacity, context_dim))
        self._raw = np.zeros((raw_capacity, raw_dim))
        self._evidence = np.zeros(capacity)
        self._network = np.zeros(capacity)

    def append(
        self,
        *,
        recent: FloatArray,
        arm: int,
        raw: FloatArray,
        x: FloatArray,
        reward: float,
        evidence: float,
        network: float,
    ) -> None:
        """Take in a round; the oldest makes room."""
        i = self.count % self.capacity
        self._arm[i], self._reward[i], self._recent[i], self._x[i] = arm, reward, recent, x
        self._evidence[i], self._network[i] = evidence, network
        if self.count < self.raw_capacity:
            self._raw[self.count] = raw
        self.count += 1

    def __len__(self) -> int:
        return min(self.count, self.capacity)

    @property
    def start(self) -> int:
        """The oldest round in the window."""
        return self.count - len(self)

    @property
    def arms(self) -> IntArray:
        """Arms, oldest first."""
        return self._arm[self._order()]

    @property
    def rewards(self) -> FloatArray:
        """Rewards as they were paid, oldest first."""
        return self._reward[self._order()]

    @property
    def first_evidence(self) -> float:
        """Log evidence of the whole mixture just before the oldest round of the window."""
        return float(self._evidence[self.start % self.capacity])

    @property
    def network(self) -> FloatArray:
        """Log likelihood of each reward under the network, in the units in which rewards were paid."""
        return self._network[self._order()]

    @property
    def raw(self) -> FloatArray:
        """What was seen of the chosen arms in the first rounds."""
        return self._raw[: min(self.count, self.raw_capacity)]

    def silence_network(self) -> None:
        """As if the network had slept so far."""
        self._network[:] = np.nan

    def set_x(self, x: FloatArray) -> None:
        """New context vectors, for all rounds in the window."""
        self._x[self._order()] = x

    def set_evidence(self, evidence: FloatArray) -> None:
        """New evidence before each round of the window."""
        self._evidence[self._order()] = evidence

    def mark_successes(self, threshold: float) -> int:
        """Find again, under a new threshold, which arm had succeeded last; returns it as of now."""
        order = self._order()
        last = int(self._recent[order[0], 2]) if self.start else -1
        for i in order:
            self._recent[i, 2] = last
            if self._reward[i] > threshold:
                last = int(self._arm[i])
        return last

    def set_beliefs(self, beliefs: FloatArray) -> None:
        """New beliefs that it was the turn of each round's arm."""
        self._recent[self._order(), 3] = beliefs

    def window(self, centre: float, spread: float) -> Window:
        """The rounds as the kernels read them, rewards standardised."""
        order = self._order()
        recent = self._recent[order]
        recent[:, 1] = standard_memory(recent[:, 1], centre, spread)
        return Window(
            t=np.arange(self.start, self.count),
            recent=recent,
            arm=self._arm[order],
            x=self._x[order],
            y=(self._reward[order] - centre) / spread,
        )

    def snapshot(self) -> Snapshot:
        """The whole state."""
        return {"count": self.count, **{name[1:]: getattr(self, name).copy() for name in _KEPT}}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self.count = int(snapshot["count"])
        for name in _KEPT:
            getattr(self, name)[...] = snapshot[name[1:]]

    def _order(self) -> IntArray:
        return np.arange(self.start, self.count) % self.capacity


def standard_memory(reward: FloatArray, centre: float, spread: float) -> FloatArray:
    """A last reward as a feature: standardised, not beyond 3, and 0 where there is none (NaN)."""
    return np.asarray(np.nan_to_num(np.clip((reward - centre) / spread, -3.0, 3.0)))
