"""The rows of the past, in arrays that double when they are full."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.errors import SnapshotError
from tidepull.types import FloatArray, Snapshot


class History:
    """Inputs, rewards and features of every past round.

    A row of `inputs` holds `n_inputs` numbers, then `n_scratch` columns for the network's own use, then 1,
    so that biases come out of the same products as weights.
    """

    def __init__(self, n_inputs: int, n_features: int, dtype: Any, *, n_scratch: int = 0) -> None:
        self._n_inputs, self._n_scratch, self._n_features = n_inputs, n_scratch, n_features
        self._dtype = dtype
        self._length = 0
        self._allocate(64)

    def __len__(self) -> int:
        return self._length

    @property
    def inputs(self) -> FloatArray:
        """What the network read in each round (rounds x inputs + scratch + 1)."""
        return self._inputs[: self._length]

    @property
    def rewards(self) -> FloatArray:
        """What each round paid."""
        return self._rewards[: self._length]

    @property
    def features(self) -> FloatArray:
        """The chosen arm's features in each round (rounds x features)."""
        return self._features[: self._length]

    def append(self, row: FloatArray, reward: float, features: FloatArray) -> None:
        """Add one round."""
        if self._length == len(self._rewards):
            self._grow(2 * self._length)
        self._inputs[self._length, : self._n_inputs] = row
        self._rewards[self._length] = reward
        self._features[self._length] = features
        self._length += 1

    def snapshot(self) -> Snapshot:
        """All rows."""
        return {
            "inputs": self.inputs[:, : self._n_inputs].copy(),
            "rewards": self.rewards.copy(),
            "features": self.features.copy(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        inputs, rewards, features = snapshot["inputs"], snapshot["rewards"], snapshot["features"]
        if inputs.shape[1:] + features.shape[1:] != (self._n_inputs, self._n_features):
            raise SnapshotError("the snapshot's history belongs to a network of another shape")
        self._length = len(rewards)
        self._allocate(max(64, self._length))
        self.inputs[:, : self._n_inputs] = inputs
        self.rewards[:], self.features[:] = rewards, features

    def _allocate(self, capacity: int) -> None:
        self._inputs = np.ones((capacity, self._n_inputs + self._n_scratch + 1), self._dtype)
        self._rewards = np.empty(capacity, self._dtype)
        self._features = np.empty((capacity, self._n_features), self._dtype)

    def _grow(self, capacity: int) -> None:
        old = self.inputs, self.rewards, self.features
        self._allocate(capacity)
        self.inputs[:], self.rewards[:], self.features[:] = old
