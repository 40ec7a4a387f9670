"""The feedforward encoder: a handcrafted memory of the last n rounds, and units that oscillate in
time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.encoders import kernels
from tidepull.encoders.base import ContextReader, NetworkEncoder
from tidepull.encoders.networks import FeedforwardNetwork, FeedforwardSettings, waves
from tidepull.encoders.training import History, Slices, Trainer
from tidepull.protocols import Accept
from tidepull.types import Context, FloatArray, ProblemShape, Snapshot


class FeedforwardEncoder(NetworkEncoder):
    """Features from `[observation, arm]`, the last `order` triplets `(observation, arm, reward)`
    and time.

    A round is a decision, and time is its number. The triplets are those of the last events that
    had arrived when it was decided, the newest first; triplets from before the first are zero. With
    `memory`, training and `encode_history` know the last so many rounds. Other arguments are those
    of `FeedforwardSettings`.
    """

    def __init__(
        self,
        shape: ProblemShape,
        *,
        rng: np.random.Generator,
        dtype: Any = np.float32,
        **network: Any,
    ) -> None:
        settings = FeedforwardSettings.from_mapping(network)
        self._reader = ContextReader(shape, dtype)
        width = self._reader.width
        n_inputs = width + settings.order * (width + 1)
        self._network = FeedforwardNetwork(n_inputs, settings, rng, dtype)
        dim, n_waves, memory = settings.units[2], settings.sinusoids, settings.memory
        self._history = History(n_inputs, dim, dtype, n_scratch=n_waves, memory=memory)
        self._n_inputs = n_inputs
        self._trainer = Trainer(self._network, self._history, settings.learning_rate)
        self._weights = self._trainer.weights
        self._triplets = np.zeros(n_inputs - width, dtype)  # of the last events that have arrived
        self._opened = False  # whether the coming row has its triplets
        self._row = np.zeros(n_inputs + n_waves + 1, dtype)
        self._row[-1] = 1.0
        self._adopt_network()

    def open(self) -> None:
        """Begin the coming round now: what arrives from now on is not part of its input."""
        self._row[self._reader.width : self._n_inputs] = self._triplets
        self._opened = True

    def features(self, context: Context) -> FloatArray:
        """One row for each arm in the coming round (n_arms x dim), which is opened if it was not
        yet."""
        observation = self._reader.observation(context)
        return self._step(observation, self._arm_rows(context, self._arm_weights))

    def decide(self, context: Context, arm: int) -> FloatArray:
        """Read the coming round (opened now, if it was not yet) with the arm chosen in it; its
        reward is pending.

        Returns the arm's features; the round's number is `rounds` before the call.
        """
        observation, described = self._reader.chosen(context, arm)
        rows = self._chosen_row(arm, described, self._arm_weights)
        features: FloatArray = self._step(observation, rows)[0]
        self._row[len(observation) : self._reader.width] = described
        self._history.append(self._row[: self._n_inputs], features)
        self._opened = False
        self._prepare_round()
        return features

    def refitting(self, epochs: int, accept: Accept | None = None) -> Slices:
        """`refit` in slices: an epoch each time, and reading again in the last."""
        loss = yield from self._trainer.refitting(epochs, accept)
        self._adopt_network()
        return loss

    def snapshot(self) -> Snapshot:
        """Network, optimiser and history."""
        past = self._row[self._reader.width : self._n_inputs]
        return {
            **self._trainer.snapshot(),
            "triplets": self._triplets.copy(),
            "opened": past.copy() if self._opened else None,
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._trainer.restore(snapshot)
        self._triplets[:] = snapshot["triplets"]
        self._opened = snapshot["opened"] is not None
        if self._opened:
            self._row[self._reader.width : self._n_inputs] = snapshot["opened"]
        self._adopt_network()

    def _reward_arrived(self, place: int, number: int) -> None:
        """The triplet of that round is the newest from now on."""
        width, triplets = self._reader.width, self._triplets
        if len(triplets):
            triplets[width + 1 :] = triplets[: -width - 1].copy()
            triplets[:width] = self._history.inputs[place, :width]
            triplets[width] = self._history.rewards[place]

    def _read_again(self) -> None:
        self._trainer.read_again()

    def _adopt_network(self) -> None:
        """Work out what stays the same until the next training."""
        width = self._reader.width
        self._combined = self._network.combined_input_weights().copy()
        self._arm_weights = self._combined[width - self._reader.arm_width : width].copy()
        self._prepare_round()

    def _prepare_round(self) -> None:
        """The time of the coming round; room for its arm is left empty."""
        self._row[self._reader.shape.observation_dim : self._reader.width] = 0.0
        self._row[self._n_inputs : -1] = waves(self._weights, self.rounds)

    def _step(self, observation: FloatArray, rows: FloatArray) -> FloatArray:
        """Features of some arms; also writes observation and triplets into the coming row."""
        if not self._opened:
            self.open()
        self._row[: len(observation)] = observation
        features = np.empty((len(rows), self.dim), rows.dtype)
        shared = self._row @ self._combined
        kernels.dense_step(
            shared, rows, self._weights["third"], self._weights["third_bias"], features
        )
        return features
