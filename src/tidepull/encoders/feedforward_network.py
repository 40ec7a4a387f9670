"""The feedforward network of the paper and its exact gradients, over the whole history.

inputs and D units sin(a_i t + b_i)  ->  linear L1  ->  tanh L2  ->  tanh L3 (the features)
->  one linear output without bias
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.encoders import initial, kernels
from tidepull.encoders.linear_pair import LinearPair
from tidepull.encoders.settings import FeedforwardSettings
from tidepull.encoders.weights import Weights
from tidepull.types import FloatArray


class FeedforwardNetwork:
    """Weights, loss and gradients.

    Inputs are rows of `n_inputs` numbers, then room for the sinusoids, which are written in place, then
    1 (see `History`). The rows belong to consecutive rounds, of which `first` is the number of the first.
    """

    def __init__(
        self, n_inputs: int, settings: FeedforwardSettings, rng: np.random.Generator, dtype: Any
    ) -> None:
        self.units = settings.units
        self.l2 = settings.l2
        self._waves = slice(n_inputs, n_inputs + settings.sinusoids)
        self.weights = _initial_weights(n_inputs, settings, rng, dtype)
        self.gradient = self.weights.zeros_like()
        self._pair = LinearPair(self.weights, self.gradient, "second", np.zeros(self.units[1]))
        self._no_bias = np.zeros(self.units[1], dtype)
        self._workspace = _Workspace(0, settings, dtype)
        self._settings = settings

    def loss(self, inputs: FloatArray, rewards: FloatArray, first: int = 0) -> float:
        """Mean squared error over the known rewards (those that are not NaN) + l2 / 2 * sum of squared weights,
        and the gradient into `gradient`."""
        n = len(rewards)
        features = self.encode(inputs, first)
        w, grad, space = self.weights, self.gradient, self._workspace
        second, DZ3, DZ2 = space.second[:n], space.DZ3[:n], space.DZ2[:n]
        error = kernels.head(features, w["output"], rewards, DZ3, grad["output"], grad["third_bias"])
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
            self._workspace = _Workspace(capacity, self._settings, self.weights.flat.dtype)


def waves(weights: Weights, t: int) -> FloatArray:
    """sin(a_i t + b_i) of every sinusoidal unit in round t."""
    values = np.empty((2, weights["frequency"].size, 1), weights.flat.dtype)
    kernels.sinusoids(weights["frequency"], weights["phase_bias"], t, values[0], values[1])
    return values[0, :, 0]


class _Workspace:
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


def _initial_weights(
    n_inputs: int, settings: FeedforwardSettings, rng: np.random.Generator, dtype: Any
) -> Weights:
    (first, second, third), waves = settings.units, settings.sinusoids
    scaled = settings.init == "scaled"
    weights = {
        "frequency": initial.truncated_normal(rng, (waves,)),
        "first": initial.dense(rng, (n_inputs + waves, first), scaled=scaled),
        "second": initial.dense(rng, (first, second), scaled=scaled),
        "third": initial.dense(rng, (second, third), scaled=scaled),
        "output": initial.dense(rng, (third,), scaled=scaled),
    }
    biases = {
        "phase_bias": np.zeros(waves),
        "first_bias": np.zeros(first),
        "second_bias": np.zeros(second),
        "third_bias": np.zeros(third),
    }
    return Weights(weights, biases, dtype)
