"""Periods in time: what is found, and what is left to the calendar and to noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidepull.policies import build_policy
from tidepull.tide.models.period import strongest_period
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape

START = 494_424.0
"""Hours since 1970."""


def visits(count: int, days: float, seed: int) -> tuple[FloatArray, IntArray, np.random.Generator]:
    """Times, arms, and a generator of rewards."""
    rng = np.random.default_rng(seed)
    return START + np.sort(rng.uniform(0, 24 * days, count)), rng.integers(3, size=count), rng


def wave(hours: FloatArray, arms: IntArray, period: float) -> FloatArray:
    return np.asarray(np.cos(2 * np.pi * (hours / period - arms / 3)))


@pytest.mark.parametrize("period", [5.3, 11.0, 18.5, 36.0, 60.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_period_is_found(period: float, seed: int) -> None:
    hours, arms, rng = visits(1500, 20, seed)
    rewards = (rng.random(1500) < 0.4 + 0.2 * wave(hours, arms, period)).astype(float)
    found = strongest_period(hours, arms, rewards)
    assert found is not None
    assert found == pytest.approx(period, rel=0.04)


@pytest.mark.parametrize("seed", range(20))
def test_noise_has_no_period(seed: int) -> None:
    hours, arms, rng = visits(1500, 20, seed)
    assert strongest_period(hours, arms, (rng.random(1500) < 0.3).astype(float)) is None


@pytest.mark.parametrize("seed", range(20))
def test_noise_that_wanders_has_no_period(seed: int) -> None:
    hours, arms, rng = visits(1500, 60, seed)
    levels = np.empty((1500, 3))
    level = np.zeros(3)
    for n, gap in enumerate(np.diff(hours, prepend=hours[0])):
        kept = 0.95**gap
        level = kept * level + np.sqrt(1 - kept**2) * rng.standard_normal(3)
        levels[n] = level
    rewards = levels[np.arange(1500), arms] + 0.3 * rng.standard_normal(1500)
    assert strongest_period(hours, arms, rewards) is None


@pytest.mark.parametrize("period", [24.0, 12.0, 168.0, 56.0, 24 / 7])
def test_the_calendar_is_no_period_of_its_own(period: float) -> None:
    hours, arms, rng = visits(3000, 40, 0)
    rewards = (rng.random(3000) < 0.4 + 0.2 * wave(hours, arms, period)).astype(float)
    assert strongest_period(hours, arms, rewards) is None


def test_too_little_is_no_period() -> None:
    hours, arms, _ = visits(20, 3, 0)
    assert strongest_period(hours, arms, np.ones(20)) is None
    assert strongest_period(np.full(200, START), np.zeros(200, int), np.ones(200)) is None


@pytest.mark.parametrize("reward", [0.0, 1.0, 7.3])
def test_arms_that_always_pay_alike_have_no_period(reward: float) -> None:
    hours, arms, rng = visits(1500, 20, 0)
    assert strongest_period(hours, arms, np.full(1500, reward)) is None
    noise = (rng.random(1500) < 0.3).astype(float)
    assert strongest_period(hours, arms, np.where(arms == 0, reward, noise)) is None


def play(
    policy: Any, rounds: int, *, first: int = 0, seed: int = 3, upkeep: int = 10_000
) -> list[int]:
    """Three arms that take turns every 36 hours, 6 visits an hour."""
    rng, arms = np.random.default_rng([seed, first]), []
    for t in range(first, first + rounds):
        hour = START + t / 6
        context = Context(time=3600 * hour)
        arm = policy.choose(context)
        means = 0.4 + 0.3 * wave(np.full(3, hour), np.arange(3), 36.0)
        policy.learn(Event(context, arm, float(rng.random() < means[arm])))
        for _ in range(upkeep):
            if not policy.upkeep():
                break
        arms.append(arm)
    return arms


def test_the_agent_follows_and_says_a_period_of_36_hours() -> None:
    policy: Any = build_policy("tide", ProblemShape(3), seed=0)
    arms = np.array(play(policy, 3000))
    t = np.arange(2000, 3000)
    means = 0.4 + 0.3 * wave((START + t / 6)[:, None], np.arange(3), 36.0)
    regret = means.max(axis=1) - means[np.arange(1000), arms[2000:]]
    assert regret.mean() < 0.1  # random arms have 0.25
    assert "repeats every 36" in " ".join(b.words for b in policy.explain().beliefs)
    assert not policy.explain().hours  # no hour of the day is anybody's


def test_a_snapshot_keeps_the_period() -> None:
    one: Any = build_policy("tide", ProblemShape(3), seed=0)
    play(one, 1600)
    other: Any = build_policy("tide", ProblemShape(3), seed=0)
    other.restore(one.snapshot())
    assert play(one, 200, first=1600) == play(other, 200, first=1600)
    assert one.inner._structural._fit.period == other.inner._structural._fit.period > 0


def test_a_snapshot_keeps_a_period_whose_models_are_still_learning() -> None:
    one: Any = build_policy("tide", ProblemShape(3), seed=0)
    successor = None
    while successor is None or not successor.period:
        t = one.rounds
        assert t < 3000
        play(one, 1, first=t, upkeep=0)
        while one.pending and not (successor and successor.period):
            one.upkeep()
            successor = one.inner._structural._successor
    other: Any = build_policy("tide", ProblemShape(3), seed=0)
    other.restore(one.snapshot())
    assert other.inner._structural._successor.period == successor.period
    t = one.rounds
    assert play(one, 60, first=t) == play(other, 60, first=t)
