"""What an agent believes, gained and did. A thread reads it from the log, while the agent
decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct

from tidepull.agent import table
from tidepull.agent.insight import Insight, alarms
from tidepull.agent.lift import Lift, lift_of
from tidepull.agent.log import DecisionLog
from tidepull.agent.point_in_time import last_record
from tidepull.agent.rebuild import Pace
from tidepull.agent.records import DecisionGroup
from tidepull.errors import InputError
from tidepull.service.auth import Scope
from tidepull.service.messages import shown
from tidepull.service.operations import Call, FileParts, Operations, RawResponse
from tidepull.types import IntArray

OPERATIONS = Operations()
T = TypeVar("T")
When = Annotated[
    str, Meta(max_length=40, description="seconds since 1970, or ISO text", examples=["2026-07-01"])
]


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
    """Decisions and rewards in bins of `seconds`, by arm and by group; bins begin at
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


class MomentQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """What was known at that moment, rebuilt by a replay of the ledger; without it, what is known
    now. A 429 says how far the replay has come: ask again, and it continues."""

    at: When | None = None


class LiftQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """Of decisions since a moment, with intervals of that level; `points`: also as it grew, at so
    many moments; `outcome`: of an outcome that was reported beside the reward."""

    since: When | None = None
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    points: Annotated[int, Meta(ge=0, le=100)] = 0
    outcome: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


class HistoryQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """A range of time, and the number of bins."""

    since: When | None = None
    until: When | None = None
    bins: Annotated[int, Meta(ge=1, le=1000)] = 120


class ExportQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """The format of the file, and the moment before which decisions were made."""

    format: Literal["jsonl", "csv", "parquet"] = "jsonl"
    before: When | None = None


_TYPES = {
    "jsonl": b"application/jsonl",
    "csv": b"text/csv; charset=utf-8",
    "parquet": b"application/vnd.apache.parquet",
}
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NORMAL = 1.96


@OPERATIONS.get("/v1/agents/{name}/explain", Scope.READ)
async def explain(call: Call, query: MomentQuery) -> ReportShown:
    """Report in plain words, as of now or of an earlier moment."""
    report = await _ask_at(call, query.at, Insight.report)
    outcomes = [_lift_shown(one) for one in report.outcomes]
    gain = _lift_shown(report.lift)
    return shown(ReportShown, report, words=str(report), lift=gain, outcomes=outcomes)


async def _ask_at(call: Call, at: str | None, question: Callable[[Insight], T]) -> T:
    """The answer to a question, at a moment or now."""
    hosted = await call.agent()
    if at is None:
        return await hosted.query_log(question)
    upto = await hosted.query_log(lambda now: last_record(now, moment_of(now, at, "at") or 0.0))
    return await hosted.replay(upto, lambda point: question(point.insight()))


@OPERATIONS.get("/v1/agents/{name}/lift", Scope.READ)
async def lift(call: Call, query: LiftQuery) -> LiftShown:
    """The gain over the control group, with an interval."""
    hosted = await call.agent()

    def measured(insight: Insight) -> LiftShown:
        since = moment_of(insight, query.since, "since")
        lift = _lift_shown(insight.lift(since, query.level, query.outcome))
        if query.points:
            grown = _growth(insight, since, query)
            lift.history = [shown(LiftPoint, gain, until=until) for until, gain in grown]
        return lift

    return await hosted.query_log(measured)


@OPERATIONS.get("/v1/agents/{name}/history", Scope.READ)
async def history(call: Call, query: HistoryQuery) -> HistoryShown:
    """Decisions and rewards over time, by arm and by group, for charts."""
    hosted = await call.agent()

    def drawn(insight: Insight) -> dict[str, Any]:
        since, until = (
            moment_of(insight, query.since, "since"),
            moment_of(insight, query.until, "until"),
        )
        if since is not None and until is not None and until <= since:
            raise InputError("until must be later than since")
        return _series(insight, since, until, query.bins)

    return msgspec.convert(await hosted.query_log(drawn), HistoryShown)


@OPERATIONS.get("/v1/agents/{name}/waiting", Scope.READ)
async def waiting(call: Call) -> WaitingShown:
    """Delays of rewards: pending, expired, how late, and whether they have stopped."""
    hosted = await call.agent()

    def counted(insight: Insight) -> WaitingShown:
        log, now = insight.log(), time.time()
        texts = alarms(log, insight.open, float(log.at[-1])) if len(log) else {}
        return WaitingShown(**_waiting(insight, now), alarms=list(texts.values()))

    return await hosted.query_log(counted)


@OPERATIONS.get("/v1/agents/{name}/heatmap", Scope.READ)
async def heatmap(call: Call, query: MomentQuery) -> HeatmapShown:
    """The arm that is best with a chance of 99% in every hour of the week, now or at a moment."""
    return await _ask_at(call, query.at, _heatmap)


@OPERATIONS.get(
    "/v1/agents/{name}/export",
    Scope.ADMIN,
    content_types=("application/jsonl", "text/csv", "application/vnd.apache.parquet"),
)
async def export(call: Call, query: ExportQuery) -> RawResponse:
    """Every decision with its context and probabilities, as a file."""
    hosted = await call.agent()

    def written(insight: Insight) -> FileParts:
        directory = TemporaryDirectory(prefix="tidepull-export-")
        try:
            path = Path(directory.name) / f"{call.name}.{query.format}"
            before = moment_of(insight, query.before, "before")
            table.write(path, _paced(hosted.agent.rows_aside(insight, before=before)))
            return FileParts(directory, path)
        except BaseException:
            directory.cleanup()
            raise

    file = await hosted.query_log(written)
    name = f'attachment; filename="{call.name}.{query.format}"'.encode()
    headers = ((b"content-disposition", name),)
    return RawResponse(b"", _TYPES[query.format], headers, file=file)


def _paced(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows, made with rests: threads that decide need the interpreter too."""
    pace = Pace()
    for row in rows:
        yield row
        pace.rest()


def moment_of(insight: Insight, moment: str | None, name: str) -> float | None:
    """A moment of a query, in seconds since 1970; `name` is that of its field."""
    if moment is None:
        return None
    try:
        return insight.clock.read(float(moment), name)
    except ValueError:
        return insight.clock.read(moment, name)


def _lift_shown(lift: Lift) -> LiftShown:
    return shown(LiftShown, lift, words=str(lift))


def _series(
    insight: Insight, since: float | None, until: float | None, bins: int
) -> dict[str, Any]:
    """Decisions and rewards by arm and group in bins of equal length from `since` to `until`."""
    log = insight.log()
    since, until = _range(log, since, until)
    width = (until - since) / bins
    part = log.where((log.at >= since) & (log.at <= until))
    place = np.clip(((part.at - since) / width).astype(np.int64), 0, bins - 1)
    arms = {label: _line(part, place, part.arm == n, bins) for n, label in insight.labels.items()}
    groups = {
        group.name.lower(): _line(part, place, part.group == group, bins)
        for group in DecisionGroup
        if (part.group == group).any() or group is DecisionGroup.POLICY
    }
    return {
        "since": since,
        "until": until,
        "seconds": width,
        "starts": (since + width * np.arange(bins)).tolist(),
        "arms": arms,
        "groups": groups,
        "changes": [
            {"at": at, "words": words} for at, words in insight.changes(200) if since <= at <= until
        ],
    }


def _range(log: DecisionLog, since: float | None, until: float | None) -> tuple[float, float]:
    if since is None:
        since = float(log.at.min()) if len(log) else 0.0
    if until is None:
        until = float(log.at.max()) if len(log) else since
    return since, max(until, since + 1.0)


def _line(log: DecisionLog, place: IntArray, rows: Any, bins: int) -> dict[str, Any]:
    """For each bin: decisions, those with a reward, and their mean with its 95% interval (null: not
    known). The page reads the spread from its width, so it is not cut off where rewards end."""
    paid = rows & ~np.isnan(log.reward)
    worth = log.reward[paid]
    n = np.bincount(place[paid], minlength=bins)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(place[paid], weights=worth, minlength=bins) / n
        spread = np.bincount(place[paid], weights=(worth - mean[place[paid]]) ** 2, minlength=bins)
        half = _NORMAL * np.sqrt(spread / (n - 1) / n)
    return {
        "decisions": np.bincount(place[rows], minlength=bins).tolist(),
        "rewarded": n.tolist(),
        "mean": mean.tolist(),
        "low": (mean - half).tolist(),
        "high": (mean + half).tolist(),
    }


def _waiting(insight: Insight, now: float) -> dict[str, Any]:
    """How rewards come: how many wait, how many will not come any more, how long they take."""
    log = insight.log()
    unpaid = np.isnan(log.reward)
    within = insight.state.settings.reward_within
    over = unpaid & (log.at + within < now) if within is not None else np.zeros(len(log), bool)
    delays = (log.paid_at - log.at)[~unpaid]
    quantiles = np.quantile(delays, [0.5, 0.95]).tolist() if len(delays) else [None, None]
    return {
        "decisions": len(log),
        "rewarded": int((~unpaid).sum()),
        "pending": int((unpaid & ~over).sum()),
        "expired": int(over.sum()),
        "delay_median": quantiles[0],
        "delay_late": quantiles[1],
        "last_decision": float(log.at.max()) if len(log) else None,
        "last_reward": float(np.nanmax(log.paid_at)) if len(delays) else None,
    }


def _heatmap(insight: Insight) -> HeatmapShown:
    best = insight.best_of_week().tolist()
    return HeatmapShown(
        weekdays=list(WEEKDAYS),
        arms=list(insight.open.values()),
        best=[[insight.open.get(arm) for arm in day] for day in best],
        decisions=insight.decisions_of_week().tolist(),
    )


def _growth(insight: Insight, since: float | None, query: LiftQuery) -> list[tuple[float, Lift]]:
    """The gain over the control up to each of some moments, the last of which is now."""
    log, against = insight.compared(since, query.outcome)
    if not len(log):
        return []
    ends = np.linspace(float(log.at.min()), float(log.at.max()), query.points + 1)[1:]
    return [(float(end), lift_of(log.where(log.at <= end), query.level, against)) for end in ends]
