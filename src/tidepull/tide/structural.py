"""`structural-ts`: Thompson sampling over a mixture of structural time-series models.

What the user declares, a time and context fields, is part of every model from the start, shrunk by
its prior; evidence decides how fine the season is, how large effects are, and whether arms deviate
slowly from it (`models/structural.py`). With weights u of models, fixed share alpha (Herbster and
Warmuth, 1998) and prior pi:

    v_m ~ u_m p_m(r);   u_m <- (1 - alpha) v_m + alpha pi_m
    act:  m ~ u, theta_k ~ N(mean_k, (kappa_k sd_k)^2) of each arm under m, the arm of the largest

Rewards are standardised. Rewards of 0 and 1 have a two-point likelihood. Where some rewards are
exactly 0 and the others positive (money), there are two mixtures: of the chance that something is
paid, and of the logarithm of what is paid; theta = chance x exp(log size + s2 / 2).

Scale, likelihood and the map of contexts are fitted after 8, 32, 128 and 512 rewards; then all
rewards so far are replayed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial

import numpy as np
from scipy.special import ndtr

from tidepull.parameters import NoParameters
from tidepull.policies.exploration import best_arm, best_shares, decided_round
from tidepull.protocols import Pick
from tidepull.random import Streams
from tidepull.state import Stateful
from tidepull.tide.context import ContextMap
from tidepull.tide.explain import Belief
from tidepull.tide.hours import monday_before
from tidepull.tide.models.boldness import boldness
from tidepull.tide.models.structural import (
    HOUR_SECONDS,
    LASTING_HOURS,
    Blocks,
    ModelStructure,
    StructuralModels,
)
from tidepull.tide.parameters import STRUCTURAL
from tidepull.types import BoolArray, Context, Event, FloatArray, IntArray, ProblemShape, Snapshot

REFITS = (8, 32, 128, 512)
"""Numbers of rewards after which units are fitted anew."""
_SEASONS = ((2, 1, 0), (6, 2, 0), (3, 0, 3), (2, 0, 0))
"""Harmonics of the day, of the day on weekends, of the week."""
_SCALES = {1.0: 0.4, 0.1: 0.4, 0.01: 0.2}
"""Prior variances of a level, and how likely each is: clicks of 2% differ by a tenth of their
standard deviation."""
_PERSISTENCES = {1.0: 0.5, 0.95: 0.25, 0.8: 0.25}
"""rho of the deviation in an hour (1: none), and how likely each is."""
_MOST_CROSSED = 8
"""Numbers of a context that may count differently by hour."""
_LARGEST = 4_000_000
"""Numbers in the covariances of all models together; those at the end of the list are left out."""
_ALPHA = 1e-5
_WIDEST = 1.0
"""Largest factor on the width of draws (`models/boldness.py`)."""
_NARROWEST, _PLAYS = {False: 0.4, True: 0.25}, {False: 2.0, True: 0.5}
"""Least factor, and c; smaller where all arms share weights, which every arm then tries out."""
_LEAST_KNOWN = 1e-3
"""Rewards by which an arm is known at least; what its prior says is not counted among them."""
_FEWEST_ZEROS = 0.02
"""Share of rewards that are exactly 0 from which on money has a hurdle."""
_SPEAKS, _SURE = math.log(0.01), 0.95
"""Log weight of a model that is asked for the best arm, and the chance from which on it is named."""
_LARGEST_LOG = 300.0
"""Sizes are compared up to e^300."""
ANY, BINARY, HURDLE = 0, 1, 2


class _Mixture(Stateful):
    """Models of one quantity, their log weights, and the units of the quantity."""

    state = ("models", "log_weights", "centre", "spread")

    def __init__(self, structures: list[ModelStructure], blocks: Blocks, n_blocks: int) -> None:
        self.models = StructuralModels(structures, blocks, n_blocks)
        prior = [_SCALES[s.scale] * _PERSISTENCES[s.persistence] for s in structures]
        self._log_prior = np.log(np.array(prior) / sum(prior))
        self.log_weights = self._log_prior.copy()
        self.centre, self.spread = 0.5, 0.5
        self.words = [structure.words for structure in structures]

    def fit(self, values: FloatArray, arms: IntArray) -> None:
        """Units in which every arm weighs the same; all that was learnt is forgotten."""
        if len(values):
            own = [values[arms == arm] for arm in np.unique(arms)]
            self.centre = float(np.mean([rewards.mean() for rewards in own]))
            squares = [np.mean((rewards - self.centre) ** 2) for rewards in own]
            self.spread = float(np.sqrt(np.mean(squares))) or abs(self.centre) or 1.0
        self.models.reset()
        self.log_weights[:] = self._log_prior

    def learn(
        self, block: int, x: FloatArray, value: float, now: float, *, binary: bool, count: int
    ) -> None:
        """Bayes' rule for models and weights, after `count` rewards."""
        kinds = (-self.centre / self.spread, (1 - self.centre) / self.spread) if binary else None
        y = (value - self.centre) / self.spread
        if kinds is not None:
            y = kinds[value == 1.0]
        joint = self.log_weights + self.models.observe(block, x, y, now, kinds)
        joint -= np.logaddexp.reduce(joint)
        alpha = min(_ALPHA, 1 / count)
        self.log_weights = np.logaddexp(
            joint + math.log1p(-alpha), self._log_prior + math.log(alpha)
        )

    def sample(
        self, X: FloatArray, now: float, shared: bool, rng: np.random.Generator
    ) -> tuple[FloatArray, float]:
        """A draw of the expected value of every arm, and the variance of the noise."""
        u = np.cumsum(np.exp(self.log_weights))
        m = min(int(np.searchsorted(u, rng.random() * u[-1], side="right")), len(u) - 1)
        models, noise = self.models, self.models.noise(m)
        if shared:
            means: FloatArray = X @ models.weights(m, now)
            errors, variances = models.sample_errors(m, X, now, rng)
        else:
            means, variances = models.outlook(m, X, now, lasting_hours=LASTING_HOURS)
            errors = np.sqrt(np.maximum(variances, 0.0)) * rng.standard_normal(len(X))
        known = noise * (1 / np.maximum(variances, 1e-12) - 1 / models.prior(m, X))
        leverages = 1 / np.maximum(known, _LEAST_KNOWN)
        kappa = boldness(leverages, least=_NARROWEST[shared], most=_WIDEST, plays=_PLAYS[shared])
        return self.centre + self.spread * (means + kappa * errors), noise * self.spread**2

    def sure_best(self, X: FloatArray, available: BoolArray) -> int:
        """The available arm whose value is the largest with a chance of 95% against every other
        one, averaged over the models; -1 if there is none."""
        ahead = np.zeros((len(X), len(X)))
        for m in np.flatnonzero(self.log_weights > _SPEAKS):
            means, variances = self.models.outlook(int(m), X, math.inf)
            gaps = means[:, None] - means
            widths = np.sqrt(np.maximum(variances[:, None] + variances, 1e-12))
            ahead += math.exp(self.log_weights[m]) * ndtr(gaps / widths)
        np.fill_diagonal(ahead, 1.0)
        sure = np.flatnonzero(available & (ahead[:, available].min(axis=1) >= _SURE))
        return int(sure[0]) if len(sure) else -1

    def expect(self, X: FloatArray, now: float, shared: bool) -> tuple[FloatArray, float]:
        """The expected value of every arm under the leading model, and the variance of its
        noise."""
        m = int(np.argmax(self.log_weights))
        means = X @ self.models.weights(m, now) if shared else self.models.outlook(m, X, now)[0]
        return self.centre + self.spread * means, self.models.noise(m) * self.spread**2


class StructuralThompson(Stateful):
    """Posterior sampling over a mixture of structural time-series models."""

    kind, family, reads_time = "structural-ts", STRUCTURAL, True
    state = (
        "mixtures", "contexts", "likelihood", "count", "rounds", "latest", "available", "generator",
        "times", "arms", "rewards", "raw",
    )  # fmt: skip
    not_finite = frozenset({"times", "latest"})  # no time given

    def __init__(self, parameters: NoParameters, shape: ProblemShape, streams: Streams) -> None:
        self._contexts = ContextMap(shape)
        self._shared, self._n_arms = self._contexts.shared, shape.n_arms
        dim = self._contexts.narrow - 1
        self._blocks = Blocks(dim, crossed=0 < dim <= _MOST_CROSSED)
        n_blocks = 1 if self._shared else shape.n_arms
        structures = structures_of(self._blocks)
        most = max(1, _LARGEST // (n_blocks * self._blocks.dim**2))
        self._new_mixture = partial(_Mixture, structures[:most], self._blocks, n_blocks)
        self._mixtures = [self._new_mixture()]  # of rewards, or of chances and sizes
        self._likelihood, self._count, self._rounds = BINARY, 0, 0
        self._latest = math.nan
        self._available = np.ones(shape.n_arms, bool)
        self._rng = streams.generator("posterior")
        self._times, self._arms = np.full(REFITS[-1], np.nan), np.zeros(REFITS[-1], np.int64)
        self._rewards = np.zeros(REFITS[-1])
        self._raw = np.zeros((REFITS[-1], self._contexts.raw_dim))

    def choose(self, context: Context) -> int:
        """Draw a model, draw the reward of every arm, play the best."""
        scores = self._sample(*self._features(context))
        self._rounds += 1
        return best_arm(scores, context.available, self._rng)

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """Shares by so many draws of a model and of rewards."""
        return pick(self.shares(context, draws))

    def shares(self, context: Context, draws: int) -> FloatArray:
        """A round: the share of draws in which each arm is best."""
        X, now = self._features(context)
        scores = np.array([self._sample(X, now) for _ in range(draws)])
        self._rounds += 1
        return best_shares(scores, context.available)

    def learn(self, event: Event) -> None:
        """Score every model by the reward, then learn it."""
        t, arm = decided_round(event), event.arm
        self._rounds = max(self._rounds, t + 1)
        raw = self._contexts.raw(event.context)
        time, n = event.context.time, self._count
        self._latest = self._latest if time is None else time
        if n < REFITS[-1]:
            self._times[n] = math.nan if time is None else time
            self._arms[n], self._rewards[n] = arm, event.reward
            self._raw[n] = raw[arm if self._shared else 0]
        self._count = n + 1
        fits = self._likelihood != BINARY or event.reward in (0.0, 1.0)
        if not fits or self._count in REFITS:
            self._refit()
        else:
            self._take(self._row(raw[arm if self._shared else 0], time), arm, event.reward, time, t)

    def _features(self, context: Context) -> tuple[FloatArray, float]:
        """x of every arm, and the time in hours, or rounds."""
        raw, time = self._contexts.raw(context), context.time
        self._available[:] = True if context.available is None else context.available
        rows = [self._row(row, time) for row in (raw if self._shared else raw[:1])]
        X = (
            np.array(rows)
            if self._shared
            else np.broadcast_to(rows[0], (self._n_arms, len(rows[0])))
        )
        return X, self._rounds if time is None else time / HOUR_SECONDS

    def _row(self, raw: FloatArray, time: float | None) -> FloatArray:
        if not self._blocks.context_dim:
            return self._blocks.features(time, np.empty(0))
        z = self._contexts(raw[None])[0, 1 : self._contexts.narrow]
        return self._blocks.features(time, z)

    def _sample(self, X: FloatArray, now: float) -> FloatArray:
        """One draw of the expected reward of every arm."""
        return self._rewards_of(
            mixture.sample(X, now, self._shared, self._rng) for mixture in self._mixtures
        )

    def expected(self, context: Context) -> FloatArray:
        """The expected reward of every arm under the leading models."""
        X, now = self._features(context)
        return self._rewards_of(mixture.expect(X, now, self._shared) for mixture in self._mixtures)

    def _rewards_of(self, values: Iterable[tuple[FloatArray, float]]) -> FloatArray:
        """Expected rewards: as they are, or chances times sizes."""
        (means, _), *sizes = values
        for logs, noise in sizes:
            size = np.exp(np.clip(logs + 0.5 * noise, -_LARGEST_LOG, _LARGEST_LOG))
            means = np.clip(means, 1e-6, 1.0) * size
        return np.asarray(means)

    def _take(self, x: FloatArray, arm: int, reward: float, time: float | None, t: int) -> None:
        """Learn a reward by the likelihood in force."""
        block, now = 0 if self._shared else arm, t if time is None else time / HOUR_SECONDS
        first = self._mixtures[0]
        if self._likelihood != HURDLE:
            binary = self._likelihood == BINARY
            first.learn(block, x, reward, now, binary=binary, count=self._count)
            return
        first.learn(block, x, float(reward != 0.0), now, binary=True, count=self._count)
        if reward > 0:
            self._mixtures[1].learn(
                block, x, math.log(reward), now, binary=False, count=self._count
            )

    def _set_likelihood(self, likelihood: int) -> None:
        self._likelihood = likelihood
        self._mixtures = self._mixtures[:1]
        if likelihood == HURDLE:
            self._mixtures.append(self._new_mixture())

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of the same policy on a problem of the same shape."""
        self._set_likelihood(int(snapshot["likelihood"]))
        super().restore(snapshot)

    @property
    def count(self) -> int:
        """Number of rewards that were learnt."""
        return self._count

    def beliefs(self) -> list[Belief]:
        """What every structure says, those that say the same together."""
        weights: dict[str, float] = {}
        mixture = self._mixtures[0]
        for words, weight in zip(mixture.words, np.exp(mixture.log_weights), strict=True):
            weights[words] = weights.get(words, 0.0) + float(weight)
        return [Belief(words, self.family, weight) for words, weight in weights.items()]

    def week(self) -> IntArray:
        """The arm that is surely best in every hour (columns) of the week, Monday first, for an
        average context; -1 where there is none."""
        if self._shared or math.isnan(self._latest):
            return np.full((7, 24), -1)
        monday = monday_before(self._latest)
        z = np.zeros(self._blocks.context_dim)
        table = np.empty((7, 24), np.int64)
        for hour in range(7 * 24):
            x = self._blocks.features(monday + (hour + 0.5) * HOUR_SECONDS, z)
            x[-1] = 0.0  # the deviation of today is not the season's
            X = np.broadcast_to(x, (self._n_arms, len(x)))
            table[hour // 24, hour % 24] = self._mixtures[0].sure_best(X, self._available)
        return table

    def _refit(self) -> None:
        """Fit likelihood, units and contexts to the rewards so far, and replay these."""
        n = min(self._count, REFITS[-1])
        rewards, arms = self._rewards[:n], self._arms[:n]
        self._set_likelihood(likelihood_of(rewards))
        if self._contexts.raw_dim and n >= REFITS[0]:
            self._contexts = self._contexts.fitted(self._raw[:n])
        if self._likelihood == HURDLE:
            paid = rewards > 0
            self._mixtures[0].fit((rewards != 0).astype(float), arms)
            self._mixtures[1].fit(np.log(rewards[paid]), arms[paid])
        else:
            self._mixtures[0].fit(rewards, arms)
        for i in range(n):
            time = None if math.isnan(self._times[i]) else float(self._times[i])
            row = self._row(self._raw[i], time)
            self._take(row, int(arms[i]), float(rewards[i]), time, i)


def likelihood_of(rewards: FloatArray) -> int:
    """BINARY if all are 0 or 1, HURDLE if some are 0 and the others positive, else ANY.

    >>> [likelihood_of(np.array(r)) for r in ([0.0, 1.0], [0.0, 5.5, 2.5, 9.0], [-1.0, 0.0, 2.0])]
    [1, 2, 0]
    """
    if np.isin(rewards, (0.0, 1.0)).all():
        return BINARY
    zeros, paid = int((rewards == 0).sum()), rewards[rewards > 0]
    is_money = zeros + len(paid) == len(rewards) and zeros >= max(1, _FEWEST_ZEROS * len(rewards))
    return HURDLE if is_money and len(np.unique(paid)) > 2 else ANY


def structures_of(blocks: Blocks) -> list[ModelStructure]:
    """Every combination of season, interactions, scale and persistence, plain ones first."""
    crossings = (False, True) if blocks.crossed else (False,)
    return [
        ModelStructure(day, weekend, week, crossed, scale, persistence)
        for day, weekend, week in _SEASONS
        for crossed in crossings
        for persistence in _PERSISTENCES
        for scale in _SCALES
    ]
