"""What happens between changes: regret per regime, rounds to recover, share of the best arm by phase.

Changes and periods are read off the problem's parameters: `half_period` (a flip every h rounds),
`change_at` (one change for good), `period` (a smooth oscillation, which has phases but no changes).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tidepull.types import BoolArray, FloatArray, IntArray

HOLD = 3
"""Good rounds in a row that count as recovery (fewer where a regime is shorter)."""
GOOD = 0.1
"""A round is good when it loses at most this share of what random arms lose in a round on average."""


def changes_of(parameters: Mapping[str, Any], horizon: int) -> IntArray:
    """The rounds in which a new regime begins, counted from 0; empty where nothing changes abruptly."""
    if half_period := parameters.get("half_period"):
        return np.arange(int(half_period), horizon, int(half_period))
    change_at = parameters.get("change_at")
    if change_at is not None and change_at < horizon:
        return np.array([int(change_at)])
    return np.empty(0, np.int64)


def period_of(parameters: Mapping[str, Any]) -> float | None:
    """Rounds after which the world is as it was; None where it never returns."""
    if half_period := parameters.get("half_period"):
        return 2.0 * float(half_period)
    period = parameters.get("period")
    return None if period is None else float(period)


def regret_per_regime(gaps: FloatArray, changes: IntArray) -> FloatArray:
    """Mean regret per round in each regime, the first one before any change included."""
    starts = np.concatenate([[0], changes])
    lengths = np.diff(np.append(starts, len(gaps)))
    return np.asarray(np.add.reduceat(gaps, starts) / lengths)


def rounds_to_recover(gaps: FloatArray, changes: IntArray, good_gap: float) -> FloatArray:
    """Rounds from each change to the first of `HOLD` good rounds in a row; nan where the regime ends first."""
    good: BoolArray = gaps <= good_gap
    ends = np.append(changes[1:], len(gaps))
    holds = np.minimum(HOLD, ends - changes)
    found = np.full(len(changes), np.nan)
    for hold in np.unique(holds):
        starts = _run_starts(good, int(hold))
        regimes = np.flatnonzero(holds == hold)
        first = np.append(starts, len(gaps))[np.searchsorted(starts, changes[regimes])]
        inside = first + hold <= ends[regimes]
        found[regimes[inside]] = (first - changes[regimes])[inside]
    return found


def _run_starts(good: BoolArray, length: int) -> IntArray:
    """Every round that begins so many good rounds in a row."""
    counted = np.concatenate([[0], np.cumsum(good)])
    return np.flatnonzero(counted[length:] - counted[:-length] == length)


def best_by_phase(gaps: FloatArray, period: float, bins: int = 32) -> FloatArray:
    """Share of rounds in which the best arm was played, by phase of the period; nan for a phase not seen."""
    bins = min(bins, int(np.ceil(period)))
    phase = np.floor(np.mod(np.arange(len(gaps)), period) / period * bins).astype(np.int64)
    seen = np.bincount(phase, minlength=bins)
    hits = np.bincount(phase, weights=is_best(gaps), minlength=bins)
    with np.errstate(invalid="ignore"):
        return np.asarray(hits / seen)


def is_best(gaps: FloatArray) -> BoolArray:
    """Rounds in which no other arm was expected to pay more (up to rounding of the stored gaps)."""
    return np.asarray(gaps <= 1e-9)
