"""The user's time as notes: the time itself, and where it stands in the day and the week."""

from __future__ import annotations

import math

from tidepull.tide.models.notes import Moment, Past, column
from tidepull.tide.models.slices import Pieces
from tidepull.types import FloatArray, Snapshot

DAY, WEEK = 86_400.0, 604_800.0
_THURSDAY = 3  # 1 January 1970, counted from Monday

TIME = column("time")
HOUR = column("hour of the day", cells=lambda _: 24)
PART = column("part of the day", cells=lambda _: 8)  # of three hours each
WEEKDAY = column("weekday", cells=lambda _: 7)  # Monday is 0
WEEKEND = column("weekend", cells=lambda _: 2)
PART_APART = column("part of the day, weekends apart", cells=lambda _: 16)


def weekday(time: float) -> int:
    """The day of the week, Monday is 0.

    >>> weekday(0.0), weekday(3.5 * 86400)
    (3, 6)
    """
    return (math.floor(time / DAY) + _THURSDAY) % 7


def duration(seconds: float) -> str:
    """A length of time in the largest unit of which it has at least two, or one and a half days.

    >>> duration(90.0), duration(86_400.0), duration(604_800.0)
    ('90.0 seconds', '24.0 hours', '7.0 days')
    """
    for name, unit in (("days", DAY), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * unit or (unit == DAY and seconds >= 1.5 * unit):
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.1f} seconds"


class WallClock:
    """Notes what the user's clock shows when a round is decided; there is nothing to remember."""

    def __init__(self, n_arms: int) -> None:
        pass

    def look(self, moment: Moment) -> None:
        """Everything that hypotheses read off the clock; NaN where no time was given."""
        notes, time = moment.notes, moment.time
        notes[TIME.index] = time
        if math.isnan(time):
            for part in (HOUR, PART, WEEKDAY, WEEKEND, PART_APART):
                notes[part.index] = math.nan
            return
        day, hour = weekday(time), math.floor(time % DAY / 3600)
        notes[HOUR.index], notes[PART.index], notes[WEEKDAY.index] = hour, hour // 3, day
        notes[WEEKEND.index], notes[PART_APART.index] = day >= 5, 8 * (day >= 5) + hour // 3

    def add(self, t: int, arm: int, reward: float, success: bool) -> None:
        """Rewards do not move a clock."""

    def rewrite(self, past: Past, notes: FloatArray) -> Pieces[None]:
        """Nor does the way in which successes are judged."""
        yield from ()

    def snapshot(self) -> Snapshot:
        """Nothing."""
        return {}

    def restore(self, snapshot: Snapshot) -> None:
        """Nothing."""
