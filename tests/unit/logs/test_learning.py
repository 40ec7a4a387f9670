"""Policies that learn from a log: which decisions they take, when they hear of rewards, what they
are said to earn."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.logs.making import drawn, make_log
from tidepull import logs
from tidepull.logs.models import RewardModel
from tidepull.logs.policies import play
from tidepull.types import Context, Event

MEANS = np.array([0.2, 0.5, 0.4])
EVENLY = np.full(3, 1 / 3)


class Recorder:
    """Plays one arm and remembers what it is told, and when."""

    def __init__(self, arm: int = 0) -> None:
        self.arm = arm
        self.chosen: list[float | None] = []
        self.told: list[tuple[int, int, float]] = []

    def choose(self, context: Context) -> int:
        self.chosen.append(context.time)
        return self.arm

    def learn(self, event: Event) -> None:
        assert event.decided is not None
        self.told.append((event.decided, len(self.chosen), event.reward))


@pytest.mark.parametrize("context", [False, True], ids=["waiting", "rejecting"])
def test_one_arm_takes_exactly_its_own_decisions_when_logging_was_uniform(context: bool) -> None:
    log = drawn(1, 500, MEANS, EVENLY, context=context)
    for policy in (Recorder(1), ("fixed", {"arm": 1})):
        played = play(log, policy, RewardModel(log))
        assert played.rows.tolist() == np.flatnonzero(log.arm == 1).tolist()
        assert played.replay.value == pytest.approx(log.reward[log.arm == 1].mean(), abs=1e-12)
        assert played.clipped == 0.0


def test_terms_of_one_arm_with_contexts_are_those_of_the_doubly_robust_estimator() -> None:
    log = drawn(2, 400, MEANS, EVENLY, context=True)
    played = play(log, ("fixed", {"arm": 2}), RewardModel(log))
    fixed = logs.backtest(log, ["arm:2"], estimators=["dr"])
    assert played.dr.value == pytest.approx(fixed.of("arm:2", "dr").value, abs=1e-9)
    assert len(played.counted) == 400


def test_terms_without_contexts_are_rewards_beside_the_model() -> None:
    log = drawn(2, 400, MEANS, EVENLY)
    model = RewardModel(log)
    played = play(log, "random", model)
    expected = model.rewards(slice(0, 400), model.features.rows(0, 400))
    rows, arm = played.rows, log.arm[played.rows]
    terms = expected[rows].mean(axis=1) + log.reward[rows] - expected[rows, arm]
    assert played.counted.tolist() == rows.tolist()
    assert np.allclose(played.dr.top, terms, atol=1e-9)


def test_uneven_chances_of_an_arm_are_evened_out_while_waiting() -> None:
    """An arm is logged mostly where it pays; the plain mean of its rewards is far too high."""
    rng = np.random.default_rng(0)
    good = rng.random(6000) < 0.5
    chance = np.where(good, 0.9, 0.1)
    arm = (rng.random(6000) >= chance).astype(np.int64)
    reward = ((arm == 0) & good).astype(float)
    propensity = np.where(arm == 0, chance, 1 - chance)
    log = make_log(arm, reward, propensity, n_arms=2)
    played = play(log, ("fixed", {"arm": 0}), RewardModel(log))
    assert reward[arm == 0].mean() > 0.85
    assert played.replay.value == pytest.approx(0.5, abs=0.06)


def test_rewards_that_come_late_are_learnt_late() -> None:
    log = drawn(1, 300, MEANS, EVENLY)
    assert log.time is not None
    late = make_log(
        log.arm, log.reward, log.propensity, time=log.time, paid_at=log.time + 600.0 * 30
    )
    prompt, patient = Recorder(0), Recorder(0)
    at_once, later = (
        play(one, policy, RewardModel(one)) for one, policy in ((log, prompt), (late, patient))
    )
    assert at_once.rows.tolist() == later.rows.tolist()
    assert all(known == decided + 1 for decided, known, _ in prompt.told)
    for decided, known, reward in patient.told:
        row = later.rows[decided]
        assert reward == log.reward[row]
        opened = np.append(0, later.rows + 1)  # a round opens at the row after a decision was taken
        assert known == int((opened < row + 30).sum())
    assert len(patient.told) < len(prompt.told)


def test_a_learner_is_said_to_earn_more_than_chance_and_less_than_the_best_arm() -> None:
    log = drawn(5, 6000, np.array([0.1, 0.7, 0.2]), EVENLY)
    found = logs.backtest(log, ["ucb", "bernoulli-ts", "random"])
    chance = found.of("random", "ips").value
    for policy in ("ucb", "bernoulli-ts"):
        for estimator in ("replay", "replay-dr"):
            one = found.of(policy, estimator)
            assert chance + 0.15 < one.value < 0.72
            assert one.rows == pytest.approx(2000, rel=0.1)
        assert f"it learnt from {one.rows:,} of 6,000 decisions" in found.warnings[policy]


def test_tide_plays_through_a_log_with_contexts_and_times() -> None:
    log = drawn(5, 90, np.array([0.1, 0.7, 0.2]), EVENLY, context=True)
    found = logs.backtest(log, ["tide", "tide"])
    assert found.of("tide", "replay").value == found.of("tide (2)", "replay").value
    assert found.of("tide", "replay-dr").rows == 90
