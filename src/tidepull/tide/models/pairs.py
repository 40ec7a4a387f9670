"""Two sines at once: the evidence of pairs of frequencies, and hill climbing of both.

A period that is estimated alone is biased by a second one, and then both are a little wrong: after a
few hundred rounds their phases are, too. So the features (1, cos 1, sin 1, cos 2,
sin 2) x arm are judged together, by the evidence of `scan.py`, and both frequencies move uphill in
turns.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.tide.jobs import Job
from tidepull.tide.models.algebra import unordered
from tidepull.tide.models.family import Rounds
from tidepull.tide.models.scan import RIDGE, log_evidence
from tidepull.types import FloatArray, IntArray

_FEATURES = 5
_STEPS_OF_A_ROUND = 8
_MOST_MOVES = 40
_FIRST_STEP, _LAST_STEP = 0.3, 0.004
"""First and last step of a frequency, in turns of the window."""


def pair_evidence(pairs: FloatArray, rounds: Rounds, n_arms: int) -> FloatArray:
    """Evidence of (1, cos 1, sin 1, cos 2, sin 2) x arm for every pair of frequencies (turns per
    round)."""
    evidence = np.empty(len(pairs))
    _scan_pairs(
        np.ascontiguousarray(pairs, float), rounds.t0, rounds.arm, rounds.y, n_arms, evidence
    )
    return evidence


def climb_pair(
    periods: tuple[float, float], rounds: Rounds, n_arms: int
) -> Job[tuple[float, float, float]]:
    """Move both frequencies uphill, by steps from a third of a turn of the window down; periods and
    evidence."""
    n = len(rounds.y)
    at: FloatArray = 1 / np.array(periods)
    best = float(pair_evidence(at[None], rounds, n_arms)[0])
    step = _FIRST_STEP / n
    for _ in range(_MOST_MOVES):
        moves = at + step * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
        moves = moves[(moves > 0.25 / n).all(axis=1)]
        yield len(moves) * n * _STEPS_OF_A_ROUND
        found = pair_evidence(moves, rounds, n_arms)
        top = int(np.argmax(found)) if len(moves) else 0
        if len(moves) and found[top] > best:
            at, best = moves[top], float(found[top])
        else:
            step /= 2.5
            if step < _LAST_STEP / n:
                break
    return float(1 / at[0]), float(1 / at[1]), best


@unordered
def _scan_pairs(
    pairs: FloatArray, t0: int, arm: IntArray, y: FloatArray, n_arms: int, evidence: FloatArray
) -> None:
    n, n_rewards = y.shape[0], 0
    gram, eta = np.empty((n_arms, _FEATURES, _FEATURES)), np.empty((n_arms, _FEATURES))
    phi = np.ones(_FEATURES)
    for i in range(n):
        n_rewards += arm[i] >= 0
    for p in range(pairs.shape[0]):
        gram[:], eta[:] = 0.0, 0.0
        one, two = 2 * math.pi * pairs[p, 0], 2 * math.pi * pairs[p, 1]
        phi[1], phi[2] = math.cos(one * t0), math.sin(one * t0)
        phi[3], phi[4] = math.cos(two * t0), math.sin(two * t0)
        c1, s1, c2, s2 = math.cos(one), math.sin(one), math.cos(two), math.sin(two)
        for i in range(n):
            if arm[i] >= 0:
                A, b = gram[arm[i]], eta[arm[i]]
                for j in range(_FEATURES):
                    b[j] += phi[j] * y[i]
                    for k in range(j + 1):
                        A[j, k] += phi[j] * phi[k]
            phi[1], phi[2] = phi[1] * c1 - phi[2] * s1, phi[2] * c1 + phi[1] * s1
            phi[3], phi[4] = phi[3] * c2 - phi[4] * s2, phi[4] * c2 + phi[3] * s2
        explained, volume = 0.0, 0.0
        for k in range(n_arms):
            if gram[k, 0, 0] > 0.0:
                gain, log_det = _solve(gram[k], eta[k])
                explained += gain
                volume += log_det
        evidence[p] = log_evidence(y, n_rewards, explained, volume)


@unordered
def _solve(A: FloatArray, eta: FloatArray) -> tuple[float, float]:
    """eta' Lam^-1 eta and log |Lam| - d log lam0 of one block, Lam = A + lam0 I by its lower
    triangle."""
    d = A.shape[0]
    gain, volume = 0.0, 0.0
    for j in range(d):
        A[j, j] += RIDGE
    for j in range(d):
        for k in range(j):
            A[j, j] -= A[j, k] * A[j, k]
            eta[j] -= A[j, k] * eta[k]
        pivot = math.sqrt(max(A[j, j], 0.5 * RIDGE))
        A[j, j] = pivot
        eta[j] /= pivot
        for i in range(j + 1, d):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= pivot
        gain += eta[j] * eta[j]
        volume += 2 * math.log(pivot) - math.log(RIDGE)
    return gain, volume
