"""Seeded bootstrap intervals, vectorised over every round of a curve at once."""

from __future__ import annotations

import numpy as np
from scipy import special

from tidepull.types import FloatArray


def mean_interval(
    samples: FloatArray, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Bootstrap interval of the mean over axis 0 (trials), for every column.

    With ten trials the plain percentile interval is about a tenth too narrow; its tails are therefore moved
    outwards to Phi(-sqrt(n / (n - 1)) t_{n-1}) (the "expanded percentile" interval of Hesterberg, 2015), which
    covers like Student's on symmetric data and follows the skew of the sample otherwise. Fewer than six trials
    have too few distinct resamples for that: Student's interval is used.
    """
    samples = np.asarray(samples, dtype=float)
    n = len(samples)
    if n < 2:
        unknown = np.full(samples.shape[1:], np.nan)
        return unknown, unknown
    t = float(special.stdtrit(n - 1, (1 + level) / 2))
    if n < 6:
        half = t * samples.std(axis=0, ddof=1) / np.sqrt(n)
        return samples.mean(axis=0) - half, samples.mean(axis=0) + half
    tail = float(special.ndtr(-np.sqrt(n / (n - 1)) * t))
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    means = counts @ samples.reshape(n, -1) / n
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low.reshape(samples.shape[1:]), high.reshape(samples.shape[1:])
