"""A candidate takes decisions over, a share at a time: exact propensities, exact replays, a way back."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.cli.typing_it import tidepull
from tidepull.agent.agent import Agent
from tidepull.agent.log import DecisionLog
from tidepull.agent.promotion import next_share
from tidepull.agent.records import Choice, Kind
from tidepull.agent.shadow import ShadowReport
from tidepull.agent.shadow import _Chances as Chances
from tidepull.agent.shadow import _estimates as estimates
from tidepull.errors import InputError, ParameterError, RewardError

START = 1_782_900_000.0
TRUTH = {"a": 0.2, "b": 0.5, "c": 0.8}


def shop(path: str | Path = ":memory:", **more: Any) -> Agent:
    settings = {
        "arms": list(TRUTH), "context": {"age": float}, "policy": "bernoulli-ts", "seed": 4,
        "control": 0.1, "training": "inline", "shadow": ["lin-ts", "random"],
    }  # fmt: skip
    return Agent(path, **{**settings, **more})


def play(agent: Agent, rounds: int, *, first: int = 0, **more: Any) -> list[str]:
    rng = np.random.default_rng([3, first])
    arms = []
    for n in range(first, first + rounds):
        at = START + 600.0 * n
        decision = agent.choose({"age": float(rng.integers(20, 60))}, at=at, **more)
        if rng.random() < 0.8:
            agent.reward(decision, float(rng.random() < TRUTH.get(decision.arm, 0.5)), at=at + 60)
        arms.append(decision.arm)
    return arms


def choices(agent: Agent) -> list[Choice]:
    tail = agent._commands.ledger.tail(0)
    return [Choice.unpack(record.body) for record in tail if record.kind is Kind.DECISION]


def test_the_arm_is_drawn_from_both_policies_and_the_propensity_is_that_of_the_mixture() -> None:
    agent = shop(min_share=0.0, control=0.0)
    play(agent, 60)
    step = agent.promote("lin-ts", share=0.25)
    assert (step.policy, step.before, step.share) == ("lin-ts", 0.0, 0.25)
    play(agent, 200, first=60)
    made = choices(agent)
    assert all(choice.candidate is None for choice in made[:60])
    for choice in made[60:]:
        assert choice.share == 0.25
        assert choice.candidate is not None
        assert choice.propensity == pytest.approx(choice.counts[choice.arm] / 65535, abs=1e-5)
        own = (choice.counts - 0.25 * choice.candidate) / 0.75
        assert own.min() > -2
        assert own.sum() == pytest.approx(65535, abs=4)
    assert any(choice.candidate[choice.arm] < choice.counts[choice.arm] for choice in made[60:])  # type: ignore[index]


def test_the_policy_learns_as_if_no_candidate_were_there() -> None:
    """What it finds in each decision, given what was played, is what a policy alone finds."""
    agent = shop(control=0.0, min_share=0.0, policy="ucb", shadow=["random"])
    play(agent, 40)
    agent.promote("random", share=0.5)
    play(agent, 100, first=40)
    alone = shop(control=0.0, min_share=0.0, policy="random", shadow=["ucb"])
    for row in agent.history("rows"):
        alone.record({"age": row["context.age"]}, row["arm"], reward=row["reward"], at=row["at"])
    alone.shadows()
    (twin,) = alone._shadows.values()
    for choice, shares in list(zip(choices(agent), twin.seen.theirs, strict=True))[40:]:
        assert choice.candidate is not None
        own = (choice.counts / 65535 - 0.5 * choice.candidate / 65535) / 0.5
        assert np.allclose(own, shares, atol=1e-3)


def test_a_candidate_goes_on_learning_while_it_has_a_share() -> None:
    agent = shop(policy="random", shadow=["bernoulli-ts"], control=0.0)
    play(agent, 1)
    agent.promote("bernoulli-ts", share=0.2)
    play(agent, 300, first=1)
    late = [choice.candidate for choice in choices(agent)[-50:]]
    assert np.mean(late, axis=0)[2] > 0.9 * 65535  # type: ignore[arg-type]


CHANGES: dict[str, Any] = {
    "nothing": Agent.state,
    "another share": lambda agent: agent.promote("lin-ts", share=0.6),
    "all back": lambda agent: agent.promote("lin-ts", share=0),
    "the policy": lambda agent: agent.promote("lin-ts", share=1),
    "more arms": lambda agent: [agent.add(label) for label in "defgh"],
    "another field": lambda agent: agent.change(context={"age": float, "loyal": bool}),
    "another policy": lambda agent: agent.upgrade("ucb"),
    "back in time": lambda agent: agent.rollback(START + 600.0 * 70),
    "back before it": lambda agent: agent.rollback(START + 600.0 * 20),
    "a renamed arm": lambda agent: agent.rename("a", "z"),
    "frozen": lambda agent: agent.freeze(),
    "one forgotten": lambda agent: agent.forget("x"),
}


@pytest.mark.parametrize("policy", ["lin-ts", "hand-ts"])
@pytest.mark.parametrize("change", CHANGES)
def test_every_step_is_repeated_exactly_after_a_crash(
    change: str, policy: str, tmp_path: Path
) -> None:
    """`hand-ts` reads the time, `bernoulli-ts` has the calendar: both see what they need."""
    agent = shop(tmp_path / "shop.db", shadow=[policy], snapshot_every=60)
    twin = shop(shadow=[policy], snapshot_every=60)
    for one in (agent, twin):
        play(one, 50)
        one.choose({"age": 30.0}, subject="x", at=START + 600.0 * 50)
        one.promote(policy, share=0.3)
        play(one, 50, first=51)
        CHANGES[change](one) if policy == "lin-ts" else CHANGES[change](_named(one, policy))
        play(one, 20, first=110)
    agent._commands.ledger.close()  # no snapshot: as after kill -9
    agent._closed = True
    again = Agent(tmp_path / "shop.db", training="inline")
    assert again.settings == twin.settings
    assert play(again, 60, first=200) == play(twin, 60, first=200)
    found = again.check()
    assert found.sound, str(found)


def _named(agent: Agent, policy: str) -> Any:
    """The agent, whose candidate has another name than in CHANGES."""

    class Renamed:
        def __getattr__(self, name: str) -> Any:
            return getattr(agent, name)

        def promote(self, _: str, share: float) -> Any:
            return agent.promote(policy, share)

    return Renamed()


def test_back_at_0_the_agent_goes_on_alone_and_at_1_the_candidate_does() -> None:
    agent = shop(control=0.0)
    play(agent, 30)
    agent.promote("lin-ts", share=0.2)
    play(agent, 30, first=30)
    agent.promote("lin-ts", share=0)
    assert agent.settings.promotion is None
    play(agent, 5, first=60)
    assert choices(agent)[-1].candidate is None
    agent.promote("random", share=0.2)
    step = agent.promote("random", share=1)
    assert (step.before, step.share) == (0.2, 1)
    assert (agent.settings.policy, agent.settings.promotion) == ("random", None)
    play(agent, 5, first=70)
    assert choices(agent)[-1].candidate is None
    assert agent.check().sound


def test_a_promotion_that_ended_in_an_earlier_upgrade_does_not_come_back(tmp_path: Path) -> None:
    with shop(tmp_path / "shop.db") as agent:
        play(agent, 20)
        agent.promote("lin-ts", share=0.5)
        agent.promote("lin-ts", share=1)
        agent.upgrade("ucb")
        play(agent, 20, first=20)
        for seq in agent._commands.ledger.snapshots():
            agent._commands.ledger.drop_snapshots(seq - 1)
        agent._commands.saved = agent._commands.ledger.last  # leave none at the end either
    with Agent(tmp_path / "shop.db", training="inline") as again:
        assert again.settings.promotion is None
        assert again.check().sound


def test_what_cannot_be_is_refused_in_one_sentence_and_changes_nothing() -> None:
    agent = shop(shadow=[("sw-ucb", {"window": 50}), ("sw-ucb", {"window": 90}), "ucb"])
    play(agent, 20)
    with pytest.raises(ParameterError, match="lin-ts is no candidate"):
        agent.promote("lin-ts", share=0.1)
    with pytest.raises(ParameterError, match="2 candidates sw-ucb; give its parameters"):
        agent.promote("sw-ucb", share=0.1)
    for share in (-0.1, 1.1, float("nan"), True, "0.1"):
        with pytest.raises(ParameterError, match="share must be a number from 0 to 1"):
            agent.promote("ucb", share=share)  # type: ignore[arg-type]
    agent.promote(("sw-ucb", {"window": 90}), share=0.1)
    with pytest.raises(ParameterError, match=r"sw-ucb has 10% of decisions; take them back first"):
        agent.promote("ucb", share=0.1)
    guessing = shop(context=None)
    with pytest.raises(InputError, match="still guessed"):
        guessing.promote("lin-ts", share=0.1)
    assert guessing.settings.promotion is None


def report(low: float, high: float, *, share: float, **more: Any) -> ShadowReport:
    values: dict[str, Any] = {
        "value": 1.0,
        "own": 1.0,
        "gain": (low + high) / 2,
        "low": low,
        "high": high,
    }
    known = {"unsupported": 0.0, "effective": 500.0, "needed": None, **more}
    return ShadowReport("ucb", 100, 0.5, {}, **values, **known, share=share)


@pytest.mark.parametrize(
    ("low", "high", "share", "step"),
    [
        (np.nan, np.nan, 0.0, 0.05),  # the first step
        (np.nan, np.nan, 0.1, 0.1),  # too little is known
        (-0.4, 0.5, 0.05, 0.05),  # at worst 0.4 * 0.05: as much as may be lost
        (-0.2, 0.5, 0.05, 0.1),  # at worst 0.2 * 0.1
        (-0.01, 0.5, 0.2, 0.25),  # safe, but not proven
        (-0.2, 0.3, 0.25, 0.1),  # too much: a step back
        (-0.5, -0.1, 0.25, 0.01),  # worse, but it may still learn: 0.3 * 0.01
        (-0.3, 0.2, 0.1, 0.05),  # rather worse than better: 0.05 * 0.05
        (-0.3, 0.1, 0.1, 0.02),  # 0.1 * 0.025
        (0.01, 0.5, 0.25, 0.5),  # proven: twice as much
        (0.01, 0.5, 0.6, 1.0),  # the change of policy
    ],
)
def test_the_next_step_loses_little_even_at_the_worst_end(
    low: float, high: float, share: float, step: float
) -> None:
    assert next_share(report(low, high, share=share), own=False)[0] == step


def test_a_candidate_without_a_gain_worth_it_is_given_up_after_a_while() -> None:
    assert next_share(report(-0.2, -0.01, share=0.05), own=False)[0] == 0.02
    step, why = next_share(report(-0.03, 0.01, share=0.2, effective=2e3), own=False)
    assert step == 0.0
    assert why == "there is no gain worth it, -3.0% to +1.0% against the agent's own choices"
    assert next_share(report(0.1, 0.5, share=0.9), own=True)[0] == 0.95


def test_the_agents_own_policy_takes_over_from_the_rule_by_the_recipe() -> None:
    agent = shop(control=1.0, policy="bernoulli-ts", shadow=[])
    play(agent, 100, baseline="a")
    (before,) = agent.shadows()
    assert (before.share, before.against, before.known) == (0.0, "your rule", False)
    assert before.disagreement > 0.2
    steps = []
    for n in range(1, 60):
        steps.append(agent.promote("bernoulli-ts"))
        play(agent, 100, first=100 * n, baseline="a")
    assert steps[0].share == 0.05
    assert steps[-1].share == 0.95
    assert all(step.share <= max(0.05, 2 * step.before) for step in steps)
    assert all(a.share == b.before for a, b in pairwise(steps))
    (after,) = agent.shadows(["bernoulli-ts"])
    assert after.significant
    assert after.own == pytest.approx(0.2, abs=0.05)
    assert "more than your rule" in str(after)
    assert agent.check().sound


def test_an_agent_without_a_rule_has_nothing_to_take_over_from() -> None:
    agent = shop(control=0.5)
    play(agent, 300)
    with pytest.raises(ParameterError, match="the control is random arms, no rule"):
        agent.promote("bernoulli-ts")
    assert agent.promote("bernoulli-ts", share=1).share == 1
    assert agent.settings.control == 0
    assert agent.promote("bernoulli-ts").why == "it has all of them already"
    assert agent.settings.control == 0


def test_a_candidate_of_the_shadow_is_valued_by_the_decisions_that_it_shared() -> None:
    agent = shop(policy="random", shadow=["bernoulli-ts"], control=0.0)
    play(agent, 300)
    agent.promote("bernoulli-ts", share=0.3)
    play(agent, 700, first=300)
    (found,) = agent.shadows()
    assert found.share == 0.3
    assert found.own == pytest.approx(0.5, abs=0.06)  # of `random` alone, not of both
    assert found.low <= 0.3 <= found.high
    assert found.significant
    agent.promote("bernoulli-ts", share=1)
    assert agent.shadows()[0].against == "the agent's own choices"


def test_gains_by_steps_cover_the_truth_at_all_looks() -> None:
    """A candidate that learns, whose share changes, looked at ten times."""
    covered = []
    for seed in range(60):
        rng, n = np.random.default_rng(seed), 3000
        rates, share = rng.uniform(0.1, 0.4, 3), np.repeat(rng.choice([0.05, 0.1, 0.2], 6), n // 6)
        skill = (np.minimum(1, np.arange(n) / 1000) * rng.random())[:, None]
        theirs = (1 - skill) / 3 + skill * np.eye(3)[np.argmax(rates)]
        own = np.tile(np.eye(3)[rng.integers(3)], (n, 1))
        both = (1 - share[:, None]) * own + share[:, None] * theirs
        arm = (rng.random(n)[:, None] > both.cumsum(axis=1)).sum(axis=1).clip(0, 2)
        reward, zero = (rng.random(n) < rates[arm]).astype(float), np.zeros(n)
        log = DecisionLog(
            np.arange(n), zero, arm, np.zeros(n, int), zero + 1, reward, zero, -np.arange(1, n + 1),
            np.full(n, -1), zero, np.zeros((n, 1)),
        )  # fmt: skip
        chances = Chances(theirs, own, both, np.ones((n, 3)), share)
        chances.logged = both
        gain, weight = ((theirs - own) * rates).sum(axis=1), share * (1 - share) * share.cumsum()
        inside = []
        for end in range(300, n + 1, 300):
            _, _, _, low, high, *_ = estimates(
                log.where(slice(end)), chances.where(slice(end)), 0.95
            )
            truth = weight[:end] @ gain[:end] / weight[:end].sum()
            inside.append(np.isnan(low) or low <= truth <= high)
        covered.append(all(inside))
    assert np.mean(covered) >= 0.95


def test_a_reward_that_the_candidate_does_not_take_changes_nothing() -> None:
    agent = shop(policy="ucb", shadow=["bernoulli-ts"])
    play(agent, 20)
    agent.promote("bernoulli-ts", share=0.3)
    decision = agent.choose({"age": 30.0}, at=START + 1e6)
    with pytest.raises(RewardError, match="0 or 1"):
        agent.reward(decision, 12.5, at=START + 1e6)
    assert agent.reward(decision, 1.0, at=START + 1e6)
    assert agent.check().sound


def test_promotion_from_the_shell(tmp_path: Path) -> None:
    with shop(tmp_path / "shop.db") as agent:
        play(agent, 20)

    def told(*words: str) -> tuple[int, str]:
        done = tidepull("agent", str(tmp_path / "shop.db"), "promote", *words)
        return done.returncode, done.stdout + done.stderr

    assert told("lin-ts", "--share", "0.1") == (
        0, "lin-ts has 10% of decisions (0% before): as was asked for.\n",
    )  # fmt: skip
    assert (
        told("lin-ts")[1] == "lin-ts has 10% of decisions (10% before): too little is known yet.\n"
    )
    code, text = told("sw-ucb", "--share", "0.1")
    assert (code, "is no candidate of this agent" in text) == (2, True)
    code, text = told("lin-ts", "--share", "2")
    assert (code, "share must be a number from 0 to 1" in text) == (2, True)
    assert told("lin-ts", "--share", "1")[0] == 0
    with Agent(tmp_path / "shop.db", read_only=True) as agent:
        assert agent.settings.policy == "lin-ts"
        assert "lin-ts has 10% of decisions (0% before)" in str(agent.explain())
