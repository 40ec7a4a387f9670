"""Subjects that keep their arm: for how long, after restarts, and with which propensity."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidepull.agent.agent import Agent
from tidepull.agent.records import Choice, DecisionGroup

START = 1_782_900_000.0
ARMS = ["a", "b", "c"]


def shop(path: str | Path = ":memory:", **more: Any) -> Agent:
    settings = {"arms": ARMS, "context": {}, "policy": "random", "seed": 2, "control": 0.0}
    return Agent(path, **{"training": "inline", "sticky": 3600.0, **settings, **more})


def arms_of(agent: Agent, subject: str, moments: range, **more: Any) -> list[str]:
    return [agent.choose(subject=subject, at=START + at, **more).arm for at in moments]


def test_a_subject_keeps_its_arm_for_so_long_and_then_a_new_one_is_drawn() -> None:
    agent = shop(sticky=timedelta(hours=1))
    seen = set()
    for n in range(40):
        kept = arms_of(agent, f"s{n}", range(0, 3600, 600))
        assert len(set(kept)) == 1
        seen.add((kept[0], *arms_of(agent, f"s{n}", range(3600, 7200, 600))))
    assert len({first for first, *_ in seen}) == 3
    assert any(first != second for first, second, *_ in seen)
    assert all(len(set(rest)) == 1 for _, *rest in seen)


def test_decisions_without_a_subject_are_drawn_each_time() -> None:
    agent = shop()
    assert len({agent.choose(at=START + n).arm for n in range(40)}) == 3
    assert len({agent.choose(subject=f"s{n}", at=START + n).arm for n in range(40)}) == 3


def test_an_arm_that_is_retired_or_not_offered_is_not_kept() -> None:
    agent = shop()
    first = agent.choose(subject="s", at=START).arm
    others = [arm for arm in ARMS if arm != first]
    assert agent.choose(subject="s", at=START + 1, arms=others).arm in others
    agent.retire(first)
    (second,) = set(arms_of(agent, "s", range(2, 20)))
    assert second in others


def test_propensity_is_that_of_the_draw() -> None:
    agent = shop(policy="bernoulli-ts")
    first = {f"s{n}": agent.choose(subject=f"s{n}", at=START) for n in range(10)}
    for n in range(200):
        decision = agent.choose(at=START + n)
        agent.reward(decision, float(decision.arm == "b"), at=START + n)
    for subject, decision in first.items():
        again = agent.choose(subject=subject, at=START + 300)
        assert (again.arm, again.propensity) == (decision.arm, decision.propensity)
        assert agent.chances(again.id) == {arm: float(arm == again.arm) for arm in ARMS}


def test_weighting_by_propensities_is_unbiased_over_subjects() -> None:
    """An arm's mean reward, estimated by inverse propensities over all decisions of all subjects."""
    rng, truth = np.random.default_rng(0), {"a": 0.2, "b": 0.5, "c": 0.8}
    agent = shop(policy="bernoulli-ts", min_share=0.3)
    sums = dict.fromkeys(ARMS, 0.0)
    n = 3000
    for visit in range(n):
        at = START + 20.0 * visit
        decision = agent.choose(subject=f"s{rng.integers(400)}", at=at)
        reward = float(rng.random() < truth[decision.arm])
        agent.reward(decision, reward, at=at)
        sums[decision.arm] += reward / decision.propensity
    assert {arm: sums[arm] / n for arm in ARMS} == pytest.approx(truth, abs=0.12)


def test_the_control_keeps_a_random_arm_and_follows_a_rule() -> None:
    agent = shop(control=1.0)
    assert len(set(arms_of(agent, "s", range(20)))) == 1
    assert arms_of(agent, "s", range(20, 22), baseline="a") == ["a", "a"]
    assert arms_of(agent, "s", range(22, 24), baseline="b") == ["b", "b"]


@pytest.mark.parametrize("snapshot", [False, True])
def test_kept_arms_survive_restarts_rollbacks_and_upgrades(snapshot: bool, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with shop(path, policy="bernoulli-ts") as agent:
        before = {s: agent.choose(subject=s, at=START).arm for s in map(str, range(30))}
        if snapshot:
            agent.save()
        agent.choose(subject="late", at=START + 5)
    with shop(path, policy="bernoulli-ts") as again:
        assert {s: again.choose(subject=s, at=START + 10).arm for s in before} == before
        assert again.check().sound
        again.rollback(START - 1)
        assert {s: again.choose(subject=s, at=START + 20).arm for s in before} == before
        again.upgrade("ucb")
        assert {s: again.choose(subject=s, at=START + 30).arm for s in before} == before
    with Agent(path, training="inline") as last:
        assert {s: last.choose(subject=s, at=START + 40).arm for s in before} == before
        assert last.check().sound


def test_stickiness_can_begin_and_end_in_a_living_agent() -> None:
    agent = shop(sticky=None)
    assert len(set(arms_of(agent, "s", range(30)))) == 3
    agent.change(sticky=3600)
    assert len(set(arms_of(agent, "s", range(30, 60)))) == 1
    agent.change(unset=["sticky"])
    assert len(set(arms_of(agent, "s", range(60, 90)))) == 1  # what is kept is kept to its end
    assert len(set(arms_of(agent, "s", range(4000, 4030)))) == 3


def test_arms_whose_time_is_over_leave_and_forgotten_subjects_too() -> None:
    agent = shop()
    arms_of(agent, "s", range(1))
    for n in range(50):
        agent.choose(subject=f"t{n}", at=START + 3600 + n)
    assert len(agent._commands.state.sticky) == 50
    agent.forget("t7")
    assert len(agent._commands.state.sticky) == 49


def test_a_kept_arm_is_marked_in_the_ledger() -> None:
    choice = Choice(
        1, DecisionGroup.CONTROL, 0.5, 3, np.arange(3), np.ones(2), np.ones(3, bool), 2, True
    )
    again = Choice.unpack(choice.pack())
    assert (again.sticky, again.baseline, again.group) == (True, 2, DecisionGroup.CONTROL)
    assert Choice.head(choice.pack()) == (1, 1, 0.5)
    assert Choice.counts_in(choice.pack()).tolist() == [0, 1, 2]
