"""From a score for each arm to one arm, and exploration rules on a posterior over the last layer.

`DrawnScores` and `ArmIndices` are policies that lack only their scores and what they learn.
Each rule is a frozen callable. Posterior sampling is the paper's choice; the other two are its
ablation and look only at the posterior mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator

from tidepull.errors import EventError
from tidepull.protocols import Pick, Posterior
from tidepull.state import Stateful
from tidepull.types import BoolArray, Context, Event, FloatArray, IntArray


def best_arm(scores: FloatArray, available: BoolArray | None, rng: Generator) -> int:
    """The arm of the highest score; equal scores are equally likely. Draws only when there is a
    tie.

    >>> best_arm(np.array([0.1, 0.7, 0.9]), np.array([True, True, False]), np.random.default_rng(0))
    1
    """
    if available is not None:
        scores = np.where(available, scores, -np.inf)
    best = np.flatnonzero(scores == scores.max())
    return int(best[0] if len(best) == 1 else best[rng.integers(len(best))])


def best_shares(scores: FloatArray, available: BoolArray | None) -> FloatArray:
    """How often each arm has the highest score of a row (a draw); arms that are equally good share
    it.

    >>> best_shares(np.array([[0.1, 0.7, 0.9], [0.5, 0.5, 0.2]]), None)
    array([0.25, 0.25, 0.5 ])
    """
    if available is not None:
        scores = np.where(available, scores, -np.inf)
    best = scores == np.maximum.reduce(scores, axis=1, keepdims=True)
    # Ties; without one these are the same bits, at half the cost.
    if np.count_nonzero(best) > len(best):
        best = best / best.sum(axis=1, keepdims=True)
    shares: FloatArray = np.add.reduce(best, axis=0) / len(best)
    return shares


def equal_shares(n_arms: int, available: BoolArray | None) -> FloatArray:
    """The same share for every available arm."""
    return np.full(n_arms, 1 / n_arms) if available is None else available / available.sum()


def any_arm(n_arms: int, available: BoolArray | None, rng: Generator) -> int:
    """An arm drawn uniformly from the available ones."""
    return int(rng.integers(n_arms) if available is None else rng.choice(np.flatnonzero(available)))


def decided_round(event: Event) -> int:
    """The round that an event finishes. The guard always says it; an event that is a round of its
    own has the number that the next choice would have had."""
    if event.decided is None:
        raise EventError(
            "decided must say which round the event finishes; policies built from their id find it"
        )
    return event.decided


class DrawnScores(Stateful):
    """Plays the best arm under one draw; `_draw` gives the score of every arm in some draws."""

    _rng: Generator

    def _draw(self, context: Context, draws: int) -> FloatArray:
        """Drawn scores (draws x arms)."""
        raise NotImplementedError

    def choose(self, context: Context) -> int:
        """The available arm that is best under one draw."""
        return best_arm(self._draw(context, 1)[0], context.available, self._rng)

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """Shares by so many draws."""
        return pick(best_shares(self._draw(context, draws), context.available))


class ArmIndices(Stateful):
    """Plays the arm of the highest index; `_latest` is the latest round that has begun."""

    _rng: Generator
    _latest = -1

    def indices(self, context: Context) -> FloatArray:
        """The index of every arm in this context."""
        raise NotImplementedError

    def choose(self, context: Context) -> int:
        """The available arm of the highest index."""
        arm = best_arm(self.indices(context), context.available, self._rng)
        self._latest += 1
        return arm

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """The arm of the highest index, or those that are equally high."""
        arm = pick(best_shares(self.indices(context)[None], context.available))
        self._latest += 1
        return arm


class ExplorationRule(Protocol):
    """How to pick one of the `open_arms` (indices into the rows of `features`)."""

    def __call__(
        self, features: FloatArray, posterior: Posterior, open_arms: IntArray, rng: Generator
    ) -> int:
        """The arm to play."""


@dataclass(frozen=True, slots=True)
class PosteriorSampling:
    """Draw w from the posterior, play argmax_k w . phi_k: an arm is as likely as it is to be
    optimal."""

    def __call__(
        self, features: FloatArray, posterior: Posterior, open_arms: IntArray, rng: Generator
    ) -> int:
        """Best arm under one draw."""
        return _best(features @ posterior.sample(rng), open_arms)


@dataclass(frozen=True, slots=True)
class EpsilonGreedy:
    """Any arm with probability epsilon, else the best by the posterior mean."""

    epsilon: float

    def __call__(
        self, features: FloatArray, posterior: Posterior, open_arms: IntArray, rng: Generator
    ) -> int:
        """Uniform or greedy arm."""
        if rng.random() < self.epsilon:
            return int(rng.choice(open_arms))
        return _best(features @ posterior.mean, open_arms)


@dataclass(frozen=True, slots=True)
class Boltzmann:
    """P(arm k) proportional to exp(mean_k / temperature)."""

    temperature: float

    def __call__(
        self, features: FloatArray, posterior: Posterior, open_arms: IntArray, rng: Generator
    ) -> int:
        """Arm drawn by its weight."""
        means = np.asarray(features[open_arms] @ posterior.mean, dtype=float)
        weights = np.exp((means - means.max()) / self.temperature)
        return int(rng.choice(open_arms, p=weights / weights.sum()))


def _best(scores: FloatArray, open_arms: IntArray) -> int:
    return int(open_arms[np.argmax(scores[open_arms])])
