"""When a decision is made: seconds since 1970, the user's time zone, and what a calendar says of a moment."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from tidepull.errors import InputError, ParameterError

LEAST, MOST = -62_135_596_800.0, 253_402_300_800.0
"""The years 1 to 9999, which is what calendars know."""

HELD = 60.0
"""A clock that goes back by no more than so many seconds is held where it was; one that goes further is believed."""

CALENDAR = ("day sin", "day cos", "half day sin", "half day cos", "week sin", "week cos", "weekend")
"""What `Clock.calendar` says of a moment, for policies without a sense of time."""

_DAY, _WEEK = 86_400.0, 604_800.0
_FIRST_MONDAY = 4 * _DAY  # 5 January 1970


class Clock:
    """Seconds since 1970 in one time zone.

    >>> clock = Clock("Europe/Berlin")
    >>> moment = clock.read("2026-07-01T12:00:00+00:00")
    >>> clock.local(moment) - moment
    7200.0
    >>> str(clock.datetime(moment))
    '2026-07-01 14:00:00+02:00'
    """

    def __init__(self, zone: str = "UTC", now: Callable[[], float] = time.time) -> None:
        try:
            self._zone = ZoneInfo(zone)
        except (KeyError, ValueError, OSError, TypeError):
            raise ParameterError(
                f"zone: there is no time zone {zone!r}; give a name such as 'Europe/Berlin' or 'UTC'"
            ) from None
        self.zone = zone
        self._now = now
        self._utc = zone == "UTC"

    def now(self) -> float:
        """The present moment."""
        return float(self._now())

    def read(self, at: Any) -> float:
        """A moment given as seconds, a `datetime` (naive: in this zone) or ISO text."""
        if isinstance(at, str):
            try:
                at = datetime.fromisoformat(at)
            except ValueError:
                raise InputError(
                    f"at must be seconds since 1970, a datetime or ISO text such as '2026-07-01T12:00', got {at!r}"
                ) from None
        if isinstance(at, np.datetime64):
            at = at.astype("datetime64[us]").item()
        if isinstance(at, datetime):
            at = (at if at.tzinfo is not None else at.replace(tzinfo=self._zone)).timestamp()
        if isinstance(at, bool) or not isinstance(at, int | float) or not LEAST < at < MOST:
            raise InputError(f"at must be seconds since 1970, a datetime or ISO text, got {at!r}")
        return float(at)

    def stamp(self, at: Any, latest: float) -> tuple[float, float]:
        """The moment of what happens now (`at`, or by the clock), given that of what happened last; and by how many
        seconds the clock went back, where that is worth a note.

        >>> Clock(now=lambda: 100.0).stamp(None, 130.0), Clock(now=lambda: 100.0).stamp(None, 5000.0)
        ((130.0, 0.0), (100.0, 4900.0))
        """
        if at is not None:
            return self.read(at), 0.0
        moment = self.now()
        if moment >= latest:
            return moment, 0.0
        return (latest, 0.0) if latest - moment <= HELD else (moment, latest - moment)

    def datetime(self, at: float) -> datetime:
        """That moment in this zone."""
        return datetime.fromtimestamp(at, UTC).astimezone(self._zone)

    def local(self, at: float) -> float:
        """What a clock on the wall shows, in seconds: days begin at midnight here, summer or winter."""
        if self._utc:
            return at
        offset = self.datetime(at).utcoffset()
        assert offset is not None
        return at + offset.total_seconds()

    def calendar(self, at: float) -> list[float]:
        """A number for each name in `CALENDAR`."""
        local = self.local(at)
        day = math.tau * (local % _DAY) / _DAY
        since_monday = (local - _FIRST_MONDAY) % _WEEK
        week = math.tau * since_monday / _WEEK
        weekend = 1.0 if since_monday >= 5 * _DAY else -1.0
        sines = [math.sin(day), math.cos(day), math.sin(2 * day), math.cos(2 * day)]
        return [*sines, math.sin(week), math.cos(week), weekend]
