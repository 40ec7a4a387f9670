"""Parts of both networks: their settings, parameters in one flat vector, how they begin, and two
linear layers as one product.

The first hidden layer is linear, so X W0 W1 may be computed as X (W0 W1), and the gradients of W0
and W1 both follow from the one product X' dZ. This is exact; for narrow inputs it saves three of
the four large products of an epoch. For wide inputs, such as images, the layers are applied in
turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from tidepull.parameters import Parameters, parameter
from tidepull.types import FloatArray

LINE = 64


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> FloatArray:
    """An array of zeros whose first number lies at the beginning of a cache line."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    block = np.zeros(size + LINE, np.uint8)
    start = -block.ctypes.data % LINE
    array: FloatArray = block[start : start + size].view(dtype).reshape(shape)
    return array


Arrays: TypeAlias = Mapping[str, FloatArray]


class FlatWeights:
    """Named arrays that are views into `flat`: first the weights (penalised), then the biases
    (free).

    `n_penalised` is where the biases begin.
    """

    def __init__(self, weights: Arrays, biases: Arrays, dtype: Any) -> None:
        everything = {**weights, **biases}
        self._shapes = {name: array.shape for name, array in everything.items()}
        self.n_penalised = sum(array.size for array in weights.values())
        self.flat: FloatArray = np.concatenate([a.ravel() for a in everything.values()]).astype(
            dtype
        )
        self._views = self._split()

    def __getitem__(self, name: str) -> FloatArray:
        return self._views[name]

    def names(self) -> list[str]:
        """Names of the arrays, in the order of `flat`."""
        return list(self._shapes)

    def loss(self, features: FloatArray, rewards: FloatArray, l2: float) -> float:
        """Mean squared error of `features . output` over the known rewards (those that are not NaN)
        + l2 / 2 * sum of squared weights."""
        error = features @ self["output"] - rewards
        error = error[~np.isnan(rewards)]
        penalised = self.flat[: self.n_penalised]
        return float(error @ error / len(error) + 0.5 * l2 * (penalised @ penalised))

    def zeros_like(self) -> FlatWeights:
        """The same layout filled with zeros, for gradients."""
        return self._twin(np.zeros_like(self.flat))

    def copy(self) -> FlatWeights:
        """The same numbers in memory of their own."""
        return self._twin(self.flat.copy())

    def _twin(self, flat: FloatArray) -> FlatWeights:
        twin = object.__new__(FlatWeights)
        twin._shapes, twin.n_penalised = self._shapes, self.n_penalised
        twin.flat = flat
        twin._views = twin._split()
        return twin

    def _split(self) -> dict[str, FloatArray]:
        views, start = {}, 0
        for name, shape in self._shapes.items():
            size = int(np.prod(shape))
            views[name] = self.flat[start : start + size].reshape(shape)
            start += size
        return views


Init: TypeAlias = Literal["authors-code", "paper-text", "scaled"]
"""Where the paper's text and its authors' code differ, both are to be had.

- `authors-code`: dense weights from a normal distribution cut at 2; the LSTM's from Glorot's
  uniform one, and 1 is added inside its forget gate. The paper's figures come from this.
- `paper-text`: every weight, the LSTM's too, from the normal distribution cut at 2, and nothing is
  added.
- `scaled`: as `authors-code`, with dense weights divided by the root of their fan-in.

All biases begin at 0. The feedforward network has no LSTM: for it the first two are the same.
"""

STORED_AS = {"authors-code": "paper"}
"""What stored trials and snapshots call it."""


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


def truncated_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Standard normal numbers; those farther than 2 from zero are drawn again."""
    values = rng.standard_normal(shape)
    while (far := np.abs(values) > 2.0).any():
        values[far] = rng.standard_normal(int(far.sum()))
    return values


def glorot_uniform(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Uniform numbers within ±sqrt(6 / (rows + columns))."""
    limit = math.sqrt(6.0 / (shape[0] + shape[1]))
    return rng.uniform(-limit, limit, shape)


def dense(rng: np.random.Generator, shape: tuple[int, ...], *, scaled: bool) -> FloatArray:
    """Weights of a dense layer with `shape[0]` inputs; scaled: divided by the root of that
    number."""
    values = truncated_normal(rng, shape)
    return values / math.sqrt(shape[0]) if scaled else values


class LinearPair:
    """Z = (X W0 + b0) W1 + b1 + offset, where the last column of X is 1."""

    def __init__(
        self, weights: FlatWeights, gradient: FlatWeights, second: str, offset: FloatArray
    ) -> None:
        self._w = {"first": weights["first"], "first_bias": weights["first_bias"]}
        self._w |= {"second": weights[second], "second_bias": weights[f"{second}_bias"]}
        self._g = {"first": gradient["first"], "first_bias": gradient["first_bias"]}
        self._g |= {"second": gradient[second], "second_bias": gradient[f"{second}_bias"]}
        self._offset = offset.astype(weights.flat.dtype)
        self.n_inputs, self.first = self._w["first"].shape
        self.second = len(self._offset)
        self._combined = np.empty((self.n_inputs + 1, self.second), self._offset.dtype)
        self._product = np.empty_like(self._combined)
        self._augmented = np.empty((self.n_inputs + 1, self.first), self._offset.dtype)
        self._between = np.empty((0, self.first), self._offset.dtype)
        self._outer = np.empty((self.first, self.second), self._offset.dtype)
        self._bias = np.empty_like(self._offset)

    def collapses(self, n: int) -> bool:
        """Whether X (W0 W1) takes fewer multiplications in an epoch of n rounds than (X W0) W1."""
        as_one = 2 * self.n_inputs * self.second * n + 3 * self.n_inputs * self.first * self.second
        in_turn = (2 * self.n_inputs + 3 * self.second) * self.first * n
        return bool(as_one <= in_turn)

    def combined(self) -> FloatArray:
        """The pair as one map; its last row is the bias."""
        w, both = self._w, self._combined
        np.matmul(w["first"], w["second"], out=both[:-1])
        np.matmul(w["first_bias"], w["second"], out=both[-1])
        both[-1] += w["second_bias"]
        both[-1] += self._offset
        return both

    def forward(self, X: FloatArray, out: FloatArray) -> None:
        """Z for every row of X."""
        if self.collapses(len(X)):
            np.matmul(X, self.combined(), out=out)
            return
        w, augmented = self._w, self._augmented
        if len(self._between) < len(X):
            self._between = np.empty((2 * len(X), self.first), out.dtype)
        augmented[:-1], augmented[-1] = w["first"], w["first_bias"]
        between = np.matmul(X, augmented, out=self._between[: len(X)])
        np.matmul(between, w["second"], out=out)
        out += np.add(w["second_bias"], self._offset, out=self._bias)

    def backward(
        self,
        X: FloatArray,
        DZ: FloatArray,
        inputs: slice = slice(0, 0),
        DX: FloatArray | None = None,
    ) -> None:
        """Write the gradients, after `forward`; also that of some inputs into DX (inputs x rounds),
        if asked."""
        w, g = self._w, self._g
        if self.collapses(len(X)):
            P = np.matmul(X.T, DZ, out=self._product)
            np.matmul(P[:-1], w["second"].T, out=g["first"])
            np.matmul(w["second"], P[-1], out=g["first_bias"])
            np.matmul(w["first"].T, P[:-1], out=g["second"])
            g["second"][:] += np.multiply.outer(w["first_bias"], P[-1], out=self._outer)
            g["second_bias"][:] = P[-1]
            if DX is not None:
                np.matmul(self._combined[inputs], DZ.T, out=DX)
            return
        between = self._between[: len(X)]
        np.matmul(between.T, DZ, out=g["second"])
        np.sum(DZ, axis=0, out=g["second_bias"])
        np.matmul(DZ, w["second"].T, out=between)
        P = np.matmul(X.T, between, out=self._augmented)
        g["first"][:], g["first_bias"][:] = P[:-1], P[-1]
        if DX is not None:
            np.matmul(w["first"][inputs], between.T, out=DX)


REGISTERS = 8
"""Vectors of sums that are kept at once: enough to hide the latency of a multiply-add."""


def pack(W: FloatArray, lanes: int, out: FloatArray) -> None:
    """Copy a matrix block by block, each block as many columns as `add_product` sums at once."""
    rows, width, flat = len(W), REGISTERS * lanes, out.reshape(-1)
    for first in range(0, W.shape[1], width):
        block = W[:, first : first + width]
        flat[first * rows : first * rows + block.size] = block.reshape(-1)
