"""`/readyz` says what stands in the way: the disk, commits, another service, agents being opened or
made anew, and a stop that is coming."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from research.benchmarks.service_waiting import write_old_agent
from tests.integration.service.houses import SHOP, House
from tests.integration.service.running import running
from tidepull._internal import compiler
from tidepull.agent.agent import Agent
from tidepull.agent.ledger.sqlite import SqliteLedger
from tidepull.agent.rebuild import Rebuild
from tidepull.service import service
from tidepull.service.stores import Directory, StoreHealth

CHOOSE = "/v1/agents/shop/choose"


def ready(house: House, agent: str = "") -> tuple[int, str]:
    answer = house.ask("GET", f"/readyz{'?agent=' if agent else ''}{agent}", token="")
    return answer.status_code, answer.json().get("detail", "")


def until(house: House, status: int, seconds: float = 10.0) -> str:
    """Wait for a status of `/readyz`; what it says."""
    deadline = time.monotonic() + seconds
    while (found := ready(house))[0] != status:
        assert time.monotonic() < deadline, found
        house.run(_moment())
    return found[1]


async def _moment() -> None:
    await asyncio.sleep(0.05)


def test_failing_commits_make_it_unready_until_the_disk_can_be_written_to(
    shop: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ready(shop)[0] == 200

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    def unwritable(_: Directory, *, write: bool) -> StoreHealth:
        return StoreHealth(problem="no room") if write else StoreHealth(free=1 << 30)

    with monkeypatch.context() as patched:
        patched.setattr(SqliteLedger, "_insert", full)
        patched.setattr(Directory, "health", unwritable)
        assert shop.ask("POST", CHOOSE, {}).status_code == 503
        assert "disk is full" in ready(shop)[1]
        assert until(shop, 503)
    assert until(shop, 200) == ""
    assert shop.ask("POST", CHOOSE, {}).status_code == 200


def test_little_space_makes_it_unready(shop: House, monkeypatch: pytest.MonkeyPatch) -> None:
    until(shop, 200)
    monkeypatch.setattr(service, "MIN_FREE", 1 << 62)
    assert "MB are free" in until(shop, 503)


def test_disk_that_does_not_answer_makes_it_unready_and_is_not_waited_for(
    shop: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    real = Directory.health

    def hanging(self: Directory, *, write: bool) -> StoreHealth:
        go_on.wait(20)
        return real(self, write=write)

    monkeypatch.setattr(Directory, "health", hanging)
    monkeypatch.setattr(service, "STORE_TIMEOUT", 0.3)
    try:
        assert "The disk has not answered" in until(shop, 503)
        assert shop.ask("GET", "/healthz").status_code == 200
    finally:
        go_on.set()
    until(shop, 200)


def test_work_between_requests_goes_on_after_an_error_that_it_does_not_expect(
    shop: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    until(shop, 200)
    real, failed = Directory.health, list[bool]()

    def failing(self: Directory, *, write: bool) -> StoreHealth:
        failed.append(True)
        if len(failed) == 1:
            raise RuntimeError("nobody thought of this")
        return real(self, write=write)

    monkeypatch.setattr(Directory, "health", failing)
    monkeypatch.setattr(service, "STORE_TIMEOUT", 1.5)
    assert "The disk has not answered" in until(shop, 503)
    assert until(shop, 200) == ""
    assert "work between requests failed" in caplog.text


def test_second_service_of_a_directory_is_not_ready_until_the_first_one_ends(
    house: House, tmp_path: Path
) -> None:
    until(house, 200)
    second = House(tmp_path)
    try:
        assert "held by" in until(second, 503)
        house.stop()
        until(second, 200)
    finally:
        second.close()
        house.open()


@pytest.fixture
def old(house: House) -> House:
    """A service with an agent of an earlier release."""
    write_old_agent(house.root / "old.db", "lin-ts")
    return house


def test_agent_of_an_earlier_release_is_made_anew_in_the_background(
    old: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, real = threading.Event(), threading.Event(), Rebuild.advance

    def held(self: Rebuild, *given: Any) -> None:
        begun.set()
        assert go_on.wait(20)
        real(self, *given)

    old.make()
    monkeypatch.setattr(Rebuild, "advance", held)
    try:
        first = old.ask("POST", "/v1/agents/old/choose", {})
        old.run(_moment())
        assert begun.wait(5)
        assert (first.status_code, first.headers["retry-after"]) == (503, "5")
        assert "is being rebuilt for this release from its ledger: 0 of" in first.json()["detail"]
        assert ready(old)[0] == 200
        status, why = ready(old, "old")
        assert (status, "is being rebuilt" in why) == (503, True)
        assert old.ask("POST", CHOOSE, {}).status_code == 200
        assert b"tidepull_upgrading_agents 1.0" in old.service.metrics.text()
    finally:
        go_on.set()
    deadline = time.monotonic() + 20
    while ready(old, "old")[0] != 200:
        assert time.monotonic() < deadline
        old.run(_moment())
    assert old.ask("POST", "/v1/agents/old/choose", {"context": {}}).status_code == 200
    said = old.ask("GET", "/v1/agents/old/explain").json()["words"]
    assert "rebuilt" in said


def test_service_that_waits_for_kernels_is_ready_when_they_are_loaded(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(house, 200)
    monkeypatch.setattr(house.service, "opening", (0, 0))
    monkeypatch.setattr(compiler, "is_ready", lambda: False)
    for waits, why in ((True, "kernels are compiled or loaded"), (False, "0 of 0 agents are open")):
        monkeypatch.setattr(house.service, "warm", waits)
        assert why in ready(house)[1]


def test_what_lives_when_kernels_are_loaded_is_left_out_of_garbage_collections(
    shop: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready, frozen = list[bool](), list[bool]()
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(bool(ready)))
    monkeypatch.setattr(compiler, "is_ready", lambda: bool(ready))

    def wait_for(expected: list[bool]) -> None:
        deadline = time.monotonic() + 10
        while frozen != expected and time.monotonic() < deadline:
            shop.run(_moment())
        assert frozen == expected

    shop.run(shop.service.listen("http://localhost:1"))
    wait_for([False])
    ready.append(True)
    wait_for([False, True])


def test_agents_are_open_before_it_is_ready_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        assert service.ask("POST", "/v1/agents", SHOP)[0] == 201
        assert service.end(signal.SIGTERM) == 0
    with running(tmp_path) as service:
        deadline = time.monotonic() + 20
        while (answer := service.ask("GET", "/readyz"))[0] != 200:
            assert "The service warms up" in answer[1]["detail"]
            assert time.monotonic() < deadline
        listed = service.ask("GET", "/v1/agents")[1]["agents"]
        assert listed == [{"name": "shop", "open": True}]


def test_stop_is_announced_before_the_port_closes(tmp_path: Path) -> None:
    with running(tmp_path, drain=1.0) as service:
        assert service.ask("POST", "/v1/agents", SHOP)[0] == 201
        os.kill(service.pid, signal.SIGTERM)
        deadline = time.monotonic() + 5
        while (answer := service.ask("GET", "/readyz"))[0] == 200:
            assert time.monotonic() < deadline
        assert (answer[0], answer[1]["detail"]) == (503, "The service is stopping.")
        assert service.ask("POST", CHOOSE, {})[0] == 200
        assert service.ask("GET", "/healthz") == (200, {"status": "stopping"})
        service.process.join(20)
        assert service.process.exitcode == 0
    with Agent(tmp_path / "shop.db", read_only=True) as agent:
        assert agent.state().decisions == 1
