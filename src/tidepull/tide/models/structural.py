"""Structural time-series models: one linear state-space model, many structures of it.

    reward of arm k = x(t, z)' w_k + noise        (West and Harrison, 1997, chapters 4 and 6)
    x = (level, waves of the day, weekend, weekend x waves, waves of the week,
         context z, z x (weekend, one wave of the day), deviation)

Every coefficient is a stationary Gaussian process of its own, an Ornstein-Uhlenbeck process:

    w_j(t + dt) = f w_j(t) + N(0, v_j (1 - f^2)),   f = rho_j^dt

With rho = 1 a coefficient is constant, below 1 it returns to 0: a slow deviation from the season.
So a prior at any time is N(0, diag(v)), and a *structure* is nothing but a choice of v and rho:
a block whose v is 0 is absent. All structures share one x, and are filtered side by side:

    R = F C F + diag(v (1 - f^2)),   q = x'R x,   e = y - x'F m
    m <- F m + R x e / (q + s2),     C <- R - R x x'R / (q + s2)

The variance of the noise is learnt with a discount (West and Harrison, section 10.8),

    s2 = b / a,   a <- h a + (1 - h) a0 + 1/2,   b <- h b + (1 - h) b0 + 1/2 e^2 s2 / (q + s2)

and a reward is predicted by a Student t with 2a degrees of freedom and squared scale q + s2; of
rewards of 0 and 1 the mean is the chance p, and s2 = p (1 - p).

What is drawn to choose an arm is the part of its reward that is worth exploring (predictive
sampling; Liu, Van Roy and Xu, 2023): a deviation enters by its mean, and its error only as far as
it outlasts a day, rho^24. What will not be true tomorrow is used, and not explored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from tidepull.state import Stateful
from tidepull.types import FloatArray

HOUR_SECONDS, DAY_SECONDS, WEEK_SECONDS = 3600.0, 86_400.0, 604_800.0
_FIRST_MONDAY_SECONDS = 4 * DAY_SECONDS
"""1 January 1970 was a Thursday."""
DAY_WAVES, WEEKEND_WAVES, WEEK_WAVES = 6, 2, 3
"""Harmonics of the day (the sixth is four hours long), of those apart on weekends, of the week."""
_WEEKEND_SHARE = 2 / 7
"""Taken off the indicator of the weekend, so that the level is that of an average day."""
_NOISE_A, _NOISE_B, _NOISE_MEMORY = 1.0, 0.5, 0.995
"""a0, b0 and h of the noise, in units of standardised rewards."""
_LARGEST_ERROR = 5.0
"""Standard deviations; a larger error counts as this one in the variance of the noise."""
LASTING_HOURS = 24.0
"""Hours (rounds without a time) for which a deviation must last to be worth exploring."""
_LEAST_CHANCE = 1e-3
"""A linear chance is kept this far from 0 and 1."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Where each block of features stands in x, for contexts of `context_dim` numbers; with
    `crossed`, each of them also times the weekend and one wave of the day."""

    context_dim: int = 0
    crossed: bool = False

    @property
    def sizes(self) -> dict[str, int]:
        """Number of features of each block, in order."""
        return {
            "level": 1,
            "day": 2 * DAY_WAVES,
            "weekend": 1,
            "weekend x day": 2 * WEEKEND_WAVES,
            "week": 2 * WEEK_WAVES,
            "context": self.context_dim,
            "context x time": 3 * self.context_dim * self.crossed,
            "deviation": 1,
        }

    @property
    def dim(self) -> int:
        """Length of x."""
        return sum(self.sizes.values())

    def place(self, block: str) -> slice:
        """The features of one block."""
        start = 0
        for name, size in self.sizes.items():
            if name == block:
                return slice(start, start + size)
            start += size
        raise KeyError(block)

    def features(self, time: float | None, z: FloatArray) -> FloatArray:
        """x at a time in seconds since 1970; without a time its features are 0.

        >>> Blocks().features(None, np.empty(0)).sum()  # level and deviation
        np.float64(2.0)
        """
        x = np.zeros(self.dim)
        x[0] = x[-1] = 1.0
        x[self.place("context")] = z
        if time is None:
            return x
        day, weekend = waves(time, DAY_SECONDS, DAY_WAVES), is_weekend(time) - _WEEKEND_SHARE
        x[self.place("day")] = day
        x[self.place("weekend")] = weekend
        x[self.place("weekend x day")] = weekend * day[: 2 * WEEKEND_WAVES]
        x[self.place("week")] = waves(time, WEEK_SECONDS, WEEK_WAVES)
        if self.crossed:
            x[self.place("context x time")] = np.outer((weekend, day[0], day[1]), z).ravel()
        return x


def waves(time: float, period: float, count: int) -> FloatArray:
    """cos and sin of the first harmonics of a period.

    >>> waves(21_600.0, 86_400.0, 1).round(3) + 0.0
    array([0., 1.])
    """
    angles = 2 * math.pi * (time / period % 1.0) * np.arange(1, count + 1)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).ravel()


def is_weekend(time: float) -> bool:
    """Whether a time in seconds since 1970 falls on a Saturday or Sunday.

    >>> is_weekend(0.0), is_weekend(2 * 86_400.0)  # Thursday, Saturday
    (False, True)
    """
    return (time - _FIRST_MONDAY_SECONDS) // DAY_SECONDS % 7 >= 5


@dataclass(frozen=True, slots=True)
class ModelStructure:
    """Which blocks a model has, and how its arms deviate from them.

    Parameters
    ----------
    day, weekend_day, week : int
        Number of harmonics; the weekend has a level of its own where `weekend_day` is positive.
    interactions : bool
        Whether the context counts differently by hour and weekend.
    scale : float
        Prior variance of a level, in units of the variance of rewards.
    persistence : float
        rho of the deviation in an hour (a round where there is no time); 1: no deviation.
    """

    day: int
    weekend_day: int
    week: int
    interactions: bool
    scale: float
    persistence: float

    @property
    def words(self) -> str:
        """One line that a person understands."""
        parts = ["the hour of the day"] if self.day else []
        parts += ["the weekend"] if self.weekend_day else []
        parts += ["the day of the week"] if self.week else []
        said = "follows " + ", ".join(parts) if parts else "no season"
        said += ", the context by hour" if self.interactions else ""
        return said if self.persistence == 1.0 else said + ", with a slow deviation"

    def variances(self, blocks: Blocks) -> FloatArray:
        """v: harmonic i has scale / i^2; a context has the mean square length 1."""
        v = np.zeros(blocks.dim)
        v[0] = self.scale
        v[blocks.place("day")] = _wave_variances(self.day, DAY_WAVES)
        v[blocks.place("weekend")] = 0.5 if self.weekend_day else 0.0
        v[blocks.place("weekend x day")] = 0.5 * _wave_variances(self.weekend_day, WEEKEND_WAVES)
        v[blocks.place("week")] = _wave_variances(self.week, WEEK_WAVES)
        v[blocks.place("context")] = 1.0
        v[blocks.place("context x time")] = 0.5 * self.interactions
        v[1:] *= self.scale
        v[-1] = 0.5 * self.scale * (self.persistence < 1.0)
        return v


def _wave_variances(count: int, most: int) -> FloatArray:
    i = np.repeat(np.arange(1.0, most + 1), 2)
    return np.where(i <= count, 1 / i**2, 0.0)


class StructuralModels(Stateful):
    """Structures of one linear state-space model, filtered side by side.

    Each block of weights belongs to an arm, or to all arms where these are known by vectors.

    Parameters
    ----------
    structures : list of ModelStructure
        The models.
    blocks : Blocks
        The features that they share.
    n_blocks : int
        Number of weight vectors of each model.
    """

    state = ("mean", "cov", "clock", "a", "b")

    def __init__(self, structures: list[ModelStructure], blocks: Blocks, n_blocks: int) -> None:
        count, d = len(structures), blocks.dim
        self._v = np.array([structure.variances(blocks) for structure in structures])
        self._rho = np.ones((count, d))
        self._rho[:, -1] = [structure.persistence for structure in structures]
        self._mean, self._cov = np.zeros((count, n_blocks, d)), np.zeros((count, n_blocks, d, d))
        self._clock = np.zeros(n_blocks)
        self._a, self._b = np.empty(count), np.empty(count)
        self.reset()

    def __len__(self) -> int:
        return len(self._v)

    def reset(self) -> None:
        """Forget everything."""
        self._mean[:] = 0.0
        self._cov[:] = (self._v[:, :, None] * np.eye(self._v.shape[1]))[:, None]
        self._clock[:] = 0.0
        self._a[:], self._b[:] = _NOISE_A, _NOISE_B

    def noise(self, m: int) -> float:
        """s2 of model m."""
        return float(self._b[m] / self._a[m])

    def observe(
        self, block: int, x: FloatArray, y: float, now: float, binary: tuple[float, float] | None
    ) -> FloatArray:
        """Score a reward under every model, then learn it.

        Parameters
        ----------
        block : int
            Whose weights they are.
        x : array of shape (dim,)
            Features of the decision.
        y : float
            The standardised reward.
        now : float
            The time of the decision, in hours (rounds).
        binary : (float, float) or None
            Standardised values of the rewards 0 and 1; None for any other reward.

        Returns
        -------
        array of shape (n_models,)
            Log likelihoods.
        """
        mean, cov = self._mean[:, block], self._cov[:, block]
        elapsed = now - self._clock[block]
        self._predict(mean, cov, max(0.0, elapsed))
        self._clock[block] = max(now, self._clock[block])
        X, past = self._at(x, max(0.0, -elapsed))
        gain = np.einsum("mde,me->md", cov, X)
        q = np.einsum("md,md->m", gain, X) + past
        error = y - np.einsum("md,md->m", mean, X)
        scores, noise = self._scores(y, error, q, binary)
        gain_over = gain / (q + noise)[:, None]
        mean += gain_over * error[:, None]
        cov -= gain_over[:, :, None] * gain[:, None, :]
        return scores

    def _at(self, x: FloatArray, ago: float) -> tuple[FloatArray, FloatArray]:
        """Features for the present weights of a reward that was decided some hours ago, and the
        variance that they leave: an Ornstein-Uhlenbeck process is the same backwards in time."""
        f = self._rho[:, -1] ** ago
        X = np.tile(x, (len(f), 1))
        X[:, -1] *= f
        return X, x[-1] ** 2 * self._v[:, -1] * (1 - f * f)

    def _predict(self, mean: FloatArray, cov: FloatArray, elapsed: float) -> None:
        """The deviation, the last coefficient, is the only one that moves."""
        f = self._rho[:, -1] ** elapsed
        mean[:, -1] *= f
        cov[:, -1, :] *= f[:, None]
        cov[:, :, -1] *= f[:, None]
        cov[:, -1, -1] += self._v[:, -1] * (1 - f * f)

    def _scores(
        self, y: float, error: FloatArray, q: FloatArray, binary: tuple[float, float] | None
    ) -> tuple[FloatArray, FloatArray]:
        """Log likelihoods, and the variances of the noise with which the reward is learnt."""
        if binary is not None:
            zero, one = binary
            chance = np.clip((y - error - zero) / (one - zero), _LEAST_CHANCE, 1 - _LEAST_CHANCE)
            noise = chance * (1 - chance) * (one - zero) ** 2
            return np.log(chance if y == one else 1 - chance), noise
        noise = self._b / self._a
        scale, a = q + noise, self._a.copy()
        scores = (
            gammaln(a + 0.5) - gammaln(a) - 0.5 * np.log(2 * math.pi * a * scale)
            - (a + 0.5) * np.log1p(error**2 / (2 * a * scale))
        )  # fmt: skip
        h = _NOISE_MEMORY
        squared = np.minimum(error**2, _LARGEST_ERROR**2 * scale)
        self._a[:] = h * self._a + (1 - h) * _NOISE_A + 0.5
        self._b[:] = h * self._b + (1 - h) * _NOISE_B + 0.5 * squared * noise / scale
        return scores, noise

    def outlook(
        self, m: int, X: FloatArray, now: float, *, lasting_hours: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Means and variances of x'w of every arm under model m, each with weights of its own.

        Parameters
        ----------
        m : int
            The model.
        X : array of shape (n_blocks, dim)
            Features of each arm.
        now : float
            The time, in hours (rounds).
        lasting_hours : float, default: 0
            Of the deviation's error, count what is still there after so many hours.
        """
        f = self._rho[m, -1] ** np.maximum(0.0, now - self._clock)
        rows, lasting = X.copy(), self._rho[m, -1] ** lasting_hours
        rows[:, -1] *= f
        means = np.einsum("kd,kd->k", rows, self._mean[m])
        rows[:, -1] *= lasting
        variances = np.einsum("kd,kde,ke->k", rows, self._cov[m], rows)
        return means, variances + (lasting * X[:, -1]) ** 2 * self._v[m, -1] * (1 - f * f)

    def prior(self, m: int, X: FloatArray) -> FloatArray:
        """Variances of x'w of every row before anything is known, of which draws explore: of the
        deviation as much as outlasts a day."""
        v = self._v[m].copy()
        v[-1] *= self._rho[m, -1] ** (2 * LASTING_HOURS)
        return np.asarray(X**2 @ v)

    def weights(self, m: int, now: float) -> FloatArray:
        """The mean of the one weight vector of model m, where all arms share it."""
        mean: FloatArray = self._mean[m, 0].copy()
        mean[-1] *= self._rho[m, -1] ** max(0.0, now - self._clock[0])
        return mean

    def sample_errors(
        self, m: int, X: FloatArray, now: float, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Errors of x'w of every arm under one draw of the weight vector that all arms share, and
        their variances; of the deviation as much as outlasts a day."""
        cov = self._cov[m, 0].copy()
        rho, v = self._rho[m, -1], self._v[m, -1]
        f = rho ** max(0.0, now - self._clock[0])
        cov[-1, :] *= f
        cov[:, -1] *= f
        cov[-1, -1] += v * (1 - f * f)
        present = np.flatnonzero(self._v[m] > 0)
        factor = np.linalg.cholesky(cov[np.ix_(present, present)] + 1e-12 * np.eye(len(present)))
        rows = X.copy()
        rows[:, -1] *= rho**LASTING_HOURS
        widths = rows[:, present] @ factor
        return widths @ rng.standard_normal(len(present)), np.einsum("kd,kd->k", widths, widths)
