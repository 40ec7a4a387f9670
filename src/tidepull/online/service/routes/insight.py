"""Looking: what it believes, what it gained, what happened."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated, Any

from msgspec import Meta, Struct

from tidepull.online.lift import Lift
from tidepull.online.service.auth import Scope
from tidepull.online.service.messages import LiftShown, ReportShown
from tidepull.online.service.operation import Call, Operation


class LiftQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Of decisions since a moment, with an interval of that level."""

    since: Annotated[str, Meta(max_length=40)] | None = None
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95


async def explain(call: Call) -> ReportShown:
    """What an agent believes, in words."""
    hosted = await call.agent()
    report = await hosted.elsewhere(lambda agent: agent.explain())
    shown = {
        name: getattr(report, name)
        for name in ("status", "chances", "when", "next", "beliefs", "changes", "alarms")
    }
    return ReportShown(words=str(report), lift=lift_shown(report.lift), **shown)


async def lift(call: Call) -> LiftShown:
    """The gain over the control."""
    query: LiftQuery = call.query
    hosted = await call.agent()
    return lift_shown(await hosted.elsewhere(lambda agent: agent.lift(since=query.since, level=query.level)))


def lift_shown(lift: Lift) -> LiftShown:
    """As it goes over the wire: JSON has no NaN."""
    numbers: dict[str, Any] = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in asdict(lift).items()
    }
    return LiftShown(words=str(lift), known=lift.known, **numbers)


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
]
