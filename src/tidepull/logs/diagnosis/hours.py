"""Hours and weekdays: what was played and earned when, how much a log can tell of each hour, and arms that hide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.logs.diagnosis.overview import mean_of
from tidepull.logs.log import Log
from tidepull.logs.moments import WEEKDAYS, local_seconds
from tidepull.types import FloatArray, IntArray

_HIDES, _ROOM = 0.8, 0.2
"""An arm hides if so much of it lies in hours that hold at most so much of all decisions."""
_FEW = 100


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """Weekdays (rows, Monday first) by hours (columns): `decisions`, `mean` reward, and `effective`, the number of rows
    that count for judging other policies, (sum 1/p)^2 / sum 1/p^2 (NaN without propensities). `by_hour` has each
    arm's decisions in every hour, `arm_mean` its mean reward there with the 95% interval `arm_low` to `arm_high`."""

    decisions: IntArray
    mean: FloatArray
    effective: FloatArray
    by_hour: IntArray
    arm_mean: FloatArray
    arm_low: FloatArray
    arm_high: FloatArray


def hours_of(log: Log) -> Hours | None:
    """The tables; None where times are no dates."""
    if log.time is None or not log.dated:
        return None
    hour, weekday = _places(log)
    cell = weekday * 24 + hour
    decisions = np.bincount(cell, minlength=168)
    _, mean, _, _ = mean_of(log.reward, cell, 168)
    effective = np.full(168, np.nan)
    if log.propensity is not None:
        known = ~np.isnan(log.propensity)
        weight = 1 / log.propensity[known]
        total, squares = (np.bincount(cell[known], weights=w, minlength=168) for w in (weight, weight**2))
        effective = np.divide(total**2, squares, out=np.zeros(168), where=squares > 0)
    by = hour * log.n_arms + log.arm
    cells = 24 * log.n_arms
    _, *arms = mean_of(log.reward, by, cells)
    return Hours(
        decisions.reshape(7, 24), mean.reshape(7, 24), effective.reshape(7, 24),
        np.bincount(by, minlength=cells).reshape(24, -1), *(part.reshape(24, -1) for part in arms),
    )  # fmt: skip


def _places(log: Log) -> tuple[IntArray, IntArray]:
    assert log.time is not None
    local = local_seconds(log.time, log.zone)
    return np.floor(local / 3600).astype(np.int64) % 24, (np.floor(local / 86_400).astype(np.int64) + 3) % 7


def hiding(log: Log, hours: Hours) -> list[str]:
    """Arms that were hardly played but in a few hours, in sentences."""
    said = []
    traffic = hours.by_hour.sum(axis=1) / hours.by_hour.sum()
    for arm in range(log.n_arms):
        own = hours.by_hour[:, arm]
        if own.sum() < 20:
            continue
        order = np.argsort(-own, kind="stable")
        share = np.cumsum(own[order]) / own.sum()
        few = int(np.searchsorted(share, _HIDES)) + 1
        room = float(traffic[order[:few]].sum())
        if room <= _ROOM and few <= 6:
            named = ", ".join(f"{hour:02d}:00" for hour in np.sort(order[:few]))
            said.append(
                f"'{log.arms[arm]}' hides: {share[few - 1]:.0%} of its decisions lie in {_hours(few)} ({named}), "
                f"which has {room:.0%} of all decisions; what it earns at other times is hardly known"
            )
    return said


def _hours(few: int) -> str:
    return "one hour of the day" if few == 1 else f"{few} hours of the day"


def blind_spots(hours: Hours) -> list[str]:
    """Hours of the week about which a log says little, in sentences."""
    known = hours.effective if np.isfinite(hours.effective).any() else hours.decisions.astype(float)
    what = "effective rows" if np.isfinite(hours.effective).any() else "decisions"
    there = hours.decisions > 0
    thin = (known < _FEW) & there
    if not thin.any():
        return []
    day, hour = np.unravel_index(int(np.argmin(np.where(thin, known, np.inf))), known.shape)
    return [
        f"{int(thin.sum())} of {int(there.sum())} hours of the week have fewer than "
        f"{_FEW} {what} (least: {WEEKDAYS[day]} {hour:02d}:00 with {known[day, hour]:.0f}): nothing can be said "
        "of these by themselves"
    ]
