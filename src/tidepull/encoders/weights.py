"""All parameters of a network in one flat vector, with a named view of each matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from tidepull.types import FloatArray

Arrays: TypeAlias = Mapping[str, FloatArray]


class Weights:
    """Named arrays that are views into `flat`: first the weights (penalised), then the biases (free).

    `n_penalised` is where the biases begin.
    """

    def __init__(self, weights: Arrays, biases: Arrays, dtype: Any) -> None:
        everything = {**weights, **biases}
        self._shapes = {name: array.shape for name, array in everything.items()}
        self.n_penalised = sum(array.size for array in weights.values())
        self.flat: FloatArray = np.concatenate([a.ravel() for a in everything.values()]).astype(dtype)
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

    def zeros_like(self) -> Weights:
        """The same layout filled with zeros, for gradients."""
        return self._twin(np.zeros_like(self.flat))

    def copy(self) -> Weights:
        """The same numbers in memory of their own."""
        return self._twin(self.flat.copy())

    def _twin(self, flat: FloatArray) -> Weights:
        twin = object.__new__(Weights)
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
