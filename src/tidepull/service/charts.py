"""An agent's log as numbers for charts: by time and arm, by hour and weekday, the gain as it grew."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.agent.insight import Insight
from tidepull.agent.lift import Lift, lift_of
from tidepull.agent.log import DecisionLog
from tidepull.agent.records import DecisionGroup
from tidepull.types import BoolArray, FloatArray, IntArray

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NORMAL = 1.96


def series(insight: Insight, since: float | None, until: float | None, bins: int) -> dict[str, Any]:
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
        "changes": [{"at": at, "words": words} for at, words in insight.changes(200) if since <= at <= until],
    }


def _range(log: DecisionLog, since: float | None, until: float | None) -> tuple[float, float]:
    if since is None:
        since = float(log.at.min()) if len(log) else 0.0
    if until is None:
        until = float(log.at.max()) if len(log) else since
    return since, max(until, since + 1.0)


def _line(log: DecisionLog, place: IntArray, rows: Any, bins: int) -> dict[str, Any]:
    """For each bin: decisions, those with a reward, and their mean with its 95% interval (null: not known). The page
    reads the spread from its width, so it is not cut off where rewards end."""
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
        "mean": _plain(mean),
        "low": _plain(mean - half),
        "high": _plain(mean + half),
    }


def waiting(insight: Insight, now: float) -> dict[str, Any]:
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


def heatmap(insight: Insight) -> dict[str, Any]:
    """The best arm of every hour of the week over the last four weeks, its share of the policy's draws, and by how
    much that is more than the second best's (null: nothing was decided then)."""
    insight.log()
    week = insight.week()
    open_arms = list(insight.open)
    shares = week[:, :, open_arms]
    known: BoolArray = np.asarray(~np.isnan(shares).any(axis=2))
    ranked = np.sort(np.nan_to_num(shares), axis=2)
    best = np.argmax(np.nan_to_num(shares), axis=2)
    share = ranked[:, :, -1]
    margin = share - (ranked[:, :, -2] if len(open_arms) > 1 else 0.0)
    labels = [insight.open[place] for place in open_arms]
    return {
        "weekdays": list(WEEKDAYS),
        "arms": labels,
        "best": [[labels[best[d, h]] if known[d, h] else None for h in range(24)] for d in range(7)],
        "share": [_plain(np.where(known[d], share[d], np.nan)) for d in range(7)],
        "margin": [_plain(np.where(known[d], margin[d], np.nan)) for d in range(7)],
    }


def growth(insight: Insight, since: float | None, level: float, points: int) -> list[tuple[float, Lift]]:
    """The gain over the control up to each of some moments, the last of which is now."""
    log = insight.log()
    log = log if since is None else log.since(since)
    if not len(log):
        return []
    ends = np.linspace(float(log.at.min()), float(log.at.max()), points + 1)[1:]
    return [(float(end), lift_of(log.where(log.at <= end), level)) for end in ends]


def _plain(values: FloatArray) -> list[float | None]:
    """As JSON has it: what is not finite is null."""
    return [value if np.isfinite(value) else None for value in values.tolist()]
