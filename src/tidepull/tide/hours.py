"""Which arm is best at which hour, in calendar words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.tide.models.waves import FIRST_MONDAY_SECONDS, WEEK_SECONDS
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


def monday_before(time: float) -> float:
    """Midnight of the Monday at or before a time in seconds since 1970.

    >>> monday_before(5 * 86_400.0) / 86_400  # from a Tuesday
    4.0
    """
    return time - (time - FIRST_MONDAY_SECONDS) % WEEK_SECONDS


def spans(table: IntArray) -> tuple[HourSpan, ...]:
    """The table as few spans: weekdays and weekends apart where they differ. An hour at which no
    arm is best has the entry -1; of days that differ nothing is said."""
    common = {name: _common(table[list(days)]) for name, days in _DAYS.items()}
    if (common["on weekdays"] == common["on weekends"]).all():
        return tuple(_runs(common["every day"], "every day"))
    return (
        *_runs(common["on weekdays"], "on weekdays"),
        *_runs(common["on weekends"], "on weekends"),
    )


def _common(rows: IntArray) -> IntArray:
    return np.where((rows == rows[0]).all(axis=0), rows[0], -1)


def _runs(hours: IntArray, days: str) -> list[HourSpan]:
    starts = [int(h) for h in range(24) if hours[h] != hours[h - 1]]
    if not starts:
        return [HourSpan(int(hours[0]), 0, 0, days)] if hours[0] >= 0 else []
    stops = [*starts[1:], starts[0]]
    runs = zip(starts, stops, strict=True)
    return [HourSpan(int(hours[a]), a, b, days) for a, b in runs if hours[a] >= 0]
