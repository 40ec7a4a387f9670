"""The recurrent network of the paper and its exact gradients, over one whole sequence.

    linear L1  ->  LSTM L2  ->  tanh L3 (the features)  ->  one linear output without bias

Recurrences run in `kernels`; everything else is a product over the whole sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.encoders import initial, kernels
from tidepull.encoders.settings import RecurrentSettings
from tidepull.encoders.weights import Weights
from tidepull.types import FloatArray


class RecurrentNetwork:
    """Weights, loss and gradients. Inputs are rows whose last column is 1 (see `History`)."""

    def __init__(
        self,
        n_inputs: int,
        settings: RecurrentSettings,
        rng: np.random.Generator,
        dtype: Any,
    ) -> None:
        self.n_inputs, self.units = n_inputs, settings.units
        units = settings.units
        self._l2 = settings.l2
        self._window = settings.bptt_window or np.iinfo(np.int64).max
        self._forward, self._backward = kernels.recurrence(units[1])
        self.weights = _initial_weights(n_inputs, units, settings.init == "scaled", rng, dtype)
        self.gradient = self.weights.zeros_like()
        self._workspace = _Workspace(0, units, dtype)
        self._combined = np.empty((n_inputs + 1, 4 * units[1]), dtype)
        self._first = np.empty((n_inputs + 1, units[0]), dtype)
        self._transposed = np.empty((4 * units[1], units[1]), dtype)

    def loss(self, inputs: FloatArray, rewards: FloatArray) -> float:
        """Mean squared error + l2 / 2 * sum of squared weights, and the gradient into `gradient`."""
        n = len(rewards)
        collapsed = self._collapses(n)
        features = self._run(inputs, collapsed)
        w, grad, space = self.weights, self.gradient, self._workspace
        DZ, DH, G, H = space.DZ[:n], space.DH[:n], space.G[:n], space.H
        error = kernels.head(features, w["output"], rewards, DZ, grad["output"], grad["third_bias"])
        np.matmul(H[1 : n + 1].T, DZ, out=grad["third"])
        np.matmul(DZ, w["third"].T, out=DH)
        np.copyto(self._transposed, w["recurrent"].T)
        self._backward(G, self._transposed, space.C[:n], space.TC[:n], DH, self._window)
        np.matmul(H[:n].T, G, out=grad["recurrent"])
        if collapsed:
            self._collapsed_gradient(inputs, G)
        else:
            self._direct_gradient(inputs, G)
        return float(error + kernels.add_penalty(grad.flat, w.flat, self._l2, w.n_penalised))

    def encode(self, inputs: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Features of every row, and the LSTM's output and cell after the last; views, soon overwritten."""
        n = len(inputs)
        features = self._run(inputs, self._collapses(n))
        return features, self._workspace.H[n], self._workspace.C[n]

    def loss_of(self, features: FloatArray, rewards: FloatArray) -> float:
        """The loss alone, from features that `encode` has made."""
        penalised = self.weights.flat[: self.weights.n_penalised]
        error = kernels.squared_error(features, self.weights["output"], rewards) / len(rewards)
        return float(error + 0.5 * self._l2 * np.dot(penalised, penalised))

    def combined_input_weights(self) -> FloatArray:
        """The two linear maps before the gates as one, W0 Wx; its last row is the bias of the gates.

        The forget gate's bias includes the constant 1 that lets a fresh cell remember.
        """
        w, combined, hidden = self.weights, self._combined, self.units[1]
        np.matmul(w["first"], w["input"], out=combined[:-1])
        np.matmul(w["first_bias"], w["input"], out=combined[-1])
        combined[-1] += w["gates_bias"]
        combined[-1, hidden : 2 * hidden] += 1.0
        return combined

    def _collapses(self, n: int) -> bool:
        """Whether X (W0 Wx) takes fewer multiplications in an epoch than (X W0) Wx."""
        first, gates = self.units[0], 4 * self.units[1]
        as_one = 2 * self.n_inputs * gates * n + 3 * self.n_inputs * first * gates
        in_turn = (2 * self.n_inputs * first + 3 * first * gates) * n
        return as_one <= in_turn

    def _run(self, inputs: FloatArray, collapsed: bool) -> FloatArray:
        n = len(inputs)
        self._reserve(n)
        w, space = self.weights, self._workspace
        G, features = space.G[:n], space.U[:n]
        if collapsed:
            np.matmul(inputs, self.combined_input_weights(), out=G)
        else:
            self._first[:-1], self._first[-1] = w["first"], w["first_bias"]
            A = np.matmul(inputs, self._first, out=space.A[:n])
            np.matmul(A, w["input"], out=G)
            bias = w["gates_bias"].copy()
            bias[self.units[1] : 2 * self.units[1]] += 1.0
            G += bias
        self._forward(G, w["recurrent"], space.H, space.C, space.TC)
        np.matmul(space.H[1 : n + 1], w["third"], out=features)
        kernels.tanh_rows(features, w["third_bias"])
        return features

    def _collapsed_gradient(self, inputs: FloatArray, G: FloatArray) -> None:
        """Gradients of W0 and Wx both follow from the one product P = X' dG."""
        w, grad = self.weights, self.gradient
        P = np.matmul(inputs.T, G, out=self._combined)
        np.matmul(P[:-1], w["input"].T, out=grad["first"])
        np.matmul(w["input"], P[-1], out=grad["first_bias"])
        gates = np.matmul(w["first"].T, P[:-1], out=grad["input"])
        gates += np.multiply.outer(w["first_bias"], P[-1])
        grad["gates_bias"][:] = P[-1]

    def _direct_gradient(self, inputs: FloatArray, G: FloatArray) -> None:
        w, grad, n = self.weights, self.gradient, len(inputs)
        A = self._workspace.A[:n]
        np.matmul(A.T, G, out=grad["input"])
        np.sum(G, axis=0, out=grad["gates_bias"])
        DA = np.matmul(G, w["input"].T, out=A)
        P = np.matmul(inputs.T, DA, out=self._first)
        grad["first"][:], grad["first_bias"][:] = P[:-1], P[-1]

    def _reserve(self, n: int) -> None:
        if n > self._workspace.capacity:
            capacity = max(64, 1 << (n - 1).bit_length())
            self._workspace = _Workspace(capacity, self.units, self.weights.flat.dtype)


class _Workspace:
    """Room for one pass over a sequence, used again in every epoch."""

    def __init__(self, capacity: int, units: tuple[int, int, int], dtype: Any) -> None:
        first, hidden, third = units
        self.capacity = capacity
        self.A = np.empty((capacity, first), dtype)
        self.G = np.empty((capacity, 4 * hidden), dtype)
        self.H = np.zeros((capacity + 1, hidden), dtype)
        self.C = np.zeros((capacity + 1, hidden), dtype)
        self.TC = np.empty((capacity, hidden), dtype)
        self.U = np.empty((capacity, third), dtype)
        self.DZ = np.empty((capacity, third), dtype)
        self.DH = np.empty((capacity, hidden), dtype)


def _initial_weights(
    n_inputs: int, units: tuple[int, int, int], scaled: bool, rng: np.random.Generator, dtype: Any
) -> Weights:
    first, hidden, third = units
    dense_first = initial.dense(rng, (n_inputs, first), scaled=scaled)
    lstm = initial.glorot_uniform(rng, (first + hidden, 4 * hidden))
    weights = {
        "first": dense_first,
        "input": lstm[:first],
        "recurrent": lstm[first:],
        "third": initial.dense(rng, (hidden, third), scaled=scaled),
        "output": initial.dense(rng, (third,), scaled=scaled),
    }
    biases = {
        "first_bias": np.zeros(first),
        "gates_bias": np.zeros(4 * hidden),
        "third_bias": np.zeros(third),
    }
    return Weights(weights, biases, dtype)
