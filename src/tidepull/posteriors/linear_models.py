"""Ridge regressions side by side: one shared by all arms, or one for each arm.

    V = lambda I + sum x x',    b = sum r x,    prediction x'V^-1 b,    squared width x'V^-1 x

"Side by side" because time passes for all of them at once: a round that teaches one model ages the others. Time is
the number of the round in which an arm was chosen, whenever its reward comes.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

import numpy as np

from tidepull.errors import NumericalError, SnapshotError
from tidepull.posteriors.forgetting import insert_by_round
from tidepull.posteriors.linear_gaussian import LinearGaussian
from tidepull.state import read, read_array, read_indices, read_whole
from tidepull.types import FloatArray, Snapshot


class LinearModels(Protocol):
    """Models by number; `weights` says how many observations each one has, old ones counting less."""

    weights: FloatArray

    def advance(self, latest: int) -> None:
        """Time passes up to that round, if it has not yet."""

    def update(self, model: int, x: FloatArray, y: float, decided: int) -> None:
        """The round `decided`, which may lie back, teaches one model."""

    def predict(self, model: int, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prediction and squared width for every row of X."""

    def snapshot(self) -> Snapshot:
        """All that is remembered of every model, sharing nothing with this object."""

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""


class StationaryModels:
    """Nothing is forgotten: O(d^2) for a round."""

    def __init__(self, n_models: int, dim: int, regularisation: float) -> None:
        self.weights: FloatArray = np.zeros(n_models)
        self._models = [ridge(dim, regularisation) for _ in range(n_models)]

    def advance(self, latest: int) -> None:
        """Time makes no difference."""

    def update(self, model: int, x: FloatArray, y: float, decided: int) -> None:
        """Teach one model."""
        self._models[model].update(x, y)
        self.weights[model] += 1.0

    def predict(self, model: int, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prediction and squared width for every row of X."""
        return self._models[model].predict(X)

    def snapshot(self) -> Snapshot:
        """Weights and posterior of every model."""
        return {"weights": self.weights.copy(), "models": [m.snapshot() for m in self._models]}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of models of the same number and size."""
        weights = read_array(snapshot, "weights", self.weights.shape)
        restore_all(self._models, read(snapshot, "models"))
        self.weights = weights


class WindowedModels:
    """Only the last `window` rounds count: O(d^2) for a round, whatever the window.

    A round that leaves the window is taken back from the factor. Rounding errors of that go whenever a
    model is rebuilt from the rows in the window: once in `window` (at least 512) of its rounds.
    """

    def __init__(self, n_models: int, dim: int, regularisation: float, window: int) -> None:
        self.weights: FloatArray = np.zeros(n_models)
        self._dim, self._regularisation, self._window = dim, regularisation, window
        self._models = [ridge(dim, regularisation) for _ in range(n_models)]
        self._rounds: deque[tuple[int, int, FloatArray, float]] = (
            deque()
        )  # (decided, model, x, y), oldest first
        self._latest = -1
        self._taken_back = [0] * n_models

    def advance(self, latest: int) -> None:
        """Let go of the rounds that have left the window."""
        self._latest = max(self._latest, latest)
        while self._rounds and self._rounds[0][0] <= self._latest - self._window:
            _, model, x, y = self._rounds.popleft()
            self._forget(model, x, y)

    def update(self, model: int, x: FloatArray, y: float, decided: int) -> None:
        """Teach one model, unless the round has left the window already."""
        if decided > self._latest - self._window:
            self._models[model].update(x, y)
            insert_by_round(self._rounds, (decided, model, np.array(x, dtype=np.float64), y))
            self.weights[model] += 1.0
        self.advance(decided)

    def _forget(self, model: int, x: FloatArray, y: float) -> None:
        self.weights[model] -= 1.0
        self._taken_back[model] += 1
        if self._taken_back[model] >= max(self._window, 512):
            self._rebuild(model)
            return
        try:
            self._models[model].downdate(x, y)
        except NumericalError:  # too much would cancel: the rows themselves are still there
            self._rebuild(model)

    def _rebuild(self, model: int) -> None:
        fresh = ridge(self._dim, self._regularisation)
        for _, owner, x, y in self._rounds:
            if owner == model:
                fresh.update(x, y)
        self._models[model] = fresh
        self._taken_back[model] = 0

    def predict(self, model: int, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prediction and squared width for every row of X."""
        return self._models[model].predict(X)

    def snapshot(self) -> Snapshot:
        """Weights and posterior of every model, and the rounds of the window."""
        decided, owners, rows, rewards = zip(*self._rounds, strict=True) if self._rounds else ((), (), (), ())
        return {
            "weights": self.weights.copy(),
            "models": [m.snapshot() for m in self._models],
            "taken_back": list(self._taken_back),
            "latest": self._latest,
            "decided": np.array(decided, np.int64),
            "owners": np.array(owners, np.int64),
            "rows": np.array(rows, np.float64).reshape(len(rows), self._dim),
            "rewards": np.array(rewards, np.float64),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of models of the same number and size."""
        decided = read_indices(snapshot, "decided")
        owners = read_indices(snapshot, "owners", length=len(decided), below=len(self._models))
        rows = read_array(snapshot, "rows", (len(decided), self._dim))
        rewards = read_array(snapshot, "rewards", (len(decided),))
        restore_all(self._models, read(snapshot, "models"))
        self.weights = read_array(snapshot, "weights", self.weights.shape)
        self._taken_back = [int(n) for n in read(snapshot, "taken_back")]
        self._latest = read_whole(snapshot, "latest", -1)
        self._rounds = deque(
            zip(decided.tolist(), owners.tolist(), map(np.copy, rows), rewards.tolist(), strict=True)
        )


def ridge(dim: int, regularisation: float) -> LinearGaussian:
    """V = lambda I + sum x x' is the precision of a Gaussian with prior variance 1 / lambda and noise 1."""
    return LinearGaussian(dim, prior_std=regularisation**-0.5, noise_std=1.0)


def restore_all(models: list[LinearGaussian], parts: list[Snapshot]) -> None:
    """Restore every model."""
    if len(parts) != len(models):
        raise SnapshotError(f"the snapshot has {len(parts)} linear models, expected {len(models)}")
    for model, part in zip(models, parts, strict=True):
        model.restore(part)
