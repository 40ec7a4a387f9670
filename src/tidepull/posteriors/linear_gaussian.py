"""Bayesian linear regression with known noise: the posterior of section 2.2 of the paper.

    Sigma^-1 = V_0^-1 + Phi'Phi / noise_std^2                 the precision P
    mu       = Sigma (Phi'r / noise_std^2 + V_0^-1 w_0)       = P^-1 b

The prior is N(w_0, V_0): zero and prior_std^2 I, unless `prior_mean` and `prior_covariance` say
otherwise. The state is P and b and, beside them, the Cholesky factor U (P = U'U) and z = U'^-1 b,
which one observation changes in O(d^2). Rounding errors of those changes are wiped out by a
periodic fresh factorisation of P. Nothing is inverted, except a prior covariance once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tidepull._internal.validation import shown
from tidepull.errors import ContextError, NumericalError, ParameterError, SnapshotError
from tidepull.posteriors import kernels
from tidepull.state import Stateful, difference
from tidepull.types import FloatArray, Snapshot


class Prior:
    """N(w_0, V_0) for d weights: zero and std^2 I, or what `mean` and `covariance` (a matrix, or
    variances) say."""

    def __init__(
        self,
        dim: int,
        std: float,
        mean: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
    ) -> None:
        self._dim, self._std = dim, std
        self._mean = None if mean is None else _vector(mean, dim)
        self._covariance = None if covariance is None else _matrix(covariance, dim)
        self._precision = None if self._covariance is None else _inverse(self._covariance)

    def start(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Fresh precision, its upper factor U (precision = U'U) and moment."""
        moment: FloatArray = np.zeros(self._dim)
        if self._precision is None:
            precision: FloatArray = np.eye(self._dim) / self._std**2
            factor: FloatArray | None = np.eye(self._dim) / self._std
        else:
            precision = self._precision.copy()
            factor = upper_factor(precision)
        if factor is None:
            raise ParameterError("prior_covariance is too close to singular for double precision")
        self._add_mean(moment)
        return precision, factor, moment

    def add_to(self, precision: FloatArray, moment: FloatArray) -> None:
        """Add the prior to what was observed, in place."""
        if self._precision is None:
            precision.flat[:: self._dim + 1] += 1.0 / self._std**2
        else:
            precision += self._precision
        self._add_mean(moment)

    def distance(self, w: FloatArray) -> float:
        """(w - w_0)' V_0^-1 (w - w_0), how far w lies from what was believed."""
        gap = w if self._mean is None else w - self._mean
        if self._precision is None:
            return float(1.0 / self._std**2 * (gap @ gap))
        return float(gap @ self._precision @ gap)

    def snapshot(self) -> Snapshot:
        """What was told beyond one standard deviation; nothing where that was all."""
        parts = {"prior_mean": self._mean, "prior_covariance": self._covariance}
        return {name: value.copy() for name, value in parts.items() if value is not None}

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot of a posterior with another prior."""
        mine = self.snapshot()
        for name in ("prior_mean", "prior_covariance"):
            if difference(mine.get(name), snapshot.get(name)) is not None:
                raise SnapshotError(f"the snapshot belongs to another {name}")

    def _add_mean(self, moment: FloatArray) -> None:
        if self._mean is None:
            return
        moment += (
            self._mean / self._std**2 if self._precision is None else self._precision @ self._mean
        )


def scaled(covariance: ArrayLike, factor: float) -> FloatArray:
    """A prior covariance, or variances, times a number."""
    return _numbers(covariance, "prior_covariance") * factor


def upper_factor(precision: FloatArray) -> FloatArray | None:
    """U with U'U = P; None where P is not positive definite in double precision."""
    try:  # the lower factor is that of the upper triangle of P, the only one that is kept
        return np.ascontiguousarray(np.linalg.cholesky(precision.T).T)
    except np.linalg.LinAlgError:
        return None


def _require_whole(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ParameterError(f"{name} must be a whole number of at least 1, got {shown(value)}")


def _require_positive(name: str, value: Any) -> None:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:
        raise ParameterError(f"{name} must be a positive number, got {shown(value)}")


def _vector(mean: ArrayLike, dim: int) -> FloatArray:
    vector = _numbers(mean, "prior_mean")
    if vector.shape != (dim,):
        raise ParameterError(
            f"prior_mean must be {dim} numbers, one for each feature, got the shape {vector.shape}"
        )
    return vector


def _matrix(covariance: ArrayLike, dim: int) -> FloatArray:
    values = _numbers(covariance, "prior_covariance")
    matrix = np.diag(values) if values.ndim == 1 else values
    if matrix.shape != (dim, dim):
        raise ParameterError(
            f"prior_covariance must be {dim} variances or a {dim} x {dim} matrix, got the shape "
            f"{values.shape}"
        )
    if not np.array_equal(matrix, matrix.T):
        raise ParameterError("prior_covariance must be symmetric")
    return matrix


def _numbers(values: ArrayLike, name: str) -> FloatArray:
    try:
        array: FloatArray = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must hold numbers, in rows of equal length") from None
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} must be finite")
    return array


def _inverse(covariance: FloatArray) -> FloatArray:
    if (factor := upper_factor(covariance)) is None:
        raise ParameterError("prior_covariance must be positive definite")
    inverse: FloatArray = np.eye(len(covariance))
    kernels.solve_columns(factor, inverse)
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)


class LinearGaussian(Stateful):
    """Gaussian posterior of w when rewards are w . x plus Gaussian noise.

    Parameters
    ----------
    dim : int
        The length d of w.
    prior_std : float, default: 1
        The prior standard deviation of each weight.
    noise_std : float, default: 1
        The standard deviation of the noise.
    prior_mean : array of shape (d,), optional
        The prior mean of w; zero if not given.
    prior_covariance : array of shape (d, d) or (d,), optional
        The prior covariance, or variances, in place of prior_std^2 I.
    refresh_every : int, optional
        Changes after which the precision is factored anew; max(d, 512) if not given.

    Raises
    ------
    ParameterError
        If a number is out of range, the prior has another length, or its covariance is not
        symmetric and positive definite.

    Examples
    --------
    >>> posterior = LinearGaussian(2, noise_std=0.1)
    >>> posterior.update(np.array([1.0, 0.0]), 1.0)
    >>> posterior.mean.round(2)
    array([0.99, 0.  ])
    """

    state = ("prior_std", "noise_std", "changes", "precision", "moment", "factor", "whitened")

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
        _require_whole("dim", dim)
        _require_positive("prior_std", prior_std)
        _require_positive("noise_std", noise_std)
        if refresh_every is not None:
            _require_whole("refresh_every", refresh_every)
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
        """Add one observation by a rank-one update.

        Parameters
        ----------
        x : array of shape (d,)
            The features.
        y : float
            The reward.

        Raises
        ------
        ContextError
            If the features have another length.
        NumericalError
            If the observation is not finite, or too large to add; nothing has changed then.
        """
        row = self._scaled(x)
        if not kernels.add_row(
            self._precision, self._moment, self._factor, self._whitened, row, y / self.noise_std
        ):
            raise NumericalError(
                f"an observation is not finite or too large to add: x up to {_peak(x):g}, y = {y:g}"
            )
        self._count_change()

    def downdate(self, x: FloatArray, y: float) -> None:
        """Remove an observation that was added before.

        Parameters
        ----------
        x : array of shape (d,)
            The features.
        y : float
            The reward.

        Raises
        ------
        ContextError
            If the features have another length.
        NumericalError
            If the precision would not stay positive definite; nothing has changed then.
        """
        row = self._scaled(x)
        if not kernels.remove_row(
            self._precision, self._moment, self._factor, self._whitened, row, y / self.noise_std
        ):
            raise NumericalError(
                "an observation cannot be taken back: the precision would not stay positive"
            )
        self._count_change()

    def refit(self, X: FloatArray, Y: FloatArray) -> None:
        """Compute the posterior of all rows from the prior: one product and one factorisation.

        Parameters
        ----------
        X : array of shape (n, d)
            The features.
        Y : array of shape (n,)
            The rewards.

        Raises
        ------
        ContextError
            If features or rewards have another shape.
        NumericalError
            If the precision is not finite or singular; nothing has changed then.
        """
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
        """Return one draw of w ~ N(mu, Sigma): mu + U^-1 eps = U^-1 (z + eps).

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws d standard normal numbers.

        Returns
        -------
        array of shape (d,)
            The draw.
        """
        draw: FloatArray = rng.standard_normal(self.dim)
        draw += self._whitened
        kernels.solve(self._factor, draw)
        return draw

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean x'mu and variance x'Sigma x of w . x for every row x.

        Parameters
        ----------
        X : array of shape (n, d)
            The features.

        Returns
        -------
        means : array of shape (n,)
            The means.
        variances : array of shape (n,)
            The variances, without the noise of rewards.

        Raises
        ------
        ContextError
            If the features have another shape.
        NumericalError
            If the features are not finite, or too large.
        """
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
        """Return precision, moment, their factored forms, the prior and the noise."""
        return super().snapshot() | self.prior.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of a posterior with the same settings.

        Parameters
        ----------
        snapshot : Snapshot
            What `snapshot` returned.

        Raises
        ------
        SnapshotError
            If the snapshot belongs to other settings, or is damaged.
        """
        for name in ("prior_std", "noise_std"):
            if snapshot.get(name) != getattr(self, name):
                raise SnapshotError(
                    f"the snapshot has {name} {snapshot.get(name)}, not {getattr(self, name)}"
                )
        self.prior.check(snapshot)
        super().restore(snapshot)
        self._mean = None

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
            # Where P is singular in double precision, the rotated factor, its square root, is the
            # better one.
            if (factor := upper_factor(self.precision)) is not None:
                self._adopt(self._precision, self._moment, factor)

    def _adopt(self, precision: FloatArray, moment: FloatArray, factor: FloatArray) -> None:
        whitened = moment.copy()
        kernels.whiten(factor, whitened)
        self._precision, self._moment = precision, moment
        self._factor, self._whitened = factor, whitened
        self._mean = None
        self._changes = 0


def _peak(x: FloatArray) -> float:
    return float(np.max(np.abs(x))) if np.size(x) else 0.0
