"""Contexts as short vectors: (1, z) with z a linear map of what is seen, mean square length 1.

z_j = (v_j . (c - mean)) / sqrt(spread_j), where v_j are the coordinates themselves or, where there are more
than `LONGEST`, the leading principal directions. Dividing by the root of the spread is half-way between
leaving coordinates as they are and making them all alike. The mean is taken off observations, which all
arms share, but not off vectors that tell arms apart, because w . c has no constant.
"""

from __future__ import annotations

import numpy as np

from tidepull.errors import ContextError
from tidepull.types import Context, FloatArray, ProblemShape, Snapshot

LONGEST_OBSERVATION = 32
LONGEST_ARM_VECTOR = 64


class ContextMap:
    """From a context to one row (1, z) for each arm; before the first fit contexts are ignored."""

    def __init__(self, shape: ProblemShape) -> None:
        self._shape = shape
        self.shared = shape.arm_dim > 0
        self.raw_dim = shape.arm_dim + shape.observation_dim
        longest = LONGEST_ARM_VECTOR if self.shared else LONGEST_OBSERVATION
        self.dim = 1 + min(self.raw_dim, longest)
        self._mean = np.zeros(self.raw_dim)
        self._map = np.zeros((self.dim - 1, self.raw_dim))

    def raw(self, context: Context) -> FloatArray:
        """What is seen of each arm (one row for all where arms have no vectors), checked and copied."""
        shape = self._shape
        parts = []
        if shape.arm_dim:
            parts.append(_checked("arm_features", context.arm_features, (shape.n_arms, shape.arm_dim)))
        if shape.observation_dim:
            row = _checked("observation", context.observation, (shape.observation_dim,))
            parts.append(np.broadcast_to(row, (shape.n_arms if shape.arm_dim else 1, len(row))))
        return np.concatenate(parts, axis=1) if parts else np.empty((1, 0))

    def __call__(self, raw: FloatArray) -> FloatArray:
        """(1, z) of every row."""
        return np.concatenate([np.ones((len(raw), 1)), (raw - self._mean) @ self._map.T], axis=1)

    def fit(self, raw: FloatArray) -> None:
        """A new map from rows seen so far."""
        if not self.raw_dim:
            return
        self._mean = np.zeros(self.raw_dim) if self.shared else raw.mean(axis=0)
        centred = raw - self._mean
        if self.dim - 1 == self.raw_dim:
            directions = np.eye(self.raw_dim)
            spread = np.sqrt(np.mean(centred**2, axis=0))
        else:
            _, values, rows = np.linalg.svd(centred, full_matrices=False)
            kept = min(self.dim - 1, len(values))
            directions = np.zeros((self.dim - 1, self.raw_dim))
            directions[:kept] = rows[:kept] * np.sign(rows[:kept].sum(axis=1, keepdims=True))
            spread = np.zeros(self.dim - 1)
            spread[:kept] = values[:kept] / np.sqrt(len(raw))
        largest = float(spread.max(initial=0.0))
        if largest == 0.0:
            self._map[:] = 0.0
            return
        # A coordinate that hardly moved yet must not be blown up.
        self._map = directions / np.sqrt(np.maximum(spread, 0.01 * largest))[:, None]
        length = float(np.mean(np.sum((centred @ self._map.T) ** 2, axis=1)))
        self._map /= np.sqrt(length)

    def snapshot(self) -> Snapshot:
        """The whole state."""
        return {"mean": self._mean.copy(), "map": self._map.copy()}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._mean, self._map = np.array(snapshot["mean"]), np.array(snapshot["map"])


def _checked(name: str, value: FloatArray | None, shape: tuple[int, ...]) -> FloatArray:
    if value is None or np.shape(value) != shape:
        got = "nothing" if value is None else f"the shape {np.shape(value)}"
        raise ContextError(f"{name} must have the shape {shape}, got {got}")
    array = np.array(value, dtype=float)
    if not np.isfinite(array).all():
        raise ContextError(f"{name} must be finite numbers")
    return array
