"""`diagnose`: what a log says about time. What happened, whether rewards depend on time, how, and
what follows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from tidepull.errors import DataError, ParameterError
from tidepull.logs.diagnosis import advice
from tidepull.logs.diagnosis.advice import warnings_of
from tidepull.logs.diagnosis.confounding import (
    Calibration,
    Mixup,
    Shift,
    calibration_of,
    mixups_of,
    shifts_of,
)
from tidepull.logs.diagnosis.events import MOST, events_for_models, events_of
from tidepull.logs.diagnosis.memory import Forgetting, Worth, forgetting, worth_of
from tidepull.logs.diagnosis.overview import HourTable, Overview, hours_of, overview_of
from tidepull.logs.diagnosis.structure import KINDS, TimeStructure, structure_of
from tidepull.logs.diagnosis.testing import SHUFFLES, TimeTest, time_test, without_context
from tidepull.logs.log import Log, list_html, table_html

_FEWEST = 20
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """The result of `diagnose`.

    Parameters
    ----------
    log : Log
        The log.
    used : str
        How a long log was averaged to fewer events.
    overview : Overview
        Arms and stretches of time.
    hours : HourTable or None
        Hours of the week. None if times are not dates.
    shifts : tuple of Shift
        How the shares of arms change with time.
    mixups : tuple of Mixup
        Pairs of arms under Simpson's paradox.
    calibration : Calibration or None
        Checks of the propensities. None if there are none.
    test : TimeTest
        The permutation test.
    beside_context : TimeTest or None
        The permutation test after the effect of contexts is removed. None if there are none.
    structure : TimeStructure or None
        The evidence for each kind of time structure. None if rewards do not vary.
    forgetting : Forgetting
        Whether forgetting predicts better.
    worth : tuple of Worth
        What simple rules would have earned.
    warnings : tuple of str
        Sentences about what may mislead.
    """

    log: Log
    used: str
    overview: Overview
    hours: HourTable | None
    shifts: tuple[Shift, ...]
    mixups: tuple[Mixup, ...]
    calibration: Calibration | None
    test: TimeTest
    beside_context: TimeTest | None
    structure: TimeStructure | None
    forgetting: Forgetting
    worth: tuple[Worth, ...]
    warnings: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Kind of time structure: `nothing` unless the test finds that time matters."""
        return advice.kind_of(self)

    @property
    def verdict(self) -> str:
        """The verdict in one sentence."""
        return advice.verdict(self)

    @property
    def recommendation(self) -> tuple[str, ...]:
        """Sentences about what to do, with their uncertainty."""
        return advice.recommendation(self)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return one table as a list of dictionaries, as for a data frame.

        Parameters
        ----------
        table : str
            One of `arms`, `over_time`, `hours`, `forgetting`, `worth`, `measures`, `weights`,
            `changes` and `calibration`.

        Returns
        -------
        list of dict
            The rows of the table.

        Raises
        ------
        ParameterError
            If there is no such table.
        """
        if table not in _TABLES:
            raise ParameterError(f"there is no table '{table}'; one of {', '.join(_TABLES)}")
        return _TABLES[table](self)

    def plain(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        reading, structure = self.log.reading, self.structure
        return {
            "log": {"source": reading.source, "rows": len(self.log), "arms": self.log.n_arms},
            "notes": [*reading.notes],
            "used": self.used,
            "kind": self.kind,
            "verdict": self.verdict,
            "recommendation": list(self.recommendation),
            "warnings": list(self.warnings),
            "p": self.test.p,
            "p_beside_context": None if self.beside_context is None else self.beside_context.p,
            "evidence": None if structure is None else dict(structure.weights),
            "leading": [] if structure is None else [list(one) for one in structure.leading],
            "gaps": _plain(self.overview.gaps),
            "copies": self.overview.copies,
            "alike": self.overview.alike,
            "shifts": _plain(self.shifts),
            "mixups": _plain(self.mixups),
            **{name: _plain(self.rows(name)) for name in _TABLES},
        }

    def _repr_html_(self) -> str:
        weights = {} if self.structure is None else self.structure.weights
        evidence = [{"kind": KINDS[kind], "share": f"{w:.1%}"} for kind, w in weights.items()]
        cautions = [f"Caveat: {sentence}" for sentence in self.warnings]
        return list_html(self.recommendation) + table_html(evidence) + list_html(cautions)

    def __str__(self) -> str:
        lines = [*self.recommendation, *(f"Caveat: {sentence}" for sentence in self.warnings)]
        return advice.bullets(lines)


def diagnose(
    log: Log,
    *,
    most: int = MOST,
    shuffles: int = SHUFFLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Diagnosis:
    """Diagnose whether and how the rewards of a log depend on time.

    Parameters
    ----------
    log : Log
        Decisions with at least 20 rewards. Propensities are used but not needed.
    most : int, default: 10000
        The number of events that a longer log is averaged to.
    shuffles : int, default: 999
        The number of shuffles of the permutation test.
    seed : int, default: 0
        The seed of shuffles, hypotheses and intervals.
    progress : callable, optional
        Function that is called as `progress(what, done, of)` while the diagnosis runs.

    Returns
    -------
    Diagnosis
        The verdict, its evidence, recommendations and warnings.

    Raises
    ------
    DataError
        If the log has fewer than 20 rewards.
    ParameterError
        If `most` is below 100 or `shuffles` below 99.
    """
    if not isinstance(log, Log):
        raise ParameterError(f"log must be a Log, which tidepull.logs.read makes, got {log!r}")
    if most < 100:
        raise ParameterError(f"most must be a whole number of at least 100, got {most!r}")
    if shuffles < 99:
        raise ParameterError(f"shuffles must be a whole number of at least 99, got {shuffles!r}")
    paid = log.reward[~np.isnan(log.reward)]
    if len(paid) < _FEWEST:
        raise DataError(
            f"{log.reading.source} has {len(paid)} rewards; at least {_FEWEST} are needed to say "
            "anything about time"
        )
    report = progress or _silent
    events = events_of(log, most, seed)
    varies = bool(paid.min() < paid.max())
    test = time_test(
        events, shuffles=shuffles, seed=seed, tick=lambda n: report("shuffling", n, shuffles)
    )
    beside = None
    if events.features.shape[1] and varies:
        beside = time_test(
            events, shuffles=shuffles, seed=seed, beside=without_context(events),
            tick=lambda n: report("shuffling beside the contexts", n, shuffles),
        )  # fmt: skip
    structure, used = None, events.description()
    if varies:
        single = events_for_models(log, events, most, seed)
        structure = structure_of(
            log, single, seed=seed, tick=lambda n: report("comparing models", n, len(single))
        )
        if single is not events:
            used += f"; models of time learn {len(single):,} single decisions, drawn at random"
    fading = forgetting(events, seed=seed)
    overview, hours, calibration = overview_of(log), hours_of(log), calibration_of(log)
    shifts, mixups = shifts_of(log), mixups_of(log)
    memory = fading.best.decisions if fading.best is not None else None
    return Diagnosis(
        log=log,
        used=used,
        overview=overview,
        hours=hours,
        shifts=shifts,
        mixups=mixups,
        calibration=calibration,
        test=test,
        beside_context=beside,
        structure=structure,
        forgetting=fading,
        worth=worth_of(log, memory, seed=seed),
        warnings=tuple(warnings_of(log, overview, hours, shifts, mixups, calibration)),
    )


def _silent(_what: str, _done: int, _of: int) -> None:
    pass


def _plain(value: Any) -> Any:
    """JSON values; what is not finite becomes None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _over_time_rows(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    table = diagnosis.overview.over_time
    return [
        {
            "start": float(table.starts[n]), "arm": arm, "decisions": int(table.decisions[n, a]),
            "mean": float(table.mean[n, a]), "low": float(table.low[n, a]), "high": float(table.high[n, a]),
        }
        for n in range(len(table.starts))
        for a, arm in enumerate(diagnosis.log.arms)
        if table.decisions[n, a]
    ]  # fmt: skip


def _hour_rows(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    hours = diagnosis.hours
    if hours is None:
        return []
    return [
        {
            "weekday": day, "hour": hour, "decisions": int(hours.decisions[day, hour]),
            "mean": float(hours.mean[day, hour]), "effective": float(hours.effective[day, hour]),
        }
        for day in range(7)
        for hour in range(24)
        if hours.decisions[day, hour]
    ]  # fmt: skip


def _weight_rows(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    structure = diagnosis.structure
    if structure is None:
        return []
    return [
        {"row": row, **dict(zip(structure.weights, map(float, weights), strict=True))}
        for row, weights in zip(structure.rows, structure.over_time, strict=True)
    ]


_TABLES: dict[str, Callable[[Diagnosis], list[dict[str, Any]]]] = {
    "arms": lambda diagnosis: [asdict(arm) for arm in diagnosis.overview.arms],
    "over_time": _over_time_rows,
    "hours": _hour_rows,
    "measures": lambda diagnosis: [
        {"measure": name, "p": p} for name, p in diagnosis.test.measures.items()
    ],
    "weights": _weight_rows,
    "changes": lambda diagnosis: (
        [] if diagnosis.structure is None else [asdict(one) for one in diagnosis.structure.changes]
    ),
    "forgetting": lambda diagnosis: [asdict(memory) for memory in diagnosis.forgetting.memories],
    "worth": lambda diagnosis: [asdict(one) for one in diagnosis.worth],
    "calibration": lambda diagnosis: (
        []
        if diagnosis.calibration is None
        else [asdict(one) for one in diagnosis.calibration.checks]
    ),
}
