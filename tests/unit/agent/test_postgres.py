"""PostgreSQL: leases, servers and owners that die or fall silent, and what users are told when
something is wrong."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgres import Server, private
from tests.unit.agent.test_kills import audit, start, told
from tests.unit.agent.worlds import SHOP, START, serve, visit, worth
from tidepull.agent.agent import Agent
from tidepull.agent.ledger import database as tables
from tidepull.agent.ledger import place_of
from tidepull.agent.ledger.leases import Leases
from tidepull.agent.ledger.postgres import PostgresLedger
from tidepull.agent.records import Kind, Record
from tidepull.errors import (
    HeldError,
    LedgerError,
    ParameterError,
    TidepullError,
    UnreachableError,
    WrongStoreError,
)


def ledger_of(agent: Agent) -> PostgresLedger:
    ledger = agent._commands.ledger
    assert isinstance(ledger, PostgresLedger)
    return ledger


@pytest.fixture
def leases(postgres: Server) -> Iterator[list[Leases]]:
    """Two processes' leases, in one."""
    both = [Leases(postgres.url(tail=f"&application_name={k}")) for k in range(2)]
    both[0].database.prepare(write=True)
    yield both
    for one in both:
        one.close()


# ---- leases


def test_lease_has_one_owner_who_says_where_it_can_be_reached(leases: list[Leases]) -> None:
    here, there = leases
    assert there.owner_of("a lease") is None
    lease = here.acquire("a lease", url="http://10.0.0.1:8000")
    owner = there.owner_of("a lease")
    assert owner is not None
    assert (owner.url, owner.process, owner.epoch) == (
        "http://10.0.0.1:8000",
        os.getpid(),
        lease.epoch,
    )
    assert 0 < owner.left <= lease.length
    with pytest.raises(
        HeldError, match=r"agent=a lease is held by this process \(.*at http://10.0.0.1:8000, since"
    ):
        there.acquire("a lease")
    with pytest.raises(HeldError):
        here.acquire("a lease")
    here.release(lease)
    assert there.acquire("a lease").epoch > 0


def test_lease_outlives_its_length_while_its_owner_lives_and_not_when_it_is_silent(
    leases: list[Leases],
) -> None:
    here, there = leases
    lease = here.acquire("renewed", length=1.0)
    deadline = time.monotonic() + 1.6
    while time.monotonic() < deadline:
        time.sleep(0.1)
        with pytest.raises(HeldError):
            there.acquire("renewed", length=1.0)
    here._stop = True  # it falls silent, and its session stays
    here._changed.set()
    time.sleep(1.1)
    taken = there.acquire("renewed", length=1.0)
    assert taken.epoch > lease.epoch
    assert here.renew() == ["renewed"]
    assert lease.lost
    with pytest.raises(HeldError):
        here.regain(lease)


def test_owner_whose_session_ended_keeps_its_lease_if_it_is_back_soon(leases: list[Leases]) -> None:
    here, there = leases
    lease = here.acquire("back soon", length=3.0)
    assert here._session is not None
    here._session.close()
    here.renew()
    with pytest.raises(HeldError):
        there.acquire("back soon", length=3.0)
    assert here.regain(lease)


def test_agent_that_was_never_made_leaves_nothing(leases: list[Leases], database: str) -> None:
    with pytest.raises(
        WrongStoreError, match="there is no agent at .* yet; to make one, give arms"
    ):
        Agent(database)
    assert place_of(database).agent not in leases[0].agents()


def test_agent_that_is_deleted_is_gone_and_others_stay(leases: list[Leases], database: str) -> None:
    for place in (database, f"{database}-2"):
        with Agent(place, **SHOP, training="inline") as agent:
            serve(agent, 0, 5)
            agent.save()
    leases[0].delete(leases[0].acquire(place_of(database).agent))
    with pytest.raises(WrongStoreError, match="there is no agent at"):
        Agent(database, read_only=True)
    with Agent(f"{database}-2", read_only=True) as agent:
        assert agent._commands.state.decisions == 5


# ---- fences


def test_old_owner_that_wakes_up_writes_nothing(database: str, tmp_path: Path) -> None:
    place, said = f"{database}&lease=0.4", tmp_path / "told"
    process = start(place, said, "bernoulli-ts", 0, 100_000, 2)
    while len(told(said)) < 20:
        time.sleep(0.005)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    try:
        time.sleep(0.6)
        with Agent(place, training="inline") as agent:
            before = agent._commands.state.decisions
            os.kill(process.pid, signal.SIGCONT)
            for n in range(20):
                agent.choose({}, id=f"mine {n}")
            time.sleep(0.2)
            assert agent._commands.state.decisions == before + 20
        process.join(20)
        assert not process.is_alive()
    finally:
        process.kill()
        process.join()
    audit(place, said)
    with Agent(place, read_only=True) as agent:
        assert agent._commands.state.decisions == before + 20


def test_owner_whose_lease_was_taken_says_by_whom_and_goes_on_when_it_is_free_again(
    database: str,
) -> None:
    first = Agent(database, **SHOP, training="inline")
    made = serve(first, 0, 20)
    ledger = ledger_of(first)
    assert ledger._lease is not None
    ledger._leases._stop = True
    ledger._leases._changed.set()
    with ledger._database.connection("write to") as connection:
        connection.execute(
            "UPDATE tidepull_agents SET expires = '-infinity' WHERE id = %s", (ledger._id,)
        )
    other = replace(
        place_of(database), database=place_of(database).database + "&application_name=other"
    )
    with Agent(other, training="inline") as second:
        made += serve(second, 20, 30)
        for _ in range(2):
            with pytest.raises(HeldError, match="(taken over|is held) by this process"):
                serve(first, 30, 31)
        with pytest.raises(HeldError):
            first.save()
    made += serve(first, 30, 40)
    first.close()
    assert made == serve(Agent.memory(**SHOP, training="inline"), 0, 40)


@pytest.mark.parametrize("written", [False, True])
def test_commit_whose_answer_was_lost_is_neither_lost_nor_doubled(
    database: str, written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Agent(database, **SHOP, training="inline") as agent:
        serve(agent, 0, 10)
        ledger, calls = ledger_of(agent), []
        honest = ledger._insert

        def insert(records: list[Record]) -> None:
            calls.append(len(records))
            if len(calls) != 1:
                return honest(records)
            if written:
                honest(records)
            raise UnreachableError("the connection was lost")

        monkeypatch.setattr(ledger, "_insert", insert)
        agent.choose(visit(10), id="visit 10", at=START + 3000)
        monkeypatch.undo()
        assert agent._commands.ledger.last == len(list(agent._commands.ledger.tail(0)))
        assert len(calls) == (1 if written else 2)
        assert agent.check().sound


# ---- servers that die


def test_server_that_is_killed_under_load_loses_and_doubles_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.ERROR, "tidepull")
    with private() as server:
        agent = Agent(server.url("shop"), **SHOP, snapshot_every=100)
        acknowledged: list[tuple[str, str, float]] = []
        errors: Counter[bool] = Counter()
        stop = threading.Event()

        def client(k: int) -> None:
            n = k
            while not stop.is_set():
                try:
                    decision = agent.choose(visit(n), id=f"visit {n}")
                    agent.reward(decision.id, worth(n, decision.arm))
                except LedgerError as error:
                    errors["postgresql://" in str(error)] += 1
                    time.sleep(0.01)
                    continue
                acknowledged.append((decision.id, decision.arm, worth(n, decision.arm)))
                n += 4

        clients = [threading.Thread(target=client, args=(k,), daemon=True) for k in range(4)]
        for one in clients:
            one.start()
        for _ in range(2):
            before = len(acknowledged)
            while len(acknowledged) < before + 60:
                time.sleep(0.005)
            server.stop(signal.SIGKILL)
            time.sleep(0.05)
            server.start()
        before = len(acknowledged)
        while len(acknowledged) < before + 40:
            time.sleep(0.005)
        stop.set()
        for one in clients:
            one.join()
        assert agent._commands.state.differences == 0
        agent.close()
        with Agent(server.url("shop"), read_only=True) as again:
            records = list(again._commands.ledger.tail(0))
            assert again.check().sound
            kept = {row["id"]: (row["arm"], row["reward"]) for row in again.history("rows")}
        assert set(errors) == {True}
        assert not {
            name
            for name, many in Counter(r.ref for r in records if r.kind is Kind.REWARD).items()
            if many > 1
        }
        assert {id: kept[id] for id, _, _ in acknowledged} == {
            id: (a, r) for id, a, r in acknowledged
        }


def test_agent_goes_on_without_a_word_when_all_its_connections_were_cut(database: str) -> None:
    with Agent(database, **SHOP, training="inline") as agent:
        made = serve(agent, 0, 20)
        with psycopg.connect(place_of(database).database, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'tidepull' AND pid <> pg_backend_pid()"
            )
        made += serve(agent, 20, 40)
    assert made == serve(Agent.memory(**SHOP, training="inline"), 0, 40)


# ---- what is wrong, in one sentence


@pytest.mark.parametrize(
    ("url", "kind", "sentence"),
    [
        (
            "postgresql://me@127.0.0.1:1/x?agent=a",
            UnreachableError,
            "no server listens there: start it, or correct",
        ),
        (
            "postgresql://me@no-such-host.invalid/x?agent=a",
            LedgerError,
            "there is no host of that name",
        ),
        ("postgresql://me@h/x", ParameterError, r"names no agent: end it with \?agent=NAME"),
        (
            "postgresql://me@h/x?agent=",
            ParameterError,
            "the name of an agent must be 1 to 200 printable",
        ),
        (
            "postgresql://me@h/x?agent=a&lease=soon",
            ParameterError,
            "lease must be a number of seconds",
        ),
        (
            "postgresql://me@h/x?agent=a&lease=0",
            ParameterError,
            "lease must be from 0.1 to 3600 seconds",
        ),
        (
            "postgresql://me@h/x?agent=a&colour=red",
            ParameterError,
            "the URL of the database cannot be read",
        ),
    ],
)
def test_wrong_url_is_named(url: str, kind: type[TidepullError], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        Agent(url, **SHOP)


def test_whom_the_server_does_not_let_in_is_told_why(postgres: Server) -> None:
    for url, sentence in (
        (postgres.tcp("a", password="wrong"), "the password of 'tidepull' is wrong: correct it"),
        (postgres.tcp("a", password=""), "it wants a password for 'tidepull'"),
        (postgres.url("a", database="nowhere"), "the database does not exist there: create it"),
        (postgres.url("a", user="nobody-here"), "the role does not exist there: create it"),
    ):
        with pytest.raises(LedgerError, match=sentence) as found:
            Agent(url, **SHOP)
        assert "wrong@" not in str(found.value)
    with pytest.raises(WrongStoreError, match="there is no agent at .*agent=nobody"):
        Agent(postgres.url("nobody"), read_only=True)


def test_role_that_may_only_read_is_named_and_may_look(database: str) -> None:
    with Agent(database, **SHOP, training="inline") as agent:
        serve(agent, 0, 5)
    with psycopg.connect(place_of(database).database, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS reader")
        owner.execute("CREATE ROLE reader LOGIN")
        owner.execute("GRANT pg_read_all_data TO reader")
    reader = database.replace("tidepull@", "reader@")
    with pytest.raises(
        LedgerError, match="'reader' may not do that .*: grant it, or open the agent with read_only"
    ):
        Agent(reader)
    with Agent(reader, read_only=True) as looking:
        assert looking._commands.state.decisions == 5
    with pytest.raises(LedgerError, match="it is read-only"):
        Agent(f"{database}&options=-cdefault_transaction_read_only%3Don")


def test_tables_of_another_version_are_migrated_or_named(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute("DROP DATABASE IF EXISTS versions")
        owner.execute("CREATE DATABASE versions")
    place = postgres.url("shop", database="versions")
    with Agent(place, **SHOP, training="inline") as agent:
        made = serve(agent, 0, 10)
    with monkeypatch.context() as newer:
        now = tables.VERSION
        newer.setattr(tables, "VERSION", now + 1)
        newer.setattr(
            tables, "MIGRATIONS", {now: "ALTER TABLE tidepull_agents ADD COLUMN remark text"}
        )
        with Agent(place, training="inline") as agent:
            made += serve(agent, 10, 20)
    with pytest.raises(
        WrongStoreError, match=f"was written by tidepull .*tables of version {now + 1}"
    ):
        Agent(place)
    assert made == serve(Agent.memory(**SHOP, training="inline"), 0, 20)


def test_many_agents_share_a_database_and_few_connections(postgres: Server, database: str) -> None:
    places = [f"{database}-{k}" for k in range(12)]
    agents: list[Agent] = [
        Agent(place, **{**SHOP, "seed": k}, training="inline") for k, place in enumerate(places)
    ]

    def client(agent: Agent, made: list[Any]) -> None:
        made += serve(agent, 0, 15)

    made: list[list[Any]] = [[] for _ in agents]
    clients = [
        threading.Thread(target=client, args=pair) for pair in zip(agents, made, strict=True)
    ]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    with psycopg.connect(postgres.url()) as other:
        row = other.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
        assert row is not None
        assert row[0] >= 12
    for k, agent in enumerate(agents):
        agent.close()
        twin = Agent.memory(**{**SHOP, "seed": k}, training="inline")
        assert made[k] == serve(twin, 0, 15)
