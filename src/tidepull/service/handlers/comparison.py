"""Candidates beside an agent, and its arms beside each other."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tidepull.agent.agent import Agent
from tidepull.agent.insight import Insight
from tidepull.agent.table import arm_rates
from tidepull.service.auth import Scope
from tidepull.service.handlers.insight import When, moment_of
from tidepull.service.messages import shown
from tidepull.service.operations import Call, Operations

OPERATIONS = Operations()


class ShadowShown(Struct, kw_only=True):
    """What a candidate would have chosen and earned; null where choices were not random enough.
    `shares` has each arm's share of the agent's decisions and of the candidate's, `share` is the
    candidate's present share of the decisions, `against` what its value (`own`) is compared with."""

    words: str
    policy: str
    decisions: int
    disagreement: float | None
    shares: dict[str, tuple[float, float]]
    known: bool
    significant: bool
    value: float | None
    own: float | None
    gain: float | None
    low: float | None
    high: float | None
    unsupported: float | None
    effective: float
    needed: int | None
    level: float
    share: float
    against: str


class ShadowsShown(Struct, kw_only=True):
    """One report for each candidate."""

    shadows: list[ShadowShown]


class ArmRateShown(Struct, kw_only=True):
    """An arm's decisions (for a value of a field), those with a reward, and their mean with its 95%
    interval."""

    value: str | None
    arm: str
    decisions: int
    rewarded: int
    mean: float | None
    low: float | None
    high: float | None


class BreakdownShown(Struct, kw_only=True):
    """Rewards of each arm, in all or by the values of a field; `fields` can be asked for."""

    field: str | None
    fields: list[str]
    rows: list[ArmRateShown]


class BreakdownQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """By the values of a field of the context, of decisions since a moment."""

    field: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    since: When | None = None


@OPERATIONS.get("/v1/agents/{name}/shadows", Scope.READ)
async def shadows(call: Call) -> ShadowsShown:
    """What the candidates of the setting `shadow` would have chosen and earned."""
    hosted = await call.agent()
    reports = await hosted.aside(Agent.shadows)
    return ShadowsShown(shadows=[shown(ShadowShown, one, words=str(one)) for one in reports])


@OPERATIONS.get("/v1/agents/{name}/breakdown", Scope.READ)
async def breakdown(call: Call, query: BreakdownQuery) -> BreakdownShown:
    """Rewards of each arm with intervals, in all or by the values of a context's field."""
    hosted = await call.agent()

    def counted(insight: Insight) -> BreakdownShown:
        rates = arm_rates(insight, query.field, moment_of(insight, query.since, "since"))
        schema = insight.state.learning.schema
        fields = [] if schema is None else [f for f in schema.fields if f not in schema.private]
        rows = [shown(ArmRateShown, rate) for rate in rates]
        return BreakdownShown(field=query.field, fields=fields, rows=rows)

    return await hosted.query_log(counted)
