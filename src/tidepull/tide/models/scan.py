"""The evidence of every period on a window of past rounds (as Bretthorst, 1988), all at once.

For each candidate, the log marginal likelihood of the standardised rewards under the conjugate
model

    a_n = a0 + n/2,  b_n = b0 + (sum y^2 - sum over blocks of eta' Lam^-1 eta) / 2
    log p(y) = const - a_n log b_n - (sum over blocks of log |Lam| - d log lam0) / 2

from sufficient statistics alone, a block for each arm (and phase); rounds without a reward
(arm -1, y 0) are skipped. The scan only ranks candidates, which are then replayed through the window
like every model.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.tide.models.algebra import unordered
from tidepull.tide.models.family import Rounds
from tidepull.types import FloatArray, IntArray

RIDGE, A0, B0 = 0.1, 1.0, 0.1


def sine_evidence(frequencies: FloatArray, rounds: Rounds, n_arms: int) -> FloatArray:
    """Evidence of (1, cos, sin) x arm at every frequency (turns per round)."""
    evidence = np.empty(len(frequencies))
    _scan_sines(frequencies, rounds.t0, rounds.arm, rounds.y, n_arms, evidence)
    return evidence


def square_evidence(
    halves: FloatArray, offsets: FloatArray, rounds: Rounds, n_arms: int, phases: int = 2
) -> FloatArray:
    """Evidence of `phases` phases x arm for every pair of length of a phase and offset."""
    evidence = np.empty(len(halves))
    _scan_squares(halves, offsets, phases, rounds.t0, rounds.arm, rounds.y, n_arms, evidence)
    return evidence


@unordered
def _scan_sines(
    frequencies: FloatArray,
    t0: int,
    arm: IntArray,
    y: FloatArray,
    n_arms: int,
    evidence: FloatArray,
) -> None:
    n, n_rewards = y.shape[0], 0
    sums = np.empty((n_arms, 9))
    for i in range(n):
        n_rewards += arm[i] >= 0
    for f in range(frequencies.shape[0]):
        sums[:] = 0.0
        turn = 2 * math.pi * frequencies[f]
        c, s = math.cos(turn * t0), math.sin(turn * t0)
        dc, ds = math.cos(turn), math.sin(turn)
        for i in range(n):
            if arm[i] >= 0:
                row = sums[arm[i]]
                row[0] += 1.0
                row[1] += c
                row[2] += s
                row[3] += c * c
                row[4] += c * s
                row[5] += s * s
                row[6] += y[i]
                row[7] += y[i] * c
                row[8] += y[i] * s
            c, s = c * dc - s * ds, s * dc + c * ds
        explained, volume = 0.0, 0.0
        for k in range(n_arms):
            gain, log_det = solve3(sums[k])
            explained += gain
            volume += log_det
        evidence[f] = log_evidence(y, n_rewards, explained, volume)


@unordered
def solve3(row: FloatArray) -> tuple[float, float]:
    """eta' Lam^-1 eta and log |Lam| - 3 log lam0 of one block of three features."""
    u00 = math.sqrt(row[0] + RIDGE)
    u01, u02 = row[1] / u00, row[2] / u00
    u11 = math.sqrt(max(row[3] + RIDGE - u01 * u01, 0.5 * RIDGE))
    u12 = (row[4] - u01 * u02) / u11
    u22 = math.sqrt(max(row[5] + RIDGE - u02 * u02 - u12 * u12, 0.5 * RIDGE))
    z0 = row[6] / u00
    z1 = (row[7] - u01 * z0) / u11
    z2 = (row[8] - u02 * z0 - u12 * z1) / u22
    return z0 * z0 + z1 * z1 + z2 * z2, 2 * math.log(u00 * u11 * u22) - 3 * math.log(RIDGE)


@unordered
def _scan_squares(
    halves: FloatArray,
    offsets: FloatArray,
    phases: int,
    t0: int,
    arm: IntArray,
    y: FloatArray,
    n_arms: int,
    evidence: FloatArray,
) -> None:
    n, n_rewards = y.shape[0], 0
    sums = np.empty((phases * n_arms, 2))
    for i in range(n):
        n_rewards += arm[i] >= 0
    for f in range(halves.shape[0]):
        sums[:] = 0.0
        phase = math.floor((t0 + offsets[f]) / halves[f])
        border = (phase + 1) * halves[f] - offsets[f]
        for i in range(n):
            while t0 + i >= border:
                phase += 1
                border = (phase + 1) * halves[f] - offsets[f]
            if arm[i] >= 0:
                row = sums[phases * arm[i] + phase % phases]
                row[0] += 1.0
                row[1] += y[i]
        explained, volume = 0.0, 0.0
        for k in range(phases * n_arms):
            explained += sums[k, 1] ** 2 / (sums[k, 0] + RIDGE)
            volume += math.log((sums[k, 0] + RIDGE) / RIDGE)
        evidence[f] = log_evidence(y, n_rewards, explained, volume)


@unordered
def log_evidence(y: FloatArray, n_rewards: int, explained: float, volume: float) -> float:
    """log p(y) up to a constant; `n_rewards` rewards are known."""
    total = 0.0
    for i in range(y.shape[0]):
        total += float(y[i]) * float(y[i])
    b = B0 + 0.5 * max(total - explained, 0.0)
    evidence: float = -(A0 + 0.5 * n_rewards) * math.log(b) - 0.5 * volume
    return evidence
