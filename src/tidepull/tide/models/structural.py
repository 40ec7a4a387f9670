"""Structural time-series models: one linear state-space model, many structures of it.

    reward of arm k = x(t, z)' w_k + noise        (West and Harrison, 1997, chapters 4 and 6)
    x = (level, waves of the day, weekend, weekend x waves, waves of the week,
         waves of a period that was found (`period.py`),
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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate

import numpy as np

from tidepull.state import Stateful
from tidepull.tide.models.structural_kernels import NOISE_A, NOISE_B, draw_values, learn_reward
from tidepull.tide.models.waves import (
    DAY_WAVES,
    PERIOD_WAVES,
    WEEK_WAVES,
    WEEKEND_WAVES,
    fill_features,
    is_weekend,
)
from tidepull.types import FloatArray, IntArray

LASTING_HOURS = 24.0
"""Hours (rounds without a time) for which a deviation must last to be worth exploring."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """Where each block of features stands in x, for contexts of `context_dim` numbers; with
    `crossed`, each of them also times the weekend and one wave of the day. `period` is one that was
    found, in hours (0: none)."""

    context_dim: int = 0
    crossed: bool = False
    period: float = 0.0

    @property
    def sizes(self) -> dict[str, int]:
        """Number of features of each block, in order."""
        return {
            "level": 1,
            "day": 2 * DAY_WAVES,
            "weekend": 1,
            "weekend x day": 2 * WEEKEND_WAVES,
            "week": 2 * WEEK_WAVES,
            "period": 2 * PERIOD_WAVES * (self.period > 0.0),
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
        return _places(self)[block]

    def features(self, time: float | None, z: FloatArray) -> FloatArray:
        """x at a time in seconds since 1970; without a time its features are 0.

        >>> Blocks().features(None, np.empty(0)).sum()  # level and deviation
        np.float64(2.0)
        """
        x = np.zeros(_places(self)["deviation"].stop)
        if time is None:
            x[0] = x[-1] = 1.0
            x[_places(self)["context"]] = z
        else:
            fill_features(x, z, time, float(is_weekend(time)), self.period, self.crossed)
        return x


@cache
def _places(blocks: Blocks) -> dict[str, slice]:
    ends = list(accumulate(blocks.sizes.values()))
    starts = [0, *ends[:-1]]
    return dict(zip(blocks.sizes, map(slice, starts, ends), strict=True))


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
    period : float, default: 0.0
        A period that was found, in hours; 0: none.
    """

    day: int
    weekend_day: int
    week: int
    interactions: bool
    scale: float
    persistence: float
    period: float = 0.0

    @property
    def words(self) -> str:
        """One line that a person understands."""
        parts = ["the hour of the day"] if self.day else []
        parts += ["the weekend"] if self.weekend_day else []
        parts += ["the day of the week"] if self.week else []
        said = "follows " + ", ".join(parts) if parts else "" if self.period else "no season"
        if self.period:
            said += (", and " if said else "") + f"repeats every {self.period:.3g} hours"
        said += ", the context by hour" if self.interactions else ""
        return said if self.persistence == 1.0 else said + ", with a slow deviation"

    def variances(self, blocks: Blocks) -> FloatArray:
        """v: harmonic i has scale / i^2; a context has the mean square length 1. To be read only."""
        return _variances(self, blocks)

    def size(self, blocks: Blocks) -> int:
        """Number of coefficients, among them the deviation whether it moves or not."""
        return int(np.count_nonzero(self.variances(blocks)[:-1])) + 1


@lru_cache(maxsize=512)
def _variances(structure: ModelStructure, blocks: Blocks) -> FloatArray:
    """Those of one layout; all agents with such fields, and all refits, share them."""
    places, v = _places(blocks), np.zeros(blocks.dim)
    v[0] = structure.scale
    v[places["day"]] = _wave_variances(structure.day, DAY_WAVES)
    v[places["weekend"]] = 0.5 if structure.weekend_day else 0.0
    v[places["weekend x day"]] = 0.5 * _wave_variances(structure.weekend_day, WEEKEND_WAVES)
    v[places["week"]] = _wave_variances(structure.week, WEEK_WAVES)
    if structure.period:
        v[places["period"]] = _wave_variances(PERIOD_WAVES, PERIOD_WAVES)
    v[places["context"]] = 1.0
    v[places["context x time"]] = 0.5 * structure.interactions
    v[1:] *= structure.scale
    v[-1] = 0.5 * structure.scale * (structure.persistence < 1.0)
    v.setflags(write=False)
    return v


def _wave_variances(count: int, most: int) -> FloatArray:
    i = np.repeat(np.arange(1.0, most + 1), 2)
    return np.where(i <= count, 1 / i**2, 0.0)


@lru_cache(maxsize=4)
def _log_gamma_ratio(a: float) -> float:
    """log Gamma(a + 1/2) - log Gamma(a); a is the same of all models."""
    return math.lgamma(a + 0.5) - math.lgamma(a)


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

    state = ("mean", "cov", "clock", "is_met", "a", "b")
    variances: FloatArray
    """Prior variances of all coefficients (columns) under each model."""

    def __init__(self, structures: list[ModelStructure], blocks: Blocks, n_blocks: int) -> None:
        count, last = len(structures), blocks.dim - 1
        self.variances = np.array([one.variances(blocks) for one in structures])
        self._rho = np.array([structure.persistence for structure in structures])
        self._persistences, self._persistence = np.unique(self._rho, return_inverse=True)
        self._lasting = np.array([rho**LASTING_HOURS for rho in self._rho.tolist()])
        # Only coefficients that a model has are kept, and its deviation: one model after the other.
        places = [np.append(np.flatnonzero(v[:last]), last) for v in self.variances]
        self._places = np.concatenate(places)
        self._sizes = np.array([len(own) for own in places])
        self._v = np.concatenate([v[own] for v, own in zip(self.variances, places, strict=True)])
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])
        self._squares = np.concatenate([[0], np.cumsum(self._sizes**2)])
        self._mean = np.zeros((n_blocks, self._starts[-1]))
        self._cov = np.zeros((n_blocks, self._squares[-1]))
        self._clock = np.zeros(n_blocks)
        self._is_met = np.zeros(n_blocks, bool)  # before its first reward a block has its prior
        self._a, self._b = np.full(count, NOISE_A), np.full(count, NOISE_B)
        # coefficients of each model
        self.present: IntArray = np.count_nonzero(self.variances > 0, axis=1)
        self._now, self._terms = np.ones(count), np.empty((3, count))
        self.n_blocks, self.dim = n_blocks, blocks.dim
        self.alone = np.full(count, n_blocks)

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def noises(self) -> FloatArray:
        """s2 of every model."""
        noises: FloatArray = self._b / self._a
        return noises

    def observe(
        self, block: int, x: FloatArray, y: float, now: float, binary: tuple[float, float] | None
    ) -> FloatArray:
        """Score a reward under every model, then learn it.

        Parameters
        ----------
        block : int
            The block of weights.
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
        self._meet(block)
        elapsed = now - self._clock[block]
        decay, ago = self._now, self._now
        if elapsed > 0.0:
            decay, self._clock[block] = self._rho**elapsed, now
        elif elapsed < 0.0:
            ago = self._rho**-elapsed
        zero, one = (0.0, 0.0) if binary is None else binary
        terms = self._terms
        learn_reward(
            self._mean, self._cov, self._v, self._places, self._sizes, block, x, decay, ago, y, zero,
            one, (one - zero) ** 2, self._a, self._b, terms,
        )  # fmt: skip
        if binary is not None:
            return np.asarray(np.log(terms[0]))
        a = float(terms[0, 0])
        tails = (a + 0.5) * np.log1p(terms[2])
        scores: FloatArray = _log_gamma_ratio(a) - 0.5 * np.log(terms[1]) - tails
        return scores

    def _meet(self, block: int) -> None:
        """Initialise an unseen block with its prior."""
        if not self._is_met[block]:
            self._cov[block, self._diagonals] = self._v
            self._is_met[block] = True

    @cached_property
    def _diagonals(self) -> IntArray:
        """Where the diagonals of all covariances are."""
        within = np.arange(len(self._v)) - np.repeat(self._starts[:-1], self._sizes)
        first, sizes = (np.repeat(of, self._sizes) for of in (self._squares[:-1], self._sizes))
        diagonals: IntArray = first + within * (sizes + 1)
        return diagonals

    def _own(self, m: int) -> tuple[slice, FloatArray, FloatArray]:
        """Model m: where its coefficients are kept, their means and covariances in every block."""
        own, d = slice(self._starts[m], self._starts[m + 1]), self._sizes[m]
        cov = self._cov[:, self._squares[m] : self._squares[m + 1]].reshape(-1, d, d)
        return own, self._mean[:, own], cov

    def posterior(self, m: int, now: float) -> tuple[FloatArray, FloatArray]:
        """Means and covariances of every block of weights under model m at a time; of an unseen
        block those of the prior. Coefficients that the model does not have are 0."""
        f = self._rho[m] ** np.maximum(0.0, now - self._clock)
        own, means, covs = self._own(m)
        places = self._places[own]
        mean = np.zeros((self.n_blocks, self.dim))
        cov = np.zeros((self.n_blocks, self.dim, self.dim))
        mean[:, places] = means
        cov[:, places[:, None], places] = covs
        cov[~self._is_met] = np.diag(self.variances[m])
        mean[:, -1] *= f
        cov[:, -1, :] *= f[:, None]
        cov[:, :, -1] *= f[:, None]
        cov[:, -1, -1] += self.variances[m, -1] * (1 - f * f)
        return mean, cov

    def draws(
        self, ms: IntArray, z: FloatArray, x: FloatArray, now: float, draw_scales: FloatArray,
        centre: float, spread: float,
    ) -> FloatArray:  # fmt: skip
        """x'w of every arm in each draw of a model, where arms have weights of their own.

        Parameters
        ----------
        ms : array of shape (n_draws,)
            The models.
        z : array of shape (n_draws, n_blocks)
            Standard normal numbers for the errors of arms.
        x : array of shape (dim,)
            Features.
        now : float
            The time, in hours (rounds).
        draw_scales : array of shape (3,)
            Minimum and maximum of the draw scale, and its constant c (`noise.py`).
        centre, spread : float
            The units of the values.
        """
        values = np.empty((len(ms), self.n_blocks))
        decays = self._persistences[:, None] ** np.maximum(0.0, now - self._clock)
        draw_values(
            self._mean, self._cov, self._v, self._places, self._starts, self._squares, self._is_met,
            self._a, self._b, x, decays, self._persistence, self._lasting, ms, z, draw_scales,
            centre, spread, values,
        )  # fmt: skip
        return values

    def priors(self, ms: Sequence[int], X: FloatArray) -> FloatArray:
        """Variances of x'w of every arm before anything is known, a model a row, of which draws
        explore: of the deviation as much as outlasts a day."""
        v, squares = self.variances[ms], X**2
        v[:, -1] *= [self._rho[m] ** (2 * LASTING_HOURS) for m in ms]
        return np.array([squares @ row for row in v])

    def weights(self, m: int, now: float) -> FloatArray:
        """The mean of the one weight vector of model m, where all arms share it."""
        own, means, _ = self._own(m)
        mean = np.zeros(self.dim)
        mean[self._places[own]] = means[0]
        mean[-1] *= self._rho[m] ** max(0.0, now - self._clock[0])
        return mean

    def error_widths(self, m: int, X: FloatArray, now: float) -> FloatArray:
        """L of the errors L z of x'w of every arm, z standard normal, where all arms share a weight
        vector; of the deviation as much as outlasts a day."""
        self._meet(0)
        own, _, covs = self._own(m)
        cov, rho, v = covs[0].copy(), self._rho[m], self._v[own]
        f = rho ** max(0.0, now - self._clock[0])
        cov[-1, :] *= f
        cov[:, -1] *= f
        cov[-1, -1] += v[-1] * (1 - f * f)
        present = np.flatnonzero(v > 0)
        factor = np.linalg.cholesky(cov[np.ix_(present, present)] + 1e-12 * np.eye(len(present)))
        rows = X[:, self._places[own]]
        rows[:, -1] *= rho**LASTING_HOURS
        widths: FloatArray = rows[:, present] @ factor
        return widths
