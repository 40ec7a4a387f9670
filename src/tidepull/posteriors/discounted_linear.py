"""Ridge regression with discounted rounds, as D-LinUCB needs it (Russac, Vernade and Cappé, 2019).

    V  <- gamma V    + x x' + (1 - gamma) lambda I        V  = lambda I + S
    V~ <- gamma^2 V~ + x x' + (1 - gamma^2) lambda I      V~ = lambda I + S~
    b  <- gamma b    + r x

Time is the number of the round in which an arm was chosen: a round that lies k rounds back weighs gamma^k (in V~
gamma^2k), whenever its reward comes, and rounds whose reward never comes age the others.

The prior does not fade, so V is no rank-one change of what it was, and is factored anew for each use:
O(d^3) a round for each model. Only the fading parts S and S~ are kept. (Rows of many numbers: wide_linear.py.)
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from tidepull.errors import NumericalError
from tidepull.state import read_array, read_whole
from tidepull.types import FloatArray, Snapshot

_ARRAYS = ("weights", "S", "S_squared", "b")


class DiscountedModels:
    """Discounted `LinearModels`; the squared width is x'V^-1 V~ V^-1 x.

    `slip=True` reproduces published code, in which V~ is made from the new V instead of the old V~:
    V~ <- gamma^2 V + x x' + (1 - gamma^2) lambda I.
    """

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
        lower, info = lapack.dpotrf(V.T, lower=True, overwrite_a=True)
        if info != 0:
            raise NumericalError(
                "V is singular in double precision; raise regularisation or scale the features"
            )
        A, _ = lapack.dpotrs(lower, np.transpose(X), lower=True)  # V^-1 x in every column
        variances = np.einsum("ik,ik->k", A, self.S_squared[model] @ A + self._regularisation * A)
        return self.b[model] @ A, variances

    def snapshot(self) -> Snapshot:
        """Weights and discounted sums of every model, and the round they are discounted to."""
        return {"latest": self._latest, **{name: getattr(self, name).copy() for name in _ARRAYS}}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of models of the same number and size."""
        arrays = {name: read_array(snapshot, name, getattr(self, name).shape) for name in _ARRAYS}
        for name, array in arrays.items():
            setattr(self, name, array)
        self._latest = read_whole(snapshot, "latest", -1)
