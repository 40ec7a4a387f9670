"""Looking: what it believes, what it gained, what happened. A thread does it, and decisions go on meanwhile."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from tidepull.agent import table
from tidepull.agent.insight import Insight, alarms
from tidepull.agent.lift import Lift
from tidepull.errors import InputError
from tidepull.service import charts
from tidepull.service.auth import Scope
from tidepull.service.messages import (
    HeatmapShown,
    HistoryShown,
    LiftPoint,
    LiftShown,
    ReportShown,
    WaitingShown,
)
from tidepull.service.operation import Call, Operation, Raw

When = Annotated[
    str, Meta(max_length=40, description="seconds since 1970, or ISO text", examples=["2026-07-01"])
]


class LiftQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Of decisions since a moment, with an interval of that level; `points`: also as it grew, at so many moments."""

    since: When | None = None
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    points: Annotated[int, Meta(ge=0, le=100)] = 0


class HistoryQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """From a moment to another one, in so many bins."""

    since: When | None = None
    until: When | None = None
    bins: Annotated[int, Meta(ge=1, le=1000)] = 120


class ExportQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """The format of the file."""

    format: Literal["jsonl", "csv", "parquet"] = "jsonl"


async def explain(call: Call) -> ReportShown:
    """What an agent believes, in words."""
    hosted = await call.agent()
    report = await hosted.look(Insight.report)
    shown = {
        name: getattr(report, name)
        for name in ("status", "chances", "when", "next", "beliefs", "changes", "alarms")
    }
    return ReportShown(words=str(report), lift=lift_shown(report.lift), **shown)


async def lift(call: Call) -> LiftShown:
    """The gain over the control."""
    query: LiftQuery = call.query
    hosted = await call.agent()

    def measured(insight: Insight) -> LiftShown:
        since = _moment(insight, query.since)
        shown = lift_shown(insight.lift(since, query.level))
        if query.points:
            grown = charts.growth(insight, since, query.level, query.points)
            shown.history = [_point(until, lift) for until, lift in grown]
        return shown

    return await hosted.look(measured)


async def history(call: Call) -> HistoryShown:
    """Decisions and rewards over time."""
    query: HistoryQuery = call.query
    hosted = await call.agent()

    def drawn(insight: Insight) -> dict[str, Any]:
        since, until = _moment(insight, query.since), _moment(insight, query.until)
        if since is not None and until is not None and until <= since:
            raise InputError("until must be later than since")
        return charts.series(insight, since, until, query.bins)

    return msgspec.convert(await hosted.look(drawn), HistoryShown)


async def waiting(call: Call) -> WaitingShown:
    """How rewards come."""
    hosted = await call.agent()

    def counted(insight: Insight) -> WaitingShown:
        log, now = insight.log(), time.time()
        said = alarms(log, insight.open, float(log.at[-1])) if len(log) else []
        return WaitingShown(**charts.waiting(insight, now), alarms=said)

    return await hosted.look(counted)


async def heatmap(call: Call) -> HeatmapShown:
    """The best arm of every hour of the week."""
    hosted = await call.agent()
    return HeatmapShown(**await hosted.look(charts.heatmap))


async def export(call: Call) -> Raw:
    """Every decision, as a file; contexts are in it, so it is for admins."""
    query: ExportQuery = call.query
    hosted = await call.agent()

    def written(insight: Insight) -> bytes:
        with TemporaryDirectory() as directory:
            path = Path(directory) / f"{call.name}.{query.format}"
            table.write(path, hosted.agent.rows_aside(insight))
            return path.read_bytes()

    data = await hosted.look(written)
    name = f'attachment; filename="{call.name}.{query.format}"'.encode()
    return Raw(data, _TYPES[query.format], ((b"content-disposition", name),))


_TYPES = {
    "jsonl": b"application/jsonl",
    "csv": b"text/csv; charset=utf-8",
    "parquet": b"application/vnd.apache.parquet",
}


def _moment(insight: Insight, given: str | None) -> float | None:
    if given is None:
        return None
    try:
        return insight.clock.read(float(given))
    except ValueError:
        return insight.clock.read(given)


def lift_shown(lift: Lift) -> LiftShown:
    """As it goes over the wire: JSON has no NaN."""
    return LiftShown(words=str(lift), known=lift.known, **_finite(asdict(lift)))


def _point(until: float, lift: Lift) -> LiftPoint:
    numbers = _finite(asdict(lift))
    return LiftPoint(
        until=until, **{name: numbers[name] for name in LiftPoint.__struct_fields__ if name != "until"}
    )


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


_LIFT = {
    "words": "12.5% more reward than the control (95% interval 3.1 to 21.9).",
    "known": True,
    "level": 0.95,
    "gain": 0.02,
    "low": 0.005,
    "high": 0.035,
    "relative": 0.125,
    "relative_low": 0.031,
    "relative_high": 0.219,
    "policy": 0.18,
    "control": 0.16,
    "n_policy": 9500,
    "n_control": 500,
    "blocks": 48,
}
_REPORT = {
    "words": "17 decisions since 01 June 2026, ...",
    "status": "17 decisions since 01 June 2026, 12 with a reward.",
    "chances": {"blue": 0.4, "green": 0.6},
    "when": ["green is best at all hours."],
    "next": None,
    "beliefs": [],
    "changes": [],
    "lift": _LIFT,
    "alarms": [],
}
_LINE = {"decisions": [9, 8], "rewarded": [9, 5], "mean": [0.2, 0.4], "low": [0.0, 0.1], "high": [0.5, 0.7]}
_HISTORY = {
    "since": 1782907200.0,
    "until": 1782910800.0,
    "seconds": 1800.0,
    "starts": [1782907200.0, 1782909000.0],
    "arms": {"blue": _LINE, "green": _LINE},
    "groups": {"policy": _LINE},
    "changes": [{"at": 1782907300.0, "words": "arm 'green' added"}],
}
_WAITING = {
    "decisions": 17,
    "rewarded": 14,
    "pending": 2,
    "expired": 1,
    "delay_median": 60.0,
    "delay_late": 900.0,
    "last_decision": 1782907200.0,
    "last_reward": 1782907100.0,
    "alarms": [],
}
_HEATMAP = {
    "weekdays": ["Monday"],
    "arms": ["blue", "green"],
    "best": [["green", None]],
    "share": [[0.8, None]],
    "margin": [[0.6, None]],
}
OPERATIONS = [
    Operation(
        "GET",
        "/v1/agents/{name}/explain",
        "explain",
        "What it believes, in plain words.",
        explain,
        Scope.READ,
        ReportShown,
        answered=_REPORT,
    ),
    Operation(
        "GET",
        "/v1/agents/{name}/lift",
        "lift",
        "The gain over the control group, with an interval.",
        lift,
        Scope.READ,
        LiftShown,
        query=LiftQuery,
        answered=_LIFT,
    ),
    Operation(
        "GET",
        "/v1/agents/{name}/history",
        "history",
        "Decisions and rewards over time, by arm and by who chose, for charts.",
        history,
        Scope.READ,
        HistoryShown,
        query=HistoryQuery,
        answered=_HISTORY,
    ),
    Operation(
        "GET",
        "/v1/agents/{name}/waiting",
        "waiting",
        "How rewards come: pending, expired, how late, and whether they have stopped.",
        waiting,
        Scope.READ,
        WaitingShown,
        answered=_WAITING,
    ),
    Operation(
        "GET",
        "/v1/agents/{name}/heatmap",
        "heatmap",
        "The best arm of every hour of the week, and by how much it leads.",
        heatmap,
        Scope.READ,
        HeatmapShown,
        answered=_HEATMAP,
    ),
    Operation(
        "GET",
        "/v1/agents/{name}/export",
        "export",
        "Every decision with its context and chances, as a file.",
        export,
        Scope.ADMIN,
        query=ExportQuery,
        content_types=("application/jsonl", "text/csv", "application/vnd.apache.parquet"),
        answered='{"id": "17-5f0c2d1e", "arm": "green"}\n',
    ),
]
