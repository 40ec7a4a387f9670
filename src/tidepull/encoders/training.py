"""Epochs of full-batch training that either all succeed or leave no trace."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from tidepull.encoders.adam import Adam
from tidepull.encoders.weights import Weights
from tidepull.errors import ParameterError, SnapshotError, TrainingError
from tidepull.types import FloatArray, Snapshot


class Network(Protocol):
    """What can be trained."""

    weights: Weights
    gradient: Weights

    def loss(self, inputs: FloatArray, rewards: FloatArray) -> float:
        """The loss, and its gradient into `gradient`."""


def train(network: Network, adam: Adam, inputs: FloatArray, rewards: FloatArray, epochs: int) -> None:
    """Take `epochs` steps of Adam on the whole history."""
    if epochs < 1:
        raise ParameterError(f"epochs must be at least 1, got {epochs}")
    if not len(rewards):
        raise TrainingError("there is no history to train on yet")
    for epoch in range(epochs):
        check_loss(network.loss(inputs, rewards), f"in epoch {epoch + 1} of {epochs}")
        adam.step(network.gradient.flat)


def check_loss(loss: float, when: str) -> float:
    """The loss itself, or an error when training has diverged."""
    if not math.isfinite(loss):
        raise TrainingError(
            f"training diverged: the loss became {loss} {when}; the last good network is kept "
            "(a smaller learning_rate or smaller rewards may help)"
        )
    return loss


@contextmanager
def all_or_nothing(network: Network, adam: Adam) -> Iterator[None]:
    """Put weights and optimiser back as they were if anything goes wrong inside the block."""
    weights, optimiser = network.weights.flat.copy(), adam.snapshot()
    try:
        with np.errstate(all="ignore"):  # what overflows is found in the loss
            yield
    except BaseException:
        network.weights.flat[:] = weights
        adam.restore(optimiser)
        raise


def restore_weights(network: Network, adam: Adam, snapshot: Snapshot) -> None:
    """Weights and optimiser from a snapshot of an encoder."""
    if np.shape(snapshot["weights"]) != network.weights.flat.shape:
        raise SnapshotError("the snapshot's weights belong to a network of another shape")
    network.weights.flat[:] = snapshot["weights"]
    adam.restore(snapshot["adam"])
