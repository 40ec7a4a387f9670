"""A mixture of structural time-series models of one quantity: its weights, draws, and sure hours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np

from tidepull.state import Stateful
from tidepull.tide.hours import monday_before
from tidepull.tide.models.boxed import PythonBox
from tidepull.tide.models.noise import draw_scale
from tidepull.tide.models.structural import Blocks, ModelStructure, StructuralModels
from tidepull.tide.models.structural_kernels import LEAST_KNOWN, draw_models, reweigh
from tidepull.tide.models.waves import DAY_SECONDS, HOUR_SECONDS, WEEK_SECONDS
from tidepull.tide.submodels import Submodel, draw_weights, draws_for, submodels
from tidepull.types import BoolArray, FloatArray, IntArray

SEASONS = ((2, 1, 0), (6, 2, 0), (3, 0, 3), (2, 0, 0))
"""Harmonics of the day, of the day on weekends, of the week."""
NO_SEASON, _NO_SEASON = (0, 0, 0), 0.25
"""Of structures without a season: its harmonics, and how likely it is, relative to each of the seasons
above. If it were likelier, arms that are best at other hours would not be tried in time."""
_SCALES = {0.5: 0.6, 0.03: 0.4}
"""Prior variances of a level, and how likely each is: clicks of 2% differ by a tenth of their
standard deviation."""
_PERSISTENCES = {1.0: 0.5, 0.95: 0.25, 0.8: 0.25}
"""rho of the deviation in an hour (1: none), and how likely each is."""
_PERIODIC = 1e-4
"""How likely a structure is with a period that was found among a thousand or so, relative to itself
without."""
_PERIODIC_WEEKS = 4
"""Weeks in each of which an arm must be best where rewards have a period of their own."""
_ALPHA = 1e-5
_DRAW_SCALES = {False: np.array([0.3, 1.0, 2.0]), True: np.array([0.25, 1.0, 0.5])}
"""Least and largest factor on the width of draws, and c (`models/noise.py`); smaller where all arms
share weights, which every arm then tries out."""
_SPEAKS, _SURE = 0.01, 0.99
"""Least weight of a model that takes part in explanations, and the probability from which on an
arm is named best: 168 hours are tested repeatedly, so that at 95% equal arms would be named too
often."""
_LARGEST_LOG = 300.0
"""Sizes are compared up to e^300."""


class StructuralMixture(Stateful):
    """Models of one quantity, their log weights, and the units of the quantity."""

    state = ("models", "log_weights", "centre", "spread")

    def __init__(self, structures: list[ModelStructure], blocks: Blocks, n_blocks: int) -> None:
        self.models, self.blocks = StructuralModels(structures, blocks, n_blocks), blocks
        prior = [
            _SCALES[s.scale]
            * _PERSISTENCES[s.persistence]
            * (_NO_SEASON if (s.day, s.weekend_day, s.week) == NO_SEASON else 1.0)
            * (_PERIODIC if s.period else 1.0)
            for s in structures
        ]
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
        outcomes = (-self.centre / self.spread, (1 - self.centre) / self.spread) if binary else None
        y = (value - self.centre) / self.spread
        if outcomes is not None:
            y = outcomes[value == 1.0]
        scores = self.models.observe(block, x, y, now, outcomes)
        alpha = min(_ALPHA, 1 / count)
        kept, given = math.log1p(-alpha), math.log(alpha)
        return float(reweigh(self.log_weights, scores, self._log_prior, kept, given))

    def values(
        self, ms: IntArray, z: FloatArray, X: FloatArray, now: float, shared: bool
    ) -> FloatArray:
        """The expected value of every arm in each draw (rows) of a model and of standard normal
        numbers."""
        if shared:
            return self.centre + self.spread * self._shared_draws(ms, z, X, now)
        return self.models.draws(ms, z, X[0], now, _DRAW_SCALES[False], self.centre, self.spread)

    def noise(self, ms: IntArray) -> FloatArray:
        """Variance of the noise under each of some models (rows)."""
        noise: FloatArray = self.models.noises[ms, None] * self.spread**2
        return noise

    def _shared_draws(
        self, drawn: IntArray, z: FloatArray, X: FloatArray, now: float
    ) -> FloatArray:
        """Draws where all arms share a weight vector. What a model believes is computed once for
        all of its draws."""
        models, places = self.models, dict[int, int]()
        of = [places.setdefault(m, len(places)) for m in drawn.tolist()]
        ms = list(places)
        means = np.array([X @ models.weights(m, now) for m in ms])
        widths = [models.error_widths(m, X, now) for m in ms]
        variances = np.array([np.einsum("kd,kd->k", width, width) for width in widths])
        errors = np.array(
            [widths[k] @ row[: widths[k].shape[1]] for k, row in zip(of, z, strict=True)]
        )
        known = models.noises[ms, None] * (
            1 / np.maximum(variances, 1e-12) - 1 / models.priors(ms, X)
        )
        min_scale, max_scale, scale_c = _DRAW_SCALES[True].tolist()
        kappa = draw_scale(
            1 / np.maximum(known, LEAST_KNOWN),
            min_scale=min_scale,
            max_scale=max_scale,
            scale_c=scale_c,
        )
        shared: FloatArray = means[of] + kappa[of] * errors
        return shared

    def submodels(self, now: float) -> list[Submodel]:
        """Submodels of the leading models, with and without seasons."""
        weights = np.exp(self.log_weights)
        return submodels(self.structures, self.blocks, self.models, weights, now, least=_SPEAKS)

    def in_rewards(self, values: FloatArray) -> tuple[FloatArray, float]:
        """Standardised values as they are paid, and the variance of the leading model's noise."""
        noise = self.models.noises[np.argmax(self.log_weights)]
        return self.centre + self.spread * values, float(noise) * self.spread**2


def draw(
    mixtures: Sequence[StructuralMixture], draws: int, shared: bool, rng: PythonBox
) -> list[tuple[IntArray, FloatArray]]:
    """Draws of a model of each mixture, and of standard normal numbers for the errors of its arms
    (weights where all arms share them); at last its leading model, without errors."""
    models = mixtures[0].models
    counts = models.present if shared else models.alone
    log_weights = np.array([mixture.log_weights for mixture in mixtures])
    ms = np.empty((len(mixtures), draws + 1), np.int64)
    ms[:, draws] = log_weights.argmax(axis=1)
    z = np.zeros((len(mixtures), draws + 1, models.dim if shared else models.n_blocks))
    draw_models(rng, np.exp(log_weights), counts, ms, z)
    return list(zip(ms, z, strict=True))


def rewards_of(
    means: FloatArray, sizes: Iterable[tuple[FloatArray, FloatArray | float]]
) -> FloatArray:
    """Expected rewards: means as they are, or chances times sizes, of which there are the logarithm
    and the variance of its noise."""
    for logs, noise in sizes:
        size = np.exp(np.clip(logs + 0.5 * noise, -_LARGEST_LOG, _LARGEST_LOG))
        means = np.clip(means, 1e-6, 1.0) * size
    return means


def sure_week(
    mixtures: Sequence[StructuralMixture], latest: float, available: BoolArray
) -> IntArray:
    """The arm that is surely best in every hour (columns) of the week, Monday first, for an average
    context; -1 where there is none.

    It is surely best if it has the largest value in 99% of draws, both by its season alone and with
    the mean of today's deviation; with a period of its own, in each of four weeks.

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
    weeks = range(_PERIODIC_WEEKS if blocks.period else 1)
    table = np.empty((7, 24), np.int64)
    for day in range(7):
        best = np.ones((draws, len(available), 24), bool)
        for week, on in product(weeks, (0.0, 1.0)):
            start = monday + week * WEEK_SECONDS + day * DAY_SECONDS
            times = start + (np.arange(24) + 0.5) * HOUR_SECONDS
            X = np.array([blocks.features(float(t), np.zeros(blocks.context_dim)) for t in times])
            (means, _), *sizes = (
                mixture.in_rewards(weights[..., :-1] @ X[:, :-1].T + on * deviations[..., None])
                for mixture, weights, deviations in drawn
            )
            values = rewards_of(means, sizes)
            values = np.where(available[:, None], values, -np.inf)
            best &= values == values.max(axis=1, keepdims=True)
        chances = best.mean(axis=0)
        table[day] = np.where(chances.max(axis=0) >= _SURE, chances.argmax(axis=0), -1)
    return table


def structures_of(
    blocks: Blocks, seasons: Sequence[tuple[int, int, int]] = SEASONS
) -> list[ModelStructure]:
    """Every combination of season, period, interactions, scale and persistence, plain ones
    first."""
    crossings = (False, True) if blocks.crossed else (False,)
    periods = (0.0, blocks.period) if blocks.period else (0.0,)
    return [
        ModelStructure(day, weekend, week, crossed, scale, persistence, period)
        for period in periods
        for day, weekend, week in seasons
        for crossed in crossings
        for persistence in _PERSISTENCES
        for scale in _SCALES
    ]


def steady_structures(blocks: Blocks) -> list[ModelStructure]:
    """Structures in which nothing changes: no season and no deviation."""
    return [one for one in structures_of(blocks, (NO_SEASON,)) if one.persistence == 1.0]
