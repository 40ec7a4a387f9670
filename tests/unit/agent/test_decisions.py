"""What an agent keeps of its decisions in memory: little, not for long, and never less than what is
not on disk."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.worlds import SHOP
from tidepull.agent import decisions
from tidepull.agent.commands import Request
from tidepull.agent.records import Kind
from tidepull.agent.served import ServedAgent
from tidepull.errors import OtherRewardError


@pytest.fixture
def agent(tmp_path: Path) -> Any:
    given = {**SHOP, "policy": "bernoulli-ts", "training": "manual", "snapshot_every": 10**9}
    with ServedAgent(tmp_path / "shop.db", **given) as made:
        yield made


def remembered(agent: ServedAgent) -> int:
    return len(agent._commands.decisions._pending)


def test_waiting_decision_takes_less_than_a_kilobyte(agent: ServedAgent) -> None:
    agent.commit(agent.choose_ahead([Request()] * 200)[1])
    gc.collect()
    tracemalloc.start()
    try:
        agent.commit(agent.choose_ahead([Request()] * 500)[1])
        gc.collect()
        each = tracemalloc.get_traced_memory()[0] / 500
    finally:
        tracemalloc.stop()
    assert each < 1000


def test_rewarded_decision_leaves_memory_when_its_reward_is_on_disk(agent: ServedAgent) -> None:
    made, seq = agent.choose_ahead([Request()] * 10)
    agent.commit(seq)
    for decision in made:
        agent.reward_ahead(decision.id, 1.0)
    _, seq = agent.choose_ahead([Request()])
    assert remembered(agent) == 11  # the rewards are not safe yet
    agent.commit(seq)
    agent.choose_ahead([Request()])
    assert remembered(agent) == 2
    assert not agent.reward(made[0].id, 1.0)  # it is known all the same
    with pytest.raises(OtherRewardError):
        agent.reward(made[1].id, 0.0)


def test_oldest_decision_leaves_memory_when_there_are_too_many(
    agent: ServedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "REMEMBERED", 5)
    made, seq = agent.choose_ahead([Request(id=str(n)) for n in range(12)])
    assert remembered(agent) == 12  # none is on disk
    agent.commit(seq)
    more, seq = agent.choose_ahead([Request(id=str(n)) for n in range(30)])
    assert [one.id for one in more[:12]] == [one.id for one in made]
    agent.commit(seq)
    for n in range(30, 60):
        agent.choose(id=str(n))
    assert remembered(agent) <= 6
    assert agent.reward(made[0].id, 1.0)
    assert not agent.reward("0", 1.0)
    assert agent.choose(id="0") == made[0]


def test_reward_counts_once_when_it_comes_twice_before_a_commit(
    agent: ServedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "REMEMBERED", 2)
    first = agent.choose()
    assert agent.reward_ahead(first.id, 1.0)[0]
    agent.choose_ahead([Request()] * 20)  # far more than are remembered
    news, seq = agent.reward_ahead(first.id, 1.0)
    assert not news
    agent.commit(seq)
    rewards = [record for record in agent._commands.ledger.tail(0) if record.kind is Kind.REWARD]
    assert len(rewards) == 1
