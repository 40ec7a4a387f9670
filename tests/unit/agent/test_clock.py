"""Moments, time zones, clocks that go back, and what a calendar says."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from tidepull.agent.clock import CALENDAR, HELD, PROVED, Clock, Jump, SteadyTime
from tidepull.errors import InputError, ParameterError


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
    assert Clock("Europe/Berlin").read(datetime(2026, 7, 1, 12)) == Clock().read(
        datetime(2026, 7, 1, 10)
    )


@pytest.mark.parametrize("at", ["soon", True, float("nan"), float("inf"), 1e30, [1]])
def test_clock_refuses_what_is_no_moment(at: Any) -> None:
    with pytest.raises(InputError, match="at must be seconds"):
        Clock().read(at)


@pytest.mark.parametrize("zone", ["Berlin", "", "../etc/passwd", 3])
def test_clock_refuses_a_zone_that_nobody_knows(zone: Any) -> None:
    with pytest.raises(ParameterError, match="zone: there is no time zone"):
        Clock(zone)


def test_clock_is_held_when_it_goes_back_a_little_and_believed_when_it_goes_back_far() -> None:
    read = [1000.0 + HELD, 1000.0, 1000.0 + HELD, 999.0]
    clock = Clock(now=lambda: read.pop(0))
    assert clock.stamp(-math.inf) == (1000.0 + HELD, 1000.0 + HELD, [])
    assert clock.stamp(1000.0 + HELD) == (1000.0 + HELD, 1000.0, [])
    clock.now()
    assert clock.stamp(-math.inf)[2] == []  # 999 is a second less than what was read last
    clock = Clock(now=iter([5000.0, 1000.0]).__next__)
    clock.stamp(-math.inf)
    assert clock.stamp(5000.0) == (1000.0, 1000.0, [Jump(-4000.0)])


def test_a_record_in_the_future_is_found_and_moves_nothing() -> None:
    assert Clock(now=lambda: 100.0).stamp(5000.0) == (100.0, 100.0, [Jump(-4900.0, "found")])


class Hands:
    """A wall clock and one that cannot jump."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_000_000.0, 0.0
        self.time = SteadyTime(lambda: self.wall, lambda: self.steady)

    def go(self, seconds: float, jump: float = 0.0) -> float:
        self.steady += seconds
        self.wall += seconds + jump
        return self.time()


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0])
def test_a_jump_is_held_noted_once_and_believed_when_it_has_lasted(jump: float) -> None:
    hands = Hands()
    assert hands.go(10, jump) == 1_000_010.0
    assert hands.go(PROVED - 1) == 1_000_009.0 + PROVED
    assert hands.time.jumps() == [Jump(jump, "held")]
    assert hands.go(1) == 1_000_010.0 + PROVED + jump
    assert hands.time.jumps() == [Jump(jump)]
    assert hands.go(5) == 1_000_015.0 + PROVED + jump
    assert hands.time.jumps() == []


def test_a_jump_that_is_taken_back_was_never_believed() -> None:
    hands = Hands()
    hands.go(1, 365 * 86_400.0)
    assert hands.go(1, -365 * 86_400.0) == 1_000_002.0
    assert hands.go(PROVED + 1) == 1_000_003.0 + PROVED
    assert [jump.state for jump in hands.time.jumps()] == ["held"]


def test_small_differences_are_followed() -> None:
    hands = Hands()
    assert hands.go(1, HELD - 1) == 1_000_000.0 + HELD
    assert hands.go(1, -HELD + 1) == 1_000_002.0
    assert hands.time.jumps() == []


@pytest.mark.parametrize("jump", [Jump(90.0, "held"), Jump(-4000.25), Jump(-1.0, "found")])
def test_a_jump_is_read_as_it_was_written(jump: Jump) -> None:
    assert Jump.unpack(jump.pack()) == jump
    assert Jump.unpack(b"the clock went back by 90 seconds") == Jump(-90.0, "found")


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
    assert clock.calendar(friday_night)[:4] == pytest.approx(
        clock.calendar(friday_night + 86_400)[:4]
    )
