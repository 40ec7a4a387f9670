"""Settings of a living agent change, each by a record: replayed exactly, harmless when two versions
of a program open the agent in turn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidepull.agent.agent import Agent
from tidepull.agent.replay import begin, replay
from tidepull.errors import ContextError, ExpiredError, HeldError, InputError, ParameterError
from tidepull.state import dump

START = 1_782_900_000.0
SHOP: dict[str, Any] = {
    "arms": ["a", "b", "c"],
    "context": {"age": float, "device": ["phone", "desktop"]},
    "policy": "lin-ts",
    "seed": 5,
    "training": "inline",
}


def play(agent: Agent, first: int, rounds: int, **more: Any) -> list[Any]:
    """Decisions whose rewards depend on arm and context; a third of them come three rounds late."""
    made, late = [], []
    for n in range(first, first + rounds):
        at = START + 60.0 * n
        context = {"age": float(n % 13), "device": "phone" if n % 3 else "desktop", **more}
        decision = agent.choose(context, at=at, id=f"v{n}", subject=f"s{n % 17}")
        made.append((decision.arm, decision.propensity, decision.group))
        late.append((decision.id, float((n + ord(decision.arm[0])) % 4 == 0)))
        if n % 3 == 0:
            for id, reward in late:
                agent.reward(id, reward, at=at + 1)
            late = []
    for id, reward in late:
        agent.reward(id, reward, at=START + 60.0 * (first + rounds))
    return made


CHANGES: dict[str, Any] = {
    "control": lambda agent: agent.change(control=0.4),
    "control arm": lambda agent: agent.change(control_arm="b"),
    "least share": lambda agent: agent.change(min_share=0.3),
    "bounds": lambda agent: agent.change(share_bounds={"a": (0.2, 0.5)}),
    "reward within": lambda agent: agent.change(reward_within=600.0),
    "default": lambda agent: agent.change(reward_within=timedelta(minutes=3), default_reward=0),
    "unset": lambda agent: (agent.change(control_arm="c"), agent.change(unset=["control_arm"])),
    "field added": lambda agent: agent.change(context={**SHOP["context"], "loyal": bool}),
    "field dropped": lambda agent: agent.change(context={"device": ["phone", "desktop"]}),
    "field replaced": lambda agent: agent.change(context={**SHOP["context"], "age": str}),
    "arm added": lambda agent: agent.add("d"),
    "added arm controls": lambda agent: (
        agent.add("d"), agent.change(control_arm="d"), agent.rename("d", "e"),
    ),
    "two fields": lambda agent: (
        agent.change(context={"age": float}), agent.change(context={"age": float, "vip": bool}),
    ),
    "there and back": lambda agent: (
        agent.change(control=0.5, context={"age": float}),
        agent.change(control=0.05, context=SHOP["context"]),
    ),
    "policy": lambda agent: (agent.change(context={"age": float}), agent.upgrade("bernoulli-ts")),
    "rollback": lambda agent: (agent.change(context={"age": float}), agent.rollback("v20")),
}  # fmt: skip


@pytest.mark.parametrize("snapshot", [None, "before", "after"])
@pytest.mark.parametrize("kind", CHANGES)
def test_every_kind_of_change_is_replayed_exactly(
    kind: str, snapshot: str | None, tmp_path: Path
) -> None:
    twin = Agent.memory(**SHOP)
    with Agent(tmp_path / "shop.db", **SHOP) as agent:
        for one in (agent, twin):
            play(one, 0, 40)
            if snapshot == "before":
                one.save()
            CHANGES[kind](one)
            play(one, 40, 30)
            if snapshot == "after":
                one.save()
            play(one, 70, 10)
    with Agent(tmp_path / "shop.db", training="inline") as again:
        assert again.settings.text() == twin.settings.text()
        assert play(again, 80, 20) == play(twin, 80, 20)
        check = again.check()
        assert check.sound, str(check)
        assert check.differences == 0
        assert again.lift() == twin.lift()
        again.save()
        commands = again._commands
        replayed = commands.fresh_state()
        replayed.erased = commands.erased()
        begin(replayed, commands.ledger, 0)
        replay(replayed, commands.ledger, 0)
        taken = [{**state.take()(), "due": 0} for state in (replayed, commands.state)]
        assert dump(taken[0]) == dump(
            taken[1]
        )  # how far overdue decisions were looked at may differ


def test_changes_are_named_and_measured_by_the_share_of_their_time() -> None:
    agent = Agent.memory(**SHOP)
    play(agent, 0, 60)
    assert agent.change(control=0.5, min_share=0.1) == {"control": (0.05, 0.5), "min_share": (None, 0.1)}  # fmt: skip
    assert agent.change(control=0.5) == {}
    play(agent, 60, 60)
    words = str(agent.explain())
    assert "control changed from 0.05 to 0.5; min_share changed from None to 0.1" in words
    agent.change(context={"device": ["phone", "desktop"], "loyal": bool})
    assert "field 'loyal' added; field 'age' dropped" in str(agent.explain())


def test_a_new_control_arm_begins_a_new_comparison() -> None:
    agent = Agent.memory(**{**SHOP, "control": 0.3})
    play(agent, 0, 40)
    agent.change(control_arm="b")
    assert agent.lift().n_policy + agent.lift().n_control == 0
    play(agent, 40, 40)
    lift = agent.lift()
    assert lift.against == "arm 'b' alone"
    assert lift.n_policy + lift.n_control == 40


def test_a_field_that_is_added_is_learnt_and_one_that_is_dropped_is_ignored() -> None:
    agent = Agent.memory(**{**SHOP, "control": 0.0})
    play(agent, 0, 30)
    with pytest.raises(ContextError, match="no field 'loyal'"):
        agent.choose({"loyal": True})
    agent.change(context={"device": ["phone", "desktop"], "loyal": bool})
    rng = np.random.default_rng(0)
    for n in range(400):
        loyal = bool(rng.integers(2))
        decision = agent.choose({"age": 3.0, "loyal": loyal}, at=START + 1e5 + n)
        agent.reward(decision, float(decision.arm == ("a" if loyal else "b")), at=START + 1e5 + n)
    arms = [agent.choose({"loyal": n % 2 == 0}, at=START + 2e5 + n).arm for n in range(40)]
    assert arms.count("a") > 14
    assert {"a", "b"} <= {max(set(part), key=part.count) for part in (arms[::2], arms[1::2])}
    assert "context.age" in agent.history("rows")[0]


def test_a_default_that_comes_later_does_not_reach_back() -> None:
    agent = Agent.memory(**SHOP)
    old = agent.choose({}, at=START)
    agent.change(reward_within=60.0, default_reward=0.0)
    new = agent.choose({}, at=START + 1000)
    agent.choose({}, at=START + 5000)
    rewards = {row["id"]: row["reward"] for row in agent.history("rows")}
    assert rewards[old.id] is None
    assert rewards[new.id] == 0.0
    with pytest.raises(ExpiredError):
        agent.reward(old, 1.0, at=START + 5000)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"control": 2.0}, "control must be a number from 0 to 1"),
        ({"control_arm": "z"}, "there is no arm 'z'"),
        ({"share_bounds": {"a": (0.9, 0.1)}}, "share_bounds"),
        ({"default_reward": 1.0}, "default_reward needs reward_within"),
        ({"unset": ["control"]}, "unset: 'control' cannot be taken back"),
        ({"context": {"age": 3}}, "context"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(change: Any, words: str) -> None:
    agent = Agent.memory(**SHOP)
    play(agent, 0, 5)
    before = agent.state().records
    with pytest.raises((ParameterError, InputError), match=words):
        agent.change(**change)
    assert agent.state().records == before


def test_programs_of_two_versions_open_an_agent_in_turn_and_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    new = {**SHOP, "arms": ["b", "c", "d"], "context": {**SHOP["context"], "loyal": bool}}
    with Agent(path, **SHOP) as agent:
        play(agent, 0, 20)
    for turn in range(3):
        with Agent(path, **new) as agent:
            assert agent.arms == ["a", "b", "c", "d"]
            play(agent, 100 * turn + 20, 10, loyal=True)
        with Agent(path, **SHOP) as agent:
            assert agent.arms == ["a", "b", "c", "d"]
            assert list(agent.state().context or {}) == ["age", "device", "loyal"]
            play(agent, 100 * turn + 50, 10)
    with Agent(path, **SHOP) as agent:
        assert len(agent.explain().changes) == 2
        assert agent.check().sound


def test_a_program_of_an_earlier_version_beside_a_later_one_changes_nothing(tmp_path: Path) -> None:
    """In a rolling deploy the earlier program, with the shorter list, may start while the later one
    has the agent: it is told so, and may look."""
    path = tmp_path / "shop.db"
    new = {**SHOP, "arms": ["a", "b", "c", "d"], "control": 0.2}
    with Agent(path, **new) as later:
        play(later, 0, 10)
        before = later.state().records
        with pytest.raises(HeldError):
            Agent(path, **SHOP)
        with Agent(path, **SHOP, read_only=True) as looking:
            assert looking.arms == ["a", "b", "c", "d"]
            assert looking.settings.control == 0.2
        assert later.state().records == before
        play(later, 10, 10)
        assert later.check().sound
    with Agent(path, **SHOP) as earlier:  # the later one has gone: all that it added stays
        assert earlier.arms == ["a", "b", "c", "d"]
        assert earlier.settings.control == 0.2
        play(earlier, 20, 10)
    with Agent(path, **new) as later:
        assert later.check().sound


def test_arms_that_are_missing_are_retired_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with Agent(path, **SHOP) as agent:
        play(agent, 0, 5)
    with Agent(path, arms=["b", "d"], retire_missing=True) as agent:
        assert agent.arms == ["b", "d"]
    with Agent(path, arms=["a", "b", "d"]) as agent:
        assert agent.arms == ["b", "d"]  # what was retired comes back by `add` alone


def test_opening_changes_what_can_change_and_refuses_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    Agent(path, **SHOP).close()
    with Agent(path, control=0.2, reward_within=60) as agent:
        assert (agent.settings.control, agent.settings.reward_within) == (0.2, 60.0)
    with pytest.raises(ParameterError, match="other seed"):
        Agent(path, seed=6)
    with pytest.raises(ParameterError, match=r"field 'age'.*change\(context"):
        Agent(path, context={"age": str})
    with Agent(path, read_only=True, control=0.9) as agent:
        assert agent.settings.control == 0.2


LIVES: dict[str, tuple[tuple[str, ...], int]] = {
    "settings": (
        (
            "control", "control arm", "least share", "bounds", "unset", "reward within", "default",
            "sticky", "retention", "shadow", "promoted", "more", "field added", "field dropped",
            "field replaced", "arm added", "retired", "renamed", "replaced", "frozen", "rollback",
            "back at 0", "two fields",
        ),
        20,
    ),
    "policy": (("shadow", "promoted", "control", "candidate", "field added", "arm added"), 20),
}  # fmt: skip
"""Kinds of changes that an agent lives through, and visits after each."""

LATER_CHANGES: dict[str, Any] = {
    **CHANGES,
    "sticky": lambda agent: agent.change(sticky=timedelta(hours=1)),
    "retention": lambda agent: agent.change(retention=1e9),
    "shadow": lambda agent: agent.change(shadow=["ucb", "hand-ts"]),
    "promoted": lambda agent: agent.promote("hand-ts", share=0.2),
    "more": lambda agent: agent.promote("hand-ts", share=0.6),
    "back at 0": lambda agent: agent.promote("hand-ts", share=0),
    "candidate": lambda agent: agent.promote("hand-ts", share=1),
    "retired": lambda agent: agent.retire("c"),
    "renamed": lambda agent: agent.rename("a", "aa"),
    "replaced": lambda agent: agent.replace("d", "dd"),
    "frozen": lambda agent: (agent.freeze(), agent.unfreeze()),
}

VICTIM = """
import sys
from tests.unit.agent.test_settings_change import SHOP, live
from tidepull.agent.agent import Agent
path, life, policy, visits = sys.argv[1:]
agent = Agent(path, **{**SHOP, "policy": policy})
n = live(agent, life, int(visits))
print("alive", flush=True)
live(agent, life, n, chunks=10**6)
"""


def live(agent: Agent, life: str, visits: int, chunks: int = 0) -> int:
    """All changes of a life after some visits; or, with `chunks`, only visits, ten at a time."""
    if chunks:
        for chunk in range(chunks):
            play(agent, visits + 10 * chunk, 10)
        return visits + 10 * chunks
    kinds, after = LIVES[life]
    play(agent, 0, visits)
    for n, kind in enumerate(kinds):
        LATER_CHANGES[kind](agent)
        play(agent, visits + after * n, after)
    return visits + after * len(kinds)


@pytest.mark.parametrize(
    ("life", "policy", "visits"),
    [
        ("settings", "bernoulli-ts", 200),
        ("policy", "bernoulli-ts", 200),
        pytest.param("settings", "bernoulli-ts", 5000, marks=pytest.mark.slow),
        pytest.param("settings", "tide", 60, marks=pytest.mark.slow),
        pytest.param("policy", "tide", 60, marks=pytest.mark.slow),
    ],
)
def test_every_kind_of_change_survives_a_kill(
    life: str, policy: str, visits: int, tmp_path: Path
) -> None:
    """With 5,000 visits the agent has 10,000 records before its settings change."""
    path = tmp_path / "shop.db"
    victim = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(path), life, policy, str(visits)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert victim.stdout is not None
    assert victim.stdout.readline() == "alive\n"
    time.sleep(0.2)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    victim.stdout.close()
    twin = Agent.memory(**{**SHOP, "policy": policy})
    first = live(twin, life, visits)
    with Agent(path, training="inline") as agent:
        check = agent.check()
        assert check.sound, str(check)
        assert check.records >= 2 * visits
        chunks = max(0, agent.state().decisions - first) // 10
        live(twin, life, first, chunks=chunks)
        start = first + 10 * chunks  # the visits that the kill came among, and more
        if chunks:  # a kill may come between the last decision of a chunk and its late rewards
            play(agent, start - 10, 10)
        assert play(agent, start, 30) == play(twin, start, 30)
        assert agent.settings.text() == twin.settings.text()
        assert agent.check().differences == 0
