"""`tide` and the user's time."""

from __future__ import annotations

import numpy as np
import pytest

from tidepull import state as snapshots
from tidepull.policies import build_policy
from tidepull.protocols import Policy
from tidepull.tide.hours import spans
from tidepull.types import Context, Event, ProblemShape

MONDAY = 1_767_571_200.0


def clocked(seed: int = 0, **more: object) -> Policy:
    return build_policy(
        ("tide", {"without": ("network",), **more}),
        ProblemShape(2),
        seed=seed,
    )


def day_and_night(
    rounds: int, policy: Policy, start: float = MONDAY, missing: float = 0.0
) -> list[bool]:
    """Arm 0 pays by day, arm 1 by night; rounds come at random, some without a time. Was the arm
    right?"""
    rng = np.random.default_rng(7)
    time, right = start, []
    for _ in range(rounds):
        time += float(rng.exponential(1500.0))
        context = Context(time=None if rng.random() < missing else time)
        best = 0 if 6 <= time % 86_400 / 3600 < 18 else 1
        arm = policy.choose(context)
        policy.learn(Event(context, arm, float(rng.random() < (0.9 if arm == best else 0.1))))
        while policy.upkeep():  # type: ignore[attr-defined]
            pass
        right.append(arm == best)
    return right


def test_tide_learns_day_and_night_whatever_the_traffic() -> None:
    policy = clocked()
    right = day_and_night(1200, policy)
    assert np.mean(right[600:]) > 0.85
    told = policy.inner.explain()  # type: ignore[attr-defined]
    assert "follows the hour of the day" in told.beliefs[0].words
    by_day = [span for span in told.hours if span.arm == 0]
    assert by_day
    assert all(5 <= span.start < span.stop <= 19 for span in by_day)
    assert "arm 0 is best from" in str(told)


def test_spans_tell_weekends_apart_where_they_differ() -> None:
    table = np.zeros((7, 24), np.int64)
    table[:, 18:23] = 2
    assert [str(span) for span in spans(table)] == [
        "arm 2 is best from 18:00 to 23:00 every day",
        "arm 0 is best from 23:00 to 18:00 every day",
    ]
    table[5:] = 1
    assert [str(span) for span in spans(table)] == [
        "arm 2 is best from 18:00 to 23:00 on weekdays",
        "arm 0 is best from 23:00 to 18:00 on weekdays",
        "arm 1 is best at all hours on weekends",
    ]


def test_tide_goes_on_where_some_contexts_have_no_time() -> None:
    policy = clocked()
    right = day_and_night(900, policy, missing=0.3)
    assert np.mean(right[500:]) > 0.6


def test_tide_decides_as_patterns_do_where_times_are_not_seconds_since_1970() -> None:
    plain, timed = clocked(seed=3), clocked(seed=3)
    rng = np.random.default_rng(0)
    for t in range(200):
        arm = plain.choose(Context())
        assert timed.choose(Context(time=float(t))) == arm
        reward = float(rng.random() < 0.3 + 0.4 * arm)
        for policy, time in ((plain, None), (timed, float(t))):
            policy.learn(Event(Context(time=time), arm, reward))
            while policy.upkeep():  # type: ignore[attr-defined]
                pass


def test_tide_with_clocks_continues_from_a_snapshot() -> None:
    one, two = clocked(), clocked(seed=1)
    day_and_night(300, one, missing=0.1)
    two.restore(snapshots.load(snapshots.dump(one.snapshot())))
    assert day_and_night(100, one) == day_and_night(100, two)
    assert snapshots.dump(one.snapshot()) == snapshots.dump(two.snapshot())


def test_newborn_that_could_not_say_anything_is_taken_to_have_predicted_as_the_others() -> None:
    policy = clocked()
    day_and_night(60, policy, missing=0.5)
    births, recent = policy.inner._patterns._search, policy.inner._patterns._recent  # type: ignore[attr-defined]
    gain = births.mixture.evidence - recent.evidence_before(recent.start)
    assert births._total(np.full(len(recent), np.nan), recent.start) == pytest.approx(gain)
    assert births._total(np.array([1.5, 0.5]), recent.start) == 2.0
