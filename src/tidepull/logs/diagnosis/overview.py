"""What happened in a log: arms, rewards over time with intervals, gaps, copies, hours and
weekdays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.logs.diagnosis.structure import when
from tidepull.logs.log import WEEKDAYS, Log, hour_of, local_seconds, weekday_of
from tidepull.types import FloatArray, IntArray

SLICES = 40
"""Stretches of time in pictures, at most."""
_PER_SLICE = 50
_Z = 1.959964


@dataclass(frozen=True, slots=True)
class ArmLine:
    """One arm: decisions, their share, rewards, mean reward with its 95% interval, least and mean
    propensity, and how often 1/p says it should be there (`balance`: 1 where propensities are
    right) with its standard error."""

    arm: str
    decisions: int
    share: float
    rewards: int
    mean: float
    low: float
    high: float
    least_propensity: float
    mean_propensity: float
    balance: float
    balance_error: float


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch without decisions: after which row, from when, how many seconds, and how many usual
    steps that is."""

    row: int
    when: str
    length: float
    times_usual: float


@dataclass(frozen=True, slots=True, eq=False)
class OverTime:
    """Equal stretches of time (of rows, where there are no times): where each begins, decisions by
    arm (rows are stretches), mean rewards with 95% intervals, NaN where an arm has none."""

    starts: FloatArray
    decisions: IntArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Overview:
    """`copies` are rows whose id came before (None where the log has no ids), `alike` rows that
    equal an earlier one in all columns."""

    arms: tuple[ArmLine, ...]
    over_time: OverTime
    gaps: tuple[Gap, ...]
    copies: int | None
    alike: int


def overview_of(log: Log) -> Overview:
    """All of it."""
    return Overview(_arms(log), over_time(log), _gaps(log), _copies(log), _alike(log))


def _arms(log: Log) -> tuple[ArmLine, ...]:
    counts = np.bincount(log.arm, minlength=log.n_arms)
    n, mean, low, high = mean_of(log.reward, log.arm, log.n_arms)
    least, usual = np.full(log.n_arms, np.nan), np.full(log.n_arms, np.nan)
    balance, error = np.full(log.n_arms, np.nan), np.full(log.n_arms, np.nan)
    if log.propensity is not None:
        for arm in range(log.n_arms):
            chances = log.propensity[log.arm == arm]
            chances = chances[~np.isnan(chances)]
            if len(chances):
                least[arm], usual[arm] = chances.min(), chances.mean()
        balance, error = balances(log)
    return tuple(
        ArmLine(
            log.arms[a], int(counts[a]), float(counts[a] / len(log)), int(n[a]), float(mean[a]),
            float(low[a]), float(high[a]), float(least[a]), float(usual[a]),
            float(balance[a]), float(error[a]),
        )
        for a in range(log.n_arms)
    )  # fmt: skip


def balances(log: Log) -> tuple[FloatArray, FloatArray]:
    """For each arm the mean of 1/p over its decisions, counted as 0 elsewhere: 1 where propensities
    are right (the share of decisions in which it was on offer, where that varies, is divided out).
    And its standard error."""
    assert log.propensity is not None
    known = ~np.isnan(log.propensity)
    weight = 1 / log.propensity[known]
    arm = log.arm[known]
    offered = np.full(log.n_arms, float(known.sum()))
    if log.available is not None:
        offered = np.maximum(log.available[known].sum(axis=0).astype(float), 1.0)
    mean = np.bincount(arm, weights=weight, minlength=log.n_arms) / offered
    # under right propensities the variance of 1[a]/p is E[1/p - 1]; that over the arm's own rows is
    # E[1[a](1/p - 1)/p]
    variance = np.bincount(arm, weights=weight * (weight - 1), minlength=log.n_arms) / offered
    return mean, np.sqrt(variance / offered)


def sums_by(
    reward: FloatArray, cell: IntArray, cells: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Number, sum and sum of squares of the rewards by cell; a missing reward does not count."""
    paid = ~np.isnan(reward)
    y, place = reward[paid], cell[paid]
    sums, squares = (
        np.asarray(np.bincount(place, weights=power, minlength=cells), float) for power in (y, y**2)
    )
    return np.bincount(place, minlength=cells), sums, squares


def mean_of(
    reward: FloatArray, cell: IntArray, cells: int
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Number and mean of rewards by cell, with a 95% interval; NaN where there are none. Rewards of
    0 and 1 have Wilson's interval, since few clicks are skew."""
    n, sums, squares = sums_by(reward, cell, cells)
    safe = np.maximum(n, 1)
    mean = np.where(n > 0, sums / safe, np.nan)
    if n.any() and (np.isnan(reward) | (reward == 0) | (reward == 1)).all():
        wide = 1 + _Z**2 / safe
        centre = (mean + _Z**2 / (2 * safe)) / wide
        half = _Z / wide * np.sqrt(mean * (1 - mean) / safe + _Z**2 / (4 * safe**2))
        return n, mean, np.clip(centre - half, 0.0, mean), np.clip(centre + half, mean, 1.0)
    variance = (
        np.maximum(squares / safe - np.nan_to_num(mean) ** 2, 0) * safe / np.maximum(n - 1, 1)
    )
    half = np.where(n > 1, _Z * np.sqrt(variance / safe), np.nan)
    return n, mean, mean - half, mean + half


def over_time(log: Log) -> OverTime:
    """Up to forty stretches with fifty decisions each or more on average."""
    count = int(np.clip(len(log) // _PER_SLICE, 1, SLICES))
    along = np.arange(len(log), dtype=float) if log.time is None else log.time
    first, last = float(along[0]), float(along[-1])
    width = (last - first) / count or 1.0
    place = np.minimum(((along - first) / width).astype(np.int64), count - 1)
    cells = count * log.n_arms
    cell = place * log.n_arms + log.arm
    decisions = np.bincount(cell, minlength=cells).reshape(count, -1)
    _, mean, low, high = mean_of(log.reward, cell, cells)
    shape = (count, log.n_arms)
    starts = first + width * np.arange(count)
    return OverTime(starts, decisions, mean.reshape(shape), low.reshape(shape), high.reshape(shape))


def _gaps(log: Log, most: int = 10) -> tuple[Gap, ...]:
    """Steps that are more than a hundred times the usual one, and longer than an hour where times
    are dates."""
    if log.time is None or len(log) < 3:
        return ()
    steps = np.diff(log.time)
    busy = float(np.mean(steps))
    usual = float(np.median(steps)) or busy
    if usual <= 0:
        return ()
    long = np.flatnonzero(steps > max(100 * usual, 20 * busy, 3600 if log.dated else 0))
    longest = long[np.argsort(-steps[long], kind="stable")[:most]]
    return tuple(
        Gap(int(row), when(log, int(row)), float(steps[row]), float(steps[row]) / usual)
        for row in np.sort(longest)
    )


def _copies(log: Log) -> int | None:
    if log.id is None:
        return None
    known = log.id[log.id != 0]
    return len(known) - len(np.unique(known))


def _alike(log: Log) -> int:
    """Rows that equal an earlier one in time, arm, reward, propensity and context."""
    if log.time is None:
        return 0
    mixed = np.zeros(len(log), np.uint64)
    seen = [column.values for column in log.context.values()]
    for column in [log.arm, log.reward, log.time, log.propensity, *seen]:
        if column is not None:
            bits = np.nan_to_num(np.asarray(column, float), nan=-1.5).view(np.uint64)
            mixed = (mixed ^ bits) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
    return len(log) - len(np.unique(mixed))


_HIDES, _ROOM = 0.8, 0.2
"""An arm hides if so much of it lies in hours that hold at most so much of all decisions."""
_FEW_ROWS = 100
_FEWEST_REWARDS, _SURE = 20, 1.96
"""Rewards of an arm in an hour, and standard errors of a difference, for which a best arm is
named."""


@dataclass(frozen=True, slots=True, eq=False)
class HourTable:
    """Weekdays (rows, Monday first) by hours (columns): `decisions`, `mean` reward, and
    `effective`, the number of rows that count for judging other policies, (sum 1/p)^2 / sum 1/p^2
    (NaN without propensities). `by_hour` has each arm's decisions in every hour, `arm_mean` its
    mean reward there with the 95% interval `arm_low` to `arm_high`."""

    decisions: IntArray
    mean: FloatArray
    effective: FloatArray
    by_hour: IntArray
    arm_mean: FloatArray
    arm_low: FloatArray
    arm_high: FloatArray


def hours_of(log: Log) -> HourTable | None:
    """The tables; None where times are no dates."""
    if log.time is None or not log.dated:
        return None
    local = local_seconds(log.time, log.timezone)
    hour, weekday = hour_of(local), weekday_of(local)
    cell = weekday * 24 + hour
    decisions = np.bincount(cell, minlength=168)
    _, mean, _, _ = mean_of(log.reward, cell, 168)
    effective = np.full(168, np.nan)
    if log.propensity is not None:
        known = ~np.isnan(log.propensity)
        weight = 1 / log.propensity[known]
        total, squares = (np.bincount(cell[known], w, 168) for w in (weight, weight**2))
        effective = np.divide(total**2, squares, out=np.zeros(168), where=squares > 0)
    by = hour * log.n_arms + log.arm
    cells = 24 * log.n_arms
    _, *arms = mean_of(log.reward, by, cells)
    return HourTable(
        decisions.reshape(7, 24), mean.reshape(7, 24), effective.reshape(7, 24),
        np.bincount(by, minlength=cells).reshape(24, -1), *(part.reshape(24, -1) for part in arms),
    )  # fmt: skip


def best_by_hour(log: Log) -> IntArray | None:
    """The best arm of each hour on weekdays and on weekends; -1 where it is not clear, None without
    dates."""
    if log.time is None or not log.dated:
        return None
    local = local_seconds(log.time, log.timezone)
    cell = (weekday_of(local) >= 5) * 24 + hour_of(local)
    parts = sums_by(log.reward, cell * log.n_arms + log.arm, 48 * log.n_arms)
    by_hour = zip(*(part.reshape(48, -1) for part in parts), strict=True)
    return np.array([_clearly_best(*hour) for hour in by_hour]).reshape(2, 24)


def _clearly_best(count: IntArray, total: FloatArray, squares: FloatArray) -> int:
    known = np.flatnonzero(count >= _FEWEST_REWARDS)
    if len(known) < 2:
        return -1
    mean = total[known] / count[known]
    error = np.maximum(squares[known] / count[known] - mean**2, 1e-12) / count[known]
    first, second = np.argsort(-mean)[:2]
    sure = mean[first] - mean[second] > _SURE * np.sqrt(error[first] + error[second])
    return int(known[first]) if sure else -1


def hiding(log: Log, hours: HourTable) -> list[str]:
    """Arms that were hardly played but in a few hours, in sentences."""
    sentences = []
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
            sentences.append(
                f"'{log.arms[arm]}' hides: {share[few - 1]:.0%} of its decisions lie in "
                f"{_hours(few)} ({named}), which has {room:.0%} of all decisions; what it earns at "
                "other times is hardly known"
            )
    return sentences


def _hours(few: int) -> str:
    return "one hour of the day" if few == 1 else f"{few} hours of the day"


def blind_spots(hours: HourTable) -> list[str]:
    """Hours of the week about which a log says little, in sentences."""
    known = hours.effective if np.isfinite(hours.effective).any() else hours.decisions.astype(float)
    what = "effective rows" if np.isfinite(hours.effective).any() else "decisions"
    there = hours.decisions > 0
    thin = (known < _FEW_ROWS) & there
    if not thin.any():
        return []
    day, hour = np.unravel_index(int(np.argmin(np.where(thin, known, np.inf))), known.shape)
    return [
        f"{int(thin.sum())} of {int(there.sum())} hours of the week have fewer than {_FEW_ROWS} "
        f"{what} (least: {WEEKDAYS[day]} {hour:02d}:00 with {known[day, hour]:.0f}): nothing can "
        "be said of these by themselves"
    ]
