"""Attacks and mistakes get the answer that the table in research/lab/service.md says, and change
nothing."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import socket
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.integration.service.attacks import (
    ATTACKS,
    BEGIN,
    CHOOSE,
    PAGE,
    REWARD,
    SQL,
    Attack,
    written,
)
from tests.integration.service.houses import SHOP, House
from tests.integration.service.running import Running, running
from tidepull.agent.agent import Agent
from tidepull.agent.personalizer import FIELD
from tidepull.cli.app import app
from tidepull.errors import StoreError
from tidepull.service import server
from tidepull.service.personalizer import Personalizer
from tidepull.service.stores import SharedDatabase


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
    house.clear["same id"] = house.admin[:-3] + (
        "abc" if not house.admin.endswith("abc") else "xyz"
    )
    house.revoke(house.clear["revoked"])
    house.service.tokens.reload()
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
        return fort.run(
            fort.client.request(attack.method, attack.path, headers=headers, content=b"{}")
        )
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
    assert not [entry for entry in entries if entry["status"] == 401]
    ended = [entry for entry in fort.lines("audit.jsonl") if entry["event"] == "end"]
    assert not [entry for entry in ended if entry["status"] in (401, 403)]


def test_every_answer_has_security_headers(fort: House) -> None:
    for path in ("/healthz", "/v1/agents", "/nothing"):
        headers = fort.ask("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_request_id_of_the_caller_is_kept_when_it_is_decent(fort: House) -> None:
    assert (
        fort.ask("GET", "/healthz", headers={"x-request-id": "abc-1"}).headers["x-request-id"]
        == "abc-1"
    )
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


# ---- tokens and rights


@pytest.mark.parametrize(
    "wrong", ["tp_{id}_{hash}", "{hash}", "{clear}\x00", "{clear}\x00x", "{clear} {clear}"]
)
def test_token_is_not_valid_when_it_is_made_of_what_is_kept_or_goes_on(
    fort: House, wrong: str
) -> None:
    hashed = hashlib.sha256(fort.admin.encode()).hexdigest()
    assert hashed in fort.tokens_file.read_text()
    clear = wrong.format(id=fort.admin.split("_")[1], hash=hashed, clear=fort.admin)
    answer = fort.ask("GET", "/v1/agents", token=clear)
    assert (answer.status_code, answer.json()["detail"]) == (401, "This token is not valid.")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", CHOOSE, {}),
        ("GET", "/v1/agents", None),
        ("GET", "/v1/agents/shop/export", None),
        ("DELETE", "/v1/agents/shop", None),
        ("GET", "/metrics", None),
    ],
)
def test_personalizers_key_opens_no_other_route(
    fort: House, method: str, path: str, body: Any
) -> None:
    answer = fort.ask(
        method, path, body, token="", headers={"ocp-apim-subscription-key": fort.admin}
    )
    assert answer.status_code == 401
    assert "A token is needed" in answer.json()["detail"]
    assert fort.ask("GET", "/v1/agents/shop").status_code == 200


@pytest.mark.parametrize(
    ("key", "bearer", "status"),
    [
        ("menu", "shop", 201),
        ("shop", "menu", 403),
        ("shop", "*", 403),
        ("wrong", "*", 401),
        ("*", "wrong", 201),
    ],
)
def test_key_counts_where_key_and_token_have_different_rights(
    rights: dict[str, str], menu: House, key: str, bearer: str, status: int
) -> None:
    headers = {"ocp-apim-subscription-key": rights[key]}
    body = {"actions": [{"id": "a", "features": [{"x": 1}]}, {"id": "b", "features": [{"x": 2}]}]}
    answer = menu.ask(
        "POST", "/personalizer/v1.0/rank", body, token=rights[bearer], headers=headers
    )
    assert answer.status_code == status, answer.text
    if status == 201:
        assert answer.json()["rewardActionId"] in ("a", "b")
    else:
        assert answer.json()["error"]["code"] == str(status)


@pytest.fixture(scope="module")
def menu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("menu"))
    house.service.personalizer = Personalizer("menu")
    house.make(name="menu", arms=["a", "b"], context={FIELD: {"kind": "Hashed", "columns": 4}})
    yield house
    house.close()


@pytest.fixture(scope="module")
def rights(menu: House) -> dict[str, str]:
    made = {name: menu.token(name, "decide") for name in ("menu", "shop", "*")}
    menu.service.tokens.reload()
    return {**made, "wrong": "tp_00000000_x"}


@pytest.mark.parametrize("header", ["x-http-method-override", "x-http-method", "x-method-override"])
@pytest.mark.parametrize(
    ("method", "path", "body"), [("GET", "/v1/agents/shop", None), ("POST", CHOOSE, {})]
)
def test_method_in_a_header_or_query_is_not_used(
    fort: House, header: str, method: str, path: str, body: Any
) -> None:
    answer = fort.ask(method, f"{path}?_method=DELETE", body, headers={header: "DELETE"})
    assert answer.status_code == 200
    assert ("arm" if method == "POST" else "records") in answer.json()
    assert fort.ask("GET", "/v1/agents/shop").status_code == 200


@pytest.mark.parametrize("who", ["admin", "read", "decide", "other", "expired"])
def test_head_of_an_export_exports_nothing(wired: Running, fort: House, who: str) -> None:
    asked = fort.ask("HEAD", "/v1/agents/shop/export", token=fort.clear[who])
    assert (asked.status_code, asked.headers["allow"]) == (405, "GET")
    head = "HEAD /v1/agents/shop/export HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    heard = wired.say(head.encode())
    assert heard.startswith(b"HTTP/1.1 405 ")
    assert heard.endswith(b"\r\n\r\n")


# ---- bodies that are taken, and what they do


def test_last_of_doubled_names_counts(fort: House) -> None:
    made = fort.ask("POST", CHOOSE, b'{"id": "first", "id": "second", "context": {"age": 1}}')
    assert made.status_code == 200
    assert fort.ask("POST", REWARD, {"id": "first", "reward": 1}).status_code == 404
    taken = fort.ask("POST", REWARD, b'{"id": "first", "id": "second", "reward": 0, "reward": 1}')
    assert (taken.status_code, taken.json()["id"]) == (200, "second")
    other = fort.ask("POST", REWARD, {"id": "second", "reward": 0})
    assert (other.status_code, "has the reward 1 already" in other.json()["detail"]) == (409, True)


@pytest.mark.parametrize(
    ("name", "cut"),
    [("zero\x00byte", "zero"), (SQL, "x"), ("\u202e\ufeff", "\u202e"), ("%00%2e", "\x00.")],
)
def test_id_is_kept_as_it_came(fort: House, name: str, cut: str) -> None:
    before = fort.ask("GET", "/v1/agents/shop").json()["records"]
    made = fort.ask("POST", CHOOSE, {"id": name})
    assert fort.ask("POST", CHOOSE, {"id": name}).json() == made.json()
    assert fort.ask("POST", REWARD, {"id": cut, "reward": 1}).status_code == 404
    taken = fort.ask("POST", REWARD, {"id": name, "reward": 1})
    assert (taken.status_code, taken.json()) == (200, {"id": name, "duplicate": False})
    assert fort.ask("GET", "/v1/agents/shop").json()["records"] == before + 2


# ---- files


class Executed:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("packed", [zlib.compress, bytes])
def test_snapshot_that_is_a_pickle_is_not_executed(
    packed: Callable[[bytes], bytes], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, trace = tmp_path / "shop.db", tmp_path / "executed"
    with Agent(
        path, arms=["a", "b"], policy="ucb", context={"age": float}, training="inline"
    ) as agent:
        agent.choose({"age": 1.0}, id="one")
        agent.save()
    data = pickle.dumps(Executed(trace))
    pickle.loads(data)
    trace.unlink()
    data = packed(data)
    with sqlite3.connect(path) as connection:
        changed = connection.execute(
            "UPDATE snapshots SET data = ?, checksum = ?", (data, zlib.crc32(data))
        )
        assert changed.rowcount >= 1
    connection.close()
    with Agent(path, training="inline") as agent:
        assert agent.state().decisions == 1
    assert not trace.exists()
    assert "the one before it is tried" in caplog.text


# ---- browsers


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1"])
@pytest.mark.parametrize("site", ["cross-site", "same-site", None])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_no_other_site_may_ask_or_read_an_answer(
    fort: House, origin: str, method: str, site: str | None
) -> None:
    headers = {"origin": origin, "access-control-request-method": "POST"}
    if site is not None:
        headers["sec-fetch-site"] = site
    answer = fort.ask(method, CHOOSE, {} if method == "POST" else None, headers=headers)
    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://localhost", "sec-fetch-site": "same-origin"},
        {"origin": "https://shop.example", "sec-fetch-site": "same-origin"},  # a proxy has TLS
        {"origin": "http://localhost"},
        {"sec-fetch-site": "none"},
    ],
)
def test_own_pages_and_programs_may_ask(fort: House, headers: dict[str, str]) -> None:
    assert fort.ask("POST", CHOOSE, {}, headers=headers).status_code == 200


def test_page_runs_no_text_and_keeps_its_token_for_one_tab() -> None:
    folder = resources.files("tidepull.service") / "dashboard"
    own = {
        file.name: file.read_text()
        for file in folder.iterdir()
        if file.name.endswith((".js", ".html"))
    }
    own = {name: text for name, text in own.items() if not name.startswith("uPlot")}
    assert len(own) > 10
    banned = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|document\.cookie"
    assert {name: found for name, text in own.items() if (found := re.findall(banned, text))} == {}
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|javascript:", own["index.html"])
    assert {name for name, text in own.items() if "sessionStorage." in text} == {"api.js"}
    kept = {
        found
        for text in own.values()
        for found in re.findall(r"localStorage\.setItem\(([^,]+),", text)
    }
    assert kept == {'"tidepull-theme"', '"tidepull-zone"'}
    assert "authorization: `Bearer ${token.get()}`" in own["api.js"]


# ---- secrets and defaults


def test_password_of_a_database_is_in_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "postgresql://someone:hush-hush@127.0.0.1:1/agents?connect_timeout=1"
    with pytest.raises(StoreError) as refused:
        SharedDatabase(url).names()
    assert "postgresql://someone@127.0.0.1:1/agents" in str(refused.value)
    assert "hush-hush" not in str(refused.value)
    monkeypatch.setattr(server, "prepare", lambda config: config)
    monkeypatch.setattr(
        server, "serve", lambda _, host, port, ready: ready(f"http://{host}:{port}")
    )
    (tmp_path / "tokens.json").write_text('{"tokens": []}')
    told = CliRunner().invoke(
        app, ["serve", "--db", url, "--tokens", str(tmp_path / "tokens.json")]
    )
    assert told.exit_code == 0, told.output
    assert "listening on http://127.0.0.1:8000; agents in 127.0.0.1:1/agents" in " ".join(
        told.output.split()
    )
    assert "hush-hush" not in told.output


def test_service_listens_on_loopback_unless_told_otherwise() -> None:
    assert server.ServerConfig("x").host == "127.0.0.1"
    assert not server.ServerConfig("x").insecure


# ---- bytes


@pytest.fixture(scope="module")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("wired"), patience=0.4) as service:
        assert service.ask("POST", "/v1/agents", SHOP)[0] == 201
        yield service


def one_answer(service: Running, data: bytes) -> tuple[int, dict[str, str], Any]:
    """Status, headers and body of the first answer on a connection that may stay open."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(data)
        stream = connection.makefile("rb")
        status = int(stream.readline().split()[1])
        lines = iter(lambda: stream.readline().decode().strip(), "")
        headers = dict(line.split(": ", 1) for line in lines)
        return status, headers, json.loads(stream.read(int(headers["content-length"])))


def test_pipelined_requests_are_answered_in_order(wired: Running) -> None:
    paths = ["/healthz", "/v1/agents", "/nothing"]
    requests = [
        f"GET {paths[n % 3]} HTTP/1.1\r\nhost: x\r\nx-request-id: r{n}\r\n".encode()
        for n in range(200)
    ]
    heard = wired.say(b"\r\n".join(requests) + b"connection: close\r\n\r\n")
    assert [int(n) for n in re.findall(rb"x-request-id: r(\d+)\r\n", heard)] == list(range(200))
    statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", heard)]
    assert statuses == [(200, 401, 404)[n % 3] for n in range(200)]


@pytest.mark.parametrize(
    ("what", "head", "status", "says"),
    [
        ("absolute form", "GET http://evil.example/healthz HTTP/1.1", 200, '"ok"'),
        ("absolute form without a token", "GET http://evil.example/v1/agents HTTP/1.1", 401, "A token is needed"),
        ("absolute form of a file", "GET file:///etc/passwd HTTP/1.1", 400, "not a request"),
        ("CONNECT with a path", "CONNECT /v1/agents HTTP/1.1", 405, "use GET, HEAD, POST"),
        ("HTTP/0.9", "GET /v1/agents", 401, "A token is needed"),
        ("WebSocket", "GET /v1/agents HTTP/1.1\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
         "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", 401, "A token is needed"),
        ("HTTP/2 in clear", "GET /healthz HTTP/1.1\r\nupgrade: h2c\r\nconnection: upgrade, http2-settings\r\n"
         "http2-settings: AAMAAABkAAQAAP__", 200, '"ok"'),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 31 else "",
)  # fmt: skip
def test_unusual_request_is_a_plain_one(
    wired: Running, what: str, head: str, status: int, says: str
) -> None:
    host = "" if what == "HTTP/0.9" else "host: x\r\n"
    answered, headers, body = one_answer(wired, f"{head}\r\n{host}\r\n".encode())
    assert answered == status, what
    assert says in json.dumps(body)
    assert "upgrade" not in headers
    assert "sec-websocket-accept" not in headers


@pytest.mark.parametrize(
    "begun",
    [
        "GET /healthz HTTP/1.1\r\nx: ",
        "POST /v1/agents/shop/choose HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        "authorization: Bearer TOKEN\r\ncontent-length: 1000\r\n\r\n",
        "POST /v1/agents/shop/choose HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        "authorization: Bearer TOKEN\r\ntransfer-encoding: chunked\r\n\r\n3e8\r\n",
    ],
    ids=["head", "body", "chunk"],
)
def test_bytes_that_trickle_in_do_not_move_the_deadline(wired: Running, begun: str) -> None:
    before = wired.ask("GET", "/v1/agents/shop")[1]["records"]
    with socket.create_connection(("127.0.0.1", wired.port), timeout=10) as connection:
        connection.sendall(begun.replace("TOKEN", wired.token).encode())
        connection.settimeout(0.05)
        heard, started = b"", time.monotonic()
        while not heard and time.monotonic() - started < 8:
            connection.send(b" ")
            try:
                heard = connection.recv(65536)
            except TimeoutError:
                continue
    assert heard.startswith(b"HTTP/1.1 408 ")
    assert b"did not come to its end" in heard
    assert wired.ask("GET", "/v1/agents/shop")[1]["records"] == before
