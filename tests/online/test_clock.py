"""Moments, time zones, clocks that go back, and what a calendar says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from tidepull.errors import InputError, ParameterError
from tidepull.online.clock import CALENDAR, HELD, Clock


@pytest.mark.parametrize(
    "at",
    [
        1_782_900_000,
        1_782_900_000.0,
        datetime(2026, 7, 1, 10, tzinfo=UTC),
        "2026-07-01T12:00:00+02:00",
        np.datetime64("2026-07-01T10:00"),
    ],
)
def test_clock_reads_the_same_moment_however_it_is_given(at: Any) -> None:
    assert Clock().read(at) == 1_782_900_000.0


def test_clock_takes_a_naive_datetime_in_its_own_zone() -> None:
    assert Clock("Europe/Berlin").read(datetime(2026, 7, 1, 12)) == Clock().read(datetime(2026, 7, 1, 10))


@pytest.mark.parametrize("at", ["soon", True, float("nan"), float("inf"), 1e30, [1]])
def test_clock_refuses_what_is_no_moment(at: Any) -> None:
    with pytest.raises(InputError, match="at must be seconds"):
        Clock().read(at)


@pytest.mark.parametrize("zone", ["Berlin", "", "../etc/passwd", 3])
def test_clock_refuses_a_zone_that_nobody_knows(zone: Any) -> None:
    with pytest.raises(ParameterError, match="zone: there is no time zone"):
        Clock(zone)


def test_clock_is_held_when_it_goes_back_a_little_and_believed_when_it_goes_back_far() -> None:
    clock = Clock(now=lambda: 1000.0)
    assert clock.stamp(None, 1000.0 + HELD) == (1000.0 + HELD, 0.0)
    assert clock.stamp(None, 1001.0 + HELD) == (1000.0, 1.0 + HELD)
    assert clock.stamp(5.0, 1e6) == (5.0, 0.0)


def test_local_time_is_what_a_wall_clock_shows_in_summer_and_winter() -> None:
    clock = Clock("America/New_York")
    for month, hours in ((1, -5), (7, -4)):
        at = datetime(2026, month, 15, 18, tzinfo=UTC).timestamp()
        assert clock.local(at) - at == hours * 3600
        assert clock.datetime(at).hour == 18 + hours


def test_calendar_repeats_every_week_and_knows_the_weekend() -> None:
    clock = Clock("Asia/Tokyo")
    friday_night = datetime(2026, 7, 3, 14, 59, tzinfo=UTC).timestamp()  # 23:59 in Tokyo
    assert len(clock.calendar(friday_night)) == len(CALENDAR)
    assert clock.calendar(friday_night)[-1] == -1.0
    assert clock.calendar(friday_night + 120)[-1] == 1.0
    assert clock.calendar(friday_night) == pytest.approx(clock.calendar(friday_night + 7 * 86_400))
    assert clock.calendar(friday_night)[:4] == pytest.approx(clock.calendar(friday_night + 86_400)[:4])
