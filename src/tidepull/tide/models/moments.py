"""The evidence of seasons of weights on a context, by a compiled kernel.

For each candidate the moments of every block are summed over the window, block by block and four
rounds at a time, and factored: n d^2 / 2 products, a thirtieth of the cost of a replay.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.tide.jobs import Job
from tidepull.tide.models.algebra import TWO_PI, unordered, unordered_inlined
from tidepull.tide.models.family import Layout, Window
from tidepull.tide.models.scan import log_evidence
from tidepull.tide.models.spec import NO_CLOCK, SINE, SQUARE
from tidepull.types import FloatArray, IntArray

_PRODUCTS_PER_STEP = 9


class Moments:
    """Evidence of seasons with contexts on a window."""

    def __init__(self, window: Window, layout: Layout, ridge: float) -> None:
        self.n = len(window.t)
        self.centre = float(window.t[self.n // 2])
        block = np.zeros(self.n, np.int64) if layout.shared else window.arm
        self._blocks = 1 if layout.shared else layout.n_arms
        self._arguments = window.t, block, window.x, window.y, ridge

    def plain(self) -> Job[float]:
        """The evidence of constant weights on the context."""
        return float((yield from self._evidence(NO_CLOCK, np.ones(1), np.zeros(1)))[0])

    def sines(self, periods: FloatArray) -> Job[FloatArray]:
        """The evidence of (1, cos, sin) x block x context for every period."""
        return (yield from self._evidence(SINE, periods, np.zeros(len(periods))))

    def squares(self, halves: FloatArray, offsets: FloatArray) -> Job[FloatArray]:
        """The evidence of two phases x block x context for every pair of half period and offset."""
        return (yield from self._evidence(SQUARE, halves, offsets))

    def _evidence(self, shape: int, periods: FloatArray, offsets: FloatArray) -> Job[FloatArray]:
        evidence, q = np.empty(len(periods)), self._arguments[2].shape[1]
        d, n_groups = (3 * q if shape == SINE else q), self._blocks * (2 if shape == SQUARE else 1)
        products = self.n * d * d // 2 + min(n_groups, self.n) * d**3 // 6
        for i in range(len(periods)):
            evidence[i] = _season_evidence(
                shape, periods[i], offsets[i], n_groups, d, *self._arguments
            )
            yield products // _PRODUCTS_PER_STEP
        return evidence


@unordered
def _season_evidence(
    shape: int,
    period: float,
    offset: float,
    n_groups: int,
    d: int,
    t: IntArray,
    block: IntArray,
    x: FloatArray,
    y: FloatArray,
    ridge: float,
) -> float:
    order, starts = _by_group(shape, period, offset, n_groups, t, block)
    A, eta, phi = np.empty(d * d), np.empty(d), np.empty((4, d))
    explained, volume = 0.0, 0.0
    for group in range(n_groups):
        if starts[group] == starts[group + 1]:
            continue
        A[:], eta[:] = 0.0, 0.0
        for first in range(starts[group], starts[group + 1], 4):
            phi[:] = 0.0
            for r in range(min(4, starts[group + 1] - first)):
                i = order[first + r]
                _features(shape, t[i] / period, x[i], phi[r])
                for j in range(d):
                    eta[j] += phi[r, j] * y[i]
            _add_four(phi, d, A)
        gain, log_det = _factored(A, eta, ridge, d)
        explained += gain
        volume += log_det - d * math.log(ridge)
    evidence: float = log_evidence(y, y.shape[0], explained, volume)
    return evidence


@unordered
def _by_group(
    shape: int, period: float, offset: float, n_groups: int, t: IntArray, block: IntArray
) -> tuple[IntArray, IntArray]:
    """Rows by weight block, each block's oldest first, and where in this order every block begins."""
    n = t.shape[0]
    group, order, starts = (
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.zeros(n_groups + 1, np.int64),
    )
    for i in range(n):
        group[i] = block[i]
        if shape == SQUARE:
            group[i] = 2 * block[i] + math.floor((t[i] + offset) / period) % 2
        starts[group[i] + 1] += 1
    for c in range(n_groups):
        starts[c + 1] += starts[c]
    place = starts.copy()
    for i in range(n):
        order[place[group[i]]] = i
        place[group[i]] += 1
    return order, starts


@unordered_inlined
def _features(shape: int, turns: float, x: FloatArray, phi: FloatArray) -> None:
    q = x.shape[0]
    for j in range(q):
        phi[j] = x[j]
    if shape == SINE:
        angle = TWO_PI * (turns % 1.0)
        c, s = math.cos(angle), math.sin(angle)
        cosine, sine = phi[q : 2 * q], phi[2 * q : 3 * q]
        for j in range(q):
            cosine[j] = c * x[j]
        for j in range(q):
            sine[j] = s * x[j]


@unordered_inlined
def _add_four(phi: FloatArray, d: int, A: FloatArray) -> None:
    """The upper half of A += phi'phi: four rounds for each time that A is read and written."""
    for j in range(d):
        a, b, c, e = phi[0, j], phi[1, j], phi[2, j], phi[3, j]
        row, p, q, r, s = (
            A[j * d + j : j * d + d],
            phi[0, j:d],
            phi[1, j:d],
            phi[2, j:d],
            phi[3, j:d],
        )
        for k in range(d - j):
            row[k] += (a * p[k] + b * q[k]) + (c * r[k] + e * s[k])


@unordered
def _factored(A: FloatArray, eta: FloatArray, ridge: float, d: int) -> tuple[float, float]:
    """eta' Lam^-1 eta and log |Lam|, Lam = ridge I + A given by its upper half; both are used
    up."""
    gain, volume = 0.0, 0.0
    for k in range(d):
        row = A[k * d : k * d + d]
        pivot = math.sqrt(max(row[k] + ridge, 0.5 * ridge))
        volume += 2 * math.log(pivot)
        z = eta[k] / pivot
        gain += z * z
        for j in range(k + 1, d):
            row[j] /= pivot
            eta[j] -= z * row[j]
        for i in range(k + 1, d):
            u, mine, other = row[i], A[i * d + i : i * d + d], row[i:d]
            for j in range(d - i):
                mine[j] -= u * other[j]
    return gain, volume
