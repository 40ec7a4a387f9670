"""What the rounds of trials say; read one trial at a time, kept as thinned curves and averages.

Between changes: regret per regime, rounds to recover, share of the best arm by phase. When a world
changes is for its problem to say (`protocols.HasRegimes`). `examine` reads all that tables, figures
and pages need of a frame; `write_curves` keeps a line of CSV for each trial, its thinned regret in
one field.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np

from tidepull._internal.files import explained, write_whole
from tidepull.errors import TidepullError, WrongStoreError
from tidepull.experiments.loop import Trial
from tidepull.problems import problems
from tidepull.protocols import HasRegimes
from tidepull.reporting.frames import Frame, Group, Study, random_regret
from tidepull.reporting.stats import Panel, Sensitivity, mean_interval, panels, sensitivities
from tidepull.types import BoolArray, FloatArray, IntArray

HOLD = 3
"""Good rounds in a row that count as recovery (fewer where a regime is shorter)."""
GOOD = 0.1
"""A round is good when it loses at most this share of what random arms lose in a round on
average."""


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
    """Rounds from each change to the first of `HOLD` good rounds in a row; nan where the regime
    ends first."""
    good: BoolArray = gaps <= good_gap
    ends = np.append(changes[1:], len(gaps))
    holds = np.minimum(HOLD, ends - changes)
    rounds = np.full(len(changes), np.nan)
    for hold in np.unique(holds):
        starts = _run_starts(good, int(hold))
        regimes = np.flatnonzero(holds == hold)
        first = np.append(starts, len(gaps))[np.searchsorted(starts, changes[regimes])]
        inside = first + hold <= ends[regimes]
        rounds[regimes[inside]] = (first - changes[regimes])[inside]
    return rounds


def _run_starts(good: BoolArray, length: int) -> IntArray:
    """Every round that begins so many good rounds in a row."""
    counted = np.concatenate([[0], np.cumsum(good)])
    return np.flatnonzero(counted[length:] - counted[:-length] == length)


def best_by_phase(gaps: FloatArray, period: float, bins: int = 32) -> FloatArray:
    """Share of rounds in which the best arm was played, by phase of the period; nan for a phase not
    seen."""
    bins = min(bins, int(np.ceil(period)))
    phase = np.floor(np.mod(np.arange(len(gaps)), period) / period * bins).astype(np.int64)
    seen = np.bincount(phase, minlength=bins)
    hits = np.bincount(phase, weights=is_best(gaps), minlength=bins)
    with np.errstate(invalid="ignore"):
        return np.asarray(hits / seen)


def is_best(gaps: FloatArray) -> BoolArray:
    """Rounds in which no other arm was expected to pay more (up to rounding of the stored gaps)."""
    return np.asarray(gaps <= 1e-9)


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
    """Rounds to recover after a change, averaged over trials and over the first or last quarter of
    changes.

    A regime that ends before recovery counts with its whole length, so the averages are lower
    bounds where `recovered` (the share of changes after which the policy recovered at all) is below
    1.
    """

    early: float
    late: float
    recovered: float


@dataclass(frozen=True, slots=True, eq=False)
class GroupTrace:
    """One group: its regret curve, share of best arms, and what happens around changes where there
    are any.

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
class TrialSummary:
    """What is kept of one trial's rounds: thinned regret, share of best arms, regret of the last
    eighth, and what happened around changes where there are any."""

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
    known: Mapping[str, TrialSummary] = MappingProxyType({}),
) -> GroupTrace:
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
    return GroupTrace(
        regret=_band(reader.rounds, np.array([trial.curve for trial in trials])),
        best_share=float(np.mean([trial.best_share for trial in trials])),
        regimes=_band(*_pooled(starts, np.array(regimes))) if regimes else None,
        recovery=_mean_recovery(recoveries) if recoveries else None,
        phases=_phase_band(np.array(phases)) if phases else None,
        late=np.array([trial.late for trial in trials]),
    )


def read_played(
    study: Study, group: Group, random_regret: float | None, points: int
) -> dict[str, TrialSummary]:
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

    def played(self, trial: Trial) -> TrialSummary:
        gaps = np.diff(trial.regret, prepend=0.0)
        regimes, recovery, phases = None, None, None
        if len(self.changes):
            regimes = regret_per_regime(gaps, self.changes)
            if self._good_gap is not None:
                needed = rounds_to_recover(gaps, self.changes, self._good_gap)
                recovery = _recovery(needed, self.changes, self._horizon)
        if self._period is not None and self._period <= self._horizon:
            phases = best_by_phase(gaps, self._period)
        return TrialSummary(
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
    mean, places = values.mean(axis=0), np.asarray(x, dtype=float)
    return Band(places, mean, np.maximum(low, 0), np.minimum(high, most))


def _phase_band(shares: FloatArray) -> Band:
    bins = shares.shape[1]
    return _band((np.arange(bins) + 0.5) / bins, shares, most=1.0)


def _pooled(starts: IntArray, values: FloatArray, most: int = 64) -> tuple[FloatArray, FloatArray]:
    """Neighbouring regimes averaged, an even number at a time so that both kinds of a flip are in
    each."""
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
    table = [(trial.early, trial.late, trial.recovered) for trial in trials]
    return Recovery(*(float(np.mean(column)) for column in zip(*table, strict=True)))


FILE = "curves.csv"
POINTS = 65
"""Of a curve, with the first and the last round."""
_RECOVERY = ("recovered", "recovery_early", "recovery_late")
_COLUMNS = ("hash", "best_share", "late", *_RECOVERY, "points", "curve")


def write_curves(played: Mapping[str, TrialSummary], folder: Path) -> None:
    """Write the lines in the order of the hashes; curves keep six digits, the rest all of them."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for hash in sorted(played):
        one = played[hash]
        recovery_of = one.recovery
        recovery = (
            ("", "", "")
            if recovery_of is None
            else (recovery_of.recovered, recovery_of.early, recovery_of.late)
        )
        curve = " ".join(f"{value:.6g}" for value in one.curve)
        writer.writerow((hash, one.best_share, one.late, *recovery, len(one.curve), curve))
    write_whole(folder / FILE, text.getvalue().encode())


def read_curves(folder: Path) -> dict[str, TrialSummary]:
    """What `write_curves` wrote, by hash; nothing where it wrote nothing."""
    path = folder / FILE
    if not path.is_file():
        return {}
    with explained("read", path), path.open(newline="", encoding="utf-8") as text:
        lines = list(csv.DictReader(text))
    try:
        return {line["hash"]: _played(line) for line in lines}
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise WrongStoreError(f"{path} was edited or cut off ({error!r})") from None


def _played(line: Mapping[str, str]) -> TrialSummary:
    recovery = None
    if line["recovered"]:
        recovered, early, late = (float(line[part]) for part in _RECOVERY)
        recovery = Recovery(early, late, recovered)
    curve = np.array([float(value) for value in line["curve"].split()])
    if len(curve) != int(line["points"]):
        raise ValueError(f"{len(curve)} points instead of {line['points']}")
    return TrialSummary(curve, float(line["best_share"]), float(line["late"]), recovery)


@dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """One study with its curves; `random` is the regret of random arms where it is known, and
    `traces` goes by the groups' names."""

    study: Study
    random: float | None
    traces: Mapping[str, GroupTrace]
    sensitivities: tuple[Sensitivity, ...]

    def bands(self, kind: str) -> dict[str, Band]:
        """The named bands (`regret`, `regimes`, `phases`) of all groups that have them."""
        bands = {name: getattr(trace, kind) for name, trace in self.traces.items()}
        return {name: band for name, band in bands.items() if band is not None}


@dataclass(frozen=True, slots=True, eq=False)
class ExaminedSuite:
    """All studies of one suite, and their scores taken together."""

    name: str
    studies: tuple[Examined, ...]
    panels: tuple[Panel, ...]


def examine(
    frame: Frame, *, on_study: Callable[[Study], None] | None = None
) -> list[ExaminedSuite]:
    """Read the rounds of all groups, study by study, and group the studies by suite."""
    by_suite: dict[str, list[Examined]] = {}
    for study in frame.studies:
        if on_study is not None:
            on_study(study)
        by_suite.setdefault(study.suite, []).append(examined(study))
    return [
        ExaminedSuite(name, tuple(studies), tuple(scored(studies)))
        for name, studies in by_suite.items()
    ]


def examined(
    study: Study,
    *,
    points: int = MOST_POINTS,
    known: Mapping[str, TrialSummary] = MappingProxyType({}),
) -> Examined:
    """Read the rounds of one study's groups, except of trials that are known (by hash, with as many
    points)."""
    random = random_regret(study)
    traces = {
        group.name: read_trace(study, group, random, points=points, known=known)
        for group in study.groups
    }
    return Examined(study, random, traces, tuple(sensitivities(study)))


def scored(studies: Sequence[Examined]) -> list[Panel]:
    """Scores over all the studies for which the regret of random arms is known."""
    normalised: dict[str, dict[str, FloatArray]] = {}
    for one in studies:
        if one.random:
            for group in one.study.contenders:
                share = group.regrets / one.random
                normalised.setdefault(group.name, {})[one.study.title] = share
    return panels(normalised)
