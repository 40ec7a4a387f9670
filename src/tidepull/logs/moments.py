"""Times of any kind as seconds, and seconds as hours, days and weekdays of a time zone."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from tidepull.errors import ParameterError
from tidepull.types import FloatArray, IntArray

UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))
"""Numbers of at least the first are dates since 1970 in the second's part of a second."""

LATEST = 253_402_300_800.0
"""The first second that no calendar has: year 10000."""

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def parsed(text: str) -> float:
    """Seconds since 1970 of a date as text; without a zone it is taken as UTC. ValueError where it is none.

    >>> parsed("1970-01-02 00:00:00+00:00")
    86400.0
    """
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def unit_of(times: FloatArray) -> float | None:
    """How many of its units a second has, for numbers that are dates since 1970; None for numbers that are not.

    >>> unit_of(np.array([1.7e12, 1.8e12]))
    1000.0
    """
    known = times[~np.isnan(times)]
    low = float(known.min()) if len(known) else 0.0
    return next((unit for least, unit in UNITS if low >= least), None)


def zone_of(name: str) -> ZoneInfo:
    """The time zone of that name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ParameterError(
            f"zone must be the name of a time zone as 'Europe/Berlin', got {name!r}"
        ) from None


def local_seconds(times: FloatArray, zone: str) -> FloatArray:
    """Seconds as clocks on the wall show them; the zone's offset is asked once a quarter of an hour."""
    if zone == "UTC":
        return times
    where = zone_of(zone)
    quarters, back = np.unique(np.floor(times / 900), return_inverse=True)
    offsets = [_offset(float(quarter) * 900, where) for quarter in quarters]
    local: FloatArray = times + np.array(offsets)[back]
    return local


def _offset(seconds: float, where: ZoneInfo) -> float:
    offset = datetime.fromtimestamp(seconds, where).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def slices(times: FloatArray, by: str, zone: str) -> tuple[IntArray, tuple[str, ...]]:
    """Which slice each moment belongs to, and the slices' names: by 'day', 'hour' or 'weekday'.

    >>> slices(np.array([0.0, 90000.0]), "hour", "UTC")
    (array([0, 1]), ('00:00', '01:00'))
    """
    local = local_seconds(times, zone)
    days = np.floor(local / 86_400).astype(np.int64)
    if by == "day":
        kinds, places = np.unique(days, return_inverse=True)
        return places, tuple(str(np.datetime64(int(day), "D")) for day in kinds)
    if by == "hour":
        found, names = np.floor(local / 3600).astype(np.int64) % 24, [f"{hour:02d}:00" for hour in range(24)]
    elif by == "weekday":
        found, names = (days + 3) % 7, list(WEEKDAYS)  # 1 January 1970 was a Thursday
    else:
        raise ParameterError(f"by must be 'day', 'hour' or 'weekday', got {by!r}")
    kinds, places = np.unique(found, return_inverse=True)
    return places, tuple(names[kind] for kind in kinds)


def said(seconds: float, zone: str) -> str:
    """A moment as text."""
    if math.isnan(seconds):
        return "?"
    return f"{datetime.fromtimestamp(seconds, zone_of(zone)):%Y-%m-%d %H:%M:%S}"


def moment_of(value: Any) -> float:
    """One cell as a number: a number, a number as text, or seconds of a date. ValueError where it is none."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return parsed(value)
    return float(value)
