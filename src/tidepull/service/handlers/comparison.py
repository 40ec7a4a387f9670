"""Candidates beside an agent, and its arms beside each other."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from msgspec import Meta, Struct

from tidepull.agent.agent import Agent
from tidepull.agent.insight import Insight
from tidepull.agent.table import arm_rates
from tidepull.service.auth import Scope
from tidepull.service.handlers.insight import When, finite_or_null, moment_of
from tidepull.service.insight_messages import (
    ArmRateShown,
    BreakdownShown,
    ShadowShown,
    ShadowsShown,
)
from tidepull.service.operations import Call, Operations

OPERATIONS = Operations()


class BreakdownQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """By the values of a field of the context, of decisions since a moment."""

    field: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    since: When | None = None


@OPERATIONS.get("/v1/agents/{name}/shadows", Scope.READ)
async def shadows(call: Call) -> ShadowsShown:
    """What the candidates of the setting `shadow` would have chosen and earned."""
    hosted = await call.agent()
    reports = await hosted.aside(Agent.shadows)
    shown = [
        ShadowShown(
            words=str(report),
            known=report.known,
            significant=report.significant,
            **finite_or_null(asdict(report)),
        )
        for report in reports
    ]
    return ShadowsShown(shadows=shown)


@OPERATIONS.get("/v1/agents/{name}/breakdown", Scope.READ)
async def breakdown(call: Call, query: BreakdownQuery) -> BreakdownShown:
    """Rewards of each arm with intervals, in all or by the values of a context's field."""
    hosted = await call.agent()

    def counted(insight: Insight) -> BreakdownShown:
        rates = arm_rates(insight, query.field, moment_of(insight, query.since))
        schema = insight.state.learning.schema
        fields = [] if schema is None else [f for f in schema.fields if f not in schema.private]
        rows = [ArmRateShown(**finite_or_null(asdict(rate))) for rate in rates]
        return BreakdownShown(field=query.field, fields=fields, rows=rows)

    return await hosted.query_log(counted)
