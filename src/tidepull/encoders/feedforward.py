"""The feedforward encoder: a handcrafted memory of the last n rounds, and units that oscillate in time."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tidepull.encoders import step_kernels
from tidepull.encoders.feedforward_network import FeedforwardNetwork
from tidepull.encoders.history import History
from tidepull.encoders.inputs import ContextReader
from tidepull.encoders.settings import FeedforwardSettings
from tidepull.encoders.training import Learner
from tidepull.types import Context, Event, FloatArray, ProblemShape, Snapshot


class FeedforwardEncoder:
    """Features from `[observation, arm]`, the last `order` triplets `(observation, arm, reward)` and time.

    Triplets from before the first round are zero.
    """

    def __init__(
        self,
        shape: ProblemShape,
        *,
        units: tuple[int, int, int],
        order: int,
        sinusoids: int,
        learning_rate: float,
        l2: float = 0.001,
        init: Literal["paper", "scaled"] = "paper",
        rng: np.random.Generator,
        dtype: Any = np.float32,
    ) -> None:
        settings = FeedforwardSettings(
            units=units, learning_rate=learning_rate, l2=l2, init=init, order=order, sinusoids=sinusoids
        )
        self._reader = ContextReader(shape, dtype)
        width = self._reader.width
        n_inputs = width + order * (width + 1)
        self._network = FeedforwardNetwork(n_inputs, settings, rng, dtype)
        self._history = History(n_inputs, settings.units[2], dtype, n_scratch=sinusoids)
        self._n_inputs = n_inputs
        self._learner = Learner(self._network, self._history, settings.learning_rate)
        self._row = np.zeros(n_inputs + sinusoids + 1, dtype)
        self._adopt_network()

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self._network.units[2]

    @property
    def version(self) -> int:
        """How many times the network has been refitted."""
        return self._learner.version

    def features(self, context: Context) -> FloatArray:
        """One row for each arm in the coming round (n_arms x dim); changes nothing."""
        rows = self._arm_weights
        if self._reader.shape.arm_dim:
            rows = self._reader.arms(context) @ self._arm_weights
        return self._step(self._reader.observation(context), rows)

    def append(self, event: Event) -> FloatArray:
        """Take in a finished round; returns the chosen arm's features as they were."""
        observation, arm = self._reader.check(event)
        rows = self._arm_weights[event.arm : event.arm + 1]
        if self._reader.shape.arm_dim:
            rows = arm[None] @ self._arm_weights
        features: FloatArray = self._step(observation, rows)[0]
        self._row[len(observation) : self._reader.width] = arm
        self._history.append(self._row[: self._n_inputs], event.reward, features)
        self._prepare_round()
        return features

    def refit(self, epochs: int) -> float:
        """Train on the whole history, then read it again; returns the loss of the trained network.

        When training diverges a `TrainingError` is raised and nothing has changed.
        """
        loss = self._learner.refit(epochs)
        self._adopt_network()
        return loss

    def encode_history(self) -> tuple[FloatArray, FloatArray]:
        """Features of every past event (t x dim) under the present network, and their rewards."""
        return self._learner.encoded()

    def snapshot(self) -> Snapshot:
        """Network, optimiser and history."""
        return self._learner.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._learner.restore(snapshot)
        self._adopt_network()

    def _adopt_network(self) -> None:
        """Work out what stays the same until the next training."""
        width = self._reader.width
        self._combined = self._network.combined_input_weights().copy()
        self._arm_weights = self._combined[width - self._reader.arm_width : width].copy()
        self._prepare_round()

    def _prepare_round(self) -> None:
        """Everything in the coming row but observation and arm: past triplets, the newest first, and time."""
        row, width, history = self._row, self._reader.width, self._history
        row[:] = 0.0
        row[-1] = 1.0
        row[self._n_inputs : -1] = self._network.waves(len(history))
        if len(history) and self._n_inputs > width:
            last = history.inputs[-1]
            row[width : 2 * width] = last[:width]
            row[2 * width] = history.rewards[-1]
            row[2 * width + 1 : self._n_inputs] = last[width : self._n_inputs - width - 1]

    def _step(self, observation: FloatArray, rows: FloatArray) -> FloatArray:
        """Features of some arms; also writes the observation into the coming row."""
        weights = self._network.weights
        self._row[: len(observation)] = observation
        features = np.empty((len(rows), self.dim), rows.dtype)
        shared = self._row @ self._combined
        step_kernels.dense_step(shared, rows, weights["third"], weights["third_bias"], features)
        return features
