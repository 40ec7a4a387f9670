"""The rounds that a network remembers: all of them, or the last `memory`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tidepull.errors import EventError, ParameterError, SnapshotError
from tidepull.types import BoolArray, FloatArray, IntArray, Snapshot

NO_ROUND = -1
"""`heard` of a round that was decided before any reward had come."""


class History:
    """Inputs, rewards and features of every remembered round, in the order of decisions.

    A row of `inputs` holds `n_inputs` numbers, then `n_scratch` columns for the network's own use,
    then 1, so that biases come out of the same products as weights. Rounds keep their number for
    ever, counted from 0; a reward that has not come is NaN. Buffers hold up to twice `memory`, so
    that moving rows costs O(1) a round; what has been handed out as a view never changes under its
    holder when rows move.
    """

    def __init__(
        self,
        n_inputs: int,
        n_features: int,
        dtype: Any,
        *,
        n_scratch: int = 0,
        memory: int | None = None,
    ) -> None:
        self._n_inputs, self._n_scratch, self._n_features = n_inputs, n_scratch, n_features
        self._dtype = dtype
        self._memory = memory
        self._start, self._end = 0, 0
        self.rounds = 0
        self._allocate(64)

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def oldest(self) -> int:
        """The oldest round that is remembered."""
        return self.rounds - self._end + self._start

    @property
    def inputs(self) -> FloatArray:
        """What the network read in each round (rounds x inputs + scratch + 1)."""
        return self._inputs[self._start : self._end]

    @property
    def rewards(self) -> FloatArray:
        """What each round paid; NaN while that is not known."""
        return self._rewards[self._start : self._end]

    @property
    def features(self) -> FloatArray:
        """The chosen arm's features in each round (rounds x features)."""
        return self._features[self._start : self._end]

    @property
    def heard(self) -> IntArray:
        """The round whose reward was the latest to have come when each one was decided (`NO_ROUND`:
        none)."""
        return self._heard[self._start : self._end]

    @property
    def known(self) -> BoolArray:
        """Which rewards have come."""
        return ~np.isnan(self.rewards)

    def append(self, row: FloatArray, features: FloatArray, heard: int = NO_ROUND) -> None:
        """Add one round whose reward is not known yet."""
        if self._end == len(self._rewards):
            self._make_room()
        self._inputs[self._end, : self._n_inputs] = row
        self._rewards[self._end] = np.nan
        self._features[self._end] = features
        self._heard[self._end] = heard
        self._end += 1
        self.rounds += 1
        if self._memory is not None:
            self.forget(self._memory)

    def pay(self, number: int, reward: float) -> int:
        """Write down the reward of a round; returns the round's place among the remembered ones."""
        place = self.place(number)
        row = self._start + place
        if not math.isnan(self._rewards[row]):
            raise EventError(f"round {number} has its reward already")
        self._rewards[row] = reward
        return place

    def place(self, number: int) -> int:
        """Where a round lies among the remembered ones."""
        oldest = self.oldest
        if not oldest <= number < self.rounds:
            raise EventError(
                f"round {number} is not remembered; the rounds from {oldest} to {self.rounds - 1} "
                "are"
            )
        return number - oldest

    def forget(self, keep: int) -> None:
        """Drop all but the last rounds."""
        if keep < 1:
            raise ParameterError(f"keep must be at least 1, got {keep}")
        self._start = max(self._start, self._end - keep)

    def snapshot(self) -> Snapshot:
        """All remembered rounds."""
        return {
            "rounds": self.rounds,
            "inputs": self.inputs[:, : self._n_inputs].copy(),
            "rewards": np.where(self.known, self.rewards, 0),
            "known": self.known,
            "features": self.features.copy(),
            "heard": self.heard.copy(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        inputs, rewards, features = snapshot["inputs"], snapshot["rewards"], snapshot["features"]
        if inputs.shape[1:] + features.shape[1:] != (self._n_inputs, self._n_features):
            raise SnapshotError("the snapshot's history belongs to a network of another shape")
        if self._memory is not None and len(rewards) > self._memory:
            raise SnapshotError(
                f"the snapshot remembers {len(rewards)} rounds; this network remembers "
                f"{self._memory}"
            )
        self._start, self._end, self.rounds = 0, len(rewards), int(snapshot["rounds"])
        self._allocate(max(64, self._end))
        self.inputs[:, : self._n_inputs] = inputs
        self.features[:], self.heard[:] = features, snapshot["heard"]
        self.rewards[:] = np.where(snapshot["known"], rewards, np.nan)

    def _allocate(self, capacity: int) -> None:
        self._inputs = np.ones((capacity, self._n_inputs + self._n_scratch + 1), self._dtype)
        self._rewards = np.empty(capacity, self._dtype)
        self._features = np.empty((capacity, self._n_features), self._dtype)
        self._heard = np.empty(capacity, np.int64)

    def _make_room(self) -> None:
        """New buffers for twice as many rounds as are remembered, with those at their beginning."""
        old = self.inputs, self.rewards, self.features, self.heard
        self._start, self._end = 0, len(self)
        self._allocate(max(64, 2 * self._end))
        self.inputs[:], self.rewards[:], self.features[:], self.heard[:] = old
