"""Ridge regressions side by side: one shared by all arms, or one for each arm.

    V = lambda I + sum x x',    b = sum r x,    prediction x'V^-1 b,    squared width x'V^-1 x

"Side by side" because time passes for all of them at once: a round that teaches one model ages the
others. Time is the number of the round in which an arm was chosen, whenever its reward comes.

`DiscountedModels` discount rounds, as D-LinUCB needs it (Russac, Vernade and Cappé, 2019):

    V  <- gamma V    + x x' + (1 - gamma) lambda I        V  = lambda I + S
    V~ <- gamma^2 V~ + x x' + (1 - gamma^2) lambda I      V~ = lambda I + S~
    b  <- gamma b    + r x

A round that lies k rounds back weighs gamma^k (in V~ gamma^2k), whenever its reward comes, and
rounds whose reward never comes age the others.

The prior does not fade, so V is no rank-one change of what it was, and is factored anew for each
use: O(d^3) a round for each model. Only the fading parts S and S~ are kept.

`WideDiscountedModels` compute the same from their rounds, where these are fewer than the numbers of
a row. With rows R, weights w = gamma^age and Q = sqrt(w) R, the push-through identity turns the d x
d system of `DiscountedModels` into one of n x n:

    V^-1 x = (lambda I + Q'Q)^-1 x = (x - Q'(lambda I + QQ')^-1 Q x) / lambda

so that with a = V^-1 x the prediction is sum w y (R a) and the squared width lambda |a|^2 + |w R
a|^2. A use costs n^3/3 + O(nd) operations instead of d^3/3 + O(d^2), and nothing has to fade but n
weights.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from tidepull.errors import NumericalError, SnapshotError
from tidepull.posteriors.kernels import solve_columns
from tidepull.posteriors.linear_gaussian import LinearGaussian, upper_factor
from tidepull.state import Stateful, read, read_array, read_indices, read_whole
from tidepull.types import FloatArray, IntArray, Snapshot

_ByRound = TypeVar("_ByRound", bound=tuple[Any, ...])


def insert_by_round(rounds: deque[_ByRound], entry: _ByRound) -> None:
    """Put an entry, which begins with its round, into its place; O(1) unless it is late."""
    place = len(rounds)
    while place and rounds[place - 1][0] > entry[0]:
        place -= 1
    rounds.insert(place, entry)


class StationaryModels(Stateful):
    """Nothing is forgotten: O(d^2) for a round. `weights` says how many observations each model has
    (in models that forget, old ones count less)."""

    state: ClassVar[tuple[str, ...]] = ("weights", "models")

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


class WindowedModels(StationaryModels):
    """Only the last `window` rounds count: O(d^2) for a round, whatever the window.

    A round that leaves the window is taken back from the factor. Rounding errors of that go
    whenever a model is rebuilt from the rows in the window: once in `window` (at least 512) of its
    rounds.
    """

    state = ("weights", "models", "taken_back", "latest")

    def __init__(self, n_models: int, dim: int, regularisation: float, window: int) -> None:
        super().__init__(n_models, dim, regularisation)
        self._dim, self._regularisation, self._window = dim, regularisation, window
        # (decided, model, x, y), oldest first.
        self._rounds: deque[tuple[int, int, FloatArray, float]] = deque()
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

    def snapshot(self) -> Snapshot:
        """Weights and posterior of every model, and the rounds of the window."""
        decided, owners, rows, rewards = (
            zip(*self._rounds, strict=True) if self._rounds else ((), (), (), ())
        )
        return super().snapshot() | {
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
        super().restore(snapshot)
        columns = decided.tolist(), owners.tolist(), map(np.copy, rows), rewards.tolist()
        self._rounds = deque(zip(*columns, strict=True))


def ridge(dim: int, regularisation: float) -> LinearGaussian:
    """V = lambda I + sum x x' is the precision of a Gaussian with prior variance 1 / lambda and
    noise 1."""
    return LinearGaussian(dim, prior_std=regularisation**-0.5, noise_std=1.0)


def _solved(V: FloatArray, B: FloatArray) -> FloatArray:
    """V^-1 B."""
    if (factor := upper_factor(V)) is None:
        raise NumericalError(
            "V is singular in double precision; raise regularisation or scale the features"
        )
    solved: FloatArray = np.array(B, dtype=np.float64, order="C")
    solve_columns(factor, solved)
    return solved


class DiscountedModels(Stateful):
    """Discounted `LinearModels`; the squared width is x'V^-1 V~ V^-1 x.

    `slip=True` reproduces published code, in which V~ is made from the new V instead of the old V~:
    V~ <- gamma^2 V + x x' + (1 - gamma^2) lambda I.
    """

    state = ("latest", "weights", "S", "S_squared", "b")

    def __init__(
        self, n_models: int, dim: int, regularisation: float, discount: float, *, slip: bool = False
    ) -> None:
        self._regularisation, self._discount, self._slip = regularisation, discount, slip
        self.weights: FloatArray = np.zeros(n_models)
        self.S: FloatArray = np.zeros((n_models, dim, dim))
        self.S_squared: FloatArray = np.zeros((n_models, dim, dim))
        self.b: FloatArray = np.zeros((n_models, dim))
        self._latest = -1

    def advance(self, latest: int) -> None:
        """All models age."""
        if latest > self._latest:
            age = self._discount ** (latest - self._latest)
            # `weights` are sums of squared weights, (1 - gamma^2t) / (1 - gamma^2) after t rounds.
            self.weights *= age**2
            self.b *= age
            self.S *= age
            if self._slip:
                np.multiply(self.S, self._discount**2, out=self.S_squared)
            else:
                self.S_squared *= age**2
            self._latest = latest

    def update(self, model: int, x: FloatArray, y: float, decided: int) -> None:
        """All models age up to the round, one of them learns it."""
        x = np.asarray(x, dtype=np.float64)
        outer, moment = np.outer(x, x), y * x
        if not np.isfinite(np.trace(self.S[model]) + np.trace(outer) + np.abs(moment).sum()):
            raise NumericalError("an observation is not finite or too large to add")
        self.advance(decided)
        weight = self._discount ** (self._latest - decided)
        self.weights[model] += weight**2
        self.b[model] += weight * moment
        self.S[model] += weight * outer
        if not self._slip:
            self.S_squared[model] += weight**2 * outer
        elif decided < self._latest:
            self.S_squared[model] += self._discount**2 * weight * outer
        else:
            np.multiply(self.S, self._discount**2, out=self.S_squared)
            self.S_squared[model] += outer

    def predict(self, model: int, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prediction x'V^-1 b and squared width x'V^-1 V~ V^-1 x for every row of X."""
        V = self.S[model].copy()
        V.flat[:: len(V) + 1] += self._regularisation
        A = _solved(V, np.transpose(X))  # V^-1 x in every column
        variances = np.einsum("ik,ik->k", A, self.S_squared[model] @ A + self._regularisation * A)
        return self.b[model] @ A, variances


class WideDiscountedModels(Stateful):
    """As `DiscountedModels`, for rows of many numbers: a model adds its rounds up once there are
    more than numbers."""

    state = ("latest", "weights", "models")

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
        sums = DiscountedModels(1, self._dim, self._regularisation, self._discount)
        sums.advance(self._latest)
        w = self._discount ** (self._latest - rounds.decided)
        sums.weights[0] = (w**2).sum()
        sums.S[0] = rounds.rows.T @ (w[:, None] * rounds.rows)
        sums.S_squared[0] = rounds.rows.T @ ((w**2)[:, None] * rounds.rows)
        sums.b[0] = (w * rounds.y) @ rounds.rows
        return sums

    def predict(self, model: int, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Prediction x'V^-1 b and squared width x'V^-1 V~ V^-1 x for every row of X."""
        mine = self._models[model]
        if isinstance(mine, DiscountedModels):
            return mine.predict(0, X)
        if mine.n == 0:
            return np.zeros(len(X)), np.einsum("ki,ki->k", X, X) / self._regularisation
        w = self._discount ** (self._latest - mine.decided)
        root = np.sqrt(w)
        K = root[:, None] * mine.products * root
        K.flat[:: len(K) + 1] += self._regularisation
        RX = mine.rows @ np.transpose(X)
        solved = _solved(K, root[:, None] * RX)
        A = (np.transpose(X) - mine.rows.T @ (root[:, None] * solved)) / self._regularisation
        # Q a = (lambda I + QQ')^-1 Q x: what was solved for is sqrt(w) R a.
        weighed = root[:, None] * solved
        lengths, own = (np.einsum("ik,ik->k", one, one) for one in (A, weighed))
        return mine.y @ weighed, self._regularisation * lengths + own

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of models of the same number and size."""
        weights = read_array(snapshot, "weights", self.weights.shape)
        latest = read_whole(snapshot, "latest", -1)
        models: list[_Rounds | DiscountedModels] = []
        parts = _one_by_one(snapshot) if "S" in snapshot else read(snapshot, "models")
        if len(parts) != len(self._models):
            raise SnapshotError(
                f"the snapshot has {len(parts)} linear models, expected {len(self._models)}"
            )
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
        self._rows, self._y = np.zeros((room, dim)), np.zeros(room)
        self._decided = np.zeros(room, np.int64)
        self._products = np.zeros((room, room))
        self._rows[:n], self._y[:n] = rows, y
        self._decided[:n], self._products[:n, :n] = decided, products

    def snapshot(self) -> Snapshot:
        """Rows, rewards and rounds; products follow from them."""
        return {"rows": self.rows.copy(), "rewards": self.y.copy(), "decided": self.decided.copy()}

    def restore(self, snapshot: Snapshot) -> None:
        """Add the rounds of a snapshot, in their order."""
        decided = read_indices(snapshot, "decided")
        if len(decided) > self._rows.shape[1]:
            raise SnapshotError(
                f"the snapshot keeps {len(decided)} rounds of {self._rows.shape[1]} numbers"
            )
        rows = read_array(snapshot, "rows", (len(decided), self._rows.shape[1]))
        rewards = read_array(snapshot, "rewards", (len(decided),))
        for x, y, t in zip(rows, rewards, decided, strict=True):
            self.add(x, float(y), int(t))


def _one_by_one(snapshot: Snapshot) -> list[Snapshot]:
    """A snapshot of `DiscountedModels`, as policies of this width once were, as one of each
    model."""
    sums = {name: np.asarray(read(snapshot, name)) for name in ("weights", "S", "S_squared", "b")}
    count = {len(array) for array in sums.values()}
    if len(count) != 1:
        raise SnapshotError("the snapshot has linear models that do not fit together")
    latest = read(snapshot, "latest")
    return [
        {"latest": latest, **{name: a[i : i + 1] for name, a in sums.items()}}
        for i in range(*count)
    ]


LinearModels: TypeAlias = StationaryModels | DiscountedModels | WideDiscountedModels
"""Models by number, all with the same methods."""
