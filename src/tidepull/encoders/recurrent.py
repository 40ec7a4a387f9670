"""The recurrent encoder: the network of the paper, its history, and the state it has reached."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tidepull.encoders import step_kernels
from tidepull.encoders.history import History
from tidepull.encoders.inputs import ContextReader
from tidepull.encoders.recurrent_network import RecurrentNetwork
from tidepull.encoders.settings import RecurrentSettings
from tidepull.encoders.training import Learner
from tidepull.types import Context, Event, FloatArray, ProblemShape, Snapshot


class RecurrentEncoder:
    """Features from an LSTM that has read `[previous reward, observation, arm]` of every past round.

    The state after the last round is kept, so the arms of the coming round cost one batched step; the
    sequence is only run again when training has changed the network.
    """

    def __init__(
        self,
        shape: ProblemShape,
        *,
        units: tuple[int, int, int],
        learning_rate: float,
        l2: float = 0.001,
        init: Literal["paper", "scaled"] = "paper",
        bptt_window: int | None = None,
        rng: np.random.Generator,
        dtype: Any = np.float32,
    ) -> None:
        settings = RecurrentSettings(
            units=units, learning_rate=learning_rate, l2=l2, init=init, bptt_window=bptt_window
        )
        self._reader = ContextReader(shape, dtype)
        n_inputs = 1 + self._reader.width
        self._network = RecurrentNetwork(n_inputs, settings, rng, dtype)
        self._history = History(n_inputs, settings.units[2], dtype)
        self._learner = Learner(self._network, self._history, settings.learning_rate)
        self._h = np.zeros(settings.units[1], dtype)
        self._c = np.zeros(settings.units[1], dtype)
        self._shared = np.empty(4 * settings.units[1], dtype)
        self._row = np.empty(n_inputs, dtype)
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
        gates = self._arm_gates
        if self._reader.shape.arm_dim:
            gates = self._reader.arms(context) @ self._arm_gates
        features, _, _ = self._step(self._reader.observation(context), gates)
        return features

    def append(self, event: Event) -> FloatArray:
        """Take in a finished round; returns the chosen arm's features as they were."""
        observation, arm = self._reader.check(event)
        row, split = self._row, 1 + len(observation)
        row[0], row[1:split], row[split:] = self._previous_reward, observation, arm
        gates = self._arm_gates[event.arm : event.arm + 1]
        if self._reader.shape.arm_dim:
            gates = arm[None] @ self._arm_gates
        rows, h, c = self._step(observation, gates)
        features: FloatArray = rows[0]
        self._h[:], self._c[:] = h[0], c[0]
        self._history.append(row, event.reward, features)
        self._prepare_round()
        return features

    def refit(self, epochs: int) -> float:
        """Train on the whole history, then read it again; returns the loss of the trained network.

        When training diverges a `TrainingError` is raised and nothing has changed.
        """
        loss = self._learner.refit(epochs)
        self._h[:], self._c[:] = self._network.state(len(self._history))
        self._adopt_network()
        return loss

    def encode_history(self) -> tuple[FloatArray, FloatArray]:
        """Features of every past event (t x dim) under the present network, and their rewards."""
        return self._learner.encoded()

    def snapshot(self) -> Snapshot:
        """Network, optimiser, history and state."""
        return {**self._learner.snapshot(), "h": self._h.copy(), "c": self._c.copy()}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._learner.restore(snapshot)
        self._h[:], self._c[:] = snapshot["h"], snapshot["c"]
        self._adopt_network()

    @property
    def _previous_reward(self) -> float:
        return float(self._history.rewards[-1]) if len(self._history) else 0.0

    def _adopt_network(self) -> None:
        """Work out what stays the same until the next training."""
        split = 1 + self._reader.shape.observation_dim
        combined = self._network.combined_input_weights()
        self._reward_gates, self._bias = combined[0].copy(), combined[-1].copy()
        self._arm_gates = combined[split:-1].copy()
        self._observation_weights = self._network.weights["first"][1:split]
        self._prepare_round()

    def _prepare_round(self) -> None:
        recurrent = self._network.weights["recurrent"]
        step_kernels.gates_of_state(
            self._shared, self._h, recurrent, self._bias, self._previous_reward, self._reward_gates
        )

    def _step(self, observation: FloatArray, gates: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Features of some arms from the stored state, and the states (h, c) that would follow."""
        weights, dtype = self._network.weights, gates.dtype
        features = np.empty((len(gates), self.dim), dtype)
        h, c = np.empty((2, len(gates), len(self._c)), dtype)
        step_kernels.cell_step(
            self._shared,
            observation,
            self._observation_weights,
            weights["gates"],
            gates,
            self._c,
            weights["third"],
            weights["third_bias"],
            features,
            h,
            c,
        )
        return features, h, c
