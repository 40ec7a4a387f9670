"""Work that is left to the background: whoever does it, and whenever, decisions are the same."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.worlds import SHOP, serve, visit
from tidepull.agent import state as agent_state
from tidepull.agent.agent import Agent
from tidepull.agent.background import Background
from tidepull.policies import guard
from tidepull.state import difference

VISITS = 150
POLICIES = ("tide", ("rnlps", {"epochs": 8}))
SCHEDULES = {"never": [0], "always": [9], "now and then": [0, 0, 1, 0, 2, 1, 0]}
"""How often the background gets to work after each visit."""


@pytest.fixture
def no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Background, "wake", lambda _: None)


def served(agent: Agent, schedule: list[int], first: int, last: int) -> list[Any]:
    made = []
    for n in range(first, last):
        made += serve(agent, n, n + 1)
        for _ in range(schedule[n % len(schedule)]):
            agent.work()
    return made


@pytest.mark.usefixtures("no_thread")
@pytest.mark.parametrize("policy", POLICIES, ids=["tide", "rnlps"])
def test_decisions_do_not_depend_on_when_the_background_works(policy: Any) -> None:
    given = {**SHOP, "policy": policy, "snapshot_every": 40}
    agents = {name: Agent.memory(**given) for name in SCHEDULES}
    made = {name: served(agents[name], SCHEDULES[name], 0, 2 * VISITS) for name in SCHEDULES}
    assert made["never"] == made["always"] == made["now and then"]
    assert len(agents["never"]._commands.ledger.snapshots()) == 0
    assert len(agents["always"]._commands.ledger.snapshots()) > 0
    states = []
    for agent in agents.values():
        agent._commands._do_owed_slices()
        states.append(agent._commands.state.learning.take()())
    assert difference(states[0], states[1]) is None
    assert difference(states[0], states[2]) is None
    assert all(agent.check().differences == 0 for agent in agents.values())


def test_agent_with_a_thread_decides_like_one_whose_thread_never_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {**SHOP, "policy": "tide", "snapshot_every": 40}
    with_thread = Agent.memory(**given)
    made = serve(with_thread, 0, VISITS)
    monkeypatch.setattr(Background, "wake", lambda _: None)
    assert serve(Agent.memory(**given), 0, VISITS) == made
    with_thread.close()


@pytest.mark.usefixtures("no_thread")
def test_restarts_change_no_decision_while_work_is_left(tmp_path: Path) -> None:
    given = {**SHOP, "policy": "tide", "snapshot_every": 40}
    made: list[Any] = []
    for n in range(0, VISITS, 25):
        agent = Agent(tmp_path / "shop.db", **given)
        made += served(agent, SCHEDULES["now and then"], n, n + 25)
        agent.close(save=False)
    assert made == serve(Agent.memory(**given), 0, VISITS)


@pytest.mark.usefixtures("no_thread")
def test_calls_do_the_work_themselves_where_no_thread_does() -> None:
    """Without it, the test above would compare agents that learn nothing."""
    given = {**SHOP, "policy": "tide"}
    starved, lazy = Agent.memory(**given), Agent.memory(**given, training="manual")
    assert serve(starved, 0, VISITS) != serve(lazy, 0, VISITS)
    slices = [record.slices for record in starved._commands.ledger.tail(0)]
    assert 0 < max(slices) <= agent_state.SLICES_OF_A_CALL
    assert sum(record.slices for record in lazy._commands.ledger.tail(0)) == 0


def test_manual_agent_that_falls_behind_is_warned_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "PATIENCE", 20)
    agent = Agent.memory(**{**SHOP, "policy": "tide"}, training="manual")
    agent.work()
    with caplog.at_level(logging.WARNING, logger="tidepull"):
        for n in range(60):
            agent.reward(agent.choose(visit(n)), float(n % 2))
    assert "without a call of upkeep()" in caplog.text


def test_thread_goes_on_after_an_error_that_it_does_not_expect(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, failed = Agent.work, threading.Event()

    def failing(self: Agent) -> bool:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("nobody thought of this")
        return real(self)

    monkeypatch.setattr(Agent, "work", failing)
    with Agent.memory(**SHOP, snapshot_every=40) as agent:
        serve(agent, 0, 30)
        assert failed.wait(20)
        deadline = time.monotonic() + 20
        while not agent._commands.ledger.snapshots() and time.monotonic() < deadline:
            serve(agent, 30, 31)
            time.sleep(0.01)
        assert agent._commands.ledger.snapshots()
    assert "nobody thought of this" in caplog.text
