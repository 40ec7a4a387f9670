"""What the rounds of a group's trials say; read one trial at a time, kept as thinned curves and averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tidepull.experiments.trial import Trial
from tidepull.reporting.bootstrap import mean_interval
from tidepull.reporting.frame import Group, Study
from tidepull.reporting.regimes import (
    GOOD,
    best_by_phase,
    is_best,
    regimes_of,
    regret_per_regime,
    rounds_to_recover,
)
from tidepull.types import FloatArray, IntArray

MOST_POINTS = 400
LATE = 8
"""The end of a trial is its last eighth."""


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """A mean over trials with its 95% bootstrap band, at each x."""

    x: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True)
class Recovery:
    """Rounds to recover after a change, averaged over trials and over the first or last quarter of changes.

    A regime that ends before recovery counts with its whole length, so the averages are lower bounds where
    `recovered` (the share of changes after which the policy recovered at all) is below 1.
    """

    early: float
    late: float
    recovered: float


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """One group: its regret curve, share of best arms, and what happens around changes where there are any.

    `late` is what each trial adds to its regret in the last eighth of its rounds.
    """

    regret: Band
    best_share: float
    regimes: Band | None
    recovery: Recovery | None
    phases: Band | None
    late: FloatArray


def late_rounds(horizon: int) -> int:
    """How many rounds the end of a trial has."""
    return max(1, horizon // LATE)


def thinned_rounds(horizon: int, most: int = MOST_POINTS) -> IntArray:
    """At most so many rounds (counted from 1), evenly spaced, with the first and the last."""
    return np.unique(np.linspace(1, horizon, min(horizon, most)).round().astype(np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """What is kept of one trial's rounds: thinned regret, share of best arms, regret of the last eighth, and what
    happened around changes where there are any."""

    curve: FloatArray
    best_share: float
    late: float
    recovery: Recovery | None = None
    regimes: FloatArray | None = None
    phases: FloatArray | None = None


def read_trace(
    study: Study,
    group: Group,
    random_regret: float | None,
    *,
    points: int = MOST_POINTS,
    known: Mapping[str, Played] = MappingProxyType({}),
) -> Trace:
    """Read the group's trials; without the regret of random arms, recovery stays unknown.

    `known` are trials (by hash) whose rounds need not be read, thinned to as many points.
    """
    reader = _Reader(study, random_regret, points)
    trials = [
        known[row.hash] if row.hash in known else reader.played(group.read(number))
        for number, row in enumerate(group.rows)
    ]
    starts = np.concatenate([[0], reader.changes]) + 1
    regimes = [trial.regimes for trial in trials if trial.regimes is not None]
    recoveries = [trial.recovery for trial in trials if trial.recovery is not None]
    phases = [trial.phases for trial in trials if trial.phases is not None]
    return Trace(
        regret=_band(reader.rounds, np.array([trial.curve for trial in trials])),
        best_share=float(np.mean([trial.best_share for trial in trials])),
        regimes=_band(*_pooled(starts, np.array(regimes))) if regimes else None,
        recovery=_mean_recovery(recoveries) if recoveries else None,
        phases=_phase_band(np.array(phases)) if phases else None,
        late=np.array([trial.late for trial in trials]),
    )


def read_played(study: Study, group: Group, random_regret: float | None, points: int) -> dict[str, Played]:
    """What is kept of each of a group's trials, by hash."""
    reader = _Reader(study, random_regret, points)
    return {row.hash: reader.played(group.read(number)) for number, row in enumerate(group.rows)}


class _Reader:
    """Knows what to look at in the trials of a study."""

    def __init__(self, study: Study, random_regret: float | None, points: int) -> None:
        known = regimes_of(study)
        self.rounds = thinned_rounds(study.horizon, points)
        self.changes = np.empty(0, np.int64) if known is None else known.changes(study.horizon)
        self._horizon = study.horizon
        self._period = None if known is None else known.returns_after()
        self._good_gap = None if random_regret is None else GOOD * random_regret / study.horizon

    def played(self, trial: Trial) -> Played:
        gaps = np.diff(trial.regret, prepend=0.0)
        regimes, recovery, phases = None, None, None
        if len(self.changes):
            regimes = regret_per_regime(gaps, self.changes)
            if self._good_gap is not None:
                needed = rounds_to_recover(gaps, self.changes, self._good_gap)
                recovery = _recovery(needed, self.changes, self._horizon)
        if self._period is not None and self._period <= self._horizon:
            phases = best_by_phase(gaps, self._period)
        return Played(
            curve=trial.regret[self.rounds - 1],
            best_share=float(is_best(gaps).mean()),
            late=float(gaps[-late_rounds(self._horizon) :].sum()),
            recovery=recovery,
            regimes=regimes,
            phases=phases,
        )


def _band(x: IntArray | FloatArray, values: FloatArray, most: float = np.inf) -> Band:
    """The band of something that is never negative and at most `most`, however few the trials."""
    low, high = mean_interval(values)
    return Band(np.asarray(x, dtype=float), values.mean(axis=0), np.maximum(low, 0), np.minimum(high, most))


def _phase_band(shares: FloatArray) -> Band:
    bins = shares.shape[1]
    return _band((np.arange(bins) + 0.5) / bins, shares, most=1.0)


def _pooled(starts: IntArray, values: FloatArray, most: int = 64) -> tuple[FloatArray, FloatArray]:
    """Neighbouring regimes averaged, an even number at a time so that both kinds of a flip are in each."""
    size = -(-len(starts) // most)
    size += size % 2 if size > 1 else 0
    cuts = np.arange(0, len(starts), size)
    lengths = np.diff(np.append(cuts, len(starts)))
    return np.asarray(starts[cuts], dtype=float), np.add.reduceat(values, cuts, axis=1) / lengths


def _recovery(rounds: FloatArray, changes: IntArray, horizon: int) -> Recovery:
    """Of one trial."""
    lengths = np.diff(np.append(changes, horizon))
    counted = np.where(np.isnan(rounds), lengths, rounds)
    quarter = max(1, len(changes) // 4)
    return Recovery(
        early=float(counted[:quarter].mean()),
        late=float(counted[-quarter:].mean()),
        recovered=float(np.mean(~np.isnan(rounds))),
    )


def _mean_recovery(trials: Sequence[Recovery]) -> Recovery:
    return Recovery(
        early=float(np.mean([trial.early for trial in trials])),
        late=float(np.mean([trial.late for trial in trials])),
        recovered=float(np.mean([trial.recovered for trial in trials])),
    )
