"""Candidates beside a living agent: what they would choose, what that is worth, and when nothing can
be said."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidepull.agent.agent import Agent
from tidepull.agent.records import Choice, Kind
from tidepull.errors import ArmError, ParameterError, UnknownIdError

START = 1_782_900_000.0
TRUTH = {"a": 0.2, "b": 0.5, "c": 0.8}


def shop(path: str | Path = ":memory:", **more: Any) -> Agent:
    settings = {"arms": list(TRUTH), "context": {}, "policy": "random", "seed": 4, "control": 0.0}
    return Agent(path, **{**settings, "training": "inline", "shadow": ["bernoulli-ts"], **more})


def play(agent: Agent, rounds: int, *, first: int = 0, seed: int = 0, **more: Any) -> None:
    rng = np.random.default_rng([seed, first])
    for n in range(first, first + rounds):
        decision = agent.choose(at=START + 60.0 * n, **more)
        agent.reward(decision, float(rng.random() < TRUTH[decision.arm]), at=START + 60.0 * n)


def true_value(agent: Agent) -> float:
    (shadow,) = agent._shadows.values()
    rates = np.array([*TRUTH.values(), 0.0])
    return float((np.array(shadow.seen.theirs) @ rates).mean())


@pytest.mark.parametrize("more", [{}, {"control": 0.3}, {"control": 0.5, "control_arm": "b"}])
def test_value_of_a_candidate_covers_the_truth(more: Any) -> None:
    covered = 0
    for seed in range(6):
        agent = shop(seed=seed, **more)
        rule: dict[str, Any] = {"baseline": "a"} if more == {"control": 0.3} else {}
        play(agent, 800, seed=seed, **rule)
        (report,) = agent.shadows()
        own = 0.5
        covered += report.low <= true_value(agent) - own <= report.high
        assert abs(report.value - true_value(agent)) < 0.15
        assert report.significant
        assert report.gain > 0
    assert covered >= 5
    assert report.decisions == 800
    assert report.shares["c"][1] > 0.8
    assert "bernoulli-ts would choose another arm in" in str(report)
    assert "more than the agent's own choices" in str(report)


def test_a_candidate_like_the_agent_gains_nothing() -> None:
    agent = shop(shadow=["random"])
    play(agent, 400)
    (report,) = agent.shadows()
    assert report.low <= 0 <= report.high
    assert not report.significant
    assert "Not significant: " in str(report)


def test_of_a_rule_that_never_varies_no_value_is_told_but_what_is_needed() -> None:
    agent = shop()
    for n in range(300):
        agent.record({}, "a", reward=float(n % 5 == 0), at=START + n)
    (report,) = agent.shadows()
    assert not report.known
    assert math.isnan(report.value)
    assert report.unsupported > 0.5
    assert report.needed is not None
    assert report.needed % 100 == 0
    assert "Its value cannot be estimated" in str(report)
    assert f"for about {report.needed:,} decisions" in str(report)


def test_recorded_choices_that_were_random_have_a_value() -> None:
    agent, rng = shop(), np.random.default_rng(1)
    for n in range(500):
        arm = "abc"[rng.integers(3)]
        reward = float(rng.random() < TRUTH[arm])
        agent.record({}, arm, reward=reward, propensity=1 / 3, at=START + n)
    (report,) = agent.shadows()
    assert report.own == pytest.approx(0.5, abs=0.1)
    assert report.gain == pytest.approx(true_value(agent) - 0.5, abs=0.12)


def test_a_record_is_learnt_once_rewarded_later_and_survives_a_restart(tmp_path: Path) -> None:
    with shop(tmp_path / "shop.db", policy="bernoulli-ts") as agent:
        first = agent.record({}, "b", id="order 1", propensity=0.25, at=START)
        assert (first.group, first.propensity, first.arm) == ("imported", 0.25, "b")
        assert agent.record({}, "b", id="order 1", at=START) == first
        assert agent.reward("order 1", 1.0, at=START + 5)
    with shop(tmp_path / "shop.db", policy="bernoulli-ts") as again:
        assert again.check().sound
        assert again.history("rows")[0]["propensity"] == 0.25
        with pytest.raises(ArmError):
            again.record({}, "z")
        with pytest.raises(ParameterError, match="propensity must be a number above 0"):
            again.record({}, "a", propensity=0.0)


def test_a_candidate_is_what_an_upgrade_would_make_of_it() -> None:
    agent, twin = shop(shadow=[("ucb", {})]), shop(shadow=[("ucb", {})])
    for one in (agent, twin):
        play(one, 100)
    agent.upgrade("ucb")
    for one in (agent, twin):
        one.choose(at=START + 1e5)
    twin.shadows()
    (shadow,) = twin._shadows.values()
    *_, last = (r for r in agent._commands.ledger.tail(0) if r.kind is Kind.DECISION)
    shares = Choice.unpack(last.body).counts / 65535
    assert np.allclose(shadow.seen.theirs[-1], shares, atol=1e-4)


def test_reports_go_on_where_they_stopped_and_begin_anew_after_other_changes() -> None:
    agent, twin = shop(), shop()
    for one in (agent, twin):
        play(one, 50)
    agent.shadows()
    for one in (agent, twin):
        play(one, 50, first=50)
    assert agent.shadows() == twin.shadows()
    for change in (
        lambda one: [one.add(label) for label in "de"],
        lambda one: one.change(context={"age": float}),
        lambda one: one.rollback(START + 60.0 * 80),
    ):
        for one in (agent, twin):
            change(one)
            one.choose(arms=["a"], at=START + 1e6)
        twin._shadows.clear()
        assert agent.shadows() == twin.shadows()


def test_candidates_change_and_others_can_be_asked_for() -> None:
    agent = shop()
    play(agent, 20)
    agent.change(shadow=["ucb", ("sw-ucb", {"window": 50})])
    assert [report.policy for report in agent.shadows()] == ["ucb", "sw-ucb"]
    assert [report.policy for report in agent.shadows(["lin-ts"])] == ["lin-ts"]
    with pytest.raises(ParameterError, match="shadow must be a list"):
        agent.change(shadow="ucb")
    with pytest.raises(UnknownIdError, match="no-such-policy"):
        agent.shadows(["no-such-policy"])
