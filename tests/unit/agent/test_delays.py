"""Learning windows: what came early tells nothing until its window closes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidepull import state as snapshots
from tidepull.agent.agent import Agent
from tidepull.agent.delays import SAMPLE, RewardDelays, learning_window
from tidepull.agent.records import Kind, LearnAt
from tidepull.errors import ExpiredError

HOUR, DAY, START = 3600.0, 86_400.0, 1_782_900_000.0
CLICKS: dict[str, Any] = {
    "arms": ["a", "b"],
    "context": {},
    "policy": "bernoulli-ts",
    "seed": 1,
    "reward_within": 7 * DAY,
    "default_reward": 0.0,
    "control": 0.0,
    "training": "inline",
}


def fed(
    delays: RewardDelays, decided: Any, waits: Any, arms: Any = None, upto: float = np.inf
) -> RewardDelays:
    """Rewards in the order in which they come, as far as they have come."""
    came = np.asarray(decided) + waits
    for n in np.argsort(came, kind="stable").tolist():
        if came[n] <= upto:
            arm = 0 if arms is None else int(arms[n])
            draw = np.random.default_rng(n).random()
            delays.add(
                arm,
                decided_at=float(decided[n]),
                delay=float(waits[n]),
                draw=draw,
                now=float(came[n]),
            )
    return delays


# ---- the window


def test_window_is_found_by_hand() -> None:
    """W = 1024: L = 512, 362, 256, 181, 128, ... All are old enough for each candidate."""
    delay = np.array([1.0] * 6 + [100.0] * 3)
    age = np.full(9, 1e6)
    assert learning_window(age, delay, 1024.0, 0.02) == pytest.approx(2 * 128)  # 91 fails by 100s
    assert learning_window(age, delay, 1024.0, 0.34) == pytest.approx(2 * 64)  # 45: six are too few
    assert learning_window(age[:7], delay[:7], 1024.0, 0.02) is None
    young = np.where(delay < 50, 150.0, age)
    assert learning_window(young, delay, 1024.0, 0.02) == 1024.0  # 64 fails, 91 is not judged
    slow = np.full(9, 900.0)
    assert learning_window(age, slow, 1024.0, 0.02) == 1024.0


@pytest.mark.parametrize("seed", range(5))
def test_window_of_exponential_delays_has_nearly_all_of_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    decided = np.cumsum(rng.exponential(DAY / 60, 400))
    delays = fed(RewardDelays(7 * DAY), decided, rng.exponential(300.0, 400))
    assert np.exp(-delays.window / 300.0) < 0.01
    assert delays.window < 6 * HOUR


@pytest.mark.parametrize("seed", range(5))
def test_short_delays_that_are_seen_first_do_not_shorten_the_window(seed: int) -> None:
    """After half a day only delays below half a day are known. Three days on average stay a
    possibility, and what was seen is no sample of all."""
    rng = np.random.default_rng(seed)
    decided = np.sort(rng.uniform(0, 4 * DAY, 4000))
    waits = np.minimum(rng.exponential(3 * DAY, 4000), 7 * DAY)
    delays = RewardDelays(7 * DAY)
    shortest = np.inf
    for upto in np.arange(0.25, 4, 0.25) * DAY:
        delays = fed(RewardDelays(7 * DAY), decided, waits, upto=upto)
        shortest = min(shortest, delays.window)
    assert shortest >= 3 * DAY


def test_window_grows_when_rewards_begin_to_come_later() -> None:
    rng = np.random.default_rng(0)
    decided = np.arange(4000) * 600.0
    waits = np.where(np.arange(4000) < 2000, 60.0, HOUR) * rng.uniform(0.5, 1.0, 4000)
    delays = fed(RewardDelays(DAY), decided[:2000], waits[:2000])
    before = delays.window
    fed(delays, decided[2000:2100], waits[2000:2100])
    assert before < 10 * 60.0
    assert delays.window > HOUR


def test_an_arm_whose_rewards_come_later_than_others_lengthens_the_window() -> None:
    decided = np.arange(3000) * 60.0
    arms = (np.arange(3000) % 100 == 0).astype(int)  # 1% of rewards, below what all may have late
    waits = np.where(arms == 1, 5 * HOUR, 30.0)
    delays = fed(RewardDelays(2 * DAY), decided, waits, arms)
    assert delays.window >= 5 * HOUR
    assert fed(RewardDelays(2 * DAY), decided, waits).window < HOUR


def test_many_rewards_a_second_do_not_hide_long_delays() -> None:
    rng = np.random.default_rng(1)
    decided = np.arange(30_000) * 0.1
    waits = rng.exponential(60.0, 30_000)
    delays = fed(RewardDelays(DAY), decided, waits)
    assert 180.0 < delays.window < 2400.0
    assert all(len(rows) <= SAMPLE for *_, rows in delays.snapshot()["samples"])


def test_restored_delays_go_on_as_before() -> None:
    rng = np.random.default_rng(2)
    decided, waits = np.cumsum(rng.exponential(60.0, 900)), rng.exponential(90.0, 900)
    arms = rng.integers(3, size=900)
    one = fed(RewardDelays(DAY), decided[:500], waits[:500], arms[:500])
    other = RewardDelays(DAY)
    other.restore(snapshots.load(snapshots.dump(one.snapshot())))
    for delays in (one, other):
        fed(delays, decided[500:], waits[500:], arms[500:])
    assert snapshots.difference(one.snapshot(), other.snapshot()) is None


# ---- agents


def shown(agent: Agent) -> str:
    """What the policy has learnt."""
    return str(agent._commands.state.learning.take()()["policy"])


def test_early_reward_changes_nothing_until_its_window_closes() -> None:
    agent, silent = Agent.memory(**CLICKS), Agent.memory(**CLICKS)
    for one in (agent, silent):
        decisions = [one.choose(at=START + n) for n in range(40)]
        if one is agent:
            for decision in decisions[:5]:
                assert agent.reward(decision, 1.0, at=START + 60)
    assert shown(agent) == shown(silent)
    for one in (agent, silent):
        one.choose(at=START + 7 * DAY + 20)
    assert shown(agent) != shown(silent)
    rows = agent.history("rows")
    assert [row["reward"] for row in rows[:7]] == [1.0] * 5 + [0.0] * 2
    assert agent.state().rewards == 20


def played(agent: Agent, first: int, last: int, late: int = 0) -> None:
    """A visit every ten minutes; every third is paid five minutes later, and number `late` after
    five days."""
    for n in range(first, last):
        at = START + 600.0 * n
        decision = agent.choose(at=at, id=f"visit {n}")
        assert decision.arm in {"a", "b"}
        if n == late + 720 and late:
            assert agent.reward(f"visit {late}", 1.0, at=at + 1)
        if n % 3 == 0:
            agent.reward(f"visit {n}", 1.0, at=at + 300)


def test_window_shrinks_to_the_delays_that_are_seen_and_then_zeros_are_learnt() -> None:
    agent = Agent.memory(**CLICKS)
    played(agent, 0, 200)
    assert agent._commands.state.learning_window < HOUR
    due = [record for record in agent._commands.ledger.tail(0) if record.kind is Kind.DUE]
    assert len(due) > 190
    assert [record.ref for record in due] == sorted(record.ref or 0 for record in due)


def test_reward_after_the_learning_window_is_recorded_and_not_learnt() -> None:
    agent, silent = Agent.memory(**CLICKS), Agent.memory(**CLICKS)
    played(agent, 0, 900, late=100)
    played(silent, 0, 900)
    assert shown(agent) == shown(silent)
    assert agent.history("rows")[100]["reward"] == 1.0
    assert silent.history("rows")[100]["reward"] == 0.0
    assert (agent.state().late_rewards, silent.state().late_rewards) == (1, 0)
    assert not agent.reward("visit 100", 1.0, at=START + 600.0 * 900)
    with pytest.raises(ExpiredError):
        silent.reward("visit 100", 1.0, at=START + 60_000 + 7 * DAY + 1)


def test_what_is_held_is_the_same_after_restarts(tmp_path: Path) -> None:
    for n in range(0, 900, 100):
        with Agent(tmp_path / "a.db", **CLICKS, snapshot_every=70) as agent:
            played(agent, n, n + 100, late=100)
            assert agent.check().sound
    twin = Agent.memory(**CLICKS)
    played(twin, 0, 900, late=100)
    with Agent(tmp_path / "a.db", training="manual") as agent:
        assert shown(agent) == shown(twin)
        assert agent._commands.state.learning_window == twin._commands.state.learning_window
        kinds = {
            LearnAt.of(r.body) for r in agent._commands.ledger.tail(0) if r.kind is Kind.REWARD
        }
        assert kinds == {LearnAt.CLOSE, LearnAt.NEVER}
        agent.upgrade("ucb")
        assert agent.check().sound


def test_logs_of_others_are_learnt_at_once(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("arm,reward\n" + "a,1\nb,0\n" * 20)
    agent = Agent.memory(**CLICKS)
    before = shown(agent)
    assert agent.learn_from(tmp_path / "log.csv") == 40
    assert shown(agent) != before
    assert agent._commands.state.learning_window == CLICKS["reward_within"]
