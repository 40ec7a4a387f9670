"""Files of agents: who may read them, who holds them, and when they are free again."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tidepull import Agent
from tidepull.agent.ledger import files
from tidepull.errors import HeldError, LedgerError

MADE: dict[str, Any] = {"arms": ["a", "b"], "context": {}, "policy": "bernoulli-ts", "seed": 1}


def test_only_the_owner_may_read_an_agents_files(tmp_path: Path) -> None:
    with Agent(tmp_path / "a.db", **MADE) as agent:
        agent.choose()
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("a.db", "a.db.lock", "a.db-wal", "a.db-shm"), 0o600)


@pytest.mark.parametrize("training", ["background", "manual"])
def test_agent_that_is_dropped_frees_its_file(tmp_path: Path, training: Any) -> None:
    agent = Agent(tmp_path / "a.db", **MADE, training=training)
    agent._background.wake()
    agent.choose(id="first")
    del agent
    gc.collect()
    with Agent(tmp_path / "a.db") as again:
        assert again.reward("first", 1.0)


def test_agent_that_is_dropped_while_its_thread_works_frees_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = threading.Event()

    def work(_: Agent) -> bool:
        working.set()
        time.sleep(0.2)
        return False

    monkeypatch.setattr(Agent, "work", work)
    agent = Agent(tmp_path / "a.db", **MADE)
    agent.choose(id="first")
    agent._background.wake()
    assert working.wait(5.0)
    del agent
    with Agent(tmp_path / "a.db") as again:
        assert again.reward("first", 1.0)


def test_message_about_a_held_file_names_the_service(tmp_path: Path) -> None:
    with Agent(tmp_path / "a.db", **MADE), pytest.raises(HeldError, match="`tidepull serve`"):
        Agent(tmp_path / "a.db")


def test_close_takes_a_snapshot_so_that_opening_replays_nothing(tmp_path: Path) -> None:
    with Agent(tmp_path / "a.db", **MADE) as agent:
        for n in range(50):
            agent.reward(agent.choose(), float(n % 2))
    with Agent(tmp_path / "a.db") as again:
        state = again.state()
        assert (state.saved, state.decisions) == (state.records, 50)
    with Agent(tmp_path / "a.db") as unchanged:
        assert unchanged.state().records == state.records


def test_close_frees_the_file_although_the_snapshot_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    agent = Agent(tmp_path / "a.db", **MADE)
    agent.choose(id="first")

    def full(*_: Any) -> None:
        raise LedgerError("the disk is full")

    monkeypatch.setattr(agent._commands.ledger, "save", full)
    with caplog.at_level(logging.WARNING, "tidepull"):
        agent.close()
    assert "closed without a snapshot: the disk is full" in caplog.text
    with Agent(tmp_path / "a.db") as again:
        assert again.reward("first", 1.0)


def test_snapshot_that_failed_is_not_named_and_is_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Agent(tmp_path / "a.db", **MADE, training="manual", snapshot_every=20) as agent:
        ledger, failures = agent._commands.ledger, list[int]()

        def full(seq: int, *_: Any) -> None:
            failures.append(seq)
            raise LedgerError("the disk is full")

        monkeypatch.setattr(ledger, "save", full)
        for _ in range(19):
            agent.choose()
        with pytest.raises(LedgerError, match="the disk is full"):
            agent.choose()
        assert agent.state().saved == 0
        assert not agent._snapshot_is_due
        monkeypatch.undo()
        for _ in range(5):
            agent.choose()
        assert len(failures) == 1
        assert agent.state().saved in ledger.snapshots()


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, where a test has loaded it
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_child_of_a_fork_does_not_keep_the_file(tmp_path: Path) -> None:
    parent = os.fork()
    if not parent:  # a process that opens the agent, forks and ends
        agent = Agent(tmp_path / "a.db", **MADE, training="manual")
        agent.choose(id="first")
        child = os.fork()
        if not child:
            time.sleep(60)
            os._exit(0)
        (tmp_path / "child").write_text(str(child))
        os._exit(0)
    os.waitpid(parent, 0)
    child, end = int((tmp_path / "child").read_text()), time.monotonic() + 20
    try:
        while True:
            try:
                again = Agent(tmp_path / "a.db")
                break
            except HeldError:  # the child has not begun to run yet
                assert time.monotonic() < end
                time.sleep(0.01)
        with again:
            assert again.reward("first", 1.0)
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX, where a test has loaded it
def test_child_of_a_fork_that_ends_leaves_the_parents_agent_alone(tmp_path: Path) -> None:
    with Agent(tmp_path / "a.db", **MADE, training="manual") as agent:
        agent.choose(id="first")
        child = os.fork()
        if not child:
            agent._release()
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(HeldError):
            Agent(tmp_path / "a.db")
        assert agent.reward("first", 1.0)
        assert agent.check().sound


def test_watch_goes_on_while_files_are_opened_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Open:
        path = Path("shop.db")

        def inspect(self) -> None: ...

    monkeypatch.setattr(files, "INTERVAL", 0.0)
    watch, there = files.Watch(), [Open() for _ in range(2000)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for one in there:
            watch.add(one)
        first, deadline = watch._thread, time.monotonic() + 2.0
        while time.monotonic() < deadline:
            others = [Open() for _ in range(100)]
            for one in others:
                watch.add(one)
            for one in others:
                watch.remove(one)
    finally:
        sys.setswitchinterval(interval)
    assert watch._thread is first  # another one begins where it has died
    for one in there:
        watch.remove(one)
