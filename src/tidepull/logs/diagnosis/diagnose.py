"""`diagnose`: what a log says about time, as tidy results."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from tidepull.errors import DataError, ParameterError
from tidepull.logs.diagnosis import advice
from tidepull.logs.diagnosis.cautions import warnings_of
from tidepull.logs.diagnosis.events import MOST, events_of
from tidepull.logs.diagnosis.forgetting import Forgetting, forgetting
from tidepull.logs.diagnosis.hours import Hours, hours_of
from tidepull.logs.diagnosis.mixups import Mixup, Shift, mixups_of, shifts_of
from tidepull.logs.diagnosis.overview import Overview, overview_of
from tidepull.logs.diagnosis.propensities import Calibration, calibration_of
from tidepull.logs.diagnosis.structure import KINDS, Structure, structure_of
from tidepull.logs.diagnosis.testing import SHUFFLES, TimeTest, time_test, without_context
from tidepull.logs.diagnosis.worth import Worth, worth_of
from tidepull.logs.log import Log
from tidepull.logs.notebook import list_html, table_html

_FEWEST = 20
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """All that was found. `kind` names the time structure (a key of `structure.KINDS`), `recommendation` says in
    words what follows, `warnings` what to mind, `used` how a long log was made shorter. `beside_context` is the
    test once contexts are taken out (None without contexts), `structure` None where there is nothing to tell apart."""

    log: Log
    used: str
    overview: Overview
    hours: Hours | None
    shifts: tuple[Shift, ...]
    mixups: tuple[Mixup, ...]
    calibration: Calibration | None
    test: TimeTest
    beside_context: TimeTest | None
    structure: Structure | None
    forgetting: Forgetting
    worth: tuple[Worth, ...]
    warnings: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kind of time structure: `nothing` unless the test says that time matters."""
        return advice.named(self)

    @property
    def verdict(self) -> str:
        """One sentence."""
        return advice.verdict(self)

    @property
    def recommendation(self) -> tuple[str, ...]:
        """What to do, with its uncertainty."""
        return advice.recommendation(self)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Plain rows, as for a data frame: `arms`, `over_time`, `hours`, `forgetting`, `worth`, `measures`, `weights`,
        `changes`, `calibration`."""
        if table not in _TABLES:
            raise ParameterError(f"there is no table '{table}'; one of {', '.join(_TABLES)}")
        return _TABLES[table](self)

    def plain(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "log": {"source": self.log.reading.source, "rows": len(self.log), "arms": self.log.n_arms},
            "notes": [*self.log.reading.notes],
            "used": self.used,
            "kind": self.kind,
            "verdict": self.verdict,
            "recommendation": list(self.recommendation),
            "warnings": list(self.warnings),
            "p": self.test.p,
            "p_beside_context": None if self.beside_context is None else self.beside_context.p,
            "evidence": None if self.structure is None else dict(self.structure.weights),
            "leading": [] if self.structure is None else [list(one) for one in self.structure.leading],
            "gaps": _plain(self.overview.gaps),
            "copies": self.overview.copies,
            "alike": self.overview.alike,
            "shifts": _plain(self.shifts),
            "mixups": _plain(self.mixups),
            **{name: _plain(self.rows(name)) for name in _TABLES},
        }

    def _repr_html_(self) -> str:
        weights = {} if self.structure is None else self.structure.weights
        evidence = [{"kind": KINDS[kind], "share": f"{share:.1%}"} for kind, share in weights.items()]
        minded = [f"Mind: {sentence}" for sentence in self.warnings]
        return list_html(self.recommendation) + table_html(evidence) + list_html(minded)

    def __str__(self) -> str:
        lines = [*self.recommendation, *(f"Mind: {sentence}" for sentence in self.warnings)]
        return advice.listed(lines)


def diagnose(
    log: Log, *, most: int = MOST, shuffles: int = SHUFFLES, seed: int = 0, progress: Progress | None = None
) -> Diagnosis:
    """What a log says about time: whether rewards depend on it, how, and what follows.

    Propensities are used where there are any, but not needed. `most` is the number of events that a longer log is
    made into, `shuffles` that of the test's. `progress(what, done, of)` is told how far it is.
    """
    if most < 100:
        raise ParameterError(f"most must be a whole number of at least 100, got {most!r}")
    if shuffles < 99:
        raise ParameterError(f"shuffles must be a whole number of at least 99, got {shuffles!r}")
    paid = log.reward[~np.isnan(log.reward)]
    if len(paid) < _FEWEST:
        raise DataError(
            f"{log.reading.source} has {len(paid)} rewards; at least {_FEWEST} are needed to say anything about time"
        )
    told = progress or _silent
    events = events_of(log, most, seed)
    varies = bool(paid.min() < paid.max())
    test = time_test(events, shuffles=shuffles, seed=seed, tick=lambda n: told("shuffling", n, shuffles))
    beside = None
    if events.features.shape[1] and varies:
        beside = time_test(
            events, shuffles=shuffles, seed=seed, beside=without_context(events),
            tick=lambda n: told("shuffling beside the contexts", n, shuffles),
        )  # fmt: skip
    structure = None
    if varies:
        structure = structure_of(
            log, events, seed=seed, tick=lambda n: told("weighing hypotheses", n, len(events))
        )
    fading = forgetting(events, seed=seed)
    overview, hours, calibration = overview_of(log), hours_of(log), calibration_of(log)
    shifts, mixups = shifts_of(log), mixups_of(log)
    memory = fading.best.decisions if fading.best is not None else None
    return Diagnosis(
        log=log,
        used=events.said(),
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


def _over_time_rows(found: Diagnosis) -> list[dict[str, Any]]:
    table = found.overview.over_time
    return [
        {
            "start": float(table.starts[n]), "arm": arm, "decisions": int(table.decisions[n, a]),
            "mean": float(table.mean[n, a]), "low": float(table.low[n, a]), "high": float(table.high[n, a]),
        }
        for n in range(len(table.starts))
        for a, arm in enumerate(found.log.arms)
        if table.decisions[n, a]
    ]  # fmt: skip


def _hour_rows(found: Diagnosis) -> list[dict[str, Any]]:
    hours = found.hours
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


def _weight_rows(found: Diagnosis) -> list[dict[str, Any]]:
    structure = found.structure
    if structure is None:
        return []
    return [
        {"row": row, **dict(zip(structure.weights, map(float, weights), strict=True))}
        for row, weights in zip(structure.rows, structure.over_time, strict=True)
    ]


_TABLES: dict[str, Callable[[Diagnosis], list[dict[str, Any]]]] = {
    "arms": lambda found: [asdict(arm) for arm in found.overview.arms],
    "over_time": _over_time_rows,
    "hours": _hour_rows,
    "measures": lambda found: [{"measure": name, "p": p} for name, p in found.test.measures.items()],
    "weights": _weight_rows,
    "changes": lambda found: (
        [] if found.structure is None else [asdict(one) for one in found.structure.changes]
    ),
    "forgetting": lambda found: [asdict(memory) for memory in found.forgetting.memories],
    "worth": lambda found: [asdict(one) for one in found.worth],
    "calibration": lambda found: (
        [] if found.calibration is None else [asdict(one) for one in found.calibration.checks]
    ),
}
