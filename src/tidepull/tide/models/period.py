"""A season of any period in time: the strongest line of a periodogram.

Rewards e of an arm, less what the calendar explains (least squares), have at a frequency
f the power of the periodogram (Lomb, 1976; Scargle, 1982)

    P(f) = |sum_n e_n exp(-2 pi i f t_n)|^2 / sum_n e_n^2

which is about the log likelihood that a wave of this frequency gains (Bretthorst, 1988). Over its mean
at frequencies nearby it is exponentially distributed in noise, and the sum over K arms has an Erlang
distribution. A line is taken if
noise would have one so strong, at any of the frequencies, with a chance below 1e-4; evidence then decides.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.tide.models.waves import (
    DAY_SECONDS,
    DAY_WAVES,
    FIRST_MONDAY_SECONDS,
    HOUR_SECONDS,
    WEEK_WAVES,
)
from tidepull.types import BoolArray, FloatArray, IntArray

_BINS = 8192
"""Bins of time in the transform; a quarter of them hold rewards, so that frequencies are closer
than the resolution."""
_MOST_ARMS, _FEWEST = 16, 32
"""Arms that are searched, and rewards that each must have."""
_FEWEST_CYCLES = 4.0
"""Cycles that must have been seen."""
_SHORTEST_HOURS = 2.0
_DAY, _WEEK = 24.0, 168.0
"""Hours. Multiples of these frequencies belong to the calendar."""
_SIDE = 1.05 / _WEEK
"""Cycles an hour around a multiple of the day's: a day that changes over the week has lines there."""
_CHANCE = 1e-4
_NEARBY, _NEXT = 96, 6
"""Bins of frequency on either side: those that tell how strong noise is, and those that a line
fills."""


def strongest_period(hours: FloatArray, arms: IntArray, rewards: FloatArray) -> float | None:
    """The period of the strongest line, in hours; None if noise may be all there is.

    Parameters
    ----------
    hours : array of shape (n,)
        Times of the decisions, in hours since 1970.
    arms : array of shape (n,)
        The arms that were played.
    rewards : array of shape (n,)
        What they paid.
    """
    span = float(np.ptp(hours))
    counts = np.bincount(arms)
    often = [
        arm for arm in np.argsort(-counts, kind="stable")[:_MOST_ARMS] if counts[arm] >= _FEWEST
    ]
    if not often or span < _FEWEST_CYCLES * _SHORTEST_HOURS:
        return None
    places = ((hours - hours.min()) * (_BINS // 4 - 1) / span).astype(np.int64)
    powers, calendar = np.zeros(_BINS // 2 + 1), _calendar(hours)
    for arm in often:
        mine = arms == arm
        if not np.ptp(rewards[mine]):
            continue  # what is left is rounding
        errors = _unexplained(rewards[mine], calendar[mine])
        sums = np.bincount(places[mine], weights=errors, minlength=_BINS)
        powers += np.abs(np.fft.rfft(sums)) ** 2 / max(float(errors @ errors), 1e-12)
    frequencies = np.arange(len(powers)) * (_BINS // 4 - 1) / (_BINS * span)
    considered = _considered(frequencies, span, len(hours))
    if not considered.any():
        return None
    powers *= len(often) / _background(powers)
    best, tries = int(np.where(considered, powers, 0.0).argmax()), considered.sum() / 4
    if tries * _erlang_tail(float(powers[best]), len(often)) > _CHANCE:
        return None
    return 1 / (_summit(powers, best) * float(frequencies[1]))


def _summit(powers: FloatArray, best: int) -> float:
    """The place of the largest power between bins, by a parabola.

    >>> _summit(np.array([0.0, 2.0, 3.0, 3.0]), 2)
    2.5
    """
    before, at, after = powers[best - 1 : best + 2].tolist()
    bend = before - 2 * at + after
    return best + (0.5 * (before - after) / bend if bend < 0 else 0.0)


def _calendar(hours: FloatArray) -> FloatArray:
    """A constant, waves of the day and of the week, and the weekend."""
    turns = [hours / _DAY % 1.0 * i for i in range(1, DAY_WAVES + 1)]
    turns += [hours / _WEEK % 1.0 * i for i in range(1, WEEK_WAVES + 1)]
    angles = 2 * math.pi * np.column_stack(turns)
    weekend = (hours * HOUR_SECONDS - FIRST_MONDAY_SECONDS) // DAY_SECONDS % 7 >= 5
    return np.column_stack([np.ones(len(hours)), np.cos(angles), np.sin(angles), weekend])


def _unexplained(rewards: FloatArray, X: FloatArray) -> FloatArray:
    """Rewards less what features explain, by ridge regression."""
    weights = np.linalg.solve(X.T @ X + 1e-3 * np.eye(X.shape[1]), X.T @ rewards)
    return np.asarray(rewards - X @ weights)


def _considered(frequencies: FloatArray, span: float, count: int) -> BoolArray:
    """Frequencies of enough cycles that are no multiples of the calendar's, and not too many for so
    many rewards."""
    most = min(1 / _SHORTEST_HOURS, count / (4 * span))
    inside = (frequencies >= _FEWEST_CYCLES / span) & (frequencies <= most)
    for period, nearby in ((_DAY, max(1 / span, _SIDE)), (_WEEK, 0.25 / span)):
        multiples = frequencies * period
        off = np.abs(multiples - np.round(multiples)) / period
        inside &= off > nearby
    return np.asarray(inside)


def _background(powers: FloatArray) -> FloatArray:
    """The mean power of frequencies nearby, but not next to each: noise that wanders has more power
    at low ones."""
    sums, n = np.concatenate([[0.0], np.cumsum(powers)]), len(powers)
    i = np.arange(n)
    total, count = np.zeros(n), np.zeros(n)
    for sign, reach in ((1, _NEARBY), (-1, _NEXT)):
        low, high = np.maximum(i - reach, 1), np.minimum(i + reach + 1, n)
        total += sign * (sums[high] - sums[low])
        count += sign * (high - low)
    return np.maximum(total / count, 1e-12)


def _erlang_tail(x: float, shape: int) -> float:
    """The chance that the sum of some exponential variables is larger than x.

    >>> round(_erlang_tail(3.0, 1), 4), round(_erlang_tail(3.0, 2), 4)
    (0.0498, 0.1991)
    """
    terms = [-x + k * math.log(max(x, 1e-300)) - math.lgamma(k + 1) for k in range(shape)]
    return float(min(1.0, sum(map(math.exp, terms))))
