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


def best_shares(scores: FloatArray, available: BoolArray | None) -> FloatArray:
    """How often each arm has the highest score of a row (a draw); arms that are equally good share it.

    >>> best_shares(np.array([[0.1, 0.7, 0.9], [0.5, 0.5, 0.2]]), None)
    array([0.25, 0.25, 0.5 ])
    """
    if available is not None:
        scores = np.where(available, scores, -np.inf)
    best = scores == np.maximum.reduce(scores, axis=1, keepdims=True)
    if np.count_nonzero(best) == len(best):  # no tie: the same bits, at half the cost
        best, parts = np.add.reduce(best, axis=0), len(best)
    else:
        best, parts = np.add.reduce(best / best.sum(axis=1, keepdims=True), axis=0), len(best)
    shares: FloatArray = best / parts
    return shares


def equal_shares(n_arms: int, available: BoolArray | None) -> FloatArray:
    """The same share for every available arm."""
    return np.full(n_arms, 1 / n_arms) if available is None else available / available.sum()


def any_arm(n_arms: int, available: BoolArray | None, rng: np.random.Generator) -> int:
    """An arm drawn uniformly from the available ones."""
    return int(rng.integers(n_arms) if available is None else rng.choice(np.flatnonzero(available)))
