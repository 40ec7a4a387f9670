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
    """Every frequency that n rounds can tell apart, from one turn in the window to period 3."""
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

    return [climb(square, t0 + len(y) / 2, score) for square in found]


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


def climb(square: Square, centre: float, score: Callable[[FloatArray, FloatArray], FloatArray]) -> Square:
    """Small moves as long as they raise the score of (half period, offset)."""
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


def spectral(moments: FloatArray, t0: int, count: int) -> list[tuple[Fourier, Square]]:
    """The strongest rhythms in moments v_t = y_t x_t (rounds x coordinates), as a sine and as a square wave.

    Where weights swing as A sin(2 pi f (t + o)), so do the moments; F_j = sum_t v_tj exp(-2 pi i f t) then
    has the square A_j^2 exp(i (4 pi f o - pi)) times a constant, which gives o whatever A is.
    """
    n = len(moments)
    spectrum = np.fft.rfft(moments - moments.mean(axis=0), n=4 * n, axis=0)
    frequency = np.arange(len(spectrum)) / (4 * n)
    power = np.sum(np.abs(spectrum) ** 2, axis=1)
    power[(frequency < 1 / n) | (frequency > 1 / _SHORTEST)] = 0.0
    found: list[tuple[Fourier, Square]] = []
    while len(found) < count and power.max(initial=0.0) > 0:
        top = int(np.argmax(power))
        left, middle, right = np.log(np.maximum(power[top - 1 : top + 2], 1e-300))
        bend = left - 2 * middle + right
        shift = 0.5 * (left - right) / bend if bend < -1e-12 and left > -600 and right > -600 else 0.0
        f = (top + float(np.clip(shift, -0.5, 0.5))) / (4 * n)
        turn = np.exp(-2j * np.pi * f * np.arange(n))
        angle = float(np.angle(np.sum((turn @ (moments - moments.mean(axis=0))) ** 2)))
        offset = (angle + np.pi) / (4 * np.pi * f) - t0
        found.append((Fourier(1 / f), Square(0.5 / f, float(offset % (1 / f)))))
        power[np.abs(frequency - f) < 1.5 / n] = 0.0
    return found
