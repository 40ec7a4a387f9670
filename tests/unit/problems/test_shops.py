"""Shops: the worlds as described, the same for every policy, with rewards that arrive in time."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

import tidepull
from tidepull.problems.shops import SHOPS, Kind, WearOut, visits
from tidepull.problems.tables import DAY, HOUR, MONDAY, WEEK, TableWorld, value_of_time
from tidepull.types import Context, Event

TABLES = tuple(SHOPS)


def world(kind: str, seed: int = 0, rounds: int = 900) -> TableWorld:
    built = tidepull.build_problem(("shop", {"kind": kind, "rounds": rounds}), seed=seed)
    assert isinstance(built, TableWorld)
    return built


def test_every_kind_is_a_generator_or_wears_out() -> None:
    assert set(get_args(Kind)) == {*TABLES, "wear-out"}
    assert len(set(get_args(Kind)) - {"early-clicks", "wear-out"}) == 10


@pytest.mark.parametrize("kind", TABLES)
def test_world_is_a_function_of_its_seed(kind: str) -> None:
    first, again, other = world(kind).table, world(kind).table, world(kind, seed=1).table
    assert np.array_equal(first.rewards, again.rewards)
    assert first.time is not None
    assert again.time is not None
    assert np.array_equal(first.time, again.time)
    assert not np.array_equal(first.rewards, other.rewards)


@pytest.mark.parametrize("kind", TABLES)
def test_rewards_average_to_the_means(kind: str) -> None:
    table = world(kind, rounds=6000).table
    noise = table.rewards - table.means
    error = noise.std() / np.sqrt(noise.size)
    assert abs(noise.mean()) < 5 * error


def test_visits_come_by_day_and_on_weekdays() -> None:
    times = visits(40_000, 500, np.random.default_rng(0))
    assert np.all(np.diff(times) >= 0)
    assert len(times) / ((times[-1] - times[0]) / DAY) == pytest.approx(500, rel=0.03)
    hour, weekend = times % DAY // HOUR, (times - MONDAY) % WEEK >= 5 * DAY
    assert (hour == 16).sum() > 6 * (hour == 4).sum()
    assert weekend.mean() / 2 < 0.7 * (~weekend).mean() / 5


def test_three_arms_have_eight_hours_each() -> None:
    table = world("hours", rounds=6000).table
    assert table.time is not None
    hours = table.time % DAY
    for arm in range(3):
        own = hours[table.means[:, arm] == 0.3]
        gaps = np.diff(np.sort(np.concatenate([own, own.min(keepdims=True) + DAY])))
        assert gaps.max() == pytest.approx(16 * HOUR, rel=0.03)


def test_late_rewards_arrive_before_the_first_decision_after_their_time() -> None:
    table = world("banners").table
    assert table.time is not None
    assert table.waits is not None
    for row in (0, 100, 500):
        wait = int(table.waits[row, 0])
        due = table.time[row] + 3 * HOUR
        assert table.time[row + wait] < due <= table.time[row + wait + 1]


def test_clicks_come_early_and_zeros_when_the_window_closes() -> None:
    table = world("early-clicks", rounds=4000).table
    assert table.seconds_late is not None
    clicked = table.rewards > 0
    assert np.all(table.seconds_late[~clicked] == DAY)
    assert table.seconds_late[clicked].mean() == pytest.approx(HOUR / 3, rel=0.1)


def test_policy_learns_late_rewards_of_the_problem_in_order_of_arrival() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.rounds = 0
            self.learnt: list[tuple[int, int, float]] = []

        def choose(self, context: Context) -> int:
            self.rounds += 1
            return 0

        def learn(self, event: Event) -> None:
            assert event.decided is not None
            self.learnt.append((self.rounds, event.decided, event.reward))

    problem, recorder = world("early-clicks", rounds=3000), Recorder()
    tidepull.play(problem, recorder, horizon=3000)
    waits = problem.table.waits
    assert waits is not None
    for known, decided, _ in recorder.learnt:
        assert known - 1 == decided + waits[decided, 0]
    early = [reward for known, decided, reward in recorder.learnt if known - decided < 50]
    assert len(early) > 20
    assert np.mean(early) > 0.9


def test_holidays_are_told_by_a_field_or_not_at_all() -> None:
    told, untold = world("holidays-told"), world("holidays-untold")
    assert np.array_equal(told.table.means, untold.table.means)
    assert untold.context().observation is None
    assert told.table.observation is not None
    assert set(np.unique(told.table.observation)) == {0.0, 1.0}


def test_best_fixed_banner_is_the_one_that_pays_most_when_it_alone_is_shown() -> None:
    world = ("shop", {"kind": "wear-out"})
    problem = tidepull.build_problem(world, seed=0)
    totals = problem.totals(300)  # type: ignore[attr-defined]
    for arm in range(3):
        paid = 0.0
        problem = tidepull.build_problem(world, seed=0)
        for _ in range(300):
            paid += problem.means()[arm]
            problem.step(arm)
        assert totals[arm] == pytest.approx(paid)


def test_banner_wears_out_while_shown_and_recovers_while_it_rests() -> None:
    problem = tidepull.build_problem(("shop", {"kind": "wear-out"}), seed=0)
    assert isinstance(problem, WearOut)
    fresh = problem.means()
    for _ in range(200):
        problem.step(0)
    worn = problem.means()
    assert worn[0] < 0.5 * fresh[0]
    assert np.array_equal(worn[1:], fresh[1:])
    for _ in range(2000):
        problem.step(1)
    assert problem.means()[0] > 0.95 * fresh[0]


def test_value_of_time_equals_a_direct_computation() -> None:
    table = world("hours", rounds=6000).table
    assert table.time is not None
    found = value_of_time(table)
    assert found.oracle == pytest.approx(0.3)
    assert found.fixed == pytest.approx(max(table.means[:, k].mean() for k in range(3)))
    cells: dict[tuple[int, bool], list[int]] = {}
    for row, time in enumerate(table.time):
        key = (int(time % DAY // HOUR), bool((time - MONDAY) % WEEK >= 5 * DAY))
        cells.setdefault(key, []).append(row)
    best = sum(table.means[rows].sum(axis=0).max() for rows in cells.values())
    assert found.table == pytest.approx(best / 6000)
    assert found.fixed < found.table <= found.oracle


def test_table_begins_again_whole_weeks_later() -> None:
    problem = world("hours", rounds=50)
    first, means = problem.context().time, problem.means()
    for _ in range(50):
        problem.step(0)
    assert first is not None
    assert problem.context().time == first + WEEK
    assert np.array_equal(problem.means(), means)
