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

Scale, likelihood and the map of contexts are fitted after 8, 32, 128 and 512 rewards, and where a
reward turns out not to be 0 or 1. Mixtures in the new units then replay the rewards so far, one in
every call of `upkeep`, and take over once they have learnt all of them. Until then the old ones
decide. In the same way mixtures with a period of its own begin, where a periodogram of the rewards on
record shows one (`models/period.py`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tidepull.parameters import NoParameters
from tidepull.policies.exploration import best_arm, decided_round
from tidepull.protocols import Pick
from tidepull.random import Streams
from tidepull.state import Stateful, read
from tidepull.tide.context import ContextMap
from tidepull.tide.explain import Belief
from tidepull.tide.jobs import is_power_of_two
from tidepull.tide.models.boxed import BoxCache
from tidepull.tide.models.period import strongest_period
from tidepull.tide.models.structural import Blocks
from tidepull.tide.models.waves import HOUR_SECONDS
from tidepull.tide.models.weights import best_arms
from tidepull.tide.parameters import STRUCTURAL
from tidepull.tide.structural_mixture import (
    StructuralMixture,
    draw,
    rewards_of,
    steady_structures,
    structures_of,
    sure_week,
)
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape, Snapshot

REFITS = (8, 32, 128, 512)
"""Numbers of rewards after which units are fitted anew."""
_KEPT = 4096
"""Latest rewards that are on record: what mixtures in new units can learn."""
_FIRST_SEARCH = 128
"""Rewards from which on a period is looked for, twice until their number has doubled."""
_PHASE = 0.1
"""Cycles by which a period that was found must be off the known one at the end of the record."""
_ROWS = 64
"""Latest features that are kept for rewards to come."""
_MOST_CROSSED = 8
"""Numbers of a context that may count differently by hour."""
_LARGEST = 2_000_000
"""Numbers in the covariances of all models together; those at the end of the list are left out."""
_FEWEST_ZEROS = 0.02
"""Share of rewards that are exactly 0 from which on money has a hurdle."""
ANY, BINARY, HURDLE = 0, 1, 2


class _MixtureFit(Stateful):
    """Mixtures in the units of some rewards: one of rewards, or two of probabilities and sizes.
    `period` is one that was found (0: none), `n_learnt` the number of the next reward."""

    state = ("likelihood", "contexts", "mixtures", "n_learnt")

    def __init__(
        self,
        new_mixture: Callable[[float], StructuralMixture],
        contexts: ContextMap,
        period: float = 0.0,
    ) -> None:
        self._new_mixture, self.contexts = partial(new_mixture, period), contexts
        self.mixtures, self.likelihood, self.n_learnt = [self._new_mixture()], BINARY, 0
        self.period = period
        self._rows: dict[tuple[float | None, bytes], FloatArray] = {}

    def fit(self, rewards: FloatArray, arms: IntArray, raw: FloatArray) -> None:
        """Likelihood, units and contexts by these rewards; nothing is learnt yet."""
        self._set_likelihood(likelihood_of(rewards))
        if self.contexts.raw_dim and len(rewards) >= REFITS[0]:
            self.contexts = self.contexts.fitted(raw)
            self._rows.clear()
        first, *sizes = self.mixtures
        first.fit((rewards != 0).astype(float) if sizes else rewards, arms)
        for mixture in sizes:
            mixture.fit(np.log(rewards[rewards > 0]), arms[rewards > 0])

    def row(self, raw: FloatArray, time: float | None) -> FloatArray:
        """Features of a context at a time; a decision and its reward share them."""
        seen = time, raw.tobytes()
        x = self._rows.get(seen)
        if x is None:
            z = self.contexts.narrowed(raw) if len(raw) else raw
            x = self._rows[seen] = self.mixtures[0].blocks.features(time, z)
            if len(self._rows) > _ROWS:
                del self._rows[next(iter(self._rows))]
        return x

    def fits(self, reward: float) -> bool:
        """Whether the likelihood allows a reward."""
        return self.likelihood != BINARY or reward in (0.0, 1.0)

    def learn(self, block: int, x: FloatArray, reward: float, now: float) -> None:
        """Bayes' rule by the likelihood in force."""
        self.n_learnt += 1
        learn = partial(StructuralMixture.learn, block=block, x=x, now=now, count=self.n_learnt)
        if self.likelihood != HURDLE:
            learn(self.mixtures[0], value=reward, binary=self.likelihood == BINARY)
            return
        learn(self.mixtures[0], value=float(reward != 0.0), binary=True)
        if reward > 0:
            learn(self.mixtures[1], value=math.log(reward), binary=False)

    def _set_likelihood(self, likelihood: int) -> None:
        self.likelihood, self.mixtures = likelihood, self.mixtures[:1]
        if likelihood == HURDLE:
            self.mixtures.append(self._new_mixture())

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of a fit of the same structures."""
        self._set_likelihood(int(snapshot["likelihood"]))
        super().restore(snapshot)
        self._rows.clear()


class StructuralThompson(Stateful):
    """Posterior sampling over a mixture of structural time-series models."""

    kind, family, reads_time = "structural-ts", STRUCTURAL, True
    state = (
        "fit", "start", "count", "rounds", "latest", "available", "generator",
        "times", "decided", "arms", "rewards", "raw", "search_is_due",
    )  # fmt: skip
    not_finite = frozenset({"times", "latest"})  # no time given

    def __init__(self, parameters: NoParameters, shape: ProblemShape, streams: Streams) -> None:
        contexts = ContextMap(shape)
        self._shared, self._n_arms = contexts.shared, shape.n_arms
        dim = contexts.narrow - 1
        self._blocks = Blocks(dim, crossed=0 < dim <= _MOST_CROSSED)
        self._n_blocks = 1 if self._shared else shape.n_arms
        self._fit = _MixtureFit(self._new_mixture, contexts)
        self._successor: _MixtureFit | None = None
        self._search_is_due = False
        self._start = 0  # the number of rewards from which on refits are counted
        self._count, self._rounds, self._latest = 0, 0, math.nan
        self._available = np.ones(shape.n_arms, bool)
        self.expected: FloatArray = np.zeros(shape.n_arms)
        """Rewards of arms in the latest round, by the leading models."""
        self._rng, self._rng_box = streams.generator("posterior"), BoxCache()
        self._times, self._rewards = np.full(_KEPT, np.nan), np.zeros(_KEPT)
        self._decided, self._arms = np.zeros(_KEPT, np.int64), np.zeros(_KEPT, np.int64)
        self._raw = np.zeros((_KEPT, contexts.raw_dim))

    def _new_mixture(self, period: float) -> StructuralMixture:
        """A mixture of as many structures as memory allows, with a period (0: none)."""
        blocks = replace(self._blocks, period=period)
        structures = steady_structures(blocks) + structures_of(blocks)
        numbers = np.cumsum([s.size(blocks) ** 2 for s in structures]) * self._n_blocks
        most = max(1, int(np.searchsorted(numbers, _LARGEST, side="right")))
        return StructuralMixture(structures[:most], blocks, self._n_blocks)

    def choose(self, context: Context) -> int:
        """Draw a model, draw the reward of every arm, play the best."""
        scores, _ = self._samples(context, 1)
        return best_arm(scores[0], context.available, self._rng)

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """Choose by each arm's share of `draws` draws of a model and of rewards."""
        return pick(self.shares(context, draws))

    def shares(self, context: Context, draws: int) -> FloatArray:
        """A round: the share of draws in which each arm is best."""
        scores, self.expected = self._samples(context, draws)
        best, shares = np.empty(draws, np.int64), np.empty(self._n_arms)
        best_arms(scores, self._available, best, shares)
        return shares

    def learn(self, event: Event) -> None:
        """Score every model by the reward, then learn it."""
        t, time = decided_round(event), event.context.time
        self._rounds = max(self._rounds, t + 1)
        self._latest = self._latest if time is None else time
        i = self._count % _KEPT
        self._times[i], self._decided[i] = math.nan if time is None else time, t
        self._arms[i], self._rewards[i] = event.arm, event.reward
        self._raw[i] = self._fit.contexts.raw(event.context)[event.arm if self._shared else 0]
        self._count += 1
        if fits := self._fit.fits(event.reward):
            self._teach(self._fit, i)
        is_new = not fits and (self._successor is None or not self._successor.fits(event.reward))
        if is_new and self._count > REFITS[-1]:
            self._start = self._count
        if is_new or self._count - self._start in REFITS:
            self._refit(self._fit.period)
        self._search_is_due |= _search_is_due(self._count)

    def _teach(self, fit: _MixtureFit, i: int) -> None:
        """Learn a reward of the record."""
        time = None if math.isnan(self._times[i]) else float(self._times[i])
        now = float(self._decided[i]) if time is None else time / HOUR_SECONDS
        x = fit.row(self._raw[i], time)
        fit.learn(0 if self._shared else int(self._arms[i]), x, float(self._rewards[i]), now)

    def _refit(self, period: float) -> None:
        """Begin mixtures in the units of the rewards on record, with a period (0: none)."""
        places = self._on_record()
        self._successor = _MixtureFit(self._new_mixture, self._fit.contexts, period)
        self._successor.fit(self._rewards[places], self._arms[places], self._raw[places])

    def _on_record(self) -> IntArray:
        """Places of the rewards on record, oldest first."""
        return np.arange(max(0, self._count - _KEPT), self._count) % _KEPT

    def _search(self) -> None:
        """Look for a period in the rewards on record; one that is new begins mixtures with it."""
        places = self._on_record()
        times = self._times[places]
        self._search_is_due = False
        if np.isnan(times).any():
            return
        arms = np.zeros(len(places), np.int64) if self._shared else self._arms[places]
        hours = times / HOUR_SECONDS
        found = strongest_period(hours, arms, self._rewards[places])
        known = self._fit.period
        if found is not None and (
            not known or abs(1 / found - 1 / known) * float(np.ptp(hours)) > _PHASE
        ):
            self._refit(found)

    def upkeep(self) -> bool:
        """Search a period, or replay a reward in the successor mixtures; True while more is
        pending."""
        fit = self._successor
        if fit is None:
            if self._search_is_due:
                self._search()
            return self.pending
        fit.n_learnt = max(fit.n_learnt, self._count - _KEPT)
        self._teach(fit, fit.n_learnt % _KEPT)
        if fit.n_learnt == self._count:
            self._fit, self._successor = fit, None
        return self.pending

    @property
    def pending(self) -> bool:
        """Whether `upkeep` has something to do."""
        return self._successor is not None or self._search_is_due

    def _features(self, context: Context) -> tuple[FloatArray, float]:
        """x of every arm (one row where arms have weights of their own), and the time in hours, or
        rounds."""
        raw, time = self._fit.contexts.raw(context), context.time
        self._available[:] = True if context.available is None else context.available
        rows = [self._fit.row(row, time) for row in raw]
        X = np.array(rows) if self._shared else rows[0][None]
        return X, self._rounds if time is None else time / HOUR_SECONDS

    def _samples(self, context: Context, draws: int) -> tuple[FloatArray, FloatArray]:
        """A round: draws of the expected reward of every arm, one a row, and what it is under the
        leading models."""
        (X, now), mixtures = self._features(context), self._fit.mixtures
        drawn = draw(mixtures, draws, self._shared, self._rng_box(self._rng))
        means, *logs = [
            mixture.values(ms, z, X, now, self._shared)
            for mixture, (ms, z) in zip(mixtures, drawn, strict=True)
        ]
        noises = (
            mixture.noise(ms) for mixture, (ms, _) in zip(mixtures[1:], drawn[1:], strict=True)
        )
        rewards = rewards_of(means, zip(logs, noises, strict=True))
        self._rounds += 1
        return rewards[:-1], rewards[-1]

    def snapshot(self) -> Snapshot:
        """The state, also of the successor mixtures."""
        successor = self._successor
        return {
            **super().snapshot(),
            "period": self._fit.period,
            "successor": None if successor is None else successor.snapshot(),
            "successor_period": 0.0 if successor is None else successor.period,
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of the same policy on a problem of the same shape."""
        contexts = self._fit.contexts
        self._fit = _MixtureFit(self._new_mixture, contexts, float(read(snapshot, "period")))
        super().restore(snapshot)
        self._successor = None
        if (successor := read(snapshot, "successor")) is not None:
            period = float(read(snapshot, "successor_period"))
            self._successor = _MixtureFit(self._new_mixture, copy.copy(contexts), period)
            self._successor.restore(successor)

    @property
    def count(self) -> int:
        """Number of rewards that were learnt."""
        return self._count

    def beliefs(self) -> list[Belief]:
        """Structures with and without their seasons; those with equal words are added up."""
        weights: dict[str, float] = {}
        for model in self._fit.mixtures[0].submodels(self._now):
            weights[model.words] = weights.get(model.words, 0.0) + model.weight
        return [Belief(words, self.family, weight) for words, weight in weights.items()]

    def week(self) -> IntArray:
        """The arm that is surely best in every hour (columns) of the week, Monday first, for an
        average context; -1 where there is none."""
        if self._shared or math.isnan(self._latest):
            return np.full((7, 24), -1)
        return sure_week(self._fit.mixtures, self._latest, self._available)

    @property
    def _now(self) -> float:
        """The latest time, in hours (rounds)."""
        return self._rounds if math.isnan(self._latest) else self._latest / HOUR_SECONDS


def _search_is_due(count: int) -> bool:
    """After 128, 192, 256, 384, 512, ... rewards."""
    thirds = count // 3 if count % 3 == 0 else count
    return count >= _FIRST_SEARCH and is_power_of_two(thirds)


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
