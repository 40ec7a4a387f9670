"""The gain over the control: against plain formulas, under traffic that moves with time, and how
often it covers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from tidepull import Agent
from tidepull.agent.lift import IN_A_BLOCK, lift_of, predicted_rewards, student_quantile
from tidepull.agent.log import WIDTH, DecisionLog
from tidepull.agent.records import DecisionGroup
from tidepull.errors import ParameterError


def log_of(
    reward: Any,
    control: Any,
    subject: Any = None,
    at: Any = None,
    control_share: float = 0.05,
    x: Any = None,
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
        np.zeros((n, WIDTH)) if x is None else x,
    )


def test_lift_in_one_block_is_the_difference_of_means_with_welch_s_variance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tidepull.agent.lift.BORROWED", 0)
    rng = np.random.default_rng(0)
    control = np.arange(60) % 4 == 0
    reward = rng.normal(size=60) + 2
    lift = lift_of(log_of(reward, control))
    assert lift.blocks == 1
    assert lift.gain == pytest.approx(reward[~control].mean() - reward[control].mean())
    variance = reward[~control].var(ddof=1) / 45 + reward[control].var(ddof=1) / 15
    half = student.ppf(0.975, 14) * math.sqrt(variance)
    assert lift.fixed_high - lift.gain == pytest.approx(half)
    assert lift.gain - lift.fixed_low == pytest.approx(half)
    assert (lift.n_policy, lift.n_control) == (45, 15)


def test_lift_over_blocks_is_the_mean_of_their_differences() -> None:
    rng = np.random.default_rng(1)
    n = 40 * IN_A_BLOCK
    control = np.arange(n) % 10 == 9
    reward = rng.random(n)
    lift = lift_of(log_of(reward, control))
    blocks = np.split(np.arange(n), 4)  # ten of the control take a hundred decisions
    assert lift.blocks == 4
    predicted = predicted_rewards(log_of(reward, control), np.repeat(np.arange(4), n // 4))
    assert not predicted[: n // 4].any()
    assert predicted[n // 4 :].all()
    rest = reward - predicted
    gains = [rest[b][~control[b]].mean() - rest[b][control[b]].mean() for b in blocks]
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
        covered += lift.fixed_low <= 0.1 <= lift.fixed_high
        assert lift.low < lift.fixed_low < lift.gain < lift.fixed_high < lift.high
    assert 0.92 <= covered / 400 <= 0.98


def test_lift_says_that_it_knows_nothing_without_a_control() -> None:
    lift = lift_of(log_of([1.0, 0.0, 1.0], [False, False, False]))
    assert not lift.known
    assert str(lift).startswith("Nothing can be said yet")
    assert not lift_of(log_of([], [])).known


@pytest.mark.parametrize("seed", range(3))
def test_no_interval_is_absurdly_wide_however_few_decisions_there_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for n in range(2, 400, 6):
        control = np.arange(n) % 6 == 5
        for reward in (
            (rng.random(n) < 0.1).astype(float),
            rng.normal(size=n),
            rng.exponential(size=n),
        ):
            subject = np.arange(n) % 24 if n % 4 else None
            lift = lift_of(log_of(reward, control, subject))
            if lift.known:
                assert -10 < lift.low < lift.high < 10
            if math.isfinite(lift.relative):
                assert lift.relative_high - lift.relative_low < 100


def test_lift_is_told_in_percent_where_the_control_earns_something() -> None:
    control = np.arange(4000) % 4 == 0
    reward = np.where(control, 1.0, 1.1) + 0.01 * (np.arange(4000) % 7)
    assert str(lift_of(log_of(reward, control))) == (
        "9.7% more reward than random arms (95% sure at every look: 9.4 to 10.0; at a single "
        "planned look: 9.6 to 9.9)."
    )
    around_zero = np.where(control, 0.0, 0.1) + np.random.default_rng(0).normal(size=4000)
    assert "reward a decision than random arms" in str(lift_of(log_of(around_zero, control)))


def test_relative_gain_has_zero_inside_where_the_gain_has() -> None:
    rng = np.random.default_rng(2)
    sides = []
    for effect in np.linspace(0.0, 0.6, 60):
        control = np.arange(120) % 3 == 0
        lift = lift_of(log_of(rng.normal(np.where(control, 1.0, 1.0 + effect), 0.5), control))
        sides.append(lift.significant)
        assert (lift.fixed_relative_low > 0) == (lift.fixed_low > 0)
        assert (lift.relative_low > 0) == (lift.low > 0)
        assert lift.relative_low < lift.relative < lift.relative_high
        gap = (
            lift.policy - (1 + lift.relative_low) * lift.control
        )  # the bound is where the gap is just told from 0
        assert gap > 0
    assert 10 < sum(sides) < 55


def test_missing_rewards_and_other_groups_do_not_count() -> None:
    reward = np.tile([1.0, 0.0, 1.0, 0.0, np.nan, np.nan], 5)
    control = np.tile([True, True, False, False, True, False], 5)
    assert lift_of(log_of(reward, control)).gain == 0.0


def test_a_difference_that_may_be_chance_is_said_to_be_not_significant() -> None:
    rng = np.random.default_rng(1)
    control = np.arange(400) % 4 == 0
    lift = lift_of(log_of(rng.random(400), control))
    assert not lift.significant
    assert str(lift).startswith("Not significant: ")


def looks(seed: int, effect: float) -> list[Any]:
    """Daily looks at 30 days of 100 rewards, a tenth of them of the control."""
    rng = np.random.default_rng(seed)
    control = rng.random(3000) < 0.1
    reward = (rng.random(3000) < np.where(control, 0.1, 0.1 + effect)).astype(float)
    log = log_of(reward, control, at=864.0 * np.arange(3000), control_share=0.1)
    return [lift_of(log.where(slice(0, 100 * day))) for day in range(1, 31)]


def test_the_sequence_covers_at_all_looks_together_where_the_fixed_interval_does_not() -> None:
    every, single = 0, 0
    for seed in range(60):
        seen = looks(seed, 0.02)
        every += all(not lift.known or lift.low <= 0.02 <= lift.high for lift in seen)
        single += all(not lift.known or lift.fixed_low <= 0.02 <= lift.fixed_high for lift in seen)
    assert every >= 57
    assert single < every - 5


def test_what_was_known_before_the_decision_narrows_the_interval_and_moves_nothing() -> None:
    rng = np.random.default_rng(5)
    n = 4000
    control, known = rng.random(n) < 0.2, rng.normal(size=n)
    hour = np.sin(np.arange(n) * 864.0 * 2 * np.pi / 86_400)
    reward = 1 + 2 * known + hour + 0.1 * ~control + 0.5 * rng.normal(size=n)
    x = np.zeros((n, WIDTH))
    at = 864.0 * np.arange(n)
    blind = lift_of(log_of(reward, control, at=at, control_share=0.2, x=x))
    x[:, 3] = known
    aided = lift_of(log_of(reward, control, at=at, control_share=0.2, x=x))
    assert (aided.high - aided.low) < 0.4 * (blind.high - blind.low)
    assert aided.low < 0.1 < aided.high
    assert aided.significant
    assert aided.policy == pytest.approx(reward[~control].mean(), abs=0.15)


def test_predictions_use_earlier_blocks_alone() -> None:
    rng = np.random.default_rng(6)
    log = log_of(rng.random(500), np.arange(500) % 5 == 0)
    block = np.repeat(np.arange(5), 100)
    before = predicted_rewards(log, block)
    log.reward[300:] = 1e6
    after = predicted_rewards(log, block)
    assert np.array_equal(before[:400], after[:400])
    assert not np.array_equal(before[400:], after[400:])


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 10, 30, 99, 1000, 10**6, 1e12])
def test_quantiles_of_students_distribution_equal_scipys(freedom: float) -> None:
    for tail in (0.45, 0.25, 0.05, 0.025, 1e-3, 1e-6, 1e-12, 1e-20):
        assert student_quantile(freedom, tail) == pytest.approx(
            student.isf(tail, freedom), rel=1e-12
        )


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, float("nan"), True, "0.9"])
def test_level_of_an_interval_lies_between_0_and_1(level: Any) -> None:
    agent = Agent.memory(arms=["a", "b"], context={}, policy="bernoulli-ts")
    for ask in (agent.lift, agent.shadows):
        with pytest.raises(ParameterError, match="level must lie between 0 and 1, such as 0.95"):
            ask(level=level)


def test_interval_of_a_tiny_control_is_not_said() -> None:
    reward = np.tile([0.0, 1.0, 1.0, 0.0, 1.0], 6)
    few = np.isin(np.arange(30), (3, 11))
    words = str(lift_of(log_of(reward, few)))
    assert words.startswith("Nothing can be said yet")
    many = np.arange(3000) % 2 == 0
    assert "95% sure at every look" in str(lift_of(log_of(np.tile(reward, 100), many)))
