"""Disks that are full or read-only, databases and snapshots that are damaged, forks: one sentence,
and nothing lost."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.worlds import SHOP, START, serve, visit
from tidepull import __version__
from tidepull.agent.agent import Agent
from tidepull.agent.ledger.sqlite import VERSION, SqliteLedger
from tidepull.agent.records import pack_reward
from tidepull.agent.state import AgentState
from tidepull.errors import (
    ContextError,
    LedgerError,
    NewerStoreError,
    RewardError,
    WrongStoreError,
)


def made(path: Path, visits: int = 80, **given: Any) -> list[tuple[str, float, str]]:
    with Agent(path, **SHOP, training="inline", snapshot_every=40, **given) as agent:
        return serve(agent, 0, visits)


def twin(visits: int) -> Agent:
    agent = Agent.memory(**SHOP, training="inline")
    serve(agent, 0, visits)
    return agent


def test_full_disk_loses_nothing_that_was_acknowledged_and_the_agent_goes_on_when_there_is_space(
    tmp_path: Path,
) -> None:
    path = tmp_path / "shop.db"
    with Agent(path, **SHOP, training="inline") as agent:
        serve(agent, 0, 40)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            for verb in ("write to", "open"):  # the second call finds the disk as it was
                with pytest.raises(LedgerError, match=f"cannot {verb} .*shop.db: the disk"):
                    serve(agent, 40, 60)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert serve(agent, 40, 90) == serve(twin(40), 40, 90)
    with Agent(path) as agent:
        assert agent._commands.state.differences == 0
        assert agent._commands.state.decisions == 90


def test_threads_whose_record_was_lost_are_all_told(tmp_path: Path) -> None:
    agent = Agent(tmp_path / "shop.db", **SHOP, training="manual")
    ledger = agent._commands.ledger
    assert isinstance(ledger, SqliteLedger)
    honest, failing = ledger._insert, threading.Event()

    def insert(waiting: Any) -> None:
        if failing.is_set():
            raise sqlite3.OperationalError("database or disk is full")
        honest(waiting)

    ledger._insert = insert  # type: ignore[method-assign]
    told: list[str] = []
    lost: list[str] = []

    def client(n: int) -> None:
        for k in range(30):
            if n == 0 and k == 10:
                failing.set()
            if n == 0 and k == 20:
                failing.clear()
            try:
                told.append(agent.choose(visit(k), at=START + k).id)
            except LedgerError:
                lost.append(f"{n} {k}")

    threads = [threading.Thread(target=client, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agent.close(save=False)
    with Agent(tmp_path / "shop.db", read_only=True) as again:
        kept = [
            again._commands.decisions.id(record.seq) for record in again._commands.ledger.tail(0)
        ]
        assert again._commands.state.differences == 0
    assert sorted(told) == sorted(kept)
    assert len(set(told)) + len(lost) == 120
    assert lost


def test_read_only_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    made(path, 10)
    with Agent(path, training="inline") as agent:
        ledger = agent._commands.ledger
        assert isinstance(ledger, SqliteLedger)
        ledger._writer.execute("PRAGMA query_only = 1")
        with pytest.raises(LedgerError, match="it is read-only: change its permissions"):
            agent.choose({})
        ledger._writer.execute("PRAGMA query_only = 0")
        assert serve(agent, 10, 20) == serve(twin(10), 10, 20)


def damage(path: Path, seq: int) -> None:
    with sqlite3.connect(path) as connection:
        (data,) = connection.execute("SELECT data FROM snapshots WHERE seq = ?", (seq,)).fetchone()
        wrong = data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]
        connection.execute("UPDATE snapshots SET data = ? WHERE seq = ?", (wrong, seq))
    connection.close()


@pytest.mark.parametrize("how_many", [1, 2, 99])
def test_damaged_snapshot_falls_back_to_the_one_before(
    tmp_path: Path, how_many: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "shop.db"
    made(path)
    with Agent(path, read_only=True) as reader:
        newest = reader._commands.ledger.snapshots()
    assert len(newest) >= 3
    for seq in newest[:how_many]:
        damage(path, seq)
    with Agent(path, training="inline") as agent:
        assert caplog.text.count("the one before it is tried") == min(how_many, len(newest))
        assert agent._commands.state.differences == 0
        assert serve(agent, 80, 100) == serve(twin(80), 80, 100)
        assert agent.check().damaged_snapshots == min(how_many, len(newest))


def test_truncated_database_and_other_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    made(path)
    whole = path.read_bytes()
    for length in (len(whole) - 4096, len(whole) // 2, 5000, 50, 0):
        path.write_bytes(whole[:length])
        for given in ({}, SHOP, {"read_only": True}):
            with pytest.raises(LedgerError, match="its end is missing|beginning is damaged"):
                Agent(path, **given)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(WrongStoreError, match="is a database, but not of an agent"):
        Agent(other, **SHOP)


def test_database_of_a_newer_version_is_named(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    made(path, 3)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(WrongStoreError, match="was written by tidepull .*tables of version"):
        Agent(path)


def test_decision_that_was_altered_is_found(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    made(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE records SET context = '{\"age\":99.0}' WHERE seq = 9")
    connection.close()
    with Agent(path, read_only=True) as agent:
        found = agent.check()
    assert not found.sound
    assert found.differences


@pytest.mark.filterwarnings(
    "ignore:os.fork:RuntimeWarning"
)  # of JAX, where another test has loaded it
def test_agent_that_was_opened_before_a_fork_says_so(tmp_path: Path) -> None:
    agent = Agent(tmp_path / "shop.db", **SHOP)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            agent.choose({})
        except LedgerError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"was opened in process" in os.read(reader, 1000)
    os.close(reader)
    os.close(writer)
    agent.choose({})
    agent.close()


def test_agent_answers_questions_after_a_write_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Agent(tmp_path / "shop.db", **SHOP, training="manual") as agent:
        first = agent.choose(visit(0), id="first")
        with monkeypatch.context() as patched:

            def full(*_: object) -> None:
                raise sqlite3.OperationalError("database or disk is full")

            patched.setattr(SqliteLedger, "_insert", full)
            with pytest.raises(LedgerError, match="disk is full"):
                agent.choose(visit(1))
        assert str(agent.explain()).startswith("1 decision since")
        assert agent.choose(visit(0), id="first") == first


def wait_for(caplog: pytest.LogCaptureFixture, text: str, seconds: float = 1.0) -> None:
    deadline = time.monotonic() + seconds
    while text not in caplog.text:
        assert time.monotonic() < deadline, (
            f"{text!r} was not said within {seconds} seconds: {caplog.text}"
        )
        time.sleep(0.01)


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_log_that_is_deleted_is_noticed_within_a_second_and_nothing_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, ending: str
) -> None:
    path = tmp_path / "shop.db"
    with Agent(path, **SHOP, training="manual") as agent:
        serve(agent, 0, 30)
        Path(f"{path}{ending}").unlink()
        serve(agent, 30, 40)
        wait_for(caplog, "was deleted while the agent is open")
        serve(agent, 40, 50)
        (tmp_path / "cut").mkdir()
        for end in ("", "-wal"):  # as if the power had been cut now
            shutil.copy(f"{path}{end}", tmp_path / "cut" / f"shop.db{end}")
    with Agent(tmp_path / "cut" / "shop.db") as after:
        assert after._commands.state.decisions == 50
        assert after.check().sound


def test_file_that_is_moved_away_takes_nothing_until_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "shop.db"
    with Agent(path, **SHOP, training="manual") as agent:
        serve(agent, 0, 30)
        path.rename(tmp_path / "elsewhere")
        wait_for(caplog, "was deleted or replaced while the agent is open")
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"put it back, or close the agent"):
                serve(agent, 30, 40)
        (tmp_path / "elsewhere").rename(path)
        assert serve(agent, 30, 60) == serve(twin(30), 30, 60)
    with Agent(path) as agent:
        assert agent._commands.state.decisions == 60
        assert agent.check().sound


@pytest.mark.parametrize("read_only", [False, True])
def test_agent_of_a_newer_release_is_refused_by_its_name(place: str, read_only: bool) -> None:
    with Agent(place, **SHOP) as agent:
        serve(agent, 0, 5)
        agent._commands.ledger.write({"release": "99.1.0"})
    with pytest.raises(
        NewerStoreError,
        match=r"was written by tidepull 99\.1\.0, and this is .*: install tidepull 99",
    ):
        Agent(place, read_only=read_only)


def test_agent_of_an_earlier_release_says_who_wrote_it_last(place: str) -> None:
    with Agent(place, **SHOP) as agent:
        agent._commands.ledger.write({"release": "0.1.0"})
    with Agent(place, read_only=True) as agent:
        assert agent._commands.ledger.read("release") == "0.1.0"
    with Agent(place) as agent:
        assert agent._commands.ledger.read("release") == __version__


def test_damaged_arm_of_a_decision_is_named_as_such_and_not_as_a_wrong_reward(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    with Agent(path, arms=["a", "b"], context={}, policy="bernoulli-ts", seed=1) as agent:
        agent.choose(id="first", at=100.0)
        agent._commands.ledger.drop_snapshots(0)
        agent.close(save=False)
    with closing(sqlite3.connect(path)) as file:
        (body,) = file.execute("SELECT body FROM records WHERE seq = 1").fetchone()
        file.execute("UPDATE records SET body = ? WHERE seq = 1", (b"\x63\x00" + body[2:],))
        file.commit()
    with pytest.raises(LedgerError, match="a decision in the ledger is damaged: it has arm 99 of"):
        Agent(path)


def test_reward_that_is_nearly_one_is_shown_as_it_is() -> None:
    agent = Agent.memory(arms=["a", "b"], context={}, policy="bernoulli-ts", seed=1)
    with pytest.raises(RewardError, match=r"got 1\.0000000000000002;"):
        agent.reward(agent.choose(), 1.0000000000000002)


def test_batch_that_a_policy_refuses_halfway_leaves_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Agent(tmp_path / "a.db", arms=["a", "b"], context={}, policy="lin-ts", seed=1) as agent:
        agent.choose_many([{}] * 3)
        decide, calls = AgentState.decide, iter(range(10))

        def refusing(state: AgentState, inputs: Any) -> Any:
            if next(calls) == 2:
                raise ContextError("refused")
            return decide(state, inputs)

        with monkeypatch.context() as patched:
            patched.setattr(AgentState, "decide", refusing)
            with pytest.raises(ContextError):
                agent.choose_many([{}] * 4)
        agent.choose_many([{}] * 3)
        assert agent.state().decisions == 6
        assert agent.check().differences == 0


def crashed(path: Path, visits: int) -> None:
    """An agent whose process died with some visits in its log."""
    program = (
        "import os, sys; from tests.unit.agent.worlds import SHOP, serve; from tidepull import Agent; "
        "agent = Agent(sys.argv[1], **SHOP, training='inline'); "
        "serve(agent, 0, int(sys.argv[2])); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(path), str(visits)], check=True)
    assert Path(f"{path}-wal").stat().st_size > 100_000


def cut(log: Path) -> None:
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])


def flip(log: Path) -> None:
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [(cut, "missing or cut off; put it back"), (Path.unlink, "missing or cut off; put it back"),
     (flip, "commits in it cannot be read; restore a copy")],
    ids=["cut", "deleted", "flipped"],
)  # fmt: skip
def test_log_that_a_crash_left_and_that_is_harmed_is_refused(
    tmp_path: Path, harm: Any, sentence: str
) -> None:
    path = tmp_path / "shop.db"
    crashed(path, 40)
    whole = Path(f"{path}-wal").read_bytes()
    harm(Path(f"{path}-wal"))
    for _ in range(2):
        with pytest.raises(LedgerError, match=sentence):
            Agent(path)
    Path(f"{path}-wal").write_bytes(whole)
    with Agent(path, training="inline") as agent:
        assert serve(agent, 40, 60) == serve(twin(40), 40, 60)


def test_copy_that_is_put_back_is_no_loss(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    made(path, 20)
    copy = path.read_bytes()
    crashed(path, 40)
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink()
    path.with_name("other").write_bytes(copy)  # keeps the number of the deleted file from it
    path.write_bytes(copy)
    with Agent(path) as agent:
        assert agent.state().decisions == 20


@pytest.mark.parametrize(
    ("text", "harmed"),
    [("settings", "null"), ("settings", "{"), ("salt", "zz"), ("salt", "00" * 16),
     ("settings", "replace(value, '0.05', '0.85')")],
)  # fmt: skip
def test_harmed_settings_are_refused(tmp_path: Path, text: str, harmed: str) -> None:
    path = tmp_path / "shop.db"
    made(path, 5)
    value = harmed if harmed.startswith("replace") else f"'{harmed}'"
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"UPDATE texts SET value = {value} WHERE key = ?", (text,))
    with pytest.raises(LedgerError, match="is damaged: its settings are not as written; restore"):
        Agent(path)


def test_harmed_reward_after_the_last_snapshot_is_named_when_it_is_learnt_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "shop.db"
    with Agent(path, **SHOP, training="inline") as agent:
        serve(agent, 0, 20)
        agent.close(save=False)
    with closing(sqlite3.connect(path)) as file, file:
        (seq,) = file.execute("SELECT max(seq) FROM records WHERE kind = 2").fetchone()
        file.execute("UPDATE records SET body = ? WHERE seq = ?", (pack_reward(0.5), seq))
    with Agent(path, read_only=True):
        assert f"record {seq} is not as it was written" in caplog.text


def test_record_that_is_no_json_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    made(path)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE records SET context = ? WHERE seq = 9", (b'{"age": \xb1}',))
    with Agent(path, read_only=True) as agent:
        with pytest.raises(LedgerError, match="a record in the ledger is damaged"):
            agent.history("rows")
        assert not agent.check().sound


@pytest.mark.parametrize("work", ["add", "save", "upgrade", "choose"])
def test_agent_that_is_closed_beside_a_call_says_that_it_is_closed(
    tmp_path: Path, work: str
) -> None:
    path = tmp_path / "shop.db"
    agent = Agent(path, **SHOP, training="manual")
    agent.choose_many([visit(n) for n in range(1000)])
    said, begun = list[str](), threading.Event()

    def go_on() -> None:
        try:
            for n in range(1000):
                begun.set()
                given: dict[str, Any] = {"add": [f"new {n}"], "choose": [visit(n)]}
                getattr(agent, work)(*given.get(work, ()))
        except LedgerError as error:
            said.append(str(error))

    thread = threading.Thread(target=go_on)
    thread.start()
    assert begun.wait(20)
    time.sleep(0.1)
    agent.close()
    thread.join(60)
    assert said == [f"the agent at {path} is closed; open it again"]
    with Agent(path) as again:
        assert again.check().sound


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_agent_in_a_directory_that_cannot_be_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    made(path, 20)
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    program = (
        "import os, sys; from tidepull import Agent; Agent(sys.argv[1], read_only=True).close(); "
        "os.setgid(65534); os.setuid(65534); "
        "print(Agent(sys.argv[1], read_only=True).state().decisions)"
    )
    for folder in (*tmp_path.parents[:3], tmp_path):
        folder.chmod(folder.stat().st_mode | 0o005)
    shown = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True
    )
    assert shown.stdout == "20\n", shown.stderr
