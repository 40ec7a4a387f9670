"""A real server: what comes over the wire, how it stops, and what is left when it is killed under
load."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from research.benchmarks.service_kills import Shop, audited
from tests.integration.service.attacks import WIRE
from tests.integration.service.houses import SHOP
from tests.integration.service.running import Running, running
from tidepull.agent.agent import Agent
from tidepull.errors import InputError, ParameterError
from tidepull.service.server import ServerConfig, listener, prepare


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("impatient"), patience=0.3) as service:
        assert service.ask("POST", "/v1/agents", SHOP)[0] == 201
        yield service


@pytest.mark.parametrize(("what", "data", "status", "says"), WIRE, ids=[row[0] for row in WIRE])
def test_what_is_no_request_gets_a_problem_and_is_closed(
    impatient: Running, what: str, data: bytes, status: int, says: str
) -> None:
    data = data.replace(b"TOKEN", impatient.token.encode())
    if status == 404:
        data = data.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
    head, _, body = impatient.say(data).partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), (what, head)
    assert b"application/problem+json" in head
    problem = json.loads(body)
    assert problem["status"] == status
    assert says in problem["detail"]
    assert impatient.ask("GET", "/healthz") == (200, {"status": "ok"})


def test_slow_client_does_not_hold_up_others(impatient: Running) -> None:
    slow = [socket.create_connection(("127.0.0.1", impatient.port)) for _ in range(50)]
    try:
        for connection in slow:
            connection.sendall(b"POST /v1/agents/shop/choose HTTP/1.1\r\nhost: x\r\ncontent-le")
        started = time.perf_counter()
        assert impatient.ask("POST", "/v1/agents/shop/choose", {})[0] == 200
        assert time.perf_counter() - started < 5
    finally:
        for connection in slow:
            connection.close()


def test_client_that_expects_to_be_asked_for_its_body_is_asked_at_once(impatient: Running) -> None:
    body = json.dumps({"context": {"age": 3}}).encode()
    head = (
        "POST /v1/agents/shop/choose HTTP/1.1\r\nhost: x\r\nauthorization: Bearer "
        f"{impatient.token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\nexpect: 100-continue\r\n"
        "connection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=20) as connection:
        connection.sendall(head.encode())
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["arm"] in SHOP["arms"]


def test_deadline_ends_with_a_request_and_begins_with_the_next_one(impatient: Running) -> None:
    """A kept connection may be idle for longer than a request may take; a second head must come in
    time too."""
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=20) as connection:
        for _ in range(2):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            heard = b""
            while not heard.endswith(b"}"):
                heard += connection.recv(65536)
            assert heard.startswith(b"HTTP/1.1 200")
            time.sleep(0.5)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost")
        assert connection.recv(65536).startswith(b"HTTP/1.1 408")
        assert connection.recv(65536) == b""


def test_client_that_hangs_up_leaves_a_decision_that_can_be_asked_for_again(
    impatient: Running,
) -> None:
    body = json.dumps({"id": "hung up", "context": {"age": 3}}).encode()
    head = (
        "POST /v1/agents/shop/choose HTTP/1.1\r\nhost: x\r\nauthorization: Bearer "
        f"{impatient.token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", impatient.port)) as connection:
        connection.sendall(head.encode() + body)
    first = impatient.ask(
        "POST", "/v1/agents/shop/choose", {"id": "hung up", "context": {"age": 3}}
    )
    assert first[0] == 200
    assert (
        impatient.ask("POST", "/v1/agents/shop/choose", {"id": "hung up", "context": {"age": 3}})
        == first
    )


def test_sigterm_finishes_what_was_accepted_and_exits_with_0(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        assert service.ask("POST", "/v1/agents", SHOP)[0] == 201
        answered: list[str] = []
        failed: list[Any] = []

        def call(k: int) -> None:
            for n in range(1000):
                try:
                    status, made = service.ask("POST", "/v1/agents/shop/choose", {"id": f"{k}/{n}"})
                except OSError:
                    return
                except Exception as error:
                    failed.append(error)
                    return
                assert status == 200
                answered.append(made["id"])

        threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        while len(answered) < 40:
            time.sleep(0.005)
        slow: list[int] = []
        body = {**SHOP, "name": "slow", "policy": "tide"}
        making = threading.Thread(
            target=lambda: slow.append(service.ask("POST", "/v1/agents", body)[0])
        )
        making.start()
        time.sleep(0.1)
        assert not slow  # it is under way
        assert service.end(signal.SIGTERM) == 0
        for thread in (*threads, making):
            thread.join()
        assert slow == [201]
    with Agent(tmp_path / "shop.db", read_only=True) as agent:
        state = agent.state()
        assert state.saved == state.records  # a snapshot was taken at the end
        assert state.decisions >= len(answered)
        known = agent._commands.decisions
        assert all(known.find(id) for id in answered)
    assert not failed


@pytest.mark.parametrize("ledger", ["sqlite", "postgres"])
def test_nothing_acknowledged_is_lost_or_doubled_when_the_server_is_killed_under_load(
    ledger: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rng, shop = random.Random(3), Shop()
    given: dict[str, Any] = {}
    where = str(tmp_path / "shop.db")
    if ledger == "postgres":
        server = request.getfixturevalue("postgres")
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE kills")
        given["db"] = server.url(database="kills")
        where = f"{given['db']}&agent=shop"
    for _ in range(3 if ledger == "sqlite" else 2):
        with running(tmp_path, **given) as service:
            if not shop.told:
                assert service.ask("POST", "/v1/agents", SHOP)[0] == 201
            wanted = len(shop.told) + rng.randrange(60, 200)
            killer = threading.Thread(
                target=shop.wait_and_kill, args=(service.pid, wanted, rng.random() * 0.01)
            )
            killer.start()
            asyncio.run(shop.busy(service.port, service.token, 6))
            killer.join()
            service.process.join()
            assert service.process.exitcode == -signal.SIGKILL
        assert audited(where, shop) == []
    assert len(shop.told) > 100


def test_port_that_is_taken_is_said_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port} .*--port"):
            listener("127.0.0.1", port)
    with pytest.raises(InputError, match="--host"):
        listener("no-such-host.invalid", 0)


def test_database_that_is_a_file_is_said_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    path.touch()
    with pytest.raises(ParameterError, match=r"--db must be a directory .*agents\.db is a file"):
        prepare(ServerConfig(str(path)))


def test_address_of_a_shard_with_a_line_break_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="--here must be"):
        prepare(ServerConfig(str(tmp_path), here="http://one:8000\n"))


def test_large_blocks_go_back_to_the_system_when_they_are_freed() -> None:
    code = """
import sys
import numpy as np
from tidepull.service.server import give_memory_back

def megabytes():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) / 1024

if sys.argv[1] == "yes":
    give_memory_back()
for _ in range(3):
    np.ones(2_000_000)  # freed at once, after which GNU's library keeps blocks of this size
before, blocks, pins = megabytes(), [], []
for _ in range(20):
    blocks.append(np.ones(1_500_000))
    pins.append(np.ones(1000))  # small ones in between stay
del blocks
print(megabytes() - before)
"""
    kept = [
        float(
            subprocess.run(
                [sys.executable, "-c", code, word], capture_output=True, check=True
            ).stdout
        )
        for word in ("no", "yes")
    ]
    assert kept[1] < 20
    assert sys.platform != "linux" or kept[0] > kept[1]
