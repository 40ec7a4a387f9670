"""A network, its optimiser and its history: epochs of training that all succeed or leave no trace."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from tidepull.encoders.adam import Adam
from tidepull.encoders.history import History
from tidepull.encoders.weights import Weights
from tidepull.errors import ParameterError, SnapshotError, TrainingError
from tidepull.types import FloatArray, Snapshot


class Network(Protocol):
    """What can be trained."""

    weights: Weights
    gradient: Weights
    l2: float

    def loss(self, inputs: FloatArray, rewards: FloatArray) -> float:
        """The loss, and its gradient into `gradient`."""

    def encode(self, inputs: FloatArray) -> FloatArray:
        """Features of every row; a view that the next call overwrites."""


class Learner:
    """Full-batch training of a network on its whole history; Adam's state lives as long as the network."""

    def __init__(self, network: Network, history: History, learning_rate: float) -> None:
        self.history = history
        self.version = 0
        self._network = network
        self._adam = Adam(network.weights.flat, learning_rate)

    def refit(self, epochs: int) -> float:
        """Train, then encode the history again; returns the loss of the trained network.

        When training diverges a `TrainingError` is raised and nothing has changed.
        """
        if epochs < 1:
            raise ParameterError(f"epochs must be at least 1, got {epochs}")
        if not len(self.history):
            raise TrainingError("there is no history to train on yet")
        weights, adam = self._network.weights.flat.copy(), self._adam.snapshot()
        try:
            with np.errstate(all="ignore"):  # what overflows is found in the loss
                loss = self._train(epochs)
        except BaseException:
            self._network.weights.flat[:] = weights
            self._adam.restore(adam)
            raise
        self.version += 1
        return loss

    def encoded(self) -> tuple[FloatArray, FloatArray]:
        """Features of every past round under the present network, and their rewards; copies."""
        return self.history.features.copy(), self.history.rewards.copy()

    def snapshot(self) -> Snapshot:
        """Everything."""
        return {
            "version": self.version,
            "weights": self._network.weights.flat.copy(),
            "adam": self._adam.snapshot(),
            "history": self.history.snapshot(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        if np.shape(snapshot["weights"]) != self._network.weights.flat.shape:
            raise SnapshotError("the snapshot's weights belong to a network of another shape")
        self.history.restore(snapshot["history"])
        self._network.weights.flat[:] = snapshot["weights"]
        self._adam.restore(snapshot["adam"])
        self.version = int(snapshot["version"])

    def _train(self, epochs: int) -> float:
        network, inputs, rewards = self._network, self.history.inputs, self.history.rewards
        for epoch in range(epochs):
            _check(network.loss(inputs, rewards), f"in epoch {epoch + 1} of {epochs}")
            self._adam.step(network.gradient.flat)
        features = network.encode(inputs)
        loss = network.weights.loss(features, rewards, network.l2)
        _check(loss, f"after {epochs} epochs")
        self.history.features[:] = features
        return loss


def _check(loss: float, when: str) -> None:
    if not math.isfinite(loss):
        raise TrainingError(
            f"training diverged: the loss became {loss} {when}; the last good network is kept "
            "(a smaller learning_rate or smaller rewards may help)"
        )
