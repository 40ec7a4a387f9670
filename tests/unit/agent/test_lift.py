"""The gain over the control: against plain formulas, under traffic that moves with time, and how
often it covers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from tidepull.agent.lift import IN_A_BLOCK, lift_of
from tidepull.agent.log import DecisionLog
from tidepull.agent.records import DecisionGroup


def log_of(
    reward: Any, control: Any, subject: Any = None, at: Any = None, control_share: float = 0.05
) -> DecisionLog:
    n = len(reward)
    return DecisionLog(
        np.arange(1, n + 1),
        np.arange(n, dtype=float) if at is None else at,
        np.zeros(n, np.int64),
        np.where(control, DecisionGroup.CONTROL, DecisionGroup.POLICY),
        np.ones(n),
        np.asarray(reward, float),
        np.zeros(n),
        -np.arange(1, n + 1) if subject is None else subject,
        np.full(n, -1),
        np.full(n, control_share),
    )


def test_lift_in_one_block_is_the_difference_of_means_with_welch_s_variance() -> None:
    rng = np.random.default_rng(0)
    control = np.arange(60) % 4 == 0
    reward = rng.normal(size=60) + 2
    lift = lift_of(log_of(reward, control))
    assert lift.blocks == 1
    assert lift.gain == pytest.approx(reward[~control].mean() - reward[control].mean())
    variance = reward[~control].var(ddof=1) / 45 + reward[control].var(ddof=1) / 15
    assert lift.high - lift.gain == pytest.approx(student.ppf(0.975, 14) * math.sqrt(variance))
    assert (lift.n_policy, lift.n_control) == (45, 15)


def test_lift_over_blocks_is_the_mean_of_their_differences() -> None:
    rng = np.random.default_rng(1)
    n = 40 * IN_A_BLOCK
    control = np.arange(n) % 10 == 9
    reward = rng.random(n)
    lift = lift_of(log_of(reward, control))
    blocks = np.split(np.arange(n), 4)  # ten of the control take a hundred decisions
    assert lift.blocks == 4
    gains = [reward[b][~control[b]].mean() - reward[b][control[b]].mean() for b in blocks]
    assert lift.gain == pytest.approx(np.mean(gains))


def test_traffic_that_moves_with_time_fakes_no_gain() -> None:
    """Good hours have twice the reward and few in the control: plain averages say a gain that is
    not there."""
    rng = np.random.default_rng(2)
    n = 20_000
    good = (np.arange(n) // 1000) % 2 == 1
    control = rng.random(n) < np.where(good, 0.05, 0.5)
    reward = (rng.random(n) < np.where(good, 0.6, 0.3)).astype(float)
    assert reward[~control].mean() - reward[control].mean() > 0.08
    lift = lift_of(log_of(reward, control))
    assert abs(lift.gain) < 0.03
    assert lift.low < 0 < lift.high


def test_decisions_of_one_subject_count_as_one_draw() -> None:
    rng = np.random.default_rng(3)
    subject = np.tile(np.arange(100), 20)
    control = subject % 4 == 0
    reward = rng.normal(size=100)[subject]
    apart, together = lift_of(log_of(reward, control)), lift_of(log_of(reward, control, subject))
    assert together.gain == pytest.approx(apart.gain, abs=0.01)
    assert 3 < (together.high - together.low) / (apart.high - apart.low) < 6


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_interval_covers_the_truth_as_often_as_it_says(share: float) -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(400):
        control = rng.random(600) < share
        hour = np.sin(np.arange(600) / 20)
        rate = 0.4 + 0.2 * hour + np.where(control, 0.0, 0.1)
        lift = lift_of(log_of((rng.random(600) < rate).astype(float), control))
        covered += lift.low <= 0.1 <= lift.high
    assert 0.92 <= covered / 400 <= 0.98


def test_lift_says_that_it_knows_nothing_without_a_control() -> None:
    lift = lift_of(log_of([1.0, 0.0, 1.0], [False, False, False]))
    assert not lift.known
    assert str(lift).startswith("Nothing can be said yet")
    assert not lift_of(log_of([], [])).known


def test_lift_is_told_in_percent_where_the_control_earns_something() -> None:
    control = np.arange(4000) % 4 == 0
    reward = np.where(control, 1.0, 1.1) + 0.01 * (np.arange(4000) % 7)
    assert (
        str(lift_of(log_of(reward, control)))
        == "9.7% more reward than random arms (95% interval 9.6 to 9.9)."
    )
    around_zero = np.where(control, 0.0, 0.1) + np.random.default_rng(0).normal(size=4000)
    assert "reward a decision than random arms" in str(lift_of(log_of(around_zero, control)))


def test_relative_gain_has_zero_inside_where_the_gain_has() -> None:
    rng = np.random.default_rng(2)
    sides = []
    for effect in np.linspace(0.0, 0.6, 60):
        control = np.arange(120) % 3 == 0
        lift = lift_of(log_of(rng.normal(np.where(control, 1.0, 1.0 + effect), 0.5), control))
        sides.append(lift.low > 0)
        assert (lift.relative_low > 0) == (lift.low > 0)
        assert lift.relative_low < lift.relative < lift.relative_high
        gap = (
            lift.policy - (1 + lift.relative_low) * lift.control
        )  # the bound is where the gap is just told from 0
        assert gap > 0
    assert 10 < sum(sides) < 55


def test_missing_rewards_and_other_groups_do_not_count() -> None:
    reward = np.array([1.0, 0.0, 1.0, 0.0, np.nan, np.nan])
    control = np.array([True, True, False, False, True, False])
    assert lift_of(log_of(reward, control)).gain == 0.0
