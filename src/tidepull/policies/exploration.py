"""Exploration rules: from every arm's features and a posterior over the head to one arm.

Each rule is a frozen callable. Posterior sampling is the paper's choice; the other two are its ablation
and look only at the posterior mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tidepull.protocols import Posterior
from tidepull.types import FloatArray, IntArray


class ExplorationRule(Protocol):
    """How to pick one of the `open_arms` (indices into the rows of `features`)."""

    def __call__(
        self, features: FloatArray, posterior: Posterior, open_arms: IntArray, rng: np.random.Generator
    ) -> int:
        """The arm to play."""


@dataclass(frozen=True, slots=True)
class PosteriorSampling:
    """Draw w from the posterior, play argmax_k w . phi_k: an arm is as likely as it is to be optimal."""

    def __call__(
        self, features: FloatArray, posterior: Posterior, open_arms: IntArray, rng: np.random.Generator
    ) -> int:
        """Best arm under one draw."""
        return _best(features @ posterior.sample(rng), open_arms)


@dataclass(frozen=True, slots=True)
class EpsilonGreedy:
    """Any arm with probability epsilon, else the best by the posterior mean."""

    epsilon: float

    def __call__(
        self, features: FloatArray, posterior: Posterior, open_arms: IntArray, rng: np.random.Generator
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
        self, features: FloatArray, posterior: Posterior, open_arms: IntArray, rng: np.random.Generator
    ) -> int:
        """Arm drawn by its weight."""
        means = np.asarray(features[open_arms] @ posterior.mean, dtype=float)
        weights = np.exp((means - means.max()) / self.temperature)
        return int(rng.choice(open_arms, p=weights / weights.sum()))


def _best(scores: FloatArray, open_arms: IntArray) -> int:
    return int(open_arms[np.argmax(scores[open_arms])])
