"""Another policy, or another form of it: made anew from the ledger, and everything else stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.typing_it import tidepull
from tests.unit.agent.worlds import SHOP, START, serve, visit
from tidepull import Agent
from tidepull.errors import LedgerError, ParameterError, UnknownIdError


@pytest.mark.parametrize("policy", ["bernoulli-ts", ("ucb", {}), "tide"])
def test_upgrade_to_another_policy_keeps_ids_rewards_arms_and_groups(
    place: str, policy: Any
) -> None:
    with Agent(place, **SHOP, training="inline") as agent:
        serve(agent, 0, 60)
        agent.add("pink", at=START + 300 * 60)
        before = agent.history("rows")
        agent.upgrade(policy)
        assert agent.history("rows") == before
        assert agent.reward("visit 58", 1.0, at=START + 300 * 61)
        made = serve(agent, 60, 90)
    with Agent(place, training="inline") as agent:
        assert agent.settings.policy == (policy if isinstance(policy, str) else policy[0])
        assert agent._commands.state.differences == 0
        assert [(row["arm"], row["propensity"], row["group"]) for row in agent.history("rows")][
            60:
        ] == made
        assert agent.check().sound


def test_upgraded_policy_has_learnt_all_rewards_of_the_ledger(tmp_path: Path) -> None:
    with Agent(tmp_path / "shop.db", **{**SHOP, "policy": "random"}, training="inline") as agent:
        serve(agent, 0, 80)
        paid = [row for row in agent.history("rows") if row["reward"] is not None]
        agent.upgrade("ucb")
        policy = agent._commands.state.learning.policy
    assert policy is not None
    sums = [sum(row["reward"] for row in paid if row["arm"] == arm) for arm in SHOP["arms"]]
    assert policy.inner.snapshot()["tally"]["sums"].tolist()[:3] == sums
    assert sum(sums) > 10


@pytest.mark.parametrize("saved", [False, True])
def test_rollback_to_before_an_upgrade_keeps_the_policy_and_takes_back_what_was_learnt(
    tmp_path: Path, saved: bool
) -> None:
    path = tmp_path / "shop.db"
    with Agent(path, **SHOP, training="inline") as agent:
        serve(agent, 0, 50)
        if saved:
            agent.save()
        serve(agent, 50, 60)
        agent.upgrade("bernoulli-ts")
        serve(agent, 60, 80)
        agent.rollback(START + 300 * 55)
        policy = agent._commands.state.learning.policy
        assert agent.settings.policy == "bernoulli-ts"
        assert policy is not None
        assert policy.rounds == 56
        serve(agent, 80, 90)
    with Agent(path, training="inline") as agent:
        assert agent._commands.state.differences == 0
        assert agent.check().sound


def test_policy_that_is_not_there_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    with Agent(tmp_path / "shop.db", **SHOP, training="inline") as agent:
        serve(agent, 0, 20)
        for policy in ("no-such-policy", ("ucb", {"no_such": 1})):
            with pytest.raises((UnknownIdError, ParameterError)):
                agent.upgrade(policy)
        serve(agent, 20, 30)
        assert agent.check().sound
    with Agent(tmp_path / "shop.db", read_only=True) as agent:
        assert agent.settings.policy == "lin-ts"
        with pytest.raises(LedgerError, match="read_only"):
            agent.upgrade("ucb")


def test_upgrade_forget_and_compact_from_the_shell(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with Agent(path, **SHOP, training="inline") as agent:
        serve(agent, 0, 30)
        agent.choose(visit(30), subject="user 1", at=START + 300 * 30)

    def told(*words: str) -> tuple[int, str]:
        done = tidepull("agent", str(path), *words)
        return done.returncode, done.stdout + done.stderr

    parameters = ("--parameters", json.dumps({"noise_std": 0.4}))
    code, text = told("upgrade", "--policy", "lin-ts", *parameters)
    assert (code, "lin-ts rebuilt from 31 decisions" in text) == (0, True)
    code, text = told("forget", "user 1")
    assert (code, "add --yes" in text) == (2, True)
    assert told("forget", "user 1", "--yes") == (0, "1 decision deleted\n")
    code, text = told("compact", str(tmp_path / "old.jsonl"), "--before", "2026-07-01T11:00")
    assert (code, "decisions moved to" in text) == (0, True)
    code, text = told("upgrade", *parameters)
    assert (code, "needs --policy" in text) == (2, True)
