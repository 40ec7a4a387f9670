"""Periods of arms against Bayes' rule over all periods, computed with plain formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidepull.policies import build_policy
from tidepull.tide.jobs import finish
from tidepull.tide.models.family import Layout, Window
from tidepull.tide.models.filters import Blocks
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.own_periods import FAMILY, LONGEST, OwnPeriods
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape

PLAIN = np.ones(1)


def model(n_arms: int) -> OwnPeriods:
    return OwnPeriods(Blocks(Layout(n_arms, 1, False), contextual=False))


def past(n: int, periods: tuple[int, ...], seed: int = 0) -> tuple[IntArray, IntArray, FloatArray]:
    """Rounds in any order, arms, and rewards of -1 and 1 with chances that repeat."""
    rng = np.random.default_rng(seed)
    t, arm = rng.permutation(n), rng.integers(len(periods), size=n)
    chances = [rng.random(period) for period in periods]
    chance = np.array([chances[k][i % periods[k]] for i, k in zip(t, arm, strict=True)])
    return t, arm, np.where(rng.random(n) < chance, 1.0, -1.0)


def log_evidence(t: IntArray, y: FloatArray, period: int) -> float:
    """Of one arm: the integral over the chance of each cell."""
    total = 0.0
    for cell in range(period):
        mine = y[t % period == cell]
        won, lost = int((mine > 0).sum()), int((mine < 0).sum())
        total += math.lgamma(1 + won) + math.lgamma(1 + lost) - math.lgamma(2 + won + lost)
    return total


def test_evidence_and_weights_are_those_of_all_periods_of_every_arm() -> None:
    t, arm, y = past(300, (3, 5, 1))
    one = model(3)
    scores = [
        one.observe(int(i), int(k), PLAIN, float(r), True)
        for i, k, r in zip(t, arm, y, strict=True)
    ]
    prior = np.log([0.5] + [0.5 / (LONGEST - 1)] * (LONGEST - 1))
    total = 0.0
    for k in range(3):
        mine = arm == k
        each = prior + [log_evidence(t[mine], y[mine], p) for p in range(1, LONGEST + 1)]
        total += np.logaddexp.reduce(each)
        expected = np.exp(each - np.logaddexp.reduce(each))
        assert one.arrays.weight[k] == pytest.approx(expected, abs=1e-6)
    assert sum(scores) == pytest.approx(total, abs=1e-6)


def test_replay_does_what_rounds_one_by_one_do() -> None:
    t, arm, y = past(200, (4, 7))
    y = y + 0.1 * np.random.default_rng(1).normal(size=200)
    one, other = model(2), model(2)
    scores = [
        one.observe(int(i), int(k), PLAIN, float(r), False)
        for i, k, r in zip(t, arm, y, strict=True)
    ]
    window = Window(t, np.zeros((200, 0)), arm, np.ones((200, 1)), y)
    assert finish(other.replay(window, False)).tolist() == scores
    assert np.array_equal(one.arrays.weight, other.arrays.weight)
    assert np.array_equal(one.arrays.noise, other.arrays.noise)


def test_draws_take_a_period_of_each_arm_and_the_cell_of_the_round() -> None:
    rng = np.random.default_rng(0)
    means = [np.array([1.0, -1.0]), np.array([-1.0, 0.0, 1.0])]
    one = model(2)
    for t in range(600):
        k = int(rng.integers(2))
        one.observe(t, k, PLAIN, means[k][t % len(means[k])] + 0.1 * rng.normal(), False)
    for t in range(600, 606):
        drawn = np.mean([one.draw(t, np.ones((2, 1)), False, rng) for _ in range(50)], axis=0)
        assert drawn == pytest.approx([means[0][t % 2], means[1][t % 3]], abs=0.1)
    assert one.words == "each arm repeats with a period of its own (2, 3 rounds)"


def test_restored_model_predicts_as_before_and_a_damaged_snapshot_is_refused() -> None:
    t, arm, y = past(100, (2, 3))
    one, other = model(2), model(2)
    for i, k, r in zip(t, arm, y, strict=True):
        one.observe(int(i), int(k), PLAIN, float(r), True)
    other.restore(one.snapshot())
    assert other.observe(100, 1, PLAIN, 1.0, True) == one.observe(100, 1, PLAIN, 1.0, True)
    with pytest.raises(ValueError, match="does not fit in 'weight'"):
        model(3).restore(one.snapshot())


def test_family_needs_arms_of_their_own_and_no_context() -> None:
    made = FAMILY.filters
    assert made is not None
    for layout, count in (
        (Layout(3, 1, False), 1),
        (Layout(3, 2, False), 0),
        (Layout(3, 2, True), 0),
        (Layout(65, 1, False), 0),
    ):
        assert len(made(layout, NoisePrior(), 0)) == count


def test_tide_finds_the_periods_of_its_arms() -> None:
    rng = np.random.default_rng(3)
    means = [rng.random(period) for period in (5, 8, 11)]
    policy, regret = build_policy("tide", ProblemShape(3), seed=0), 0.0
    for t in range(1500):
        row = np.array([each[t % len(each)] for each in means])
        arm = policy.choose(Context())
        policy.learn(Event(Context(), arm, float(row[arm] + 0.2 * rng.normal()), decided=t))
        while policy.upkeep():
            pass
        regret += float(row.max() - row[arm]) if t >= 1000 else 0.0
    assert policy.explain().beliefs[0].words == (
        "each arm repeats with a period of its own (5, 8, 11 rounds)"
    )
    assert regret < 10  # random arms: about 130
