"""Seasons of the user's time: what is read off the clock, and what is found in irregular times."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pytest

from tests.unit.tide.models.test_newborns import Given, born
from tidepull.tide.models import irregular
from tidepull.tide.models.clock import Swing, Switch
from tidepull.tide.models.family import Layout, Newborn, Rounds, Window
from tidepull.tide.models.notes import blank, columns
from tidepull.tide.models.slices import finished
from tidepull.tide.models.wall_clock import (
    HOUR,
    PART,
    PART_APART,
    TIME,
    WEEKDAY,
    WEEKEND,
    WallClock,
)
from tidepull.types import FloatArray

FIRST = 1.7e9


def irregular_times(n: int, seed: int = 0) -> FloatArray:
    """Gaps of very different length, ten minutes on average."""
    return FIRST + np.cumsum(np.random.default_rng(seed).gamma(0.5, 1200.0, n))


def search(swing: FloatArray, time: FloatArray, *, contextual: bool = False) -> Given:
    rng, n = np.random.default_rng(1), len(swing)
    arm = rng.integers(2, size=n)
    x = np.column_stack([np.ones(n), rng.normal(size=n)]) if contextual else np.ones((n, 1))
    y = np.where(arm == 0, 1, -1) * swing * x[:, -1] + 0.2 * rng.normal(size=n)
    notes = np.zeros((n, len(columns())))
    notes[:, TIME.index] = time
    window = Window(np.arange(n), notes, arm, x, y)
    return Given(Layout(2, x.shape[1], False), contextual, window, Rounds(0, arm, y))


@pytest.mark.parametrize("stamp", [0.0, 1.7e9, 1.7e9 + 86_399.0, 1_767_571_200.0 - 0.5, -1.0])
def test_clock_reads_as_the_calendar_of_the_standard_library(stamp: float) -> None:
    moment = blank(0, 2, stamp)
    WallClock(2).look(moment)
    when = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(seconds=stamp)
    noted = [int(moment.notes[c.index]) for c in (HOUR, PART, WEEKDAY, WEEKEND, PART_APART)]
    weekend = when.weekday() >= 5
    assert noted == [
        when.hour,
        when.hour // 3,
        when.weekday(),
        weekend,
        8 * weekend + when.hour // 3,
    ]
    assert moment.notes[TIME.index] == stamp


def test_clock_notes_nothing_where_no_time_is_given() -> None:
    moment = blank(0, 2)
    WallClock(2).look(moment)
    timed = (TIME, HOUR, PART, WEEKDAY, WEEKEND, PART_APART)
    assert all(math.isnan(moment.notes[column.index]) for column in timed)


def test_evidence_over_irregular_times_equals_least_squares_at_every_frequency() -> None:
    """Against sums over rows with sines and cosines made afresh, far from where the turning
    began."""
    rng, n = np.random.default_rng(3), 200
    time = irregular_times(n)
    arm, y = rng.integers(3, size=n), rng.normal(size=n)
    times = irregular.times_of(time, arm, y)
    assert times is not None
    found = np.empty(400)
    order = np.argsort(arm, kind="stable")
    starts = np.searchsorted(arm[order], np.arange(4))
    irregular._scan_swings(1 / n, 1 / (3 * n), times.u[order], starts, y[order], found)
    for f in (0, 57, 399):
        w = 2 * np.pi * (1 / n + f / (3 * n))
        explained, volume = 0.0, 0.0
        for k in range(3):
            rows = arm == k
            A = np.column_stack(
                [np.ones(rows.sum()), np.cos(w * times.u[rows]), np.sin(w * times.u[rows])]
            )
            precision = A.T @ A + 0.1 * np.eye(3)
            explained += float(A.T @ y[rows] @ np.linalg.solve(precision, A.T @ y[rows]))
            volume += float(np.linalg.slogdet(precision)[1]) - 3 * math.log(0.1)
        b = 0.1 + 0.5 * (float(y @ y) - explained)
        assert found[f] == pytest.approx(-(1 + n / 2) * math.log(b) - volume / 2, rel=1e-9)


@pytest.mark.parametrize(("period", "within"), [(5_000.0, 1.5e-3), (60_000.0, 0.02)])
def test_swing_is_born_at_its_period_in_irregular_times(period: float, within: float) -> None:
    time = irregular_times(300)
    newborns = born("clock", search(np.sin(2 * np.pi * time / period), time))
    swings = [each.hypothesis for each in newborns if isinstance(each.hypothesis, Swing)]
    assert swings[0].period == pytest.approx(period, rel=within)
    assert [swing.waves for swing in swings] == [1, 3] * 3
    assert {each.looked_at for each in newborns if isinstance(each.hypothesis, Swing)} == {400.0}


def test_swing_is_born_with_the_context_in_irregular_times() -> None:
    time = irregular_times(300)
    newborns = born("clock", search(np.sin(2 * np.pi * time / 20_000.0), time, contextual=True))
    first = newborns[0].hypothesis
    assert isinstance(first, Swing)
    assert first.contextual
    assert first.period == pytest.approx(20_000.0, rel=0.02)


def test_switch_is_born_where_it_switches() -> None:
    time = irregular_times(300)
    phase = np.floor((time + 2_000.0) / 15_000.0) % 2
    newborns = born("clock", search(np.where(phase == 0, 1.0, -1.0), time))
    switches = [each.hypothesis for each in newborns if isinstance(each.hypothesis, Switch)]
    found = np.floor((time + switches[0].offset) / switches[0].half_period) % 2
    agreement = float(np.mean(found == phase))
    assert max(agreement, 1 - agreement) > 0.97


def test_nobody_is_born_where_no_time_was_given() -> None:
    without = search(np.ones(60), np.full(60, np.nan))
    assert born("clock", without) == []
    assert born("calendar", without) == []


def test_calendar_is_born_once_and_whole() -> None:
    given = search(np.ones(60), irregular_times(60))
    newborns = born("calendar", given)
    assert len(newborns) == 18
    assert len({each.hypothesis.spec() for each in newborns}) == 18
    given.heavy.append(newborns[3].hypothesis)
    again = born("calendar", given)
    assert again == [Newborn(each.hypothesis, 18.0) for each in newborns if each is not newborns[3]]


def test_times_that_are_all_the_same_tell_nothing() -> None:
    n = 50
    assert irregular.times_of(np.full(n, 5.0), np.zeros(n, np.int64), np.ones(n)) is None
    assert irregular.times_of(np.arange(20.0), np.zeros(20, np.int64), np.ones(20)) is None
    times = irregular.times_of(np.arange(n) * 7.0 + FIRST, np.zeros(n, np.int64), np.ones(n))
    assert times is not None
    assert finished(irregular.best_swings(times, 1, 2)) is not None
