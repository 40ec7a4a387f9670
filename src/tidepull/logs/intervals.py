"""Intervals by resampling blocks of neighbouring rows, since neighbours depend on each other."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from tidepull.logs.estimators import Scores
from tidepull.types import FloatArray

RESAMPLES = 1000
_AT_ONCE = 4_000_000


def block_length(rows: int) -> int:
    """Rows of a block where nothing is said: the cube root of their number, upwards.

    >>> block_length(10_000)
    22
    """
    root: float = round(rows ** (1 / 3), 9)
    return max(1, math.ceil(root))


def interval(
    scores: Scores,
    *,
    block: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """Percentiles of the value over circular moving blocks, widened as Student's t for few blocks or heavy ones. NaN
    where all rows say the same: that they do is no sign of certainty."""
    rows = len(scores.top)
    length = min(block_length(rows) if block is None else block, rows)
    count = math.ceil(rows / length) if rows else 0
    if count < 2:
        return float("nan"), float("nan")
    if _all_alike(scores):
        return float("nan"), float("nan")
    varied = scores if scores.noise is None else Scores(scores.top + scores.noise, scores.bottom)
    values = (
        _values(varied, length, count, resamples, np.random.default_rng(seed)) - varied.value + scores.value
    )
    tail = (1 - level) / 2
    wide = math.sqrt(count / (count - 1)) * float(special.stdtrit(_freedom(varied, length, count), tail))
    low, high = np.nanquantile(values, [special.ndtr(wide), special.ndtr(-wide)])
    return float(low), float(high)


def _freedom(scores: Scores, length: int, count: int) -> float:
    """How many normal blocks would tell the spread of a block's sum as well as these do: 2 n / (kurtosis - 1), at most
    n - 1, at least 2. A few heavy blocks say little about the spread."""
    share = scores.top - scores.value * scores.bottom
    share -= share.mean()
    squares = _block_sums(share, length)
    del share
    np.square(squares, out=squares)
    spread = float(squares.mean())
    np.square(squares, out=squares)
    excess = float(squares.mean()) / spread**2 - 1 if spread > 0 else 0.0
    return min(count - 1.0, max(2.0, 2 * count / excess)) if excess > 0 else count - 1.0


def _all_alike(scores: Scores) -> bool:
    parts = (scores.top, scores.bottom, *(() if scores.noise is None else (scores.noise,)))
    return all(part.min() == part.max() for part in parts)


def _values(scores: Scores, length: int, count: int, resamples: int, rng: np.random.Generator) -> FloatArray:
    """The value of every resample: sums over blocks are differences of running sums."""
    top, bottom = (_block_sums(part, length) for part in (scores.top, scores.bottom))
    values = np.empty(resamples)
    step = max(1, _AT_ONCE // count)
    for start in range(0, resamples, step):
        n = min(step, resamples - start)
        blocks = rng.integers(len(scores.top), size=(n, count))
        below = bottom[blocks].sum(axis=1)
        above = top[blocks].sum(axis=1)
        values[start : start + n] = np.divide(above, below, out=np.full(n, np.nan), where=below != 0)
    return values


def _block_sums(part: FloatArray, length: int) -> FloatArray:
    """The sum of the block that begins at each row, going on at the start after the end."""
    running: FloatArray = np.empty(len(part) + length)
    running[0] = 0.0
    running[1 : len(part) + 1] = part
    running[len(part) + 1 :] = part[: length - 1]
    np.cumsum(running, out=running)
    sums: FloatArray = running[length:] - running[:-length]
    return sums
