"""Any encoder with the arm itself beside its features, so that a linear head can tell arms apart at once."""

from __future__ import annotations

import numpy as np

from tidepull.encoders.inputs import ContextReader
from tidepull.protocols import Encoder
from tidepull.types import Context, Event, FloatArray, ProblemShape, Snapshot


class RawFeatures:
    """Features [network(arm), the arm's own features or one-hot code]; the network is trained as before."""

    def __init__(self, encoder: Encoder, shape: ProblemShape) -> None:
        self._encoder = encoder
        self._reader = ContextReader(shape, np.float64)
        self._arms: list[FloatArray] = []

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self._encoder.dim + self._reader.arm_width

    @property
    def version(self) -> int:
        """How many times the network has been refitted."""
        return self._encoder.version

    def features(self, context: Context) -> FloatArray:
        """One row for each arm in the coming round."""
        return np.hstack([self._encoder.features(context), self._reader.arms(context)])

    def append(self, event: Event) -> FloatArray:
        """Take in a finished round; returns the chosen arm's features as they were."""
        learned = self._encoder.append(event)
        self._arms.append(self._reader.arms(event.context)[event.arm].copy())
        return np.concatenate([learned, self._arms[-1]])

    def refit(self, epochs: int) -> float:
        """Train the network on the whole history; returns the last loss."""
        return self._encoder.refit(epochs)

    def encode_history(self) -> tuple[FloatArray, FloatArray]:
        """Features of every past event under the present network, and their rewards."""
        learned, rewards = self._encoder.encode_history()
        return np.hstack([learned, self._matrix()]), rewards

    def snapshot(self) -> Snapshot:
        """The whole state."""
        return {"network": self._encoder.snapshot(), "arms": self._matrix()}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._encoder.restore(snapshot["network"])
        self._arms = list(np.array(snapshot["arms"]))

    def _matrix(self) -> FloatArray:
        return np.array(self._arms).reshape(-1, self._reader.arm_width)
