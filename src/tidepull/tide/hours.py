"""Which arm is best at which hour, as the leading hypothesis of the user's time sees it, in
calendar words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.tide.models.bank import HypothesisBank
from tidepull.tide.models.notes import blank
from tidepull.tide.models.spec import SQUARE, Spec
from tidepull.tide.models.wall_clock import DAY, WEEK, WallClock, weekday
from tidepull.types import IntArray

_DAYS = {"every day": range(7), "on weekdays": range(5), "on weekends": range(5, 7)}


@dataclass(frozen=True, slots=True)
class HourSpan:
    """An arm, and the hours of some days in which it is best: from `start` up to `stop`, perhaps
    past midnight."""

    arm: int
    start: int
    stop: int
    days: str

    def words(self, name: str | None = None) -> str:
        """One line that a person understands.

        >>> HourSpan(2, 18, 23, "on weekdays").words("red")
        'red is best from 18:00 to 23:00 on weekdays'
        """
        name = f"arm {self.arm}" if name is None else name
        if self.start == self.stop:
            return f"{name} is best at all hours {self.days}"
        return f"{name} is best from {self.start:02d}:00 to {self.stop:02d}:00 {self.days}"

    def __str__(self) -> str:
        return self.words()


def is_daily(spec: Spec) -> bool:
    """Whether a hypothesis tells hours apart: one of the calendar, or a period of the clock within
    1% of a day."""
    period = spec.periods[0] * (2 if spec.shapes[0] == SQUARE else 1)
    return spec.family == "calendar" or (spec.family == "clock" and abs(period / DAY - 1) < 0.01)


def monday_before(time: float) -> float:
    """Midnight of the Monday at or before a time in seconds since 1970.

    >>> monday_before(5 * 86_400.0) / 86_400  # from a Tuesday
    4.0
    """
    return time - time % DAY - weekday(time) * DAY


def best_arms(bank: HypothesisBank, m: int, latest: float) -> IntArray:
    """The best arm under hypothesis m in the middle of every hour (columns) of the week of
    `latest`, Monday first, for a context as usual."""
    layout = bank.layout
    monday = monday_before(latest)
    X = np.zeros((layout.n_arms, layout.context_dim))
    X[:, 0] = 1.0
    table = np.empty((7, 24), np.int64)
    for i, time in enumerate(np.arange(monday + 1800, monday + WEEK, 3600.0)):
        moment = blank(0, layout.n_arms, float(time))
        WallClock(layout.n_arms).look(moment)
        table[i // 24, i % 24] = np.argmax(bank.outlook(m, moment, X)[0])
    return table


def spans(table: IntArray) -> tuple[HourSpan, ...]:
    """The table as few spans: weekdays and weekends apart where they differ; of days that differ,
    the usual one. Hours at which no arm is best have the entry -1."""
    usual = {name: _usual(table[list(days)]) for name, days in _DAYS.items()}
    if (usual["on weekdays"] == usual["on weekends"]).all():
        return tuple(_runs(usual["every day"], "every day"))
    return (
        *_runs(usual["on weekdays"], "on weekdays"),
        *_runs(usual["on weekends"], "on weekends"),
    )


def _usual(rows: IntArray) -> IntArray:
    return np.array([np.bincount(column + 1).argmax() - 1 for column in rows.T])


def _runs(hours: IntArray, days: str) -> list[HourSpan]:
    starts = [int(h) for h in range(24) if hours[h] != hours[h - 1]]
    if not starts:
        return [HourSpan(int(hours[0]), 0, 0, days)] if hours[0] >= 0 else []
    stops = [*starts[1:], starts[0]]
    runs = zip(starts, stops, strict=True)
    return [HourSpan(int(hours[a]), a, b, days) for a, b in runs if hours[a] >= 0]
