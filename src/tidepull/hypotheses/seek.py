"""Candidates for birth: the best periods of a scan, refined to real numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tidepull.hypotheses.fourier import Fourier
from tidepull.hypotheses.scan import sine_evidence, square_evidence
from tidepull.hypotheses.square import Square
from tidepull.types import FloatArray, IntArray

_SHORTEST = 3.0
_OVERSAMPLING = 3


def frequencies(n: int) -> FloatArray:
    """Every frequency that n rounds can tell apart, from one and a half turns of the window to period 3."""
    step = 1.0 / (_OVERSAMPLING * n)
    lowest = 1.0 / n
    return np.arange(lowest, 1 / _SHORTEST, step)


def squares(n: int) -> tuple[FloatArray, FloatArray]:
    """Half periods and offsets: every whole half period up to 96, then 3% apart; up to 12 offsets each."""
    table = np.array([(h, h * i / min(h, 12)) for h in _half_periods(n) for i in range(min(h, 12))])
    return table[:, 0].copy(), table[:, 1].copy()


def _half_periods(n: int) -> list[int]:
    whole = list(range(2, min(96, n // 2) + 1))
    longer = np.geomspace(97, max(n / 2, 97), max(2, round(math.log(max(n / 2, 97) / 97) / 0.03)))
    return whole + [round(h) for h in longer if n / 2 > 97]


def best_sines(t0: int, arm: IntArray, y: FloatArray, n_arms: int, count: int) -> list[Fourier]:
    """The highest peaks of the evidence over all frequencies, each climbed to its top."""
    grid = frequencies(len(y))
    if len(grid) < 3:
        return []
    evidence = sine_evidence(grid, t0, arm, y, n_arms)
    padded = np.concatenate([[-np.inf], evidence, [-np.inf]])
    peaks = np.flatnonzero((evidence >= padded[:-2]) & (evidence > padded[2:]))
    peaks = peaks[np.argsort(-evidence[peaks], kind="stable")][:count]
    found = []
    for peak in peaks:
        centre, width = grid[peak], grid[1] - grid[0]
        for _ in range(3):
            fine = centre + width * np.linspace(-1, 1, 9)
            fine = fine[fine > 0]
            centre = fine[np.argmax(sine_evidence(fine, t0, arm, y, n_arms))]
            width /= 4
        found.append(Fourier(float(1 / centre)))
    return found


def best_squares(t0: int, arm: IntArray, y: FloatArray, n_arms: int, count: int) -> list[Square]:
    """The best pairs of half period and offset with distinct half periods, each improved by small moves."""
    halves, offsets = squares(len(y))
    evidence = square_evidence(halves, offsets, t0, arm, y, n_arms)
    found: list[Square] = []
    for i in np.argsort(-evidence, kind="stable"):
        if any(abs(math.log(s.half_period / halves[i])) < 0.05 for s in found):
            continue
        found.append(Square(float(halves[i]), float(offsets[i])))
        if len(found) == count:
            break

    def score(h: FloatArray, o: FloatArray) -> FloatArray:
        return square_evidence(h, o, t0, arm, y, n_arms)

    return [_climb(square, t0 + len(y) / 2, score) for square in found]


def neighbours(square: Square, centre: float, step: float) -> list[Square]:
    """Moves of a square wave: in offset, and in half period about the round `centre`."""
    h, o = square.half_period, square.offset
    moves = [(h, o + step), (h, o - step)]
    # A change of half period keeps the boundary nearest to the centre; whole ones are likelier than others.
    moves += [(x, (centre + o) * x / h - centre) for x in (h + step / 4, h - step / 4) if x >= 1]
    whole = [float(round(h) + i) for i in (0, 1, -1)]
    whole = [x for x in whole if x >= 1 and x != h and abs(x - h) <= step]
    moves += [(x, float(round((centre + o) * x / h - centre))) for x in whole]
    return [Square(float(half), float(offset % (2 * half))) for half, offset in moves]


def _climb(square: Square, centre: float, score: Callable[[FloatArray, FloatArray], FloatArray]) -> Square:
    best = float(score(np.array([square.half_period]), np.array([square.offset]))[0])
    step = max(1.0, square.half_period / 8)
    while step >= 0.125:
        options = neighbours(square, centre, step)
        values = score(np.array([s.half_period for s in options]), np.array([s.offset for s in options]))
        top = int(np.argmax(values))
        if values[top] > best + 1e-9:
            best, square = float(values[top]), options[top]
        else:
            step /= 2
    return square
