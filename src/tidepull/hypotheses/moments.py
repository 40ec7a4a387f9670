"""The evidence of seasons of weights on a context, as `scan.contextual_square_evidence` has it, by a compiled kernel.

For each candidate the moments of every block are summed over the window and factored: n d^2 / 2 products, a thirtieth
of what living through the window costs.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.hypotheses.algebra import TWO_PI, compiled
from tidepull.hypotheses.family import Layout, Window
from tidepull.hypotheses.scan import log_evidence
from tidepull.hypotheses.slices import Pieces
from tidepull.hypotheses.spec import NO_CLOCK, SINE, SQUARE
from tidepull.types import FloatArray, IntArray

_PRODUCTS_PER_STEP = 3


class Moments:
    """A window seen by seasons with contexts: what each of them would make of it."""

    def __init__(self, window: Window, layout: Layout, ridge: float) -> None:
        self.n = len(window.t)
        self.centre = float(window.t[self.n // 2])
        block = np.zeros(self.n, np.int64) if layout.shared else window.arm
        self._blocks = 1 if layout.shared else layout.n_arms
        self._given = window.t, block, window.x, window.y, ridge

    def plain(self) -> Pieces[float]:
        """The evidence that nothing changes, the context decides."""
        return float((yield from self._evidence(NO_CLOCK, np.ones(1), np.zeros(1)))[0])

    def sines(self, periods: FloatArray) -> Pieces[FloatArray]:
        """The evidence of (1, cos, sin) x block x context for every period."""
        return (yield from self._evidence(SINE, periods, np.zeros(len(periods))))

    def squares(self, halves: FloatArray, offsets: FloatArray) -> Pieces[FloatArray]:
        """The evidence of two phases x block x context for every pair of half period and offset."""
        return (yield from self._evidence(SQUARE, halves, offsets))

    def _evidence(self, shape: int, periods: FloatArray, offsets: FloatArray) -> Pieces[FloatArray]:
        evidence, q = np.empty(len(periods)), self._given[2].shape[1]
        d, cells = (3 * q if shape == SINE else q), self._blocks * (2 if shape == SQUARE else 1)
        products = self.n * d * d // 2 + min(cells, self.n) * d**3 // 6
        for i in range(len(periods)):
            evidence[i] = _season_evidence(shape, periods[i], offsets[i], cells, d, *self._given)
            yield products // _PRODUCTS_PER_STEP
        return evidence


@compiled
def _season_evidence(
    shape: int,
    period: float,
    offset: float,
    cells: int,
    d: int,
    t: IntArray,
    block: IntArray,
    x: FloatArray,
    y: FloatArray,
    ridge: float,
) -> float:
    q = x.shape[1]
    A, eta, phi = np.zeros((cells, d, d)), np.zeros((cells, d)), np.empty(d)
    seen = np.zeros(cells, np.bool_)
    for i in range(t.shape[0]):
        cell = block[i]
        for j in range(q):
            phi[j] = x[i, j]
        if shape == SQUARE:
            cell = 2 * cell + math.floor((t[i] + offset) / period) % 2
        elif shape == SINE:
            angle = TWO_PI * ((t[i] / period) % 1.0)
            c, s = math.cos(angle), math.sin(angle)
            for j in range(q):
                phi[q + j], phi[2 * q + j] = c * x[i, j], s * x[i, j]
        seen[cell] = True
        for j in range(d):
            u = phi[j]
            eta[cell, j] += u * y[i]
            for k in range(j, d):
                A[cell, j, k] += u * phi[k]
    explained, volume = 0.0, 0.0
    for cell in range(cells):
        if seen[cell]:
            gain, log_det = _factored(A[cell], eta[cell], ridge)
            explained += gain
            volume += log_det - d * math.log(ridge)
    evidence: float = log_evidence(y, y.shape[0], explained, volume)
    return evidence


@compiled
def _factored(A: FloatArray, eta: FloatArray, ridge: float) -> tuple[float, float]:
    """eta' Lam^-1 eta and log |Lam|, Lam = ridge I + A given by its upper half; both are used up."""
    d = eta.shape[0]
    gain, volume = 0.0, 0.0
    for k in range(d):
        pivot = math.sqrt(max(A[k, k] + ridge, 0.5 * ridge))
        volume += 2 * math.log(pivot)
        z = eta[k] / pivot
        gain += z * z
        for j in range(k + 1, d):
            A[k, j] /= pivot
            eta[j] -= z * A[k, j]
        for i in range(k + 1, d):
            u = A[k, i]
            for j in range(i, d):
                A[i, j] -= u * A[k, j]
    return gain, volume
