"""One step of the filter of turns as a compiled kernel."""

from __future__ import annotations

import math

import numpy as np

from tidepull.tide.models.algebra import compiled
from tidepull.types import FloatArray, IntArray


@compiled
def take_in(
    arm: int,
    told: FloatArray,
    now: FloatArray,
    moves: FloatArray,
    moves0: FloatArray,
    evidence: FloatArray,
    clear: IntArray,
    memory: float,
    threshold: float,
    beliefs: FloatArray,
) -> None:
    """Every chain c takes in a round in which `arm` did what its turn would make likely with chance
    told[c]; then all look one move ahead (`beliefs`). Two passes over moves, of the order of arms
    squared."""
    chains, n = now.shape
    ahead = np.zeros((chains, n))
    for c in range(chains):
        joint = np.zeros(n)
        for i in range(n):
            share = 0.0
            for j in range(n):
                share += moves[c, i, j]
            share = now[c, i] / share
            for j in range(n):
                joint[j] += share * moves[c, i, j]
        total = 0.0
        for j in range(n):
            joint[j] *= told[c] if j == arm else 1 - told[c]
            total += joint[j]
        evidence[c] = memory * evidence[c] + math.log(total)
        turn = 0
        for j in range(n):
            now[c, j] = joint[j] / total
            if now[c, j] > now[c, turn]:
                turn = j
        for i in range(n):
            for j in range(n):
                moves[c, i, j] += (1 - memory) * (moves0[i, j] - moves[c, i, j])
        if now[c, turn] > threshold:
            if clear[c] >= 0:
                moves[c, clear[c], turn] += 1
            clear[c] = turn
        for i in range(n):
            share = 0.0
            for j in range(n):
                share += moves[c, i, j]
            share = now[c, i] / share
            for j in range(n):
                ahead[c, j] += share * moves[c, i, j]
    top, total = evidence.max(), 0.0
    beliefs[:] = 0.0
    for c in range(chains):
        weight = math.exp(evidence[c] - top)
        total += weight
        for j in range(n):
            beliefs[j] += weight * ahead[c, j]
    for j in range(n):
        beliefs[j] /= total
