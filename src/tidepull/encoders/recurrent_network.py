"""The recurrent network of the paper and its exact gradients, over one whole sequence.

    linear L1  ->  LSTM L2  ->  tanh L3 (the features)  ->  one linear output without bias

Recurrences run in `kernels`; everything else is a product over the whole sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.encoders import initial, kernels, simd
from tidepull.encoders.initial import Init
from tidepull.encoders.linear_pair import LinearPair
from tidepull.encoders.memory import aligned_zeros
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
        self.l2 = settings.l2
        self._window = settings.bptt_window or np.iinfo(np.int64).max
        self._forward, self._backward = kernels.recurrence(units[1])
        self.weights = _initial_weights(n_inputs, units, settings.init, rng, dtype)
        self.gradient = self.weights.zeros_like()
        self._workspace = _Workspace(0, units, dtype)
        self._pair = LinearPair(self.weights, self.gradient, "gates", _forget_offset(units[1], settings.init))
        self._lanes = kernels.lanes_of(units[1])
        self._recurrent = aligned_zeros((units[1], 4 * units[1]), dtype)
        self._transposed = aligned_zeros((4 * units[1], units[1]), dtype)

    def loss(self, inputs: FloatArray, rewards: FloatArray, first: int = 0) -> float:
        """Mean squared error over the known rewards (those that are not NaN) + l2 / 2 * sum of squared weights,
        and the gradient into `gradient`. The sequence starts from the zero state; its number does not matter.
        """
        n = len(rewards)
        features = self.encode(inputs)
        w, grad, space = self.weights, self.gradient, self._workspace
        DZ, DH, G, H = space.DZ[:n], space.DH[:n], space.G[:n], space.H
        error = kernels.head(features, w["output"], rewards, DZ, grad["output"], grad["third_bias"])
        np.matmul(H[1 : n + 1].T, DZ, out=grad["third"])
        np.matmul(DZ, w["third"].T, out=DH)
        simd.pack(w["recurrent"].T, self._lanes, self._transposed)
        self._backward(G, self._transposed, space.C[:n], space.TC[:n], DH, self._window)
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
        simd.pack(w["recurrent"], self._lanes, self._recurrent)
        self._forward(G, self._recurrent, space.H, space.C, space.TC)
        np.matmul(space.H[1 : n + 1], w["third"], out=features)
        kernels.tanh_rows(features, w["third_bias"])
        return features

    def state(self, n: int) -> tuple[FloatArray, FloatArray]:
        """The LSTM's output and cell after n rounds of the sequence that was last encoded."""
        return self._workspace.H[n].copy(), self._workspace.C[n].copy()

    def combined_input_weights(self) -> FloatArray:
        """The two linear maps before the gates as one; its last row is the bias of the gates."""
        return self._pair.combined()

    def _reserve(self, n: int) -> None:
        if n > self._workspace.capacity:
            capacity = max(64, 1 << (n - 1).bit_length())
            self._workspace = _Workspace(capacity, self.units, self.weights.flat.dtype)


class _Workspace:
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
    """The constant 1 inside the forget gate, which lets a fresh cell remember; the paper's text has none."""
    offset = np.zeros(4 * hidden)
    if init != "paper-text":
        offset[hidden : 2 * hidden] = 1.0
    return offset


def _initial_weights(
    n_inputs: int, units: tuple[int, int, int], init: Init, rng: np.random.Generator, dtype: Any
) -> Weights:
    first, hidden, third = units
    scaled = init == "scaled"
    draw_lstm = initial.truncated_normal if init == "paper-text" else initial.glorot_uniform
    dense_first = initial.dense(rng, (n_inputs, first), scaled=scaled)
    lstm = draw_lstm(rng, (first + hidden, 4 * hidden))
    weights = {
        "first": dense_first,
        "gates": lstm[:first],
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
