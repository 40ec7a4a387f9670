"""An arm that gives its place to another: nothing is believed of the new one, decisions keep their
labels, and a restart leads to the same state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidepull import Agent
from tidepull.agent.personalizer import settings as personalizer_settings
from tidepull.agent.schema import FREE
from tidepull.errors import ArmError

START = 1_782_900_000.0


def shop(path: Path, **given: Any) -> Agent:
    made: dict[str, Any] = {
        "arms": ["good", "bad"], "context": {}, "policy": "bernoulli-ts", "seed": 1, "control": 0.0,
        "training": "inline", **given,
    }  # fmt: skip
    return Agent(path, **made)


def played(agent: Agent, first: int, last: int, good: str) -> list[str]:
    """The arms of some visits, of which one pays always."""
    arms = []
    for n in range(first, last):
        decision = agent.choose(at=START + n)
        agent.reward(decision, float(decision.arm == good), at=START + n)
        arms.append(decision.arm)
    return arms


def test_nothing_is_believed_of_the_new_arm_and_old_decisions_keep_their_labels(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    with shop(path) as agent:
        before = played(agent, 0, 200, "good")
        assert before[-50:].count("good") > 45
        agent.replace("good", "new", at=START + 200)
        assert agent.arms == ["new", "bad"]
        assert agent._commands.state.arms.room == 4
        after = played(agent, 200, 300, "bad")  # the new arm pays nothing
        assert 0 < after.count("new") < 40  # it began as an unknown one, not as the best
        rows = [row["arm"] for row in agent.history("rows")]
        assert rows == before + after
        assert agent.check().sound
        agent._commands.ledger.drop_snapshots(0)
        agent.close(save=False)
    with Agent(path, training="inline") as again:
        assert again._commands.state.differences == 0
        assert [row["arm"] for row in again.history("rows")] == before + after
        assert "arm 'good' replaced by 'new'" in str(again.explain())
        again.add("good")
        assert again.arms == ["new", "bad", "good"]


def test_place_is_given_on_when_the_policy_is_rebuilt_for_another_reason(tmp_path: Path) -> None:
    twins = []
    for name, capacity in (("a.db", 4), ("b.db", 8)):
        agent = shop(tmp_path / name, arms=["good", "bad", "c", "d"], capacity=capacity)
        played(agent, 0, 50, "good")
        agent.replace("good", "new", at=START + 50)
        played(agent, 50, 80, "bad")
        agent.add("e", at=START + 80)  # one of them needs more room
        twins.append(agent)
    counts = [
        [part[:4].tolist() for part in (beliefs._successes, beliefs._failures)]
        for beliefs in (agent._commands.state.learning.policy.inner._beliefs for agent in twins)  # type: ignore[union-attr]
    ]
    assert counts[0] == counts[1]


def test_described_arms_are_replaced_without_a_replay(tmp_path: Path) -> None:
    actions = {"a": {"kind": "text"}, "b": {"kind": "video"}}
    with Agent(tmp_path / "a.db", training="inline", **personalizer_settings(actions)) as agent:
        agent.choose({"features": {}}, id="first")
        learning = agent._commands.state.learning
        agent.replace("a", "c", {FREE: {"kind": "image"}})
        assert agent._commands.state.learning is learning
        assert agent.features("c") == {FREE: {"kind=image": True}}
        assert agent.choose({"features": {}}).arm in ("b", "c")
    with Agent(tmp_path / "a.db") as again:
        assert again.arms == ["c", "b"]
        assert again.history("rows")[0]["arm"] in ("a", "b")


@pytest.mark.parametrize(
    ("label", "to", "message"),
    [("good", "bad", "already an arm 'bad'"), ("what", "new", "there is no arm 'what'"),
     ("kept", "new", "'kept' cannot be replaced"), ("safe", "new", "'safe' cannot be replaced")],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_nothing_changes(
    tmp_path: Path, label: str, to: str, message: str
) -> None:
    arms = ["good", "bad", "kept", "safe"]
    bounds: Any = {"kept": (0.1, 1.0)}
    with shop(tmp_path / "a.db", arms=arms, control_arm="safe", share_bounds=bounds) as agent:
        with pytest.raises(ArmError, match=message):
            agent.replace(label, to)
        assert agent.arms == arms
