"""Tokens: made once, kept as hashes, rotated without a restart; limits for each of them; who is let
in without."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from tests.integration.service.houses import House
from tidepull.cli.app import app
from tidepull.errors import DataError, InputError, ParameterError
from tidepull.service.auth import Limits, RateLimiter, Tokens, new_token, read_tokens, write_tokens
from tidepull.service.problem_details import HttpError
from tidepull.service.server import ServerConfig, is_loopback, prepare


def look_again(house: House) -> None:
    house.service.tokens.reload()


def test_tokens_are_rotated_without_a_restart(house: House) -> None:
    fresh = house.token("*", "read")
    look_again(house)
    assert house.ask("GET", "/v1/agents", token=fresh).status_code == 200
    house.revoke(fresh)
    look_again(house)
    assert house.ask("GET", "/v1/agents", token=fresh).status_code == 401
    assert house.ask("GET", "/v1/agents").status_code == 200


def test_broken_tokens_file_changes_nothing_and_is_told(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    good = house.tokens_file.read_text()
    house.tokens_file.write_text('{"tokens": [')
    look_again(house)
    assert house.ask("GET", "/v1/agents").status_code == 200
    assert not house.service.tokens.sound
    assert "stay valid until it is mended" in caplog.text
    house.tokens_file.write_text(good)
    look_again(house)
    assert house.ask("GET", "/v1/agents").status_code == 200
    assert house.service.tokens.sound


def test_only_hashes_are_kept_and_only_the_owner_may_read_them(tmp_path: Path) -> None:
    clear, token = new_token(("shop",), ("decide",))
    write_tokens(tmp_path / "tokens.json", {token.id: token})
    text = (tmp_path / "tokens.json").read_text()
    assert clear.split("_", 2)[2] not in text
    assert (tmp_path / "tokens.json").stat().st_mode & 0o777 == 0o600
    assert Tokens(tmp_path / "tokens.json").verify(clear) == token
    assert len(clear.split("_", 2)[2]) == 43  # 256 bits


@pytest.mark.parametrize(
    "wrong", ["", "tp", "tp_", "tp_x", "tp__", "tp_{id}_", "{clear}x", "{short}", "\x00", "é" * 99]
)
def test_token_that_is_nearly_right_is_not_valid(tmp_path: Path, wrong: str) -> None:
    clear, token = new_token(("*",), ("admin",))
    write_tokens(tmp_path / "tokens.json", {token.id: token})
    with pytest.raises(HttpError, match="not valid"):
        Tokens(tmp_path / "tokens.json").verify(
            wrong.format(id=token.id, clear=clear, short=clear[:-1])
        )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "cannot be read"),
        ('{"tokens": [{"id": "a"}]}', "cannot be read"),
        (
            '{"tokens": [{"id": "a", "hash": "x", "agents": ["*"], "scopes": ["admin"]}]}',
            "64 digits",
        ),
        (
            '{"tokens": [{"id": "a", "hash": "%s", "agents": ["*"], "scopes": ["root"]}]}'
            % ("0" * 64),
            "read, decide, admin",
        ),
    ],
)
def test_tokens_file_that_is_none_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "tokens.json").write_text(text)
    with pytest.raises(DataError, match=says):
        read_tokens(tmp_path / "tokens.json")


def test_token_that_asks_too_often_is_told_when_to_come_again(tmp_path: Path) -> None:
    house = House(tmp_path, limits=Limits(requests=5))
    try:
        other = house.token("*", "read")
        look_again(house)
        answers = [house.ask("GET", "/v1/agents") for _ in range(7)]
        assert [answer.status_code for answer in answers][:5] == [200] * 5
        assert answers[-1].status_code == 429
        assert answers[-1].headers["retry-after"] == "1"
        assert house.ask("GET", "/v1/agents", token=other).status_code == 200
    finally:
        house.close()


def test_rate_fills_up_again() -> None:
    moment = [0.0]
    rates = RateLimiter(2.0, now=lambda: moment[0])
    rates.take("a")
    rates.take("a")
    with pytest.raises(HttpError, match="more than 2 requests in a second"):
        rates.take("a")
    moment[0] = 0.6
    rates.take("a")


def test_most_agents_are_as_many_as_was_said(tmp_path: Path) -> None:
    house = House(tmp_path, limits=Limits(agents=1))
    try:
        house.make()
        answer = house.ask(
            "POST", "/v1/agents", {"name": "second", "arms": ["a", "b"], "policy": "ucb"}
        )
        assert answer.status_code == 409
        assert "1 agents already" in answer.json()["detail"]
    finally:
        house.close()


def test_list_shows_only_what_a_token_is_for(shop: House) -> None:
    shop.make(name="bar")
    mine = shop.token("bar", "read")
    look_again(shop)
    assert [one["name"] for one in shop.ask("GET", "/v1/agents", token=mine).json()["agents"]] == [
        "bar"
    ]


def test_insecure_service_is_for_loopback_only(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="loopback only"):
        prepare(ServerConfig(str(tmp_path), host="0.0.0.0", insecure=True))
    with pytest.raises(ParameterError, match="contradict"):
        prepare(ServerConfig(str(tmp_path), insecure=True, tokens=tmp_path / "t"))
    with pytest.raises(InputError, match="tidepull token new"):
        prepare(ServerConfig(str(tmp_path)))
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "10.0.0.1", "example.org")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_shell_makes_lists_and_revokes_tokens(tmp_path: Path) -> None:
    runner, file = CliRunner(), str(tmp_path / "tokens.json")

    def run(*words: str) -> Any:
        return runner.invoke(app, ["token", *words, "--tokens", file])

    made = run("new", "--agent", "shop", "--scope", "decide", "--scope", "read", "--note", "web")
    clear = made.stdout.strip()
    assert Tokens(Path(file)).verify(clear).scopes == ("decide", "read")
    id = clear.split("_")[1]
    assert id in run("list").stdout
    assert clear not in run("list").stdout
    assert "shop" in run("list").stdout
    assert run("revoke", id).exit_code == 0
    assert json.loads(Path(file).read_text()) == {"tokens": []}
    assert isinstance(run("revoke", id).exception, InputError)
    assert isinstance(run("new", "--agent", "shop", "--scope", "root").exception, InputError)


def test_upkeep_runs_between_requests_and_snapshots_are_taken(house: House) -> None:
    house.make(name="slow", policy="tide")

    async def live() -> None:
        for n in range(140):
            answer = await house.asked("POST", "/v1/agents/slow/choose", {"context": {"age": n}})
            await house.asked(
                "POST", "/v1/agents/slow/reward", {"id": answer.json()["id"], "reward": n % 2}
            )
        hosted = await house.service.hosting.get("slow")
        hosted.agent._every = 50
        house.service.schedule_upkeep(hosted)
        for _ in range(200):
            await asyncio.sleep(0.01)
            if hosted.agent.state().saved and not (hosted.saving or hosted.agent.has_work):
                return
        raise AssertionError("no snapshot, or work is left")

    house.run(live())
    speed: httpx.Response = house.ask("GET", "/v1/service")
    assert speed.json()["upkeep_slices"] > 0
    assert speed.json()["snapshots"] >= 1


def test_tokens_are_listed_with_their_end(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    tokens = [new_token(("shop",), ("read",), days=days)[1] for days in (None, 30.0, -1.0)]
    write_tokens(file, {token.id: token for token in tokens})
    shown = CliRunner().invoke(app, ["token", "list", "--tokens", str(file)]).stdout
    lines = {
        token.id: next(row for row in shown.splitlines() if token.id in row) for token in tokens
    }
    for_ever, valid, over = (lines[token.id] for token in tokens)
    assert "never" in for_ever
    soon = datetime.now(UTC) + timedelta(days=30)
    assert soon.strftime("%Y-%m-%d") in valid
    assert "expired" not in valid
    assert "expired" in over
