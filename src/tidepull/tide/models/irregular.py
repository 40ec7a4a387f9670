"""Where to look for seasons of the user's time: evidence over times that are not evenly spaced.

As in `scan.py`, sufficient statistics of every arm give the log marginal likelihood of each
candidate, which only ranks them. Times are counted in mean gaps between rounds from the first one
on, so that n rounds span about n. From one frequency of an even grid to the next, every row turns
by an angle of its own:

    exp(i (w + dw) u) = exp(i w u) exp(i dw u)

so that sines and cosines are made once for a slice, not once for every frequency. Two frequencies
are taken in one pass over the rounds: these fill more than the first-level cache.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidepull.tide.models.algebra import TWO_PI, compiled, inlined
from tidepull.tide.models.scan import A0, B0, log_evidence, solve3
from tidepull.tide.models.slices import Pieces, ranges
from tidepull.types import FloatArray, IntArray

_RIDGE = 0.1
_OVERSAMPLING = 3
_HIGHEST = 2 / 3
_FEWEST = 24
_PRODUCTS_PER_SEARCH = 40_000_000
_ROUNDS_PER_STEP = 4


class Times(NamedTuple):
    """Finished rounds of which the time is known. `u` counts mean gaps (`gap` each) from time
    `first` on."""

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
    """Periods of u at the highest peaks of the evidence over all frequencies, each climbed to its
    top."""
    n = len(times.u)
    lowest, step = 1 / n, 1 / (_OVERSAMPLING * n)
    evidence = np.empty(int(_HIGHEST * _OVERSAMPLING * n))
    order = np.argsort(times.arm, kind="stable")
    starts = np.searchsorted(times.arm[order], np.arange(n_arms + 1))
    u, y = times.u[order], times.y[order]
    for start, stop, spent in ranges(len(evidence), n // _ROUNDS_PER_STEP):
        _scan_swings(lowest + start * step, step, u, starts, y, evidence[start:stop])
        yield spent
    found = []
    for peak in _peaks(evidence, count):
        centre, width = lowest + peak * step, step
        for _ in range(3):
            fine, begin = np.empty(9), max(centre - width, 0.25 / n)
            _scan_swings(begin, width / 4, u, starts, y, fine)
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
        _scan_moments(
            lowest + start * step, step, times.u, moments, group, groups, power[start:stop]
        )
        yield spent
    return [float(1 / (lowest + peak * step)) for peak in _peaks(power, count)]


def switch_evidence(
    halves: FloatArray, offsets: FloatArray, times: Times, n_arms: int
) -> FloatArray:
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
    lowest: float, step: float, u: FloatArray, starts: IntArray, y: FloatArray, evidence: FloatArray
) -> None:
    """Evidence of frequencies from `lowest` on; rounds stand arm by arm, those of arm k from
    `starts[k]` on."""
    n, many = u.shape[0], evidence.shape[0]
    c, s, dc, ds = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    total, sums, found = 0.0, np.empty((2, 9)), np.empty((2, 2))
    for i in range(n):
        c[i], s[i] = (
            math.cos(TWO_PI * (lowest * u[i] % 1.0)),
            math.sin(TWO_PI * (lowest * u[i] % 1.0)),
        )
        dc[i], ds[i] = (
            math.cos(TWO_PI * (step * u[i] % 1.0)),
            math.sin(TWO_PI * (step * u[i] % 1.0)),
        )
        total += y[i] * y[i]
    for f in range(0, many, 2):
        found[:] = 0.0
        for k in range(starts.shape[0] - 1):
            mine = slice(starts[k], starts[k + 1])
            _sum_and_turn(c[mine], s[mine], dc[mine], ds[mine], y[mine], sums)
            for j in range(2):
                gain, log_det = solve3(sums[j])
                found[j, 0] += gain
                found[j, 1] += log_det
        for j in range(min(2, many - f)):
            b = B0 + 0.5 * max(total - found[j, 0], 0.0)
            evidence[f + j] = -(A0 + 0.5 * n) * math.log(b) - 0.5 * found[j, 1]


@inlined
def _sum_and_turn(
    c: FloatArray, s: FloatArray, dc: FloatArray, ds: FloatArray, y: FloatArray, sums: FloatArray
) -> None:
    """The statistics of one arm at this frequency and the next one; then all of its rows turn to
    the one after."""
    paid, cosines, sines, squares, products, by_cosine, by_sine = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    cosines2, sines2, squares2, products2, by_cosine2, by_sine2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(c.shape[0]):
        a, b, p, q, r = c[i], s[i], dc[i], ds[i], y[i]
        paid += r
        cosines += a
        sines += b
        squares += a * a
        products += a * b
        by_cosine += r * a
        by_sine += r * b
        a, b = a * p - b * q, b * p + a * q
        cosines2 += a
        sines2 += b
        squares2 += a * a
        products2 += a * b
        by_cosine2 += r * a
        by_sine2 += r * b
        c[i], s[i] = a * p - b * q, b * p + a * q
    n = float(c.shape[0])
    _fill(sums[0], n, cosines, sines, squares, products, paid, by_cosine, by_sine)
    _fill(sums[1], n, cosines2, sines2, squares2, products2, paid, by_cosine2, by_sine2)


@inlined
def _fill(
    sums: FloatArray, n: float, cosines: float, sines: float, squares: float, products: float, paid: float,
    by_cosine: float, by_sine: float,
) -> None:  # fmt: skip
    sums[0], sums[1], sums[2] = n, cosines, sines
    sums[3], sums[4], sums[5] = squares, products, n - squares
    sums[6], sums[7], sums[8] = paid, by_cosine, by_sine


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
        c[i], s[i] = (
            math.cos(TWO_PI * (lowest * u[i] % 1.0)),
            math.sin(TWO_PI * (lowest * u[i] % 1.0)),
        )
        dc[i], ds[i] = (
            math.cos(TWO_PI * (step * u[i] % 1.0)),
            math.sin(TWO_PI * (step * u[i] % 1.0)),
        )
    real, imaginary = np.empty((groups, q)), np.empty((groups, q))
    for f in range(power.shape[0]):
        real[:], imaginary[:] = 0.0, 0.0
        for i in range(n):
            a, b, row, in_phase, behind = (
                c[i],
                s[i],
                moments[i],
                real[group[i]],
                imaginary[group[i]],
            )
            for j in range(q):
                in_phase[j] += a * row[j]
                behind[j] += b * row[j]
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
