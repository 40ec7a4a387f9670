"""Discounted ridge regression from its rounds, where they are fewer than the numbers of a row.

With rows R, weights w = gamma^age and Q = sqrt(w) R, the push-through identity turns the d x d system of
`DiscountedModels` into one of n x n:

    V^-1 x = (lambda I + Q'Q)^-1 x = (x - Q'(lambda I + QQ')^-1 Q x) / lambda

so that with a = V^-1 x the prediction is sum w y (R a) and the squared width lambda |a|^2 + |w R a|^2. A use costs
n^3/3 + O(nd) operations instead of d^3/3 + O(d^2), and nothing has to fade but n weights.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from tidepull.errors import NumericalError, SnapshotError
from tidepull.posteriors.discounted_linear import DiscountedModels
from tidepull.state import read, read_array, read_indices, read_whole
from tidepull.types import FloatArray, IntArray, Snapshot


class WideDiscountedModels:
    """As `DiscountedModels`, for rows of many numbers: a model adds its rounds up once there are more than numbers."""

    def __init__(self, n_models: int, dim: int, regularisation: float, discount: float) -> None:
        self._dim, self._regularisation, self._discount = dim, regularisation, discount
        self.weights: FloatArray = np.zeros(n_models)
        self._models: list[_Rounds | DiscountedModels] = [_Rounds(dim) for _ in range(n_models)]
        self._latest = -1

    def advance(self, latest: int) -> None:
        """All models age."""
        if latest > self._latest:
            self.weights *= self._discount ** (2 * (latest - self._latest))
            for model in self._models:
                if isinstance(model, DiscountedModels):
                    model.advance(latest)
            self._latest = latest

    def update(self, model: int, x: FloatArray, y: float, decided: int) -> None:
        """All models age up to the round, one of them learns it."""
        x = np.asarray(x, dtype=np.float64)
        if not np.isfinite(x @ x + abs(y) * np.abs(x).sum()):
            raise NumericalError("an observation is not finite or too large to add")
        self.advance(decided)
        self.weights[model] += self._discount ** (2 * (self._latest - decided))
        mine = self._models[model]
        if isinstance(mine, _Rounds) and mine.n == self._dim:
            mine = self._models[model] = self._added_up(mine)
        if isinstance(mine, _Rounds):
            mine.add(x, y, decided)
        else:
            mine.update(0, x, y, decided)

    def _added_up(self, rounds: _Rounds) -> DiscountedModels:
        made = DiscountedModels(1, self._dim, self._regularisation, self._discount)
        made.advance(self._latest)
        w = self._discount ** (self._latest - rounds.decided)
        made.weights[0] = (w**2).sum()
        made.S[0] = rounds.rows.T @ (w[:, None] * rounds.rows)
        made.S_squared[0] = rounds.rows.T @ ((w**2)[:, None] * rounds.rows)
        made.b[0] = (w * rounds.y) @ rounds.rows
        return made

    def predict(self, model: int, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prediction x'V^-1 b and squared width x'V^-1 V~ V^-1 x for every row of X."""
        mine = self._models[model]
        if isinstance(mine, DiscountedModels):
            return mine.predict(0, X)
        if mine.n == 0:  # LAPACK takes no empty matrices
            return np.zeros(len(X)), np.einsum("ki,ki->k", X, X) / self._regularisation
        w = self._discount ** (self._latest - mine.decided)
        root = np.sqrt(w)
        K = root[:, None] * mine.products * root
        K.flat[:: len(K) + 1] += self._regularisation
        RX = mine.rows @ np.transpose(X)
        lower, info = lapack.dpotrf(K.T, lower=True, overwrite_a=True)
        if info != 0:
            raise NumericalError(
                "V is singular in double precision; raise regularisation or scale the features"
            )
        solved, _ = lapack.dpotrs(lower, root[:, None] * RX, lower=True)
        A = (np.transpose(X) - mine.rows.T @ (root[:, None] * solved)) / self._regularisation
        # Q a = (lambda I + QQ')^-1 Q x: what was solved for is sqrt(w) R a.
        weighed = root[:, None] * solved
        variances = self._regularisation * np.einsum("ik,ik->k", A, A) + np.einsum(
            "ik,ik->k", weighed, weighed
        )
        return mine.y @ weighed, variances

    def snapshot(self) -> Snapshot:
        """Weights, and the rounds or sums of every model."""
        return {
            "latest": self._latest,
            "weights": self.weights.copy(),
            "models": [model.snapshot() for model in self._models],
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of models of the same number and size."""
        weights = read_array(snapshot, "weights", self.weights.shape)
        latest = read_whole(snapshot, "latest", -1)
        models: list[_Rounds | DiscountedModels] = []
        parts = _one_by_one(snapshot) if "S" in snapshot else read(snapshot, "models")
        if len(parts) != len(self._models):
            raise SnapshotError(f"the snapshot has {len(parts)} linear models, expected {len(self._models)}")
        for part in parts:
            model: _Rounds | DiscountedModels = (
                _Rounds(self._dim)
                if "decided" in part
                else DiscountedModels(1, self._dim, self._regularisation, self._discount)
            )
            model.restore(part)
            if isinstance(model, _Rounds) and model.n and model.decided.max() > latest:
                raise SnapshotError("the snapshot has rounds after its latest one")
            models.append(model)
        self.weights, self._latest, self._models = weights, latest, models


class _Rounds:
    """Rows, rewards and rounds of one model, and the products of its rows."""

    def __init__(self, dim: int) -> None:
        self.n = 0
        self._rows: FloatArray = np.zeros((0, dim))
        self._y: FloatArray = np.zeros(0)
        self._decided: IntArray = np.zeros(0, np.int64)
        self._products: FloatArray = np.zeros((0, 0))

    @property
    def rows(self) -> FloatArray:
        """R."""
        return self._rows[: self.n]

    @property
    def y(self) -> FloatArray:
        """Rewards."""
        return self._y[: self.n]

    @property
    def decided(self) -> IntArray:
        """The rounds in which they were chosen."""
        return self._decided[: self.n]

    @property
    def products(self) -> FloatArray:
        """R R'."""
        return self._products[: self.n, : self.n]

    def add(self, x: FloatArray, y: float, decided: int) -> None:
        """One more; room is doubled when it runs out."""
        if self.n == len(self._y):
            self._make_room(max(16, min(2 * self.n, self._rows.shape[1])))
        i = self.n
        self._rows[i], self._y[i], self._decided[i] = x, y, decided
        self.n += 1
        self._products[i, : i + 1] = self._products[: i + 1, i] = self.rows @ x

    def _make_room(self, room: int) -> None:
        rows, y, decided, products = self.rows, self.y, self.decided, self.products
        n, dim = rows.shape
        self._rows, self._y, self._decided = np.zeros((room, dim)), np.zeros(room), np.zeros(room, np.int64)
        self._products = np.zeros((room, room))
        self._rows[:n], self._y[:n], self._decided[:n], self._products[:n, :n] = rows, y, decided, products

    def snapshot(self) -> Snapshot:
        """Rows, rewards and rounds; products follow from them."""
        return {"rows": self.rows.copy(), "rewards": self.y.copy(), "decided": self.decided.copy()}

    def restore(self, snapshot: Snapshot) -> None:
        """Add the rounds of a snapshot, in their order."""
        decided = read_indices(snapshot, "decided")
        if len(decided) > self._rows.shape[1]:
            raise SnapshotError(f"the snapshot keeps {len(decided)} rounds of {self._rows.shape[1]} numbers")
        rows = read_array(snapshot, "rows", (len(decided), self._rows.shape[1]))
        rewards = read_array(snapshot, "rewards", (len(decided),))
        for x, y, t in zip(rows, rewards, decided, strict=True):
            self.add(x, float(y), int(t))


def _one_by_one(snapshot: Snapshot) -> list[Snapshot]:
    """A snapshot of `DiscountedModels`, as policies of this width once were, as one of each model."""
    sums = {name: np.asarray(read(snapshot, name)) for name in ("weights", "S", "S_squared", "b")}
    count = {len(array) for array in sums.values()}
    if len(count) != 1:
        raise SnapshotError("the snapshot has linear models that do not fit together")
    latest = read(snapshot, "latest")
    return [{"latest": latest, **{name: a[i : i + 1] for name, a in sums.items()}} for i in range(*count)]
