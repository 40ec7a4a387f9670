"""Processes killed at random instants: nothing that was acknowledged is lost, nothing is learnt
twice, and the next decisions are those of an agent that was never killed."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tests.unit.agent import victim
from tests.unit.agent.worlds import SHOP, serve
from tidepull.agent.agent import Agent
from tidepull.agent.records import Choice, Kind, unpack_reward

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.unit.agent.victim"])
KILLED = -9


def start(
    place: str | Path, said: Path, policy: str, first: int, last: int, threads: int
) -> BaseProcess:
    process = PROCESSES.Process(
        target=victim.main, args=(str(place), str(said), policy, first, last, threads)
    )
    process.start()
    return process


def told(said: Path) -> list[list[str]]:
    whole = said.read_text() if said.exists() else ""
    return [line.split() for line in whole[: whole.rfind("\n") + 1].splitlines()]


def _lines(said: Path) -> int:
    return said.read_bytes().count(b"\n") if said.exists() else 0


def kill_after(process: BaseProcess, said: Path, lines: int, wait: float) -> bool:
    """Kill when it has said so many lines and a little later; False if it came to its end
    before."""
    while process.is_alive():
        if _lines(said) >= lines:
            time.sleep(wait)
            process.kill()
            break
        time.sleep(0.002)
    process.join()
    assert process.exitcode in (0, KILLED)
    return process.exitcode == KILLED


def audit(place: str | Path, said: Path) -> None:
    """What callers were told is in the ledger, once."""
    with Agent(place, read_only=True) as agent:
        records = list(agent._commands.ledger.tail(0))
        assert agent._commands.state.differences == 0
        labels = [arm.label for arm in agent._commands.state.arms]
    decisions = {record.name: record for record in records if record.kind is Kind.DECISION}
    rewards = Counter(record.ref for record in records if record.kind is Kind.REWARD)
    paid = {
        record.ref: unpack_reward(record.body) for record in records if record.kind is Kind.REWARD
    }
    assert len(decisions) == sum(record.kind is Kind.DECISION for record in records)
    assert not rewards or max(rewards.values()) == 1
    for words in told(said):
        if words[0] == "decided":
            choice = Choice.unpack(decisions[f"visit {words[1]}"].body)
            assert (words[2], words[3]) == (labels[choice.arm], repr(choice.propensity))
        elif words[0] == "paid":
            assert paid[decisions[f"visit {words[1]}"].seq] == float(words[2])
        elif words[0] == "up":
            assert words[2] == "0"


@pytest.mark.parametrize(("policy", "last", "kills"), [("lin-ts", 160, 5), ("tide", 90, 2)])
def test_killed_agent_decides_like_one_that_was_never_killed(
    tmp_path: Path, policy: str, last: int, kills: int
) -> None:
    die_and_decide(tmp_path / "shop.db", tmp_path / "told", policy, last, kills)


def test_killed_agent_in_a_database_decides_like_one_that_was_never_killed(
    database: str, tmp_path: Path
) -> None:
    die_and_decide(database, tmp_path / "told", "lin-ts", 90, 3)


def die_and_decide(place: str | Path, file: Path, policy: str, last: int, kills: int) -> None:
    rng = random.Random(policy)
    lines = 0
    for _ in range(kills):
        process = start(place, file, policy, 0, last, 1)
        lines += rng.randrange(20, 2 * last * 2 // (kills + 1))
        if not kill_after(process, file, lines, rng.random() * 0.003):
            break
        lines = len(told(file))
    assert not kill_after(start(place, file, policy, 0, last, 1), file, 10**9, 0.0)
    audit(place, file)
    with Agent(place, training="inline") as agent:
        twin = Agent.memory(**{**SHOP, "policy": policy}, training="inline")
        serve(twin, 0, last, late=0)
        assert serve(agent, last, last + 20) == serve(twin, last, last + 20)


def test_nothing_is_lost_or_doubled_when_many_threads_are_killed(
    place: str, tmp_path: Path
) -> None:
    rng, said = random.Random(5), tmp_path / "told"
    lives = 3 if place.startswith("postgresql") else 5
    for life in range(lives):
        process = start(place, said, "bernoulli-ts", 400 * life, 400 * (life + 1), 4)
        kill_after(process, said, len(told(said)) + rng.randrange(50, 500), rng.random() * 0.003)
        audit(place, said)
    with Agent(place) as agent:
        assert agent._commands.ledger.snapshots()
        from_snapshot = agent._commands.state.take()()
        agent._commands.ledger.drop_snapshots(0)
    with Agent(place, read_only=True) as agent:
        assert agent._commands.state.differences == 0
        assert str(agent._commands.state.take()()) == str(from_snapshot)
