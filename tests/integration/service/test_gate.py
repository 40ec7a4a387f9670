"""Floods, and requests without a token: they fill no disk, and hold nobody up."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.service.houses import House
from tests.integration.service.running import Running, running
from tidepull.agent.served import ServedAgent
from tidepull.service.auth import Limits

CHOOSE = "/v1/agents/shop/choose"


def metric(house: House, name: str, **labels: str) -> float:
    return house.service.metrics.registry.get_sample_value(name, labels) or 0.0


def test_requests_without_a_valid_token_are_counted_and_not_written(shop: House) -> None:
    before = [len(shop.lines(name)) for name in ("access.jsonl", "audit.jsonl")]
    path = "/v1/agents/" + "\u20ac" * 200
    for token in ("", "tp_00000000_x"):
        for method, asked in (("GET", f"{path}/export"), ("DELETE", path), ("GET", path)):
            assert shop.ask(method, asked, token=token).status_code == 401
    assert shop.ask("GET", "/nothing", token="").status_code == 404
    assert [len(shop.lines(name)) for name in ("access.jsonl", "audit.jsonl")] == before
    assert metric(shop, "tidepull_refused_total", why="token") == 6


def test_refusal_of_a_valid_token_is_in_the_access_log_and_not_in_the_audit_trail(
    shop: House,
) -> None:
    reader = shop.token("shop", "read")
    before = len(shop.lines("audit.jsonl"))
    assert shop.ask("GET", "/v1/agents/shop/export", token=reader).status_code == 403
    assert shop.lines("access.jsonl")[-1]["status"] == 403
    assert len(shop.lines("audit.jsonl")) == before


def test_address_that_asks_too_often_is_refused_before_its_token_is_looked_at(
    tmp_path: Path,
) -> None:
    house = House(tmp_path, limits=Limits(address_requests=5))
    try:
        answers = [house.ask("GET", "/healthz", token="") for _ in range(8)]
        assert [answer.status_code for answer in answers[:5]] == [200] * 5
        assert answers[-1].status_code == 429
        assert "This address" in answers[-1].json()["detail"]
        assert house.ask("GET", "/v1/agents").status_code == 429
        assert metric(house, "tidepull_refused_total", why="address") >= 2
    finally:
        house.close()


def test_address_that_guesses_tokens_is_slowed_down_and_valid_ones_pass(tmp_path: Path) -> None:
    house = House(tmp_path, limits=Limits(refusals=3))
    try:
        answers = [house.ask("GET", "/v1/agents", token="tp_0_x") for _ in range(6)]
        assert [answer.status_code for answer in answers[:3]] == [401] * 3
        assert answers[-1].status_code == 429
        assert answers[-1].headers["connection"] == "close"
        assert house.ask("GET", "/v1/agents").status_code == 200
    finally:
        house.close()


def test_every_decision_of_a_batch_counts_as_a_request(tmp_path: Path) -> None:
    house = House(tmp_path, limits=Limits(requests=20))
    try:
        house.make()
        batch: dict[str, Any] = {"decisions": [{}] * 60}
        assert house.ask("POST", f"{CHOOSE}/batch", batch).status_code == 200
        later = house.ask("POST", CHOOSE, {})
        assert later.status_code == 429
        assert int(later.headers["retry-after"]) >= 2
    finally:
        house.close()


def test_more_requests_than_may_be_under_way_are_shed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(tmp_path, limits=Limits(under_way=4))
    real = ServedAgent.choose_ahead

    def slow(self: ServedAgent, *given: Any) -> Any:
        time.sleep(0.2)
        return real(self, *given)

    async def together() -> list[Any]:
        asked = [house.asked("POST", CHOOSE, {}) for _ in range(10)]
        health = house.asked("GET", "/healthz")
        return await asyncio.gather(*asked, health)

    try:
        house.make()
        monkeypatch.setattr(ServedAgent, "choose_ahead", slow)
        *answers, health = house.run(together())
        statuses = [answer.status_code for answer in answers]
        assert statuses.count(200) == 4
        assert statuses.count(429) == 6
        assert health.status_code == 200
        shed = next(answer for answer in answers if answer.status_code == 429)
        assert shed.headers["retry-after"] == "1"
        assert metric(house, "tidepull_shed_total", why="service") == 6
    finally:
        house.close()


def test_token_for_one_agent_is_told_the_status_of_the_service_alone(shop: House) -> None:
    reader = shop.token("shop", "read")
    assert shop.ask("GET", "/v1/service").json()["version"]
    told = shop.ask("GET", "/v1/service", token=reader).json()
    assert {name: value for name, value in told.items() if value} == {
        "status": "ok",
        "commits": {"count": 0, "p50": None, "p99": None},
        "slices": {"count": 0, "p50": None, "p99": None},
    }


def test_audit_line_is_on_disk_before_the_operation_begins(
    shop: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def look(_: ServedAgent) -> None:
        seen.append(json.loads((shop.root / "audit.jsonl").read_text().splitlines()[-1]))
        raise OSError("killed here")

    monkeypatch.setattr(ServedAgent, "freeze", look)
    assert shop.ask("POST", "/v1/agents/shop/freeze").status_code == 500
    assert (seen[0]["operation"], seen[0]["event"]) == ("freeze", "begin")
    assert shop.lines("audit.jsonl")[-1]["status"] == 500


@pytest.fixture
def few_descriptors(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, descriptors=200) as service:
        yield service


def test_more_agents_than_descriptors_are_served_by_turns(few_descriptors: Running) -> None:
    service = few_descriptors
    for n in range(30):
        agent = {"name": f"shop{n}", "arms": ["a", "b"], "policy": "random", "context": {}}
        assert service.ask("POST", "/v1/agents", agent)[0] == 201
    for _ in range(2):
        for n in range(30):
            assert service.ask("POST", f"/v1/agents/shop{n}/choose", {})[0] == 200
    assert len(os.listdir(f"/proc/{service.pid}/fd")) < 180


def test_silent_connections_make_room_for_others(few_descriptors: Running) -> None:
    service = few_descriptors
    silent = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(300)]
    try:
        started = time.monotonic()
        assert service.ask("GET", "/healthz")[0] == 200
        assert time.monotonic() - started < 2
    finally:
        for connection in silent:
            connection.close()
