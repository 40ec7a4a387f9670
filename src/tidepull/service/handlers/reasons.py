"""Single decisions: what was known when they were made, and why an arm was taken."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tidepull.agent.insight import Insight
from tidepull.agent.point_in_time import PointInTime, latest_decisions
from tidepull.agent.records import Record
from tidepull.agent.served import ServedAgent
from tidepull.service.auth import Scope
from tidepull.service.handlers.insight import When, moment_of
from tidepull.service.messages import DecisionId, shown
from tidepull.service.operations import Call, Operations

OPERATIONS = Operations()


class DecisionReason(Struct, kw_only=True):
    """A decision, each arm's share of the policy's draws, and why the arm was taken."""

    id: str
    at: str
    arm: str
    group: Literal["policy", "control", "warmup", "imported"]
    propensity: float
    reward: float | None
    context: dict[str, Any] | None
    chances: dict[str, float]
    why: str


class DecisionsShown(Struct, kw_only=True):
    """The last decisions, latest first."""

    decisions: list[DecisionReason]


class WhatIfShown(Struct, kw_only=True):
    """Each arm's chance to be best had a field of the context had another value."""

    field: str
    value: Any
    chances: dict[str, float]


class DecisionWhyShown(Struct, kw_only=True):
    """A decision as it was known when it was made. `same`: the replay made the same decision."""

    decision: DecisionReason
    same: bool
    what_if: list[WhatIfShown]


class DecisionsQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Decisions until a moment, `limit` of them at most."""

    until: When | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 20


class WhyQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """The decision of that id."""

    id: DecisionId


@OPERATIONS.get("/v1/agents/{name}/decisions", Scope.ADMIN)
async def list_decisions(call: Call, query: DecisionsQuery) -> DecisionsShown:
    """The last decisions until a moment, latest first, and why each arm was taken."""
    hosted = await call.agent()

    def listed(insight: Insight) -> DecisionsShown:
        until = moment_of(insight, query.until, "until")
        decisions = hosted.agent.decisions_aside(insight, until, query.limit)
        return DecisionsShown(decisions=[_reason(one.row, one.why) for one in decisions])

    return await hosted.query_log(listed)


def _reason(row: dict[str, Any], why: str) -> DecisionReason:
    names = (name for name in DecisionReason.__struct_fields__ if name != "why")
    return DecisionReason(why=why, **{name: row[name] for name in names})


@OPERATIONS.get("/v1/agents/{name}/why", Scope.ADMIN)
async def why(call: Call, query: WhyQuery) -> DecisionWhyShown:
    """Why a decision took its arm: what was believed then, and the chances in other contexts."""
    hosted = await call.agent()
    record = await hosted.ask(partial(ServedAgent.find_decision, id=query.id))
    return await hosted.replay(record.seq - 1, lambda point: _why(point, record, query.id))


def _why(point: PointInTime, record: Record, id: str) -> DecisionWhyShown:
    same = point.repeat(record)
    what_if = [shown(WhatIfShown, one) for one in point.what_if(record)]
    (decision,) = latest_decisions(point.insight(), lambda _: id, None, 1)
    return DecisionWhyShown(
        decision=_reason(decision.row, decision.why), same=same, what_if=what_if
    )
