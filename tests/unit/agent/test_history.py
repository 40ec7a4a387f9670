"""The history as a data frame, whose types do not hang on which rows come first, and decisions
that are made many at once."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.worlds import SHOP, START
from tidepull.agent.agent import Agent
from tidepull.errors import ContextError


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_history_has_the_same_types_whichever_rows_come_first(kind: Any) -> None:
    pytest.importorskip(kind)
    agent = Agent.memory(**SHOP, training="inline")
    for n in range(130):
        decision = agent.choose({"age": 3.0} if n > 110 else {}, at=START + n)
        if n > 120:
            agent.reward(decision.id, 1, at=START + n + 0.25 * (n % 2))
    found = agent.history(kind)
    assert found.shape == (130, 10)
    last: dict[str, Any] = (
        found.to_dict("records")[-1] if kind == "pandas" else found.to_dicts()[-1]
    )
    assert last["reward"] == 1.0
    assert last["context.age"] == 3.0
    assert last["rewarded_at"] == datetime.fromtimestamp(START + 129.25, UTC)
    assert Agent.memory(**SHOP).history(kind).shape[0] == 0


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_moments_of_a_context_are_dates_and_subjects_are_hashes(kind: Any) -> None:
    pytest.importorskip(kind)
    agent = Agent.memory(
        arms=["a", "b"], context={"seen": datetime}, policy="random", timezone="Europe/Berlin"
    )
    noon = datetime(2026, 7, 1, 12, tzinfo=UTC)
    agent.choose({"seen": noon}, subject="Ann")
    agent.choose({}, subject="Ann")
    agent.choose({"seen": noon}, subject="Bob")
    found = agent.history(kind)
    assert found["context.seen"][0] == noon
    subjects = list(found["subject"])
    assert subjects[0] == subjects[1] != subjects[2]
    assert "Ann" not in subjects
    assert agent.history("rows")[0]["context.seen"] == "2026-07-01T14:00:00+02:00"


def test_export_with_moments_is_learnt_again(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"arms": ["a", "b"], "context": {"seen": datetime}, "seed": 1}
    agent = Agent.memory(**settings, policy="lin-ts")
    for n in range(5):
        agent.reward(agent.choose({"seen": 1000.0 * n}, subject="Ann", at=9000.0 + n), 1.0)
    agent.export(tmp_path / "log.jsonl")
    assert Agent.memory(**settings, policy="lin-ts").learn_from(tmp_path / "log.jsonl") == 5


def test_many_decisions_are_those_of_one_after_the_other() -> None:
    twins = [
        Agent.memory(arms=["a", "b"], context={"age": float}, policy="lin-ts", seed=1,
                     now=lambda: START)
        for _ in range(2)
    ]  # fmt: skip
    contexts = [{"age": float(n)} for n in range(20)]
    assert twins[0].choose_many(contexts) == [twins[1].choose(context) for context in contexts]
    with pytest.raises(ContextError, match=r"decisions\[1\]: .*'size'"):
        twins[0].choose_many([{"age": 1.0}, {"size": 2}])
    assert twins[0].state().decisions == 20


def test_memory_shows_what_it_takes() -> None:
    parameters = inspect.signature(Agent.memory).parameters
    assert "path" not in parameters
    assert {"arms", "context", "policy", "seed", "control"} <= set(parameters)
