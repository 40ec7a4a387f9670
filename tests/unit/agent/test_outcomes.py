"""Further outcomes beside the reward: stored, repeated, exported, and compared on their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidepull.agent.commands import Request
from tidepull.agent.served import ServedAgent
from tidepull.errors import InputError, OtherRewardError, RewardError

START = 1_782_900_000.0


def shop(path: str | Path = ":memory:", **more: Any) -> ServedAgent:
    settings = {"arms": ["a", "b"], "context": {}, "policy": "bernoulli-ts", "seed": 1}
    return ServedAgent(path, **{**settings, "control": 0.5, "training": "inline", **more})


def play(agent: ServedAgent, rounds: int) -> None:
    for n in range(rounds):
        decision = agent.choose(at=START + 600 * n)
        cost = 1.0 + (decision.group == "policy") * 0.5 + 0.1 * (n % 3)
        agent.reward(decision, float(n % 2), at=START + 600 * n, also={"cost": cost})


def test_an_outcome_has_its_own_lift_and_teaches_nothing() -> None:
    agent, twin = shop(), shop()
    play(agent, 200)
    for n in range(200):
        twin.reward(twin.choose(at=START + 600 * n), float(n % 2), at=START + 600 * n)
    cost = agent.lift(outcome="cost")
    assert cost.low < 0.5 < cost.high
    assert cost.significant
    assert "more cost than random arms" in str(cost)
    assert str(cost) in str(agent.explain())
    assert agent.lift() == twin.lift()
    assert agent.choose(at=START + 1e6).propensity == twin.choose(at=START + 1e6).propensity


def test_outcomes_are_there_after_a_restart_and_in_exports(tmp_path: Path) -> None:
    with shop(tmp_path / "shop.db") as agent:
        play(agent, 20)
        before = agent.lift(outcome="cost")
    with shop(tmp_path / "shop.db") as again:
        assert again.lift(outcome="cost") == before
        assert again.check().sound
        again.export(tmp_path / "log.jsonl")
        assert again.history("rows")[3]["also.cost"] == pytest.approx(1.0, abs=0.8)
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["also"]["cost"] for row in rows][:3] == pytest.approx([1.5, 1.1, 1.2], abs=0.51)


def test_a_reward_without_the_outcome_counts_as_nothing_of_it() -> None:
    agent = shop()
    for n in range(40):
        decision = agent.choose(at=START + n)
        agent.reward(decision, 1.0, at=START + n, also={"cost": 4.0} if n % 4 == 0 else None)
    lift = agent.lift(outcome="cost")
    assert lift.n_policy + lift.n_control == 40
    assert 0 < lift.policy < 4


@pytest.mark.parametrize(("rule", "cost"), [("add", 5.0), ("replace", 3.0)])
def test_outcomes_add_up_or_are_replaced_with_their_rewards(rule: Any, cost: float) -> None:
    agent = shop(on_duplicate=rule, reward_within=3600.0)
    decision = agent.choose(at=START)
    agent.reward(decision, 1.0, at=START + 1, also={"cost": 2.0})
    agent.reward(decision, 0.0, at=START + 2, also={"cost": 3.0})
    assert agent.history("rows")[0]["also.cost"] == cost


def test_the_same_reward_with_another_outcome_is_another_reward() -> None:
    agent = shop()
    decision = agent.choose()
    assert agent.reward(decision, 1.0, also={"cost": 2.0, "weight": 1})
    assert not agent.reward(decision, 1.0, also={"weight": 1.0, "cost": 2})
    with pytest.raises(OtherRewardError, match=r'1\{"cost": 3.0\} is another'):
        agent.reward(decision, 1.0, also={"cost": 3.0})


def test_outcomes_of_a_deferred_decision_count_when_it_is_activated() -> None:
    agent = shop()
    ((decision,), _) = agent.choose_ahead([Request(id="x", deferred=True)])
    agent.reward(decision, 1.0, also={"cost": 2.0})
    assert "also.cost" not in agent.history("rows")[0]
    agent.activate_ahead("x")
    assert agent.history("rows")[0]["also.cost"] == 2.0


@pytest.mark.parametrize(
    ("also", "words"),
    [
        ({"cost": float("nan")}, "also: cost must be a finite number"),
        ({"": 1.0}, "the name of an outcome must be text"),
        ({"reward": 1.0}, "other than 'reward'"),
        ([1.0], "also must be a dictionary"),
        ({str(n): 1.0 for n in range(17)}, "at most 16 names"),
    ],
)
def test_a_bad_outcome_is_refused_and_nothing_changes(also: Any, words: str) -> None:
    agent = shop()
    decision = agent.choose()
    with pytest.raises(RewardError, match=words):
        agent.reward(decision, 1.0, also=also)
    assert agent.reward(decision, 0.0)


def test_an_outcome_that_was_not_reported_is_named() -> None:
    agent = shop()
    play(agent, 4)
    with pytest.raises(InputError, match="there is no outcome 'price'; outcomes: cost"):
        agent.lift(outcome="price")
