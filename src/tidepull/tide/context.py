"""Contexts as short vectors: (1, z) with z a linear map of what is seen, mean square length 1.

z_j = (v_j . (c - mean)) / sqrt(spread_j), where v_j are the coordinates themselves or, where there
are more than is said below, the leading principal directions. Dividing by the root of the spread is
half-way between leaving coordinates as they are and making them all alike. The mean is taken off
observations, which all arms share, but not off vectors that tell arms apart, because w . c has no
constant.
"""

from __future__ import annotations

import copy

import numpy as np

from tidepull.state import Stateful
from tidepull.types import Context, FloatArray, ProblemShape

LONGEST_OBSERVATION, LONGEST_PLAIN = 32, 64
"""Observations of more than `LONGEST_PLAIN` numbers are reduced to `LONGEST_OBSERVATION`
directions."""
LONGEST_ARM_VECTOR = 64
_LONGEST_WHOLE, _MOST_ARMS, _MOST_PRODUCTS = 256, 128, 4_000_000
"""Limits of numbers, arms and products of a decision up to which longer arm vectors are also kept
whole."""


_NOTHING = np.empty((1, 0))


class ContextMap(Stateful):
    """Map from a context to one row (1, z) for each arm; before the first fit contexts are ignored.
    Arm vectors longer than the map are appended whole: (1, z, 1, all numbers, scaled as z is)."""

    state = ("mean", "map", "each")

    def __init__(self, shape: ProblemShape) -> None:
        self._shape = shape
        self.shared = shape.arm_dim > 0
        self.raw_dim = shape.arm_dim + shape.observation_dim
        plain = LONGEST_PLAIN if self.raw_dim <= LONGEST_PLAIN else LONGEST_OBSERVATION
        longest = LONGEST_ARM_VECTOR if self.shared else plain
        self.narrow = 1 + min(self.raw_dim, longest)
        whole = self.shared and longest < self.raw_dim <= _LONGEST_WHOLE
        whole &= shape.n_arms <= _MOST_ARMS and shape.n_arms * self.raw_dim**2 <= _MOST_PRODUCTS
        self.whole_dim = 1 + self.raw_dim if whole else 0
        self.dim = self.narrow + self.whole_dim
        self._mean = np.zeros(self.raw_dim)
        self._map = np.zeros((self.narrow - 1, self.raw_dim))
        self._each: FloatArray = np.zeros(self.raw_dim if whole else 0)
        self._plain = np.ones((1 if self.raw_dim else shape.n_arms, 1))

    def raw(self, context: Context) -> FloatArray:
        """Numbers of each arm (one row for all where arms have no vectors); a copy."""
        shape, parts = self._shape, []
        if not self.raw_dim:
            return _NOTHING
        if not shape.arm_dim and context.observation is not None:
            return np.array(context.observation, float, ndmin=2)
        if context.arm_features is not None and shape.arm_dim:
            parts.append(np.asarray(context.arm_features, float))
        if context.observation is not None and shape.observation_dim:
            row = np.asarray(context.observation, float)
            parts.append(np.broadcast_to(row, (shape.n_arms if shape.arm_dim else 1, len(row))))
        return np.concatenate(parts, axis=1) if parts else np.empty((1, 0))

    def __call__(self, raw: FloatArray) -> FloatArray:
        """(1, z) of every row."""
        return self._with_ones(raw, len(raw))

    def narrowed(self, raw: FloatArray) -> FloatArray:
        """z of one row."""
        z: FloatArray = (raw - self._mean) @ self._map.T
        return z

    def _with_ones(self, raw: FloatArray, rows: int) -> FloatArray:
        made = np.empty((rows, self.dim))
        made[:, 0], made[:, 1 : self.narrow] = 1.0, (raw - self._mean) @ self._map.T
        if self.whole_dim:
            made[:, self.narrow], made[:, self.narrow + 1 :] = 1.0, raw * self._each
        return made

    def rows(self, raw: FloatArray) -> FloatArray:
        """(1, z) of every arm; to be read only."""
        if not self.raw_dim:
            return self._plain
        return self._with_ones(raw, len(raw) if self.shared else self._shape.n_arms)

    def fitted(self, raw: FloatArray) -> ContextMap:
        """A new map from rows seen so far."""
        made = copy.copy(self)
        made._map = np.zeros_like(self._map)
        made._fit(raw)
        if self.whole_dim:
            made._each = _scales(raw)
        return made

    def _fit(self, raw: FloatArray) -> None:
        self._mean = np.zeros(self.raw_dim) if self.shared else raw.mean(axis=0)
        centred = raw - self._mean
        if self.narrow - 1 == self.raw_dim:
            directions = np.eye(self.raw_dim)
            spread = np.sqrt(np.mean(centred**2, axis=0))
        else:
            _, values, rows = np.linalg.svd(centred, full_matrices=False)
            kept = min(self.narrow - 1, len(values))
            directions = np.zeros((self.narrow - 1, self.raw_dim))
            directions[:kept] = rows[:kept] * np.sign(rows[:kept].sum(axis=1, keepdims=True))
            spread = np.zeros(self.narrow - 1)
            spread[:kept] = values[:kept] / np.sqrt(len(raw))
        if not spread.any():
            self._map[:] = 0.0
            return
        self._map = directions / _roots(spread)[:, None]
        length = float(np.mean(np.sum((centred @ self._map.T) ** 2, axis=1)))
        self._map /= np.sqrt(length)


def _roots(spread: FloatArray) -> FloatArray:
    """Of spreads; a coordinate that hardly moved yet must not be blown up."""
    return np.asarray(np.sqrt(np.maximum(spread, 0.01 * float(spread.max()))))


def _scales(raw: FloatArray) -> FloatArray:
    """Factors that give each number of whole rows the scale of z: mean square length 1."""
    spread = np.sqrt(np.mean(raw**2, axis=0))
    if not spread.any():
        return np.zeros_like(spread)
    each = 1 / _roots(spread)
    return np.asarray(each / np.sqrt(np.mean(raw**2 @ each**2)))
