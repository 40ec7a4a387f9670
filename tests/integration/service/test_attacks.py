"""Attacks and mistakes get the answer that the table in docs/service.md says, and change nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.service.attacks import ATTACKS, BEGIN, PAGE, Attack, written
from tests.integration.service.houses import House


@pytest.fixture(scope="module")
def fort(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("fort"))
    house.make()
    for id in ("rewarded", "rewarded too"):
        house.ask("POST", "/v1/agents/shop/choose", {"context": {"age": 31}, "id": id})
    house.clear = {
        "admin": house.admin,
        "shop admin": house.token("shop", "admin"),
        "decide": house.token("shop", "decide"),
        "read": house.token("shop", "read"),
        "other": house.token("bar", "admin"),
        "expired": house.token("*", "admin", days=-1),
        "revoked": house.token("*", "admin"),
    }
    house.clear["same id"] = house.admin[:-3] + ("abc" if not house.admin.endswith("abc") else "xyz")
    house.revoke(house.clear["revoked"])
    house.service.tokens._checked = 0.0
    yield house
    house.close()


def attacked(fort: House, attack: Attack) -> Any:
    headers: Any = dict(attack.headers)
    token = "" if attack.token is None else fort.clear.get(attack.token, attack.token)
    if headers.pop("x-twice", None):
        headers = [
            ("authorization", f"Bearer {token}"),
            ("authorization", "Bearer tp_x"),
            ("content-type", "application/json"),
        ]
        return fort.run(fort.client.request(attack.method, attack.path, headers=headers, content=b"{}"))
    return fort.ask(attack.method, attack.path, attack.body, token=token, headers=headers)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what)
def test_attack_gets_its_answer_and_changes_nothing(fort: House, attack: Attack) -> None:
    if attack.before is not None:
        assert fort.ask("POST", *attack.before).status_code == 200
    before = fort.ask("GET", "/v1/agents/shop").json()
    answer = attacked(fort, attack)
    assert answer.status_code == attack.status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == attack.status
    assert attack.says in problem["detail"]
    assert problem["detail"].count("\n") == 0
    assert len(problem["detail"]) <= 600
    assert problem["request"] == answer.headers["x-request-id"]
    after = fort.ask("GET", "/v1/agents/shop").json()
    assert after == {**before, "records": after["records"]}
    assert after["records"] == before["records"]
    assert [one["name"] for one in fort.ask("GET", "/v1/agents").json()["agents"]] == ["shop"]


def test_table_in_the_manual_is_what_is_tested() -> None:
    text = PAGE.read_text()
    assert BEGIN in text
    assert text == written(text), "run python -m tests.integration.service.attacks"
    assert len(ATTACKS) >= 40


def test_no_secret_is_in_any_log(fort: House, capfd: pytest.CaptureFixture[str]) -> None:
    for attack in ATTACKS:
        if attack.status in (401, 403):
            attacked(fort, attack)
    fort.service.request_log.flush()
    logs = [path.read_text() for path in (fort.root / "access.jsonl", fort.root / "audit.jsonl")]
    logs += [fort.tokens_file.read_text(), *capfd.readouterr()]
    secrets = [clear.split("_", 2)[2] for clear in fort.clear.values()]
    for text in logs:
        assert not any(secret in text for secret in secrets)
        assert "token=" not in text
    entries = [json.loads(line) for line in logs[0].splitlines()]
    assert {"at", "request", "method", "path", "status", "ms", "token", "from"} == set(entries[-1])
    assert len({entry["request"] for entry in entries}) == len(entries)
    refused = [entry for entry in fort.lines("audit.jsonl") if entry["status"] in (401, 403)]
    assert {entry["operation"] for entry in refused} >= {"export", "delete_agent", "create_agent"}


def test_every_answer_has_security_headers(fort: House) -> None:
    for path in ("/healthz", "/v1/agents", "/nothing"):
        headers = fort.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_request_id_of_the_caller_is_kept_when_it_is_decent(fort: House) -> None:
    assert fort.ask("GET", "/healthz", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    answer = fort.ask("GET", "/healthz", headers={"x-request-id": "a b\t<script>"})
    assert len(answer.headers["x-request-id"]) == 16


def test_insecure_service_answers_to_loopback_names_only(tmp_path: Path) -> None:
    house = House(tmp_path, insecure=True)
    try:
        assert house.ask("GET", "/v1/agents").status_code == 200
        rebound = house.ask("GET", "/v1/agents", headers={"host": "evil.example"})
        assert rebound.status_code == 421
        assert "localhost" in rebound.json()["detail"]
    finally:
        house.close()
