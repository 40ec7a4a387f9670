"""Two-point rewards: two values with a little noise, such as 0 and 1.

Where an arm is right or wrong, the errors of a linear model are bimodal, and a Student-t likelihood
moves weights by many nats with single rewards. So only the cluster of a reward counts.

There are two clusters if nine tenths of the variance of all rewards are between them. They stay
while recent rewards are close to them, however rare one cluster becomes, and while the rewards
*within* a cluster are noise. If arms, contexts or a period explain these, values count again.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.types import FloatArray, IntArray

_PURE, _TIGHT, _NOISE = 0.9, 1 / 3, 0.3
"""Share of the variance between clusters that new ones need; largest root mean square distance of
rewards from known clusters, in spreads; share of the variance within a cluster that may be
explained."""
_FEWEST, CHECK_WINDOW, CHECK_INTERVAL = 16, 256, 64
"""Fewest rewards of a test; rewards in which the values within a cluster are tested; rewards
between two tests of known clusters."""
_ARMS, _FEATURES, _OF_A_FEATURE = 4, 32, 4
"""Arms and numbers of their contexts that are tested, and fewest rewards for each number."""
_CHANCE = 1e-5
_TERMS = 60
"""Terms of the continued fraction: enough for 256 rewards."""
_ROUNDING = 1e-9
"""Deviations within a cluster, relative to the size of rewards, that are rounding."""
_SMALLEST = 1e-6
"""Smallest half distance of the clusters, relative to the size of rewards."""


def is_still_two_point(rewards: FloatArray, centre: float, spread: float) -> bool:
    """Whether all rewards are near the known clusters, at centre - spread and centre + spread, and
    the latest are close.

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
    """Centre and spread of two clusters on both sides of a threshold; None if there are not two.

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
    """Whether the arm, the context of one of the most frequent arms, or a period explains recent
    rewards within the larger cluster."""
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
