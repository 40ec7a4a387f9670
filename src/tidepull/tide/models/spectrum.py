"""The evidence of `scan.py` for whole grids at once, from sums that all candidates share.

*Sines.* With N and Y the Fourier transforms of the rounds in which an arm was played and of its
rewards,

    sum c = Re N(f), sum c^2 = (n + Re N(2f)) / 2, sum y c = Re Y(f), and so on with -Im for s:

two transforms of an arm serve all frequencies k / 3n. *Squares.* Counts and sums of each arm up to
every round: what falls into a phase is a sum of differences, one for each stretch. Both agree with
`scan.py` up to rounding.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.tide.jobs import Job, ranges
from tidepull.tide.models.algebra import unordered
from tidepull.tide.models.family import Rounds
from tidepull.tide.models.scan import A0, B0, RIDGE, log_evidence, solve3
from tidepull.types import FloatArray, IntArray

_STEPS_OF_AN_ARM = 40
"""Steps for each round and arm: two transforms and the frequencies made of them."""
_STEPS_OF_A_COLUMN = 3


def sine_spectrum(rounds: Rounds, oversampling: int) -> Job[tuple[FloatArray, FloatArray]]:
    """Every frequency k / (oversampling n) from one turn of the window to (not including) n turns
    in n times `oversampling` rounds, and its evidence."""
    n = len(rounds.y)
    size, first = oversampling * n, oversampling
    explained, volume = np.zeros(max(n - first, 0)), np.zeros(max(n - first, 0))
    played = np.unique(rounds.arm[rounds.arm >= 0])
    for start, stop, spent in ranges(len(played), _STEPS_OF_AN_ARM * n):
        mine = rounds.arm == played[start:stop, None]
        counts = np.fft.rfft(mine, n=size, axis=1)
        sums = np.fft.rfft(np.where(mine, rounds.y, 0.0), n=size, axis=1)
        _add_arms(counts, sums, size, first, explained, volume)
        yield spent
    n_rewards = int((rounds.arm >= 0).sum())
    evidence = np.empty(len(explained))
    _combine(rounds.y, n_rewards, explained, volume, evidence)
    return np.arange(first, first + len(evidence)) / size, evidence


@unordered
def _add_arms(
    counts: np.ndarray,
    sums: np.ndarray,
    size: int,
    first: int,
    explained: FloatArray,
    volume: FloatArray,
) -> None:
    """Add what some arms explain at every frequency, and the volumes of their blocks."""
    row = np.empty(9)
    half = counts.shape[1]
    for k in range(counts.shape[0]):
        n = counts[k, 0].real
        for i in range(explained.shape[0]):
            f = first + i
            twice = counts[k, 2 * f] if 2 * f < half else counts[k, size - 2 * f].conjugate()
            row[0], row[1], row[2] = n, counts[k, f].real, -counts[k, f].imag
            row[3], row[4], row[5] = (
                0.5 * (n + twice.real),
                -0.5 * twice.imag,
                0.5 * (n - twice.real),
            )
            row[6], row[7], row[8] = sums[k, 0].real, sums[k, f].real, -sums[k, f].imag
            gain, log_det = solve3(row)
            explained[i] += gain
            volume[i] += log_det


@unordered
def _combine(
    y: FloatArray, n_rewards: int, explained: FloatArray, volume: FloatArray, evidence: FloatArray
) -> None:
    for i in range(evidence.shape[0]):
        evidence[i] = log_evidence(y, n_rewards, explained[i], volume[i])


def square_table(halves: FloatArray, offsets: FloatArray, rounds: Rounds) -> Job[FloatArray]:
    """Evidence of two phases x arm for every pair of half period and offset."""
    n, played = len(rounds.y), np.unique(rounds.arm[rounds.arm >= 0])
    counts, sums = np.zeros((n + 1, len(played))), np.zeros((n + 1, len(played)))
    for start, stop, spent in ranges(len(played), _STEPS_OF_A_COLUMN * n):
        mine = rounds.arm[:, None] == played[start:stop]
        np.cumsum(mine, axis=0, out=counts[1:, start:stop])
        np.cumsum(np.where(mine, rounds.y[:, None], 0.0), axis=0, out=sums[1:, start:stop])
        yield spent
    evidence, n_rewards = np.empty(len(halves)), int((rounds.arm >= 0).sum())
    total = float(rounds.y @ rounds.y)
    each = 200 + len(played) * (10 + int(n / max(float(np.median(halves)), 1.0)))
    for start, stop, spent in ranges(len(halves), each):
        part = slice(start, stop)
        _add_phases(
            halves[part], offsets[part], rounds.t0, counts, sums, n_rewards, total, evidence[part]
        )
        yield spent
    return evidence


@unordered
def _add_phases(
    halves: FloatArray,
    offsets: FloatArray,
    t0: int,
    counts: FloatArray,
    sums: FloatArray,
    n_rewards: int,
    total: float,
    evidence: FloatArray,
) -> None:
    n, arms = counts.shape[0] - 1, counts.shape[1]
    rounds, paid = np.empty(arms), np.empty(arms)
    for f in range(halves.shape[0]):
        half, offset = halves[f], offsets[f]
        rounds[:], paid[:] = 0.0, 0.0
        phase = math.floor((t0 + offset) / half)
        at = 0
        while at < n:
            until = min(max(math.ceil((phase + 1) * half - offset - t0), at), n)
            if phase & 1:
                for k in range(arms):
                    rounds[k] += counts[until, k] - counts[at, k]
                    paid[k] += sums[until, k] - sums[at, k]
            at = until
            phase += 1
        explained, volume = 0.0, 0.0
        for k in range(arms):
            other, left = counts[n, k] - rounds[k], sums[n, k] - paid[k]
            explained += paid[k] ** 2 / (rounds[k] + RIDGE) + left**2 / (other + RIDGE)
            volume += math.log((rounds[k] + RIDGE) * (other + RIDGE) / (RIDGE * RIDGE))
        b = B0 + 0.5 * max(total - explained, 0.0)
        evidence[f] = -(A0 + 0.5 * n_rewards) * math.log(b) - 0.5 * volume


@unordered
def left_over(
    basis: FloatArray, block: IntArray, arm: IntArray, y: FloatArray, blocks: int
) -> FloatArray:
    """Residuals of the rewards after up to three features in every block, by least squares with a
    little ridge."""
    n, d = basis.shape
    sums, weights, rest = np.zeros((blocks, 9)), np.zeros((blocks, 3)), y.copy()
    for i in range(n):
        if arm[i] >= 0:
            row = sums[block[i]]
            for j in range(d):
                row[6 + j] += y[i] * basis[i, j]
                for k in range(j, d):
                    row[j + k + (j > 0)] += basis[i, j] * basis[i, k]
    for b in range(blocks):
        if sums[b, 0] > 0.0:
            row = sums[b]
            u00 = math.sqrt(row[0] + RIDGE)
            u01, u02 = row[1] / u00, row[2] / u00
            u11 = math.sqrt(row[3] + RIDGE - u01 * u01)
            u12 = (row[4] - u01 * u02) / u11
            u22 = math.sqrt(row[5] + RIDGE - u02 * u02 - u12 * u12)
            z0 = row[6] / u00
            z1 = (row[7] - u01 * z0) / u11
            z2 = (row[8] - u02 * z0 - u12 * z1) / u22
            weights[b, 2] = z2 / u22
            weights[b, 1] = (z1 - u12 * weights[b, 2]) / u11
            weights[b, 0] = (z0 - u01 * weights[b, 1] - u02 * weights[b, 2]) / u00
    for i in range(n):
        if arm[i] >= 0:
            for j in range(d):
                rest[i] -= basis[i, j] * weights[block[i], j]
    return rest
