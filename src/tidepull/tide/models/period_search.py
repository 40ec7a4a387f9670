"""Period search: the best periods of a scan, refined to real numbers, in slices."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from tidepull.tide.jobs import Job, ranges
from tidepull.tide.models.family import Layout, Rounds, Window
from tidepull.tide.models.scan import RIDGE, log_evidence, sine_evidence, square_evidence
from tidepull.tide.models.spectrum import sine_spectrum, square_table
from tidepull.types import FloatArray

Score: TypeAlias = Callable[[FloatArray, FloatArray], Job[FloatArray]]
"""The evidence of square waves (half periods, offsets)."""

MOST_PEAKS = 12
_BEHIND_NOTHING, _BEHIND_THE_BEST, _FROM_BELOW = 6.0, 12.0, 40.0
"""Nats of evidence by which a candidate may be worse than constant rewards and than the best one,
and still be tried: with the prior of one of many candidates its weight is then below a millionth.
The last: the largest gain of hill climbing."""
_SHORTEST = 3.0
_OVERSAMPLING = 3
_STEPS_OF_FFT = 10


def frequencies(n: int) -> FloatArray:
    """Every frequency that n rounds distinguish, from one turn of the window to period 3."""
    step = 1.0 / (_OVERSAMPLING * n)
    lowest = 1.0 / n
    return np.arange(lowest, 1 / _SHORTEST, step)


def squares(n: int) -> tuple[FloatArray, FloatArray]:
    """Half periods and offsets: every whole half period up to 96, then 3% apart; up to 12 offsets
    each."""
    halves, offsets = _squares(n)
    return halves.copy(), offsets.copy()


@lru_cache(maxsize=4)
def _squares(n: int) -> FloatArray:
    return np.array(
        [(h, h * i / min(h, 12)) for h in _half_periods(n) for i in range(min(h, 12))]
    ).T.copy()


def _half_periods(n: int) -> list[int]:
    whole = list(range(2, min(96, n // 2) + 1))
    longer = np.geomspace(97, max(n / 2, 97), max(2, round(math.log(max(n / 2, 97) / 97) / 0.03)))
    return whole + [round(h) for h in longer if n / 2 > 97]


def best_sines(rounds: Rounds, n_arms: int, count: int) -> Job[list[float]]:
    """Periods at the highest peaks of the evidence over all frequencies, each refined by hill
    climbing."""
    if len(frequencies(len(rounds.y))) < 3:
        return []
    grid, evidence = yield from sine_spectrum(rounds, _OVERSAMPLING)
    worth = worth_a_try(plain_evidence(rounds))
    padded = np.concatenate([[-np.inf], evidence, [-np.inf]])
    peaks = np.flatnonzero((evidence >= padded[:-2]) & (evidence > padded[2:]))
    peaks = peaks[np.argsort(-evidence[peaks], kind="stable")][:count]
    if len(peaks):
        peaks = peaks[[worth(evidence[peak], evidence[peaks[0]]) for peak in peaks]]
    found = []
    for peak in peaks:
        centre, width = grid[peak], grid[1] - grid[0]
        for _ in range(3):
            fine = centre + width * np.linspace(-1, 1, 9)
            fine = fine[fine > 0]
            centre = fine[np.argmax(sine_evidence(fine, rounds, n_arms))]
            width /= 4
        found.append(float(1 / centre))
        yield 27 * len(rounds.y)
    return found


def best_squares(rounds: Rounds, n_arms: int, count: int) -> Job[list[tuple[float, float]]]:
    """The best pairs of half period and offset with distinct half periods, each improved by small
    moves."""
    halves, offsets = squares(len(rounds.y))
    evidence = yield from square_table(halves, offsets, rounds)
    chosen: list[tuple[float, float]] = []
    worth = worth_a_try(plain_evidence(rounds))
    for i in np.argsort(-evidence, kind="stable"):
        if not worth(evidence[i], evidence.max()):
            break
        if any(abs(math.log(half / halves[i])) < 0.05 for half, _ in chosen):
            continue
        chosen.append((float(halves[i]), float(offsets[i])))
        if len(chosen) == count:
            break

    def score(h: FloatArray, o: FloatArray) -> Job[FloatArray]:
        yield len(h) * len(rounds.y)
        return square_evidence(h, o, rounds, n_arms)

    found = []
    for half, offset in chosen:
        found.append((yield from climb(half, offset, rounds.t0 + len(rounds.y) / 2, score)))
    return found


def neighbours(
    half: float, offset: float, centre: float, step: float, phases: int = 2
) -> list[tuple[float, float]]:
    """Moves of a square wave: in offset, and in the length of a phase about the round `centre`."""
    moves = [(half, offset + step), (half, offset - step)]
    # A change of half period keeps the boundary nearest to the centre; whole ones are likelier than
    # others.
    near = [x for x in (half + step / 4, half - step / 4) if x >= 1]
    moves += [(x, (centre + offset) * x / half - centre) for x in near]
    whole = [float(round(half) + i) for i in (0, 1, -1)]
    whole = [x for x in whole if x >= 1 and x != half and abs(x - half) <= step]
    moves += [(x, float(round((centre + offset) * x / half - centre))) for x in whole]
    return [(float(h), float(o % (phases * h))) for h, o in moves]


def climb(
    half: float,
    offset: float,
    centre: float,
    score: Score,
    step: float | None = None,
    phases: int = 2,
) -> Job[tuple[float, float]]:
    """Small moves as long as they raise the score of (length of a phase, offset), the first by
    `step` rounds."""
    best = float((yield from score(np.array([half]), np.array([offset])))[0])
    step = max(1.0, half / 8) if step is None else step
    while step >= 0.125:
        options = neighbours(half, offset, centre, step, phases)
        values = yield from score(
            np.array([h for h, _ in options]), np.array([o for _, o in options])
        )
        top = int(np.argmax(values))
        if values[top] > best + 1e-9:
            best, (half, offset) = float(values[top]), options[top]
        else:
            step /= 2
    return half, offset


def worth_a_try(plain: float) -> Callable[[float, float], bool]:
    """Whether a candidate of some evidence may be accepted, given the best one and the evidence
    `plain` of no season."""
    return lambda evidence, best: evidence > max(plain - _BEHIND_NOTHING, best - _BEHIND_THE_BEST)


def worth_climbing(evidence: float, plain: float) -> bool:
    """Whether hill climbing may make a candidate acceptable."""
    return evidence > plain - _FROM_BELOW


def plain_evidence(rounds: Rounds) -> float:
    """The evidence that nothing changes, as `scan.py` has that of seasons."""
    is_rewarded = rounds.arm >= 0
    count = np.bincount(rounds.arm[is_rewarded])
    paid = np.bincount(rounds.arm[is_rewarded], weights=rounds.y[is_rewarded])
    explained, volume = (
        float(np.sum(paid**2 / (count + RIDGE))),
        float(np.sum(np.log1p(count / RIDGE))),
    )
    return float(log_evidence(rounds.y, int(is_rewarded.sum()), explained, volume))


def climb_sine(
    period: float, evidence: float, n: int, score: Callable[[FloatArray], Job[FloatArray]]
) -> Job[tuple[float, float]]:
    """Move a frequency uphill, by steps from a third of 1/n down to a thousandth; the period and
    its evidence."""
    f, best, step = 1 / period, evidence, 0.3 / n
    for _ in range(8):
        near = np.array([g for g in (f - step, f + step) if g > 0.25 / n])
        if not len(near):  # slower than the window can tell
            break
        found = yield from score(1 / near)
        top = int(np.argmax(found))
        if found[top] > best:
            f, best = float(near[top]), float(found[top])
        else:
            step /= 2.5
    return 1 / f, best


def spectral_peaks(
    window: Window, rounds: Rounds, layout: Layout, count: int
) -> Job[list[tuple[float, float]]]:
    """Spectral peaks of the products of reward and context (of each arm by itself, unless arms
    share)."""
    span = len(rounds.y)
    row = window.t - rounds.t0
    kept = row >= 0
    row, products = row[kept], (window.y[:, None] * window.x)[kept]
    width = products.shape[1]
    moments = np.zeros((span, (1 if layout.shared else layout.n_arms) * width))
    first = np.zeros(len(row), np.int64) if layout.shared else window.arm[kept] * width
    moments[row[:, None], first[:, None] + np.arange(width)] = products
    return (yield from spectral(moments, rounds.t0, count))


def spectral(moments: FloatArray, t0: int, count: int) -> Job[list[tuple[float, float]]]:
    """The strongest spectral peaks of moments v_t = y_t x_t (rounds x coordinates): periods, and the
    offsets of square waves of these periods.

    Where weights vary as A sin(2 pi f (t + o)), so do the moments; F_j = sum_t v_tj exp(-2 pi i f
    t) then has the square A_j^2 exp(i (4 pi f o - pi)) times a constant, which gives o whatever A
    is.
    """
    n = len(moments)
    centred = moments - moments.mean(axis=0)
    frequency = np.arange(2 * n + 1) / (4 * n)
    power = np.zeros(len(frequency))
    for start, stop, spent in ranges(moments.shape[1], n * _STEPS_OF_FFT):
        # Single precision is enough to find a peak.
        spectrum = np.fft.rfft(centred[:, start:stop].T.astype(np.float32), n=4 * n, axis=1)
        power += np.sum(spectrum.real**2 + spectrum.imag**2, axis=0)
        yield spent
    power[(frequency < 1 / n) | (frequency > 1 / _SHORTEST)] = 0.0
    found: list[tuple[float, float]] = []
    while len(found) < count and power.max(initial=0.0) > 0:
        top = int(np.argmax(power))
        left, middle, right = np.log(np.maximum(power[top - 1 : top + 2], 1e-300))
        bend = left - 2 * middle + right
        shift = (
            0.5 * (left - right) / bend if bend < -1e-12 and left > -600 and right > -600 else 0.0
        )
        f = (top + float(np.clip(shift, -0.5, 0.5))) / (4 * n)
        turn = np.exp(-2j * np.pi * f * np.arange(n))
        # Real and imaginary parts apart: nothing large is made complex.
        real, imaginary = np.stack([turn.real, turn.imag]) @ centred
        angle = float(np.angle(np.sum((real + 1j * imaginary) ** 2)))
        offset = (angle + np.pi) / (4 * np.pi * f) - t0
        found.append((1 / f, float(offset % (1 / f))))
        power[np.abs(frequency - f) < 1.5 / n] = 0.0
        yield 2 * moments.size
    return found
