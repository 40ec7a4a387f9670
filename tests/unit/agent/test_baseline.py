"""The present rule as the control: `choose(..., baseline=...)`, what `lift` compares with, and the
sizes of the groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.agent.test_lift import log_of
from tidepull.agent.commands import Request
from tidepull.agent.lift import sample_ratio_alarms
from tidepull.agent.records import Choice, DecisionGroup
from tidepull.agent.served import ServedAgent
from tidepull.errors import ArmError, ConflictError

ARMS = ["coffee", "dinner", "cake"]
START = 1_782_900_000.0


def shop(path: str | Path = ":memory:", **more: Any) -> ServedAgent:
    settings = {"arms": ARMS, "context": {"age": float}, "policy": "bernoulli-ts", "seed": 3}
    return ServedAgent(path, **{**settings, "control": 0.4, "training": "inline", **more})


def rule(n: int) -> str:
    return ARMS[n % 2]


def play(agent: ServedAgent, rounds: int, *, rule: Any = rule, start: int = 0) -> list[Any]:
    decisions = []
    for n in range(start, start + rounds):
        at = START + 600.0 * n
        decision = agent.choose({"age": n % 7}, at=at, baseline=None if rule is None else rule(n))
        agent.reward(decision, float(n % 3 == 0), at=at)
        decisions.append(decision)
    return decisions


def test_control_gets_what_the_present_rule_takes_and_the_policy_does_not() -> None:
    agent = shop()
    decisions = play(agent, 200)
    groups = {
        group: [(n, decision) for n, decision in enumerate(decisions) if decision.group == group]
        for group in ("control", "policy")
    }
    assert len(groups["control"]) > 50
    assert all(d.arm == rule(n) and d.propensity == 1.0 for n, d in groups["control"])
    assert any(d.arm != rule(n) for n, d in groups["policy"])
    n, control = groups["control"][0]
    assert agent.chances(control.id) == {arm: float(arm == rule(n)) for arm in ARMS}


def test_a_baseline_goes_before_the_control_arm_and_is_named_by_lift() -> None:
    agent = shop(control_arm="cake")
    assert {d.arm for d in play(agent, 60, rule=None) if d.group == "control"} == {"cake"}
    assert agent.lift().against == "arm 'cake' alone"
    agent.rename("cake", "tart")
    assert agent.lift().against == "arm 'tart' alone"
    later = play(agent, 60, start=60)
    assert "cake" not in {d.arm for d in later if d.group == "control"}
    lift = agent.lift()
    assert lift.against == "your rule"
    assert lift.n_policy + lift.n_control == 60
    assert "than your rule" in str(lift)
    assert "than your rule" in str(agent.explain())


def test_without_a_baseline_lift_says_that_the_control_is_random_or_missing() -> None:
    agent = shop()
    play(agent, 60, rule=None)
    assert "than random arms" in str(agent.lift())
    alone = shop(control=0.0)
    play(alone, 20)
    assert "control=0, so there is no control group" in str(alone.lift())
    assert "control=0, so there is no control group" in str(shop(control=0.0).lift())
    assert "gain over random arms" in str(shop().lift())


def test_baselines_are_repeated_exactly_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with shop(path) as agent:
        play(agent, 60)
        agent.save()
        play(agent, 60, start=60)
    with shop(path) as again, shop() as twin:
        play(twin, 120)
        check = again.check()
        assert check.sound
        assert check.differences == 0
        mine, other = (
            [(d.arm, d.propensity, d.group) for d in play(a, 30, start=120)] for a in (again, twin)
        )
        assert mine == other
        assert [row["baseline"] for row in again.history("rows")][:4] == [rule(n) for n in range(4)]


def test_a_baseline_that_cannot_be_chosen_is_refused_by_name() -> None:
    agent = shop()
    with pytest.raises(ArmError, match="did you mean 'dinner'"):
        agent.choose({"age": 1.0}, baseline="diner")
    with pytest.raises(ArmError, match="baseline: the arm 'cake' cannot be chosen in this"):
        agent.choose({"age": 1.0}, arms=["coffee"], baseline="cake")
    agent.retire("cake")
    with pytest.raises(ArmError, match="baseline: the arm 'cake' cannot be chosen in this"):
        agent.choose({"age": 1.0}, baseline="cake")
    assert agent.state().decisions == 0


def test_an_id_stands_for_one_baseline() -> None:
    agent = shop()
    first = agent.choose_ahead([Request({"age": 1}, id="a", baseline="cake")])[0]
    assert agent.choose_ahead([Request({"age": 1}, id="a", baseline="cake")])[0] == first
    with pytest.raises(ConflictError, match="another baseline"):
        agent.choose_ahead([Request({"age": 1}, id="a")])


def test_export_has_the_baseline(tmp_path: Path) -> None:
    agent = shop()
    play(agent, 3)
    agent.export(tmp_path / "log.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["baseline"] for row in rows] == ["coffee", "dinner", "coffee"]


@pytest.mark.parametrize("baseline", [-1, 0, 2, 4095])
def test_choices_with_and_without_a_baseline_are_the_same_after_bytes(baseline: int) -> None:
    choice = Choice(
        2, DecisionGroup.CONTROL, 0.25, 17, np.arange(9), np.ones(5), np.arange(9) > 1, baseline
    )
    again = Choice.unpack(choice.pack())
    assert again.baseline == baseline == Choice.baseline_in(choice.pack())
    assert (again.arm, again.group, again.propensity, again.round) == (2, 1, 0.25, 17)
    assert np.array_equal(again.counts, choice.counts)
    assert np.array_equal(Choice.counts_in(choice.pack()), choice.counts)
    assert np.array_equal(again.x, choice.x)
    assert np.array_equal(again.available, choice.available)
    assert Choice.head(choice.pack()) == (2, 1, 0.25)


def sized(n: int, share: float, seed: int, subjects: int | None = None) -> Any:
    rng = np.random.default_rng(seed)
    subject = -np.arange(1, n + 1) if subjects is None else rng.integers(0, subjects, n)
    groups = rng.random(n if subjects is None else subjects) < share
    control = groups if subjects is None else groups[subject]
    return log_of(np.ones(n), control, subject=subject, control_share=0.05)


def test_groups_of_the_wrong_size_are_an_alarm_and_of_the_right_size_are_none() -> None:
    (alarm, *_) = sample_ratio_alarms(sized(8000, 0.03, 0)).values()
    assert "of 8,000 decisions (subjects once) are in the control, 400 are expected" in alarm
    for seed in range(40):
        log = sized(2000, 0.05, seed)
        assert not [
            end for end in range(100, 2001, 100) if sample_ratio_alarms(log.where(slice(end)))
        ]
        assert not sample_ratio_alarms(sized(2000, 0.05, seed, subjects=40))


def test_rewards_that_one_group_does_not_report_are_an_alarm() -> None:
    log = sized(6000, 0.05, 1)
    lost = (log.group == DecisionGroup.CONTROL) & (np.arange(6000) % 2 == 0)
    log.reward[lost] = np.nan
    (alarm,) = sample_ratio_alarms(log).values()
    assert "decisions with a reward" in alarm
    assert "rewards of one group do not come" in alarm
