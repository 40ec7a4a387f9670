"""From a score for each arm to one arm: the best available one, ties broken at random."""

from __future__ import annotations

import numpy as np

from tidepull.types import BoolArray, FloatArray


def best_arm(scores: FloatArray, available: BoolArray | None, rng: np.random.Generator) -> int:
    """The arm of the highest score; equal scores are equally likely. Draws only when there is a tie.

    >>> best_arm(np.array([0.1, 0.7, 0.9]), np.array([True, True, False]), np.random.default_rng(0))
    1
    """
    if available is not None:
        scores = np.where(available, scores, -np.inf)
    best = np.flatnonzero(scores == scores.max())
    return int(best[0] if len(best) == 1 else best[rng.integers(len(best))])


def any_arm(n_arms: int, available: BoolArray | None, rng: np.random.Generator) -> int:
    """An arm drawn uniformly from the available ones."""
    return int(rng.integers(n_arms) if available is None else rng.choice(np.flatnonzero(available)))
