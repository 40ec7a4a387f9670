"""Rewards that come in two kinds, such as 0 and 1 with a little noise.

Where an arm is right or wrong, the errors of a linear rule have two heads, and no bell fits them:
judged by it, models rise and fall by many nats with single rewards. So all that counts of a
reward is which kind it is of.

There are two kinds if nine tenths of the variance of all rewards lie between them. They stay while
recent rewards keep close to them, however rare one kind becomes; but only while what is paid
*within* a kind is noise. If arms, contexts or a rhythm explain it, how much is paid counts again.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.types import FloatArray, IntArray

_PURE, _TIGHT, _NOISE = 0.9, 1 / 3, 0.3
"""The share of the variance between the kinds when they are first taken for two; how far rewards
may lie from their kinds later (root mean square, in spreads); the share of the variance within a
kind that may be explained."""
_FEWEST, CHECK_WINDOW, CHECK_INTERVAL = 16, 256, 64
"""Rewards that can tell; those among which what is paid within a kind is looked at; and those that
say, each time that so many have come, whether known kinds stay."""
_ARMS, _FEATURES, _OF_A_FEATURE = 4, 32, 4
"""Arms and most numbers of their contexts that are looked at, and fewest rewards for each
number."""
_CHANCE = 1e-5
_TERMS = 60
"""Of a continued fraction: enough for 256 rewards."""
_ROUNDING = 1e-9
"""Deviations within a kind, beside the size of rewards, that are none."""
_SMALLEST = 1e-6
"""Of half the distance between the kinds, beside the size of rewards."""


def is_still_two_point(rewards: FloatArray, centre: float, spread: float) -> bool:
    """Whether no reward lies far from known kinds, at centre - spread and centre + spread, and the
    latest lie close.

    >>> is_still_two_point(np.array([0.9, 1.1, 1.0]), 0.5, 0.5)
    True
    >>> is_still_two_point(np.array([0.9, 0.6, 0.7]), 0.5, 0.5)
    False
    """
    away = np.abs(rewards - centre) - spread
    return bool(
        np.sqrt(np.mean(away[-CHECK_INTERVAL:] ** 2)) <= _TIGHT * spread and away.max() <= spread
    )


def fit_two_clusters(rewards: FloatArray, threshold: float) -> tuple[float, float] | None:
    """Centre and spread of two kinds on both sides of a threshold, if they are two.

    >>> fit_two_clusters(np.array([0.0, 0.9, 1.1, 0.1] * 4), 0.5)
    (0.525, 0.475)
    """
    low, high = rewards[rewards <= threshold], rewards[rewards > threshold]
    if len(rewards) < _FEWEST or min(len(low), len(high)) < 2:
        return None
    within = float(low.var() * len(low) + high.var() * len(high)) / len(rewards)
    centre, spread = float(low.mean() + high.mean()) / 2, float(high.mean() - low.mean()) / 2
    mixed = within > (1 - _PURE) * float(rewards.var())
    if (
        mixed
        or np.abs(rewards - centre).max() > 2 * spread
        or spread < _SMALLEST * np.abs(rewards).max()
    ):
        return None
    return centre, spread


def explained_within(rewards: FloatArray, arms: IntArray, x: FloatArray, centre: float) -> bool:
    """Whether something explains what was paid lately within the more frequent kind: which arm it
    was, the context of one of the arms that were played most, or a rhythm."""
    rewards, arms, x = rewards[-CHECK_WINDOW:], arms[-CHECK_WINDOW:], x[-CHECK_WINDOW:]
    high = rewards > centre
    mine = high if 2 * int(high.sum()) >= len(high) else ~high
    y, arms, x = rewards[mine], arms[mine], x[mine, 1:]
    if len(y) < _FEWEST or y.std() <= _ROUNDING * np.abs(rewards).max():
        return False
    names, counts = np.unique(arms, return_counts=True)
    often = names[np.argsort(-counts, kind="stable")]
    if _explain((arms[:, None] == often[1:]).astype(float), y) or _swings(y):
        return True
    return any(_explain(x[arms == arm], y[arms == arm]) for arm in often[:_ARMS])


def _explain(features: FloatArray, y: FloatArray) -> bool:
    """Whether the first of some features, as many as there are rewards for, explain enough
    (adjusted R^2), and more than by chance (F test)."""
    n = len(y)
    features = features[:, : min(_FEATURES, n // _OF_A_FEATURE)]
    if n < _FEWEST or not features.shape[1]:
        return False
    features = np.concatenate([np.ones((n, 1)), features], axis=1)
    weights, *_ = np.linalg.lstsq(features, y, rcond=1e-9)
    free, fitted = n - features.shape[1], features.shape[1] - 1
    left, all_of_it = (
        float(np.sum((y - features @ weights) ** 2)),
        float(np.sum((y - y.mean()) ** 2)),
    )
    if left / free >= (1 - _NOISE) * all_of_it / (n - 1):
        return False
    return bool(
        f_test(fitted, free, (all_of_it - left) / fitted / max(left / free, 1e-300)) < _CHANCE
    )


def f_test(fitted: int, free: int, ratio: float) -> float:
    """The chance of a larger ratio of variances than this one, F distributed: the incomplete beta
    function by its continued fraction (Numerical Recipes, section 6.4).

    >>> round(f_test(2, 30, 5.0), 4)
    0.0134
    """
    a, b, x = 0.5 * free, 0.5 * fitted, free / (free + fitted * ratio)
    swapped = x > (a + 1) / (a + b + 2)
    if swapped:
        a, b, x = b, a, 1 - x
    if x <= 0:
        return float(swapped)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _TERMS):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            c, d = 1 + step / c, 1 / (1 + step * d)
            fraction *= c * d
    chance = math.exp(scale + a * math.log(x) + b * math.log1p(-x)) * fraction / a
    return 1 - chance if swapped else chance


def _swings(y: FloatArray) -> bool:
    """Whether one frequency explains enough; of few rewards some frequency always does."""
    power = np.abs(np.fft.rfft(y - y.mean())[1:]) ** 2
    return len(y) >= 2 * CHECK_INTERVAL and bool(power.max() > _NOISE * power.sum())
