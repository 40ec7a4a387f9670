"""Beta-Bernoulli beliefs: each arm's chance of success, after counting successes and failures."""

from __future__ import annotations

import numpy as np

from tidepull.state import Stateful
from tidepull.types import FloatArray, IntArray


class BetaBernoulli(Stateful):
    """p_i ~ Beta(a + successes_i, b + failures_i), independently for every arm i."""

    state = ("successes", "failures")

    def __init__(
        self, n_arms: int, *, prior_successes: float = 1.0, prior_failures: float = 1.0
    ) -> None:
        self._prior = (prior_successes, prior_failures)
        self._successes: FloatArray = np.zeros(n_arms)
        self._failures: FloatArray = np.zeros(n_arms)

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of every arm's chance."""
        a, b = self._parameters()
        return a / (a + b)

    def update(self, arm: int, success: bool) -> None:
        """Count one outcome."""
        (self._successes if success else self._failures)[arm] += 1.0

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw of every arm's chance."""
        a, b = self._parameters()
        return rng.beta(a, b)

    def samples(
        self, rng: np.random.Generator, count: int, arms: IntArray | None = None
    ) -> FloatArray:
        """So many draws, one a row; of some arms only, if given."""
        a, b = self._parameters()
        if arms is not None:
            a, b = a[arms], b[arms]
        return rng.beta(a, b, size=(count, len(a)))

    def _parameters(self) -> tuple[FloatArray, FloatArray]:
        return self._prior[0] + self._successes, self._prior[1] + self._failures
