"""The id of a decision: the caller's own where it gave one, in answers, history, exports and
rewards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidepull.agent.commands import Request
from tidepull.agent.served import ServedAgent
from tidepull.errors import ConflictError, DecisionError


def shop() -> ServedAgent:
    return ServedAgent.memory(arms=["a", "b"], context={}, policy="random", seed=1, control=0)


def test_id_that_the_caller_gave_is_the_id_everywhere(tmp_path: Path) -> None:
    agent = shop()
    given, own = agent.choose(id="order 17"), agent.choose()
    (batched,), _ = agent.choose_ahead([Request(id="order 18")])
    ids = [given.id, own.id, batched.id]
    assert ids[0] == "order 17"
    assert ids[2] == "order 18"
    assert [row["id"] for row in agent.history("rows")] == ids
    agent.export(tmp_path / "log.jsonl")
    rows = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(row)["id"] for row in rows] == ids
    assert agent.choose(id="order 17") == given
    assert all(agent.reward(id, 1.0) for id in ids)


def test_rollback_takes_the_id_that_the_caller_gave() -> None:
    agent = shop()
    agent.choose(id="order 17", at=100.0)
    agent.choose(id="order 18", at=200.0)
    agent.rollback("order 17")
    with pytest.raises(DecisionError, match="no decision 'order 19'"):
        agent.reward("order 19", 1.0)
    assert any("rolled back" in line for line in agent.explain().changes)


def test_id_of_the_agents_making_names_its_decision_and_no_other() -> None:
    agent = shop()
    own = agent.choose(at=100.0)
    assert agent.choose(id=own.id) == own
    assert agent.state().decisions == 1
    with pytest.raises(ConflictError, match="another at"):
        agent.choose_ahead([Request(id=own.id, at=200.0)])
