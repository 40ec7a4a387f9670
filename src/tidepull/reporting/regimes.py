"""What happens between changes: regret per regime, rounds to recover, share of the best arm by phase.

When a world changes is for its problem to say (`protocols.HasRegimes`).
"""

from __future__ import annotations

import numpy as np

from tidepull.errors import TidepullError
from tidepull.problems import problems
from tidepull.protocols import HasRegimes
from tidepull.reporting.frame import Study
from tidepull.types import BoolArray, FloatArray, IntArray

HOLD = 3
"""Good rounds in a row that count as recovery (fewer where a regime is shorter)."""
GOOD = 0.1
"""A round is good when it loses at most this share of what random arms lose in a round on average."""


def regimes_of(study: Study) -> HasRegimes | None:
    """What the problem's parameters say about changes; None where they say nothing."""
    try:
        _, parameters = problems.resolve((study.problem_id, study.parameters))
    except TidepullError:  # the module that registers it is not at hand
        return None
    return parameters if isinstance(parameters, HasRegimes) else None


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
