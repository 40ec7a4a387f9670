"""The networks of the paper and their exact gradients, over the whole history.

    feedforward    inputs and D units sin(a_i t + b_i)  ->  linear L1  ->  tanh L2  ->  tanh L3 (the features)
    recurrent      inputs  ->  linear L1  ->  LSTM L2  ->  tanh L3 (the features)

Both end in one linear output without bias. Recurrences run in `kernels`; everything else is a
product over the whole sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tidepull.encoders import kernels, layers
from tidepull.encoders.layers import (
    STORED_AS,
    FlatWeights,
    Init,
    LinearPair,
    aligned_zeros,
    pack,
)
from tidepull.parameters import Parameters, parameter
from tidepull.types import FloatArray


@dataclass(frozen=True, kw_only=True)
class NetworkSettings(Parameters):
    """What both networks have in common."""

    units: tuple[int, int, int] = parameter(
        description="units of the three hidden layers", ge=1, le=1024
    )
    learning_rate: float = parameter(description="step size of Adam", gt=0)
    l2: float = parameter(0.001, "weight of half the sum of squared weights in the loss", ge=0)
    init: Init = parameter("authors-code", "how weights begin", stored_as=STORED_AS)
    memory: int | None = parameter(
        None, "rounds that training knows, the last ones (None: all)", ge=64
    )


@dataclass(frozen=True, kw_only=True)
class RecurrentSettings(NetworkSettings):
    """The recurrent network."""

    bptt_window: int | None = parameter(
        None, "rounds through which gradients flow back (None: all)", ge=1
    )


@dataclass(frozen=True, kw_only=True)
class FeedforwardSettings(NetworkSettings):
    """The feedforward network."""

    order: int = parameter(1, "past rounds that are part of the input", ge=0, le=10_000)
    sinusoids: int = parameter(1, "units sin(a t + b) that read the time", ge=0, le=10_000)


class FeedforwardNetwork:
    """Weights, loss and gradients.

    Inputs are rows of `n_inputs` numbers, then room for the sinusoids, which are written in place,
    then 1 (see `History`). The rows belong to consecutive rounds, of which `first` is the number of
    the first.
    """

    def __init__(
        self, n_inputs: int, settings: FeedforwardSettings, rng: np.random.Generator, dtype: Any
    ) -> None:
        self.units = settings.units
        self.l2 = settings.l2
        self._waves = slice(n_inputs, n_inputs + settings.sinusoids)
        self.weights = _feedforward_weights(n_inputs, settings, rng, dtype)
        self.gradient = self.weights.zeros_like()
        self._pair = LinearPair(self.weights, self.gradient, "second", np.zeros(self.units[1]))
        self._no_bias = np.zeros(self.units[1], dtype)
        self._workspace = _FeedforwardWorkspace(0, settings, dtype)
        self._settings = settings

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
        self._reserve(n)
        w, space = self.weights, self._workspace
        sines, second, features = space.sines[:, :n], space.second[:n], space.features[:n]
        kernels.sinusoids(w["frequency"], w["phase_bias"], first, sines, space.cosines[:, :n])
        inputs[:, self._waves] = sines.T
        self._pair.forward(inputs, second)
        kernels.tanh_rows(second, self._no_bias)
        np.matmul(second, w["third"], out=features)
        kernels.tanh_rows(features, w["third_bias"])
        return features

    def combined_input_weights(self) -> FloatArray:
        """The two linear maps before the first tanh as one; its last row is the bias."""
        return self._pair.combined()

    def _reserve(self, n: int) -> None:
        if n > self._workspace.capacity:
            capacity = max(64, 1 << (n - 1).bit_length())
            self._workspace = _FeedforwardWorkspace(
                capacity, self._settings, self.weights.flat.dtype
            )


def waves(weights: FlatWeights, t: int) -> FloatArray:
    """sin(a_i t + b_i) of every sinusoidal unit in round t."""
    values = np.empty((2, weights["frequency"].size, 1), weights.flat.dtype)
    kernels.sinusoids(weights["frequency"], weights["phase_bias"], t, values[0], values[1])
    return values[0, :, 0]


class _FeedforwardWorkspace:
    """Room for one pass over the history, used again in every epoch."""

    def __init__(self, capacity: int, settings: FeedforwardSettings, dtype: Any) -> None:
        _, second, third = settings.units
        self.capacity = capacity
        self.sines = np.empty((settings.sinusoids, capacity), dtype)
        self.cosines = np.empty((settings.sinusoids, capacity), dtype)
        self.second = np.empty((capacity, second), dtype)
        self.features = np.empty((capacity, third), dtype)
        self.DZ2 = np.empty((capacity, second), dtype)
        self.DZ3 = np.empty((capacity, third), dtype)


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


class RecurrentNetwork:
    """Weights, loss and gradients. Inputs are rows whose last column is 1 (see `History`)."""

    def __init__(
        self, n_inputs: int, settings: RecurrentSettings, rng: np.random.Generator, dtype: Any
    ) -> None:
        self.n_inputs, self.units = n_inputs, settings.units
        units = settings.units
        self.l2 = settings.l2
        self._window = settings.bptt_window or np.iinfo(np.int64).max
        self.weights = _recurrent_weights(n_inputs, units, settings.init, rng, dtype)
        self.gradient = self.weights.zeros_like()
        self._workspace = _RecurrentWorkspace(0, units, dtype)
        self._pair = LinearPair(
            self.weights, self.gradient, "gates", _forget_offset(units[1], settings.init)
        )
        self._lanes = kernels.lanes_of(units[1])
        self._recurrent = aligned_zeros((units[1], 4 * units[1]), dtype)
        self._transposed = aligned_zeros((4 * units[1], units[1]), dtype)

    def loss(self, inputs: FloatArray, rewards: FloatArray, first: int = 0) -> float:
        """Mean squared error over the known rewards (those that are not NaN) + l2 / 2 * sum of
        squared weights, and the gradient into `gradient`. The sequence starts from the zero state;
        its number does not matter.
        """
        n = len(rewards)
        features = self.encode(inputs)
        w, grad, space = self.weights, self.gradient, self._workspace
        DZ, DH, G, H = space.DZ[:n], space.DH[:n], space.G[:n], space.H
        error = kernels.head(features, w["output"], rewards, DZ, grad["output"], grad["third_bias"])
        np.matmul(H[1 : n + 1].T, DZ, out=grad["third"])
        np.matmul(DZ, w["third"].T, out=DH)
        pack(w["recurrent"].T, self._lanes, self._transposed)
        self._recurrence[1](G, self._transposed, space.C[:n], space.TC[:n], DH, self._window)
        np.matmul(H[:n].T, G, out=grad["recurrent"])
        self._pair.backward(inputs, G)
        return float(error + kernels.add_penalty(grad.flat, w.flat, self.l2, w.n_penalised))

    def encode(self, inputs: FloatArray, first: int = 0) -> FloatArray:
        """Features of every row; a view that the next call overwrites."""
        n = len(inputs)
        self._reserve(n)
        w, space = self.weights, self._workspace
        G, features = space.G[:n], space.U[:n]
        self._pair.forward(inputs, G)
        pack(w["recurrent"], self._lanes, self._recurrent)
        self._recurrence[0](G, self._recurrent, space.H, space.C, space.TC)
        np.matmul(space.H[1 : n + 1], w["third"], out=features)
        kernels.tanh_rows(features, w["third_bias"])
        return features

    def state(self, n: int) -> tuple[FloatArray, FloatArray]:
        """The LSTM's output and cell after n rounds of the sequence that was last encoded."""
        return self._workspace.H[n].copy(), self._workspace.C[n].copy()

    def combined_input_weights(self) -> FloatArray:
        """The two linear maps before the gates as one; its last row is the bias of the gates."""
        return self._pair.combined()

    @cached_property
    def _recurrence(self) -> tuple[kernels.Kernel, kernels.Kernel]:
        """Forward and backward."""
        from tidepull.encoders.recurrence import recurrence  # needs the compiler

        return recurrence(self.units[1])

    def _reserve(self, n: int) -> None:
        if n > self._workspace.capacity:
            capacity = max(64, 1 << (n - 1).bit_length())
            self._workspace = _RecurrentWorkspace(capacity, self.units, self.weights.flat.dtype)


class _RecurrentWorkspace:
    """Room for one pass over a sequence, used again in every epoch."""

    def __init__(self, capacity: int, units: tuple[int, int, int], dtype: Any) -> None:
        _, hidden, third = units
        self.capacity = capacity
        self.G = aligned_zeros((capacity, 4 * hidden), dtype)
        self.H = aligned_zeros((capacity + 1, hidden), dtype)
        self.C = aligned_zeros((capacity + 1, hidden), dtype)
        self.TC = aligned_zeros((capacity, hidden), dtype)
        self.U = aligned_zeros((capacity, third), dtype)
        self.DZ = aligned_zeros((capacity, third), dtype)
        self.DH = aligned_zeros((capacity, hidden), dtype)


def _forget_offset(hidden: int, init: Init) -> FloatArray:
    """The constant 1 inside the forget gate, which lets a fresh cell remember; the paper's text has
    none."""
    offset = np.zeros(4 * hidden)
    if init != "paper-text":
        offset[hidden : 2 * hidden] = 1.0
    return offset


def _recurrent_weights(
    n_inputs: int, units: tuple[int, int, int], init: Init, rng: np.random.Generator, dtype: Any
) -> FlatWeights:
    first, hidden, third = units
    scaled = init == "scaled"
    draw_lstm = layers.truncated_normal if init == "paper-text" else layers.glorot_uniform
    dense_first = layers.dense(rng, (n_inputs, first), scaled=scaled)
    lstm = draw_lstm(rng, (first + hidden, 4 * hidden))
    weights = {
        "first": dense_first,
        "gates": lstm[:first],
        "recurrent": lstm[first:],
        "third": layers.dense(rng, (hidden, third), scaled=scaled),
        "output": layers.dense(rng, (third,), scaled=scaled),
    }
    sizes = {"first": first, "gates": 4 * hidden, "third": third}
    biases = {f"{name}_bias": np.zeros(size) for name, size in sizes.items()}
    return FlatWeights(weights, biases, dtype)
