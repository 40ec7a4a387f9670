"""A mixture of structural time-series models of one quantity: its weights, draws, and sure hours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tidepull.state import Stateful
from tidepull.tide.hours import monday_before
from tidepull.tide.models.noise import draw_scale
from tidepull.tide.models.structural import (
    DAY_SECONDS,
    HOUR_SECONDS,
    LASTING_HOURS,
    Blocks,
    ModelStructure,
    StructuralModels,
)
from tidepull.tide.submodels import Submodel, draw_weights, draws_for, submodels
from tidepull.types import BoolArray, FloatArray, IntArray

SEASONS = ((2, 1, 0), (6, 2, 0), (3, 0, 3), (2, 0, 0))
"""Harmonics of the day, of the day on weekends, of the week."""
_SCALES = {1.0: 0.4, 0.1: 0.4, 0.01: 0.2}
"""Prior variances of a level, and how likely each is: clicks of 2% differ by a tenth of their
standard deviation."""
_PERSISTENCES = {1.0: 0.5, 0.95: 0.25, 0.8: 0.25}
"""rho of the deviation in an hour (1: none), and how likely each is."""
_ALPHA = 1e-5
_WIDEST = 1.0
"""Largest factor on the width of draws (`models/noise.py`)."""
_NARROWEST, _PLAYS = {False: 0.4, True: 0.25}, {False: 2.0, True: 0.5}
"""Least factor, and c; smaller where all arms share weights, which every arm then tries out."""
_LEAST_KNOWN = 1e-3
"""Rewards by which an arm is known at least; what its prior says is not counted among them."""
_SPEAKS, _SURE = 0.01, 0.99
"""Weight of a model that is asked for what is said, and the chance from which on an arm is named
best: 168 hours are looked at again and again, so that at 95% equal arms are told apart too
often."""
_LARGEST_LOG = 300.0
"""Sizes are compared up to e^300."""


class StructuralMixture(Stateful):
    """Models of one quantity, their log weights, and the units of the quantity."""

    state = ("models", "log_weights", "centre", "spread")

    def __init__(self, structures: list[ModelStructure], blocks: Blocks, n_blocks: int) -> None:
        self.models, self.blocks = StructuralModels(structures, blocks, n_blocks), blocks
        prior = [_SCALES[s.scale] * _PERSISTENCES[s.persistence] for s in structures]
        self._log_prior = np.log(np.array(prior) / sum(prior))
        self.log_weights = self._log_prior.copy()
        self.centre, self.spread = 0.5, 0.5
        self.structures = structures

    def fit(self, values: FloatArray, arms: IntArray) -> None:
        """Units in which every arm weighs the same, before anything is learnt."""
        if len(values):
            own = [values[arms == arm] for arm in np.unique(arms)]
            self.centre = float(np.mean([rewards.mean() for rewards in own]))
            squares = [np.mean((rewards - self.centre) ** 2) for rewards in own]
            self.spread = float(np.sqrt(np.mean(squares))) or abs(self.centre) or 1.0

    def learn(
        self, block: int, x: FloatArray, value: float, now: float, *, binary: bool, count: int
    ) -> float:
        """Bayes' rule for models and weights, after `count` rewards; the log likelihood of the
        value in standardised units."""
        kinds = (-self.centre / self.spread, (1 - self.centre) / self.spread) if binary else None
        y = (value - self.centre) / self.spread
        if kinds is not None:
            y = kinds[value == 1.0]
        joint = self.log_weights + self.models.observe(block, x, y, now, kinds)
        likelihood = float(np.logaddexp.reduce(joint))
        alpha = min(_ALPHA, 1 / count)
        self.log_weights = np.logaddexp(
            joint - likelihood + math.log1p(-alpha), self._log_prior + math.log(alpha)
        )
        return likelihood

    def cumulated(self) -> FloatArray:
        """Weights of the models, added up."""
        return np.cumsum(np.exp(self.log_weights))

    def draw(self, u: FloatArray, shared: bool, rng: np.random.Generator) -> tuple[int, FloatArray]:
        """A model by the weights `cumulated`, and standard normal numbers for the errors of its
        arms."""
        m = min(int(u.searchsorted(rng.random() * u[-1], side="right")), len(u) - 1)
        return m, rng.standard_normal(self.models.present(m) if shared else self.models.n_blocks)

    def values(
        self, draws: list[tuple[int, FloatArray]], X: FloatArray, now: float, shared: bool
    ) -> tuple[FloatArray, FloatArray]:
        """The expected value of every arm in each draw (rows), and the variance of its noise. What
        a model believes is computed once for all of its draws."""
        models, places = self.models, dict[int, int]()
        of = [places.setdefault(m, len(places)) for m, _ in draws]
        ms = list(places)
        if shared:
            means = np.array([X @ models.weights(m, now) for m in ms])
            widths = [models.error_widths(m, X, now) for m in ms]
            variances = np.array([np.einsum("kd,kd->k", width, width) for width in widths])
            errors = np.array([widths[k] @ z for k, (_, z) in zip(of, draws, strict=True)])
        else:
            means, variances = models.outlooks(ms, X, now, lasting_hours=LASTING_HOURS)
            errors = np.sqrt(np.maximum(variances, 0.0))[of] * np.array([z for _, z in draws])
        noise = models.noises(ms)[:, None]
        known = noise * (1 / np.maximum(variances, 1e-12) - 1 / models.priors(ms, X))
        leverages = 1 / np.maximum(known, _LEAST_KNOWN)
        kappa = draw_scale(leverages, least=_NARROWEST[shared], most=_WIDEST, plays=_PLAYS[shared])
        drawn = means[of] + kappa[of] * errors
        return self.centre + self.spread * drawn, noise[of] * self.spread**2

    def submodels(self, now: float) -> list[Submodel]:
        """What the leading models say, each with and without its seasons."""
        weights = np.exp(self.log_weights)
        return submodels(self.structures, self.blocks, self.models, weights, now, least=_SPEAKS)

    def in_rewards(self, values: FloatArray) -> tuple[FloatArray, float]:
        """Standardised values as they are paid, and the variance of the leading model's noise."""
        noise = self.models.noise(int(np.argmax(self.log_weights)))
        return self.centre + self.spread * values, noise * self.spread**2

    def expect(self, X: FloatArray, now: float, shared: bool) -> tuple[FloatArray, float]:
        """The expected value of every arm under the leading model, and the variance of its
        noise."""
        m = int(np.argmax(self.log_weights))
        return self.in_rewards(
            X @ self.models.weights(m, now) if shared else self.models.outlook(m, X, now)[0]
        )


def rewards_of(values: Iterable[tuple[FloatArray, FloatArray | float]]) -> FloatArray:
    """Expected rewards of values and the variances of their noise: values as they are, or chances
    times sizes."""
    (means, _), *sizes = values
    for logs, noise in sizes:
        size = np.exp(np.clip(logs + 0.5 * noise, -_LARGEST_LOG, _LARGEST_LOG))
        means = np.clip(means, 1e-6, 1.0) * size
    return np.asarray(means)


def sure_week(
    mixtures: Sequence[StructuralMixture], latest: float, available: BoolArray
) -> IntArray:
    """The arm that is surely best in every hour (columns) of the week, Monday first, for an average
    context; -1 where there is none.

    It is surely best if it has the largest value in 99% of draws, both by its season alone and with
    the mean of today's deviation.

    Parameters
    ----------
    mixtures : sequence of StructuralMixture
        Of rewards, or of chances and sizes.
    latest : float
        The latest time, in seconds since 1970.
    available : array of shape (n_arms,)
        Whether an arm can be chosen.
    """
    rng, draws = np.random.default_rng(0), draws_for(len(available))
    monday, blocks = monday_before(latest), mixtures[0].blocks
    drawn = [
        (mixture, *draw_weights(mixture.submodels(latest / HOUR_SECONDS), draws, rng))
        for mixture in mixtures
    ]
    table = np.empty((7, 24), np.int64)
    for day in range(7):
        times = monday + day * DAY_SECONDS + (np.arange(24) + 0.5) * HOUR_SECONDS
        X = np.array([blocks.features(float(t), np.zeros(blocks.context_dim)) for t in times])
        best = np.ones((draws, len(available), 24), bool)
        for on in (0.0, 1.0):
            values = rewards_of(
                mixture.in_rewards(weights[..., :-1] @ X[:, :-1].T + on * deviations[..., None])
                for mixture, weights, deviations in drawn
            )
            values = np.where(available[:, None], values, -np.inf)
            best &= values == values.max(axis=1, keepdims=True)
        chances = best.mean(axis=0)
        table[day] = np.where(chances.max(axis=0) >= _SURE, chances.argmax(axis=0), -1)
    return table


def structures_of(
    blocks: Blocks, seasons: Sequence[tuple[int, int, int]] = SEASONS
) -> list[ModelStructure]:
    """Every combination of season, interactions, scale and persistence, plain ones first."""
    crossings = (False, True) if blocks.crossed else (False,)
    return [
        ModelStructure(day, weekend, week, crossed, scale, persistence)
        for day, weekend, week in seasons
        for crossed in crossings
        for persistence in _PERSISTENCES
        for scale in _SCALES
    ]
