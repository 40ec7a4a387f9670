"""Bayesian linear regression with known noise: the posterior of section 2.2 of the paper.

    Sigma^-1 = V_0^-1 + Phi'Phi / noise_std^2                 the precision P
    mu       = Sigma (Phi'r / noise_std^2 + V_0^-1 w_0)       = P^-1 b

The prior is N(w_0, V_0): zero and prior_std^2 I, unless `prior_mean` and `prior_covariance` say otherwise. The
state is P and b and, beside them, the Cholesky factor U (P = U'U) and z = U'^-1 b, which one
observation changes in O(d^2). Rounding errors of those changes are wiped out by a periodic fresh
factorisation of P. Nothing is inverted, except a prior covariance once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tidepull.errors import ContextError, NumericalError, SnapshotError
from tidepull.posteriors import kernels
from tidepull.posteriors.prior import Prior, upper_factor
from tidepull.state import read, read_array
from tidepull.types import FloatArray, Snapshot

_ARRAYS = ("precision", "moment", "factor", "whitened")


class LinearGaussian:
    """What is believed of w when rewards are w . x plus Gaussian noise.

    `prior_covariance` (d x d, or d variances) takes the place of prior_std^2 I; `prior_mean` is zero if not given.
    """

    def __init__(
        self,
        dim: int,
        *,
        prior_std: float = 1.0,
        noise_std: float = 1.0,
        prior_mean: ArrayLike | None = None,
        prior_covariance: ArrayLike | None = None,
        refresh_every: int | None = None,
    ) -> None:
        self.dim = dim
        self.prior_std = float(prior_std)
        self.prior = Prior(dim, self.prior_std, prior_mean, prior_covariance)
        self.noise_std = float(noise_std)
        # A factorisation costs d^3 / 3, so once in d changes keeps the average at O(d^2).
        self.refresh_every = max(dim, 512) if refresh_every is None else refresh_every
        self._precision, self._factor, self._moment = self.prior.start()
        self._whitened: FloatArray = self._moment.copy()
        kernels.whiten(self._factor, self._whitened)
        self._mean: FloatArray | None = None
        self._changes = 0

    @property
    def mean(self) -> FloatArray:
        """Posterior mean mu of w (read-only)."""
        if self._mean is None:
            mean = self._whitened.copy()
            kernels.solve(self._factor, mean)
            mean.flags.writeable = False
            self._mean = mean
        return self._mean

    @property
    def precision(self) -> FloatArray:
        """The matrix P = Sigma^-1 (a copy)."""
        upper = np.triu(self._precision)
        return upper + np.triu(upper, 1).T

    @property
    def cholesky(self) -> FloatArray:
        """The lower triangular L with L L' = P (a copy)."""
        return np.tril(self._factor.T)

    def update(self, x: FloatArray, y: float) -> None:
        """Take in one observation by a rank-one change."""
        row = self._scaled(x)
        if not kernels.add_row(
            self._precision, self._moment, self._factor, self._whitened, row, y / self.noise_std
        ):
            raise NumericalError(
                f"an observation is not finite or too large to add: x up to {_peak(x):g}, y = {y:g}"
            )
        self._count_change()

    def downdate(self, x: FloatArray, y: float) -> None:
        """Take back an observation that was taken in before."""
        row = self._scaled(x)
        if not kernels.remove_row(
            self._precision, self._moment, self._factor, self._whitened, row, y / self.noise_std
        ):
            raise NumericalError("an observation cannot be taken back: the precision would not stay positive")
        self._count_change()

    def refit(self, X: FloatArray, Y: FloatArray) -> None:
        """Forget everything, then take in all rows at once: one product and one factorisation."""
        X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.dim or Y.shape != X.shape[:1]:
            raise ContextError(
                f"refit needs n x {self.dim} features and n rewards, got {X.shape} and {Y.shape}"
            )
        X, Y = X / self.noise_std, Y / self.noise_std
        with np.errstate(over="ignore", invalid="ignore"):
            precision = X.T @ X
            moment = X.T @ Y
        self.prior.add_to(precision, moment)
        if not (np.isfinite(precision).all() and np.isfinite(moment).all()):
            raise NumericalError("features or rewards are not finite, or too large to square")
        factor = upper_factor(precision)
        if factor is None:
            raise NumericalError(
                "the precision matrix is singular in double precision; scale the features down"
            )
        self._adopt(precision, moment, factor)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw of w ~ N(mu, Sigma): mu + U^-1 eps = U^-1 (z + eps)."""
        draw: FloatArray = rng.standard_normal(self.dim)
        draw += self._whitened
        kernels.solve(self._factor, draw)
        return draw

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean x'mu and variance x'Sigma x of w . x for every row x."""
        columns = np.array(np.transpose(X), dtype=np.float64, order="C")
        if columns.ndim != 2 or columns.shape[0] != self.dim:
            raise ContextError(
                f"features must be a matrix with {self.dim} columns, got the shape {np.shape(X)}"
            )
        means, variances = np.empty(columns.shape[1]), np.empty(columns.shape[1])
        if not kernels.mean_and_variance(self._factor, self._whitened, columns, means, variances):
            raise NumericalError("features are not finite, or too large to predict with")
        return means, variances

    def snapshot(self) -> Snapshot:
        """Precision, moment and their factored forms, and the prior and the noise that they belong to."""
        return {
            "prior_std": self.prior_std,
            "noise_std": self.noise_std,
            "changes": self._changes,
            **self.prior.snapshot(),
            **{name: getattr(self, f"_{name}").copy() for name in _ARRAYS},
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of a posterior with the same settings."""
        for name in ("prior_std", "noise_std"):
            if snapshot.get(name) != getattr(self, name):
                raise SnapshotError(
                    f"the snapshot has {name} {snapshot.get(name)}, not {getattr(self, name)}"
                )
        self.prior.check(snapshot)
        arrays = {name: read_array(snapshot, name, getattr(self, f"_{name}").shape) for name in _ARRAYS}
        for name, array in arrays.items():
            setattr(self, f"_{name}", array)
        self._mean = None
        self._changes = int(read(snapshot, "changes"))

    def _scaled(self, x: FloatArray) -> FloatArray:
        row: FloatArray = np.array(x, dtype=np.float64)
        if row.shape != (self.dim,):
            raise ContextError(f"x must be {self.dim} numbers, got the shape {row.shape}")
        row /= self.noise_std
        return row

    def _count_change(self) -> None:
        self._mean = None
        self._changes += 1
        if self._changes >= self.refresh_every:
            self._changes = 0
            # Where P is singular in double precision, the rotated factor, its square root, is the better one.
            if (factor := upper_factor(self.precision)) is not None:
                self._adopt(self._precision, self._moment, factor)

    def _adopt(self, precision: FloatArray, moment: FloatArray, factor: FloatArray) -> None:
        whitened = moment.copy()
        kernels.whiten(factor, whitened)
        self._precision, self._moment, self._factor, self._whitened = precision, moment, factor, whitened
        self._mean = None
        self._changes = 0


def _peak(x: FloatArray) -> float:
    return float(np.max(np.abs(x))) if np.size(x) else 0.0
