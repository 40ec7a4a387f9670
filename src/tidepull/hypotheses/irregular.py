"""Where to look for seasons of the user's time: evidence over times that are not evenly spaced.

As in `scan.py`, sufficient statistics of every arm give the log marginal likelihood of each candidate, which only
ranks them. Times are counted in mean gaps between rounds from the first one on, so that n rounds span about n.
From one frequency of an even grid to the next, every row turns by an angle of its own:

    exp(i (w + dw) u) = exp(i w u) exp(i dw u)

so that sines and cosines are made once for a slice, not once for every frequency.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidepull.hypotheses.algebra import TWO_PI, compiled
from tidepull.hypotheses.scan import log_evidence, solve3
from tidepull.hypotheses.slices import Pieces, ranges
from tidepull.types import FloatArray, IntArray

_RIDGE = 0.1
_OVERSAMPLING = 3
_HIGHEST = 2 / 3
_FEWEST = 24
_PRODUCTS_PER_SEARCH = 40_000_000


class Times(NamedTuple):
    """Finished rounds of which the time is known. `u` counts mean gaps (`gap` each) from time `first` on."""

    u: FloatArray
    first: float
    gap: float
    arm: IntArray
    y: FloatArray
    rows: IntArray  # which of the window's rows these are

    def period(self, periods_of_u: float) -> float:
        """A length of u as a length of time."""
        return periods_of_u * self.gap

    def offset(self, half: float, offset: float) -> float:
        """The offset of a square wave of u, as one of the whole time."""
        return (offset * self.gap - self.first) % (2 * half * self.gap)


def times_of(time: FloatArray, arm: IntArray, y: FloatArray) -> Times | None:
    """Times counted in mean gaps; None when there are too few, or all the same."""
    rows = np.flatnonzero(~np.isnan(time))
    if len(rows) < _FEWEST:
        return None
    first, span = float(time[rows].min()), float(np.ptp(time[rows]))
    if span <= 0:
        return None
    gap = span / len(rows)
    return Times((time[rows] - first) / gap, first, gap, arm[rows], y[rows], rows)


def best_swings(times: Times, n_arms: int, count: int) -> Pieces[list[float]]:
    """Periods of u at the highest peaks of the evidence over all frequencies, each climbed to its top."""
    n = len(times.u)
    lowest, step = 1 / n, 1 / (_OVERSAMPLING * n)
    evidence = np.empty(int(_HIGHEST * _OVERSAMPLING * n))
    for start, stop, spent in ranges(len(evidence), n):
        part = evidence[start:stop]
        _scan_swings(lowest + start * step, step, times.u, times.arm, times.y, n_arms, part)
        yield spent
    found = []
    for peak in _peaks(evidence, count):
        centre, width = lowest + peak * step, step
        for _ in range(3):
            fine, begin = np.empty(9), max(centre - width, 0.25 / n)
            _scan_swings(begin, width / 4, times.u, times.arm, times.y, n_arms, fine)
            centre, width = begin + int(np.argmax(fine)) * width / 4, width / 4
        found.append(float(1 / centre))
        yield 27 * n
    return found


def best_rhythms(
    times: Times, x: FloatArray, group: IntArray, groups: int, count: int
) -> Pieces[list[float]]:
    """Periods of u that swing in the products of reward and context, of each group apart."""
    moments = times.y[:, None] * x[times.rows]
    for g in np.unique(group):
        moments[group == g] -= moments[group == g].mean(axis=0)
    n = len(times.u)
    lowest, step = 1 / n, 1 / (_OVERSAMPLING * n)
    highest = min(_HIGHEST * _OVERSAMPLING * n, _PRODUCTS_PER_SEARCH / moments.size)
    power = np.empty(max(int(highest), 3))
    for start, stop, spent in ranges(len(power), 4 * moments.size):
        _scan_moments(lowest + start * step, step, times.u, moments, group, groups, power[start:stop])
        yield spent
    return [float(1 / (lowest + peak * step)) for peak in _peaks(power, count)]


def switch_evidence(halves: FloatArray, offsets: FloatArray, times: Times, n_arms: int) -> FloatArray:
    """Evidence of two phases x arm for every pair of half period and offset of u."""
    evidence = np.empty(len(halves))
    _scan_switches(halves, offsets, times.u, times.arm, times.y, n_arms, evidence)
    return evidence


def _peaks(height: FloatArray, count: int) -> IntArray:
    padded = np.concatenate([[-np.inf], height, [-np.inf]])
    peaks = np.flatnonzero((height >= padded[:-2]) & (height > padded[2:]))
    return peaks[np.argsort(-height[peaks], kind="stable")][:count]


@compiled
def _scan_swings(
    lowest: float, step: float, u: FloatArray, arm: IntArray, y: FloatArray, n_arms: int, evidence: FloatArray
) -> None:
    n = u.shape[0]
    c, s, dc, ds = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        c[i], s[i] = math.cos(TWO_PI * (lowest * u[i] % 1.0)), math.sin(TWO_PI * (lowest * u[i] % 1.0))
        dc[i], ds[i] = math.cos(TWO_PI * (step * u[i] % 1.0)), math.sin(TWO_PI * (step * u[i] % 1.0))
    sums = np.empty((n_arms, 9))
    for f in range(evidence.shape[0]):
        sums[:] = 0.0
        for i in range(n):
            row = sums[arm[i]]
            row[0] += 1.0
            row[1] += c[i]
            row[2] += s[i]
            row[3] += c[i] * c[i]
            row[4] += c[i] * s[i]
            row[5] += s[i] * s[i]
            row[6] += y[i]
            row[7] += y[i] * c[i]
            row[8] += y[i] * s[i]
        for i in range(n):
            c[i], s[i] = c[i] * dc[i] - s[i] * ds[i], s[i] * dc[i] + c[i] * ds[i]
        explained, volume = 0.0, 0.0
        for k in range(n_arms):
            gain, log_det = solve3(sums[k])
            explained += gain
            volume += log_det
        evidence[f] = log_evidence(y, n, explained, volume)


@compiled
def _scan_moments(
    lowest: float,
    step: float,
    u: FloatArray,
    moments: FloatArray,
    group: IntArray,
    groups: int,
    power: FloatArray,
) -> None:
    n, q = moments.shape
    c, s, dc, ds = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        c[i], s[i] = math.cos(TWO_PI * (lowest * u[i] % 1.0)), math.sin(TWO_PI * (lowest * u[i] % 1.0))
        dc[i], ds[i] = math.cos(TWO_PI * (step * u[i] % 1.0)), math.sin(TWO_PI * (step * u[i] % 1.0))
    real, imaginary = np.empty((groups, q)), np.empty((groups, q))
    for f in range(power.shape[0]):
        real[:], imaginary[:] = 0.0, 0.0
        for i in range(n):
            g = group[i]
            for j in range(q):
                real[g, j] += c[i] * moments[i, j]
                imaginary[g, j] += s[i] * moments[i, j]
        for i in range(n):
            c[i], s[i] = c[i] * dc[i] - s[i] * ds[i], s[i] * dc[i] + c[i] * ds[i]
        total = 0.0
        for g in range(groups):
            for j in range(q):
                total += real[g, j] * real[g, j] + imaginary[g, j] * imaginary[g, j]
        power[f] = total


@compiled
def _scan_switches(
    halves: FloatArray, offsets: FloatArray, u: FloatArray, arm: IntArray, y: FloatArray, n_arms: int,
    evidence: FloatArray,
) -> None:  # fmt: skip
    n = u.shape[0]
    sums = np.empty((2 * n_arms, 2))
    for f in range(halves.shape[0]):
        sums[:] = 0.0
        for i in range(n):
            row = sums[2 * arm[i] + math.floor((u[i] + offsets[f]) / halves[f]) % 2]
            row[0] += 1.0
            row[1] += y[i]
        explained, volume = 0.0, 0.0
        for b in range(2 * n_arms):
            explained += sums[b, 1] ** 2 / (sums[b, 0] + _RIDGE)
            volume += math.log((sums[b, 0] + _RIDGE) / _RIDGE)
        evidence[f] = log_evidence(y, n, explained, volume)
