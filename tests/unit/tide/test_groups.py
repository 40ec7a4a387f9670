"""`tide` with times: structural models beside patterns in rounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tidepull.policies import build_policy
from tidepull.types import Context, Event, ProblemShape

HOUR, DAY = 3600.0, 86_400.0
MONDAY = 20_458 * DAY  # 5 January 2026


def play(
    policy: Any, chances: Any, rounds: int, *, every: float = HOUR / 4, seed: int = 1
) -> list[int]:
    """Arms of so many rounds; `chances(hour of the day)` are those of each arm."""
    rng, arms = np.random.default_rng(seed), []
    for t in range(rounds):
        time = MONDAY + t * every
        context = Context(time=time)
        arm = policy.choose(context)
        paid = rng.random() < chances(time % DAY / HOUR)[arm]
        policy.learn(Event(context, arm, float(paid)))
        while policy.upkeep():
            pass
        arms.append(arm)
    return arms


def day_and_night(hour: float) -> tuple[float, float]:
    """Arm 1 is best from 12:00 to 24:00."""
    return (0.2, 0.6) if hour >= 12 else (0.6, 0.2)


def test_season_of_the_day_is_followed_and_told() -> None:
    policy: Any = build_policy("tide", ProblemShape(2), seed=0)
    arms = np.array(play(policy, day_and_night, 1500))
    hours = np.arange(1500) * 0.25 % 24
    assert np.mean((arms == (hours >= 12))[-500:]) > 0.9
    explanation = policy.explain()
    assert explanation.beliefs[0].family == "structural"
    assert "hour of the day" in explanation.beliefs[0].words
    said = {span.arm: (span.start, span.stop) for span in explanation.hours}
    for arm, (low, high) in {0: (0, 12), 1: (12, 24)}.items():
        start, stop = said[arm]
        inside = [(start + n) % 24 for n in range((stop - start) % 24)]
        assert len(inside) >= 6
        assert all(low - 1 <= hour <= high for hour in inside)


def test_arms_that_cannot_be_chosen_are_not_compared() -> None:
    policy: Any = build_policy("tide", ProblemShape(3), seed=0)
    available, rng = np.array([True, True, False]), np.random.default_rng(1)
    for t in range(400):
        context = Context(time=MONDAY + t * HOUR, available=available)
        arm = policy.choose(context)
        policy.learn(Event(context, arm, float(rng.random() < (0.2, 0.8)[arm])))
        while policy.upkeep():
            pass
    assert {span.arm for span in policy.explain().hours} == {1}


@pytest.mark.parametrize("seed", range(3))
def test_arms_that_are_alike_have_no_best_hours(seed: int) -> None:
    policy: Any = build_policy("tide", ProblemShape(3), seed=seed)
    play(policy, lambda _: (0.3, 0.3, 0.3), 800, seed=seed + 10)
    assert len(policy.explain().hours) <= 1


def test_without_a_time_patterns_decide_alone() -> None:
    policy: Any = build_policy("tide", ProblemShape(2), seed=0)
    context = Context()
    for t in range(40):
        policy.learn(Event(context, policy.choose(context), float(t % 2)))
    assert policy.snapshot()["state"]["structural"] is None
    assert policy.family_weights()[policy.families.index("structural")] == 0.0


def test_times_that_are_not_seconds_since_1970_are_left_to_patterns() -> None:
    policy: Any = build_policy("tide", ProblemShape(2), seed=0)
    for t in range(40):
        context = Context(time=float(t))
        policy.learn(Event(context, policy.choose(context), float(t % 2)))
    assert policy.snapshot()["state"]["structural"] is None


def test_structural_models_can_be_left_out() -> None:
    policy: Any = build_policy(("tide", {"without": ["structural"]}), ProblemShape(2), seed=0)
    play(policy, day_and_night, 30)
    assert policy.snapshot()["state"]["structural"] is None
    assert "structural" not in policy.families


def test_weights_of_families_add_up() -> None:
    policy: Any = build_policy("tide", ProblemShape(2), seed=0)
    play(policy, day_and_night, 100)
    assert policy.family_weights().sum() == pytest.approx(1.0)
    explanation = policy.explain()
    assert explanation.weights.shape[1] == len(explanation.families)
    assert explanation.weights.sum(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("money", [False, True])
def test_restored_policy_decides_as_if_nothing_had_happened(money: bool) -> None:
    policy: Any = build_policy("tide", ProblemShape(2, 1), seed=3)
    other: Any = build_policy("tide", ProblemShape(2, 1), seed=4)
    rng = np.random.default_rng(0)
    arms: tuple[list[int], list[int]] = ([], [])
    for t in range(120):
        context = Context(observation=rng.standard_normal(1), time=MONDAY + t * HOUR)
        size = math.exp(rng.standard_normal()) if money else 1.0
        pays = rng.random() < 0.4
        if t == 60:
            other.restore(policy.snapshot())
        for one, played in zip((policy, other) if t >= 60 else (policy,), arms, strict=False):
            arm = one.choose_by(context, 8, lambda shares: int(np.argmax(shares)))
            one.learn(Event(context, arm, size * pays))
            while one.upkeep():
                pass
            played.append(arm)
    assert arms[0][60:] == arms[1]


def test_logged_shares_are_those_of_both_groups() -> None:
    policy: Any = build_policy("tide", ProblemShape(3), seed=0)
    play(policy, lambda _: (0.2, 0.5, 0.4), 50)
    seen: list[Any] = []

    def pick(shares: Any) -> int:
        seen.append(shares)
        return int(np.argmax(shares))

    policy.choose_by(Context(time=MONDAY + 60 * HOUR), 32, pick)
    assert seen[0].sum() == pytest.approx(1.0)
    assert (seen[0] >= 0).all()


def loop(policy: Any, rounds: int, *, first: int = 0, start: float = MONDAY) -> list[bool]:
    """Two arms that take turns every 20 rounds, a millisecond apart; whether the best was played."""
    rng, right = np.random.default_rng([7, first]), []
    for t in range(first, first + rounds):
        context, best = Context(time=start + 1e-3 * t), t // 20 % 2
        arm = policy.choose(context)
        policy.learn(Event(context, arm, float(rng.random() < (0.8 if arm == best else 0.2))))
        while policy.upkeep():
            pass
        right.append(arm == best)
    return right


def test_rounds_are_the_clock_of_a_program_that_decides_in_a_loop() -> None:
    policy: Any = build_policy("tide", ProblemShape(2), seed=0)
    assert np.mean(loop(policy, 800)[400:]) > 0.9
    assert "fourier" in policy.explain().families


def test_a_loop_goes_on_as_it_was_when_restored() -> None:
    one: Any = build_policy("tide", ProblemShape(2), seed=0)
    loop(one, 100)
    other: Any = build_policy("tide", ProblemShape(2), seed=0)
    other.restore(one.snapshot())
    assert loop(one, 100, first=100) == loop(other, 100, first=100)


def test_the_clock_counts_again_once_it_has_moved_by_an_hour() -> None:
    policy: Any = build_policy("tide", ProblemShape(2), seed=0)
    loop(policy, 60)
    assert "fourier" in policy.explain().families
    loop(policy, 60, first=60, start=MONDAY + HOUR)
    assert "fourier" not in policy.explain().families


def test_a_service_is_no_loop_however_quick_it_is() -> None:
    policy: Any = build_policy("tide", ProblemShape(2), seed=0)
    for t in range(60):
        context = Context(time=MONDAY + 1e-3 * t)
        policy.choose(context)
        if t >= 8:  # rewards come after other decisions
            policy.learn(Event(context, 0, 1.0, t - 8))
    assert "fourier" not in policy.explain().families


def test_rounds_seconds_apart_are_no_loop() -> None:
    policy: Any = build_policy("tide", ProblemShape(2), seed=0)
    play(policy, day_and_night, 60, every=1.0)
    assert "fourier" not in policy.explain().families
