"""The feedforward network and its encoder: a handcrafted memory of the last n rounds, and units that
oscillate in time.

    inputs and D units sin(a_i t + b_i)  ->  linear L1  ->  tanh L2  ->  tanh L3 (the features)

One linear output without bias follows. Gradients are exact, over the whole history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tidepull.encoders import kernels, layers
from tidepull.encoders.base import ContextReader, NetworkEncoder
from tidepull.encoders.layers import FlatWeights, NetworkSettings
from tidepull.encoders.training import History, Network, Slices, Trainer
from tidepull.parameters import parameter
from tidepull.protocols import Accept
from tidepull.types import Context, FloatArray, ProblemShape, Snapshot


@dataclass(frozen=True, kw_only=True)
class FeedforwardSettings(NetworkSettings):
    """The feedforward network."""

    order: int = parameter(1, "past rounds that are part of the input", ge=0, le=10_000)
    sinusoids: int = parameter(1, "units sin(a t + b) that read the time", ge=0, le=10_000)


class FeedforwardNetwork(Network):
    """Weights, loss and gradients.

    Inputs are rows of `n_inputs` numbers, then room for the sinusoids, which are written in place,
    then 1 (see `History`). The rows belong to consecutive rounds, of which `first` is the number of
    the first.
    """

    def __init__(
        self, n_inputs: int, settings: FeedforwardSettings, rng: np.random.Generator, dtype: Any
    ) -> None:
        weights = _feedforward_weights(n_inputs, settings, rng, dtype)
        super().__init__(settings, weights, "second", np.zeros(settings.units[1]))
        self._n_waves = settings.sinusoids
        self._waves = slice(n_inputs, n_inputs + settings.sinusoids)
        self._no_bias = np.zeros(self.units[1], dtype)

    def loss(self, inputs: FloatArray, rewards: FloatArray, first: int = 0) -> float:
        """Mean squared error over the known rewards (those that are not NaN) + l2 / 2 * sum of
        squared weights, and the gradient into `gradient`."""
        n = len(rewards)
        features = self.encode(inputs, first)
        w, grad, space = self.weights, self.gradient, self._workspace
        second, DZ3, DZ2 = space.second[:n], space.DZ3[:n], space.DZ2[:n]
        error = kernels.head(
            features, w["output"], rewards, DZ3, grad["output"], grad["third_bias"]
        )
        np.matmul(second.T, DZ3, out=grad["third"])
        np.matmul(DZ3, w["third"].T, out=DZ2)
        kernels.tanh_backward(DZ2, second)
        # The sines are in the inputs by now: their room takes the gradients.
        DS, cosines = space.sines[:, :n], space.cosines[:, :n]
        self._pair.backward(inputs, DZ2, self._waves, DS)
        kernels.sinusoid_gradient(DS, cosines, first, grad["frequency"], grad["phase_bias"])
        return float(error + kernels.add_penalty(grad.flat, w.flat, self.l2, w.n_penalised))

    def encode(self, inputs: FloatArray, first: int = 0) -> FloatArray:
        """Features of every row; a view that the next call overwrites."""
        n = len(inputs)
        w, space = self.weights, self._reserve(n)
        sines, second = space.sines[:, :n], space.second[:n]
        features: FloatArray = space.features[:n]
        kernels.sinusoids(w["frequency"], w["phase_bias"], first, sines, space.cosines[:, :n])
        inputs[:, self._waves] = sines.T
        self._pair.forward(inputs, second)
        kernels.tanh_rows(second, self._no_bias)
        np.matmul(second, w["third"], out=features)
        kernels.tanh_rows(features, w["third_bias"])
        return features

    def _buffers(self, capacity: int) -> dict[str, FloatArray]:
        (_, second, third), dtype = self.units, self.weights.flat.dtype
        shapes = {"sines": (self._n_waves, capacity), "cosines": (self._n_waves, capacity)}
        shapes |= dict.fromkeys(("second", "DZ2"), (capacity, second))
        shapes |= dict.fromkeys(("features", "DZ3"), (capacity, third))
        return {name: np.empty(shape, dtype) for name, shape in shapes.items()}


def waves(weights: FlatWeights, t: int) -> FloatArray:
    """sin(a_i t + b_i) of every sinusoidal unit in round t."""
    values = np.empty((2, weights["frequency"].size, 1), weights.flat.dtype)
    kernels.sinusoids(weights["frequency"], weights["phase_bias"], t, values[0], values[1])
    return values[0, :, 0]


def _feedforward_weights(
    n_inputs: int, settings: FeedforwardSettings, rng: np.random.Generator, dtype: Any
) -> FlatWeights:
    (first, second, third), waves = settings.units, settings.sinusoids
    scaled = settings.init == "scaled"
    weights = {
        "frequency": layers.truncated_normal(rng, (waves,)),
        "first": layers.dense(rng, (n_inputs + waves, first), scaled=scaled),
        "second": layers.dense(rng, (first, second), scaled=scaled),
        "third": layers.dense(rng, (second, third), scaled=scaled),
        "output": layers.dense(rng, (third,), scaled=scaled),
    }
    sizes = {"phase": waves, "first": first, "second": second, "third": third}
    biases = {f"{name}_bias": np.zeros(size) for name, size in sizes.items()}
    return FlatWeights(weights, biases, dtype)


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
