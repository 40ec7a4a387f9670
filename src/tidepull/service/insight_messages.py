"""What a service tells of an agent, as typed structures: gains, candidates, beliefs and numbers for
charts."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct


class LiftPoint(Struct, kw_only=True):
    """The gain over the control by all decisions until then."""

    until: float
    gain: float | None
    low: float | None
    high: float | None
    relative: float | None
    relative_low: float | None
    relative_high: float | None


class LiftShown(Struct, kw_only=True):
    """The gain over the control; null where it cannot be told yet. `words` says it in a
    sentence, `against` what the control is: "random arms", "your rule", one arm; null: there is
    none. `low` to `high` stays valid however often it is looked at; `fixed_low` to `fixed_high`
    holds for a single planned look."""

    words: str
    known: bool
    level: float
    gain: float | None
    low: float | None
    high: float | None
    relative: float | None
    relative_low: float | None
    relative_high: float | None
    policy: float | None
    control: float | None
    n_policy: int
    n_control: int
    against: str | None
    blocks: int
    fixed_low: float | None
    fixed_high: float | None
    fixed_relative_low: float | None
    fixed_relative_high: float | None
    significant: bool
    of: str
    history: list[LiftPoint] = []


class ReportShown(Struct, kw_only=True):
    """What an agent believes, in plain words; `words` is all of it."""

    words: str
    status: str
    chances: dict[str, float]
    when: list[str]
    next: str | None
    beliefs: list[str]
    changes: list[str]
    lift: LiftShown
    outcomes: list[LiftShown]
    alarms: list[str]


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


class Line(Struct, kw_only=True):
    """For each bin: decisions, those with a reward, its mean and the ends of the mean's 95%
    interval."""

    decisions: list[int]
    rewarded: list[int]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


class Change(Struct, kw_only=True):
    """A change and its time."""

    at: float
    words: str


class HistoryShown(Struct, kw_only=True):
    """Decisions and rewards in bins of `seconds`, by arm and by who chose; bins begin at
    `starts`."""

    since: float
    until: float
    seconds: float
    starts: list[float]
    arms: dict[str, Line]
    groups: dict[str, Line]
    changes: list[Change]


class WaitingShown(Struct, kw_only=True):
    """Delays of rewards. `delay_median` and `delay_late` (95%) are in seconds; `alarms` are
    sentences."""

    decisions: int
    rewarded: int
    pending: int
    expired: int
    delay_median: float | None
    delay_late: float | None
    last_decision: float | None
    last_reward: float | None
    alarms: list[str]


class HeatmapShown(Struct, kw_only=True):
    """For every weekday (from Monday) and hour: the arm that is best with a chance of 99% by what is
    believed now (null: none is), and the number of decisions in the last four weeks."""

    weekdays: list[str]
    arms: list[str]
    best: list[list[str | None]]
    decisions: list[list[int]]


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
