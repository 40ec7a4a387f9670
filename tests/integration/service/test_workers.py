"""Several workers behind one port: forwarding, sums over all of them, and what is left when one is
killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from research.benchmarks.service_kills import Shop, audited
from research.benchmarks.wire import Connection
from tests.integration.service.houses import SHOP
from tests.integration.service.running import PROCESSES, Running, main, running
from tidepull.service.auth import new_token, write_tokens

NAMES = ["a", "b", "c", "d"]


def children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(one) for one in path.read_text().split()]


def lives(pid: int) -> bool:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def say(service: Running, method: str, path: str) -> bytes:
    token = f"authorization: Bearer {service.token}\r\nconnection: close"
    answer = service.say(f"{method} {path} HTTP/1.1\r\nhost: x\r\n{token}\r\n\r\n".encode())
    return answer.partition(b"\r\n\r\n")[2]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("pair"), workers=2) as service:
        for name in NAMES:
            assert service.ask("POST", "/v1/agents", {**SHOP, "name": name})[0] == 201
        yield service


def test_each_agent_is_in_one_worker_and_answers_at_both(pair: Running) -> None:
    for _ in range(3):  # connections go to the workers in turn
        for name in NAMES:
            status, decision = pair.ask("POST", f"/v1/agents/{name}/choose", {"context": {}})
            assert status == 200
            reward = {"id": decision["id"], "reward": 1}
            assert pair.ask("POST", f"/v1/agents/{name}/reward", reward)[0] == 200
    status, shown = pair.ask("GET", "/v1/service")
    held = {shard["url"]: set(shard["agents"]) for shard in shown["shards"]}
    assert sorted(held) == ["worker:1", "worker:2"]
    assert [len(agents) for agents in held.values()] == [2, 2]
    assert set.union(*held.values()) == set(NAMES)
    assert shown["open_agents"] == 4
    assert shown["operations"]["choose"]["count"] == 12
    for _ in range(2):
        status, agents = pair.ask("GET", "/v1/agents")
        assert agents["agents"] == [{"name": name, "open": True} for name in NAMES]


def test_key_query_and_file_reach_the_other_worker(pair: Running) -> None:
    for name in NAMES:
        body = {"id": "once", "context": {"age": 3}}
        answers = [pair.ask("POST", f"/v1/agents/{name}/choose", body) for _ in range(2)]
        assert answers[0] == answers[1]
        rows = say(pair, "GET", f"/v1/agents/{name}/export?format=csv").splitlines()
        assert any(row.startswith(b"once,") for row in rows)
        assert pair.ask("GET", f"/v1/agents/{name}/history?bins=0")[0] == 422


def test_problems_are_those_of_one_process(pair: Running) -> None:
    for _ in range(2):
        status, problem = pair.ask("POST", "/v1/agents/a/choose", {"context": {"shoe": 1}})
        assert (status, "no field 'shoe'" in problem["detail"]) == (422, True)
        assert pair.ask("POST", "/v1/agents", {**SHOP, "name": "a"})[0] == 409
        assert pair.ask("POST", "/v1/agents/nobody/choose", {})[0] == 404


def test_metrics_have_the_label_of_their_worker_and_count_once(pair: Running) -> None:
    before = samples(say(pair, "GET", "/metrics").decode())
    for _ in range(2):
        assert pair.ask("POST", "/v1/agents/a/choose", {})[0] == 200
    after = samples(say(pair, "GET", "/metrics").decode())

    def grown(start: str) -> float:
        return sum(after[one] - before.get(one, 0.0) for one in after if one.startswith(start))

    assert grown("tidepull_decisions_total{") == 2
    assert grown("tidepull_forwarded_total{") == 1
    chosen = [one for one in after if "requests_total" in one and 'operation="choose"' in one]
    assert sum(after[one] - before.get(one, 0.0) for one in chosen) == 2
    assert {'tidepull_ready{worker="1"}', 'tidepull_ready{worker="2"}'} <= set(after)


def samples(text: str) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_admins_are_audited_once_and_requests_logged_once(pair: Running) -> None:
    for name in ("a", "b"):
        assert pair.ask("POST", f"/v1/agents/{name}/unfreeze", {})[0] == 200
    lines = [json.loads(line) for line in (pair.root / "audit.jsonl").read_text().splitlines()]
    mine = [(one["agent"], one["event"]) for one in lines if one["operation"] == "unfreeze"]
    assert sorted(mine) == [("a", "begin"), ("a", "end"), ("b", "begin"), ("b", "end")]
    time.sleep(0.2)
    access = [json.loads(line) for line in (pair.root / "access.jsonl").read_text().splitlines()]
    assert sum("unfreeze" in one["path"] for one in access) == 2
    assert len({one["request"] for one in access}) == len(access)


class Stubborn(Shop):
    """Callers that try again for as long as `done` is not set."""

    def __init__(self) -> None:
        super().__init__()
        self.done = threading.Event()

    async def _caller(self, port: int, token: str) -> None:
        while not self.done.is_set():
            with suppress(OSError, asyncio.IncompleteReadError, RuntimeError):
                connection = await Connection.to(port)
                try:
                    while not self.done.is_set():
                        await self._visit(connection, token)
                finally:
                    connection.close()
            await asyncio.sleep(0.01)

    @contextmanager
    def asking(self, service: Running) -> Iterator[None]:
        """Six callers in a thread."""
        load = threading.Thread(
            target=lambda: asyncio.run(self.busy(service.port, service.token, 6))
        )
        load.start()
        try:
            yield
        finally:
            self.done.set()
            load.join()

    def wait(self, count: int) -> None:
        """Until so much more was told."""
        wanted, end = len(self.told) + count, time.monotonic() + 60
        while len(self.told) < wanted:
            assert time.monotonic() < end
            time.sleep(0.001)


def test_killed_worker_is_replaced_within_two_seconds_and_nothing_is_lost(tmp_path: Path) -> None:
    shop = Stubborn()
    with running(tmp_path, workers=2) as service:
        assert service.ask("POST", "/v1/agents", SHOP)[0] == 201
        with shop.asking(service):
            for turn in range(4):  # the owner of the agent, and the other one
                shop.wait(50)
                before = children(service.pid)
                os.kill(before[turn % 2], signal.SIGKILL)
                killed = time.monotonic()
                while not (replaced(service, before) and decides(service) and decides(service)):
                    assert time.monotonic() - killed < 2.0
                assert time.monotonic() - killed < 2.0
                after = children(service.pid)
        assert service.end(signal.SIGTERM) == 0
        assert not any(map(lives, after))
    assert len(shop.told) > 200
    assert audited(tmp_path / "shop.db", shop) == []


def replaced(service: Running, before: list[int]) -> bool:
    after = children(service.pid)
    return len(after) == 2 and after != before


def decides(service: Running) -> bool:
    with suppress(OSError, ValueError):
        body = {"id": f"after {time.monotonic()}"}
        return service.ask("POST", "/v1/agents/shop/choose", body)[0] == 200
    return False


def test_stop_under_load_answers_what_was_accepted(tmp_path: Path) -> None:
    with running(tmp_path, workers=2, drain=0.3) as service:
        assert service.ask("POST", "/v1/agents", SHOP)[0] == 201
        shop = Stubborn()
        with shop.asking(service):
            shop.wait(100)
            os.kill(service.pid, signal.SIGTERM)
            time.sleep(0.1)
            status, _ = service.ask("GET", "/readyz")  # the port is open for a while
            service.process.join(40)
        assert status == 503
        assert service.process.exitcode == 0
    assert audited(tmp_path / "shop.db", shop) == []


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    with running(tmp_path, workers=2) as service:
        workers = children(service.pid)
        assert len(workers) == 2
        service.end(signal.SIGKILL)
        deadline = time.monotonic() + 10
        while any(map(lives, workers)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not any(map(lives, workers))


def test_worker_that_cannot_start_is_an_error_of_the_command(tmp_path: Path) -> None:
    _, token = new_token(("*",), ("admin",))
    write_tokens(tmp_path / "tokens.json", {token.id: token})
    here, there = PROCESSES.Pipe()
    given: dict[str, Any] = {"workers": 2, "audit": tmp_path / "no" / "audit.jsonl"}
    process = PROCESSES.Process(target=main, args=(str(tmp_path), there, 10.0, given), daemon=True)
    process.start()
    process.join(30)
    assert process.exitcode == 1  # an error that the shell shows as a sentence
    assert not here.poll(0)
