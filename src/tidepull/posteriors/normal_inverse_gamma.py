"""Linear regression with unknown noise: the conjugate normal-inverse-gamma posterior.

    sigma^2       ~ InverseGamma(a0, b0)
    w | sigma^2   ~ N(w_0, sigma^2 V_0 / s0^2),   s0^2 = b0 / a0, the noise expected at the start
    y | w, sigma  ~ N(w . x, sigma^2)

so the prior (zero and V_0 = prior_std^2 I unless given) means what it means for `LinearGaussian` as
long as the noise is what was expected of it. Given sigma the posterior is a `LinearGaussian` with
unit noise, scaled by sigma: that is how it is built.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tidepull.posteriors.linear_gaussian import LinearGaussian, scaled
from tidepull.state import Stateful
from tidepull.types import FloatArray

SHAPE = 1.0
"""a0: the prior weighs as much as 2 a0 observations of the noise."""
SCALE = 0.05
"""b0: with a0 = 1 the noise expected at the start is sqrt(0.05), about 0.22."""


class NormalInverseGamma(Stateful):
    """Posterior over weights and noise together; the noise is inferred, not assumed."""

    state = ("a", "b", "unit")

    def __init__(
        self,
        dim: int,
        *,
        prior_std: float,
        prior_mean: ArrayLike | None = None,
        prior_covariance: ArrayLike | None = None,
        shape: float = SHAPE,
        scale: float = SCALE,
    ) -> None:
        self._prior = (shape, scale)
        self._ridge = scale / shape / prior_std**2
        self._plain = prior_mean is None and prior_covariance is None
        in_units = None if prior_covariance is None else scaled(prior_covariance, shape / scale)
        self._unit = LinearGaussian(
            dim,
            prior_std=1.0 / math.sqrt(self._ridge),
            prior_mean=prior_mean,
            prior_covariance=in_units,
            noise_std=1.0,
        )
        self._a, self._b = self._prior

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of w."""
        return self._unit.mean

    @property
    def noise_std(self) -> float:
        """The noise as inferred so far: the square root of b / a."""
        return math.sqrt(self._b / self._a)

    def update(self, x: FloatArray, y: float) -> None:
        """Take in one observation: a += 1/2, b += (y - m.x)^2 / (2 (1 + x' Lambda^-1 x))."""
        mean, variance = self._unit.predict(np.asarray(x)[None])
        self._unit.update(x, y)
        self._a += 0.5
        self._b += 0.5 * (y - float(mean[0])) ** 2 / (1.0 + float(variance[0]))

    def refit(self, X: FloatArray, Y: FloatArray) -> None:
        """Forget everything, then take in all rows.

        b = b0 + (|Y - X m|^2 + s0^2 (m - w_0)' V_0^-1 (m - w_0)) / 2.
        """
        self._unit.refit(X, Y)
        mean = self._unit.mean
        residuals = np.asarray(Y, dtype=float) - np.asarray(X, dtype=float) @ mean
        a0, b0 = self._prior
        self._a = a0 + 0.5 * len(residuals)
        moved = self._ridge * (mean @ mean) if self._plain else self._unit.prior.distance(mean)
        self._b = b0 + 0.5 * float(residuals @ residuals + moved)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw of w: first sigma^2 = b / Gamma(a, 1), then w ~ N(mean, sigma^2 Lambda^-1)."""
        sigma = math.sqrt(self._b / rng.gamma(self._a))
        mean = self._unit.mean
        return mean + sigma * (self._unit.sample(rng) - mean)

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of w . x for every row: a Student-t with 2a degrees of freedom.

        Its variance b / (a - 1) x' Lambda^-1 x is infinite while a <= 1.
        """
        mean, variance = self._unit.predict(X)
        noise = self._b / (self._a - 1.0) if self._a > 1.0 else math.inf
        return mean, noise * variance
