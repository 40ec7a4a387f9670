"""Features of a time as a compiled kernel: harmonics of the day, the week and a period, and the
weekend."""

from __future__ import annotations

import math

from tidepull._internal.kernels import kernel
from tidepull.tide.models.algebra import TWO_PI, inlined
from tidepull.types import FloatArray

HOUR_SECONDS, DAY_SECONDS, WEEK_SECONDS = 3600.0, 86_400.0, 604_800.0
FIRST_MONDAY_SECONDS = 4 * DAY_SECONDS
"""1 January 1970 was a Thursday."""
DAY_WAVES, WEEKEND_WAVES, WEEK_WAVES, PERIOD_WAVES = 6, 2, 3, 2
"""Harmonics of the day (the sixth is four hours long), of those apart on weekends, of the week, of a
period that was found."""
_WEEKEND_SHARE = 2 / 7
"""Taken off the indicator of the weekend, so that the level is that of an average day."""


@inlined
def _fill_waves(x: FloatArray, at: int, turns: float, count: int) -> None:
    """cos and sin of 2 pi i turns for i = 1, 2, ..., one after the other, by the sum of angles."""
    angle = TWO_PI * (turns % 1.0)
    first_cos, first_sin = math.cos(angle), math.sin(angle)
    cos, sin = first_cos, first_sin
    for i in range(at, at + 2 * count, 2):
        x[i], x[i + 1] = cos, sin
        cos, sin = cos * first_cos - sin * first_sin, sin * first_cos + cos * first_sin


@kernel(nogil=True)
def fill_features(
    x: FloatArray, z: FloatArray, time: float, on_weekend: float, period: float, crossed: bool
) -> None:
    """Features at a time in seconds since 1970, as `Blocks` has them, for a context z; `period` is in
    hours (0: none)."""
    x[0] = x[x.shape[0] - 1] = 1.0
    at = 1 + 2 * DAY_WAVES
    _fill_waves(x, 1, time / DAY_SECONDS, DAY_WAVES)
    weekend = on_weekend - _WEEKEND_SHARE
    x[at] = weekend
    for i in range(2 * WEEKEND_WAVES):
        x[at + 1 + i] = weekend * x[1 + i]
    at += 1 + 2 * WEEKEND_WAVES
    _fill_waves(x, at, time / WEEK_SECONDS, WEEK_WAVES)
    at += 2 * WEEK_WAVES
    if period > 0.0:
        _fill_waves(x, at, time / HOUR_SECONDS / period, PERIOD_WAVES)
        at += 2 * PERIOD_WAVES
    n = z.shape[0]
    for j in range(n):
        x[at + j] = z[j]
    if crossed:
        for j in range(n):
            x[at + n + j] = weekend * z[j]
            x[at + 2 * n + j] = x[1] * z[j]
            x[at + 3 * n + j] = x[2] * z[j]


def is_weekend(time: float) -> bool:
    """Whether a time in seconds since 1970 falls on a Saturday or Sunday.

    >>> is_weekend(0.0), is_weekend(2 * 86_400.0)  # Thursday, Saturday
    (False, True)
    """
    return (time - FIRST_MONDAY_SECONDS) // DAY_SECONDS % 7 >= 5
