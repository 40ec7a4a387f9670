"""Several services on one database: whoever is asked, the owner answers, and another takes over
when it dies."""

from __future__ import annotations

import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from research.benchmarks.cluster_kills import AGENTS, Callers, audit, wait_for
from tests.integration.service.houses import SHOP
from tests.integration.service.neighbourhood import Process, Street, street
from tests.postgres import Server, private
from tidepull.service.auth import new_token, read_tokens, write_tokens
from tidepull.service.handover import HandOver, read_secret

CHOOSE = "/v1/agents/shop/choose"


@pytest.fixture
def shards(postgres: Server, tmp_path: Path) -> Iterator[Street]:
    with street(postgres, tmp_path) as made:
        yield made


def owned(
    shards: Street, first: Process, second: Process, agent: str = "shop"
) -> tuple[Process, Process]:
    """The shard that has an agent, and the other one."""
    return (first, second) if shards.owner(agent) == first.url else (second, first)


def test_any_shard_answers_for_any_agent_and_agents_are_spread(shards: Street) -> None:
    first, second = shards.start(), shards.start()
    for k in range(4):
        assert first.ask("POST", "/v1/agents", {**SHOP, "name": f"shop{k}"})[0] == 201
    status, shown = second.ask("GET", "/v1/service")
    assert status == 200, shown
    assert shown["here"] == second.url
    assert {shard["url"]: len(shard["agents"]) for shard in shown["shards"]} == {
        first.url: 2,
        second.url: 2,
    }
    for k in range(4):
        made = [shard.choose("visit", f"shop{k}") for shard in (first, second)]
        assert made[0] == made[1]  # one decision, whoever was asked
        assert made[0][0] == 200
        rewarded = [
            shard.ask("POST", f"/v1/agents/shop{k}/reward", {"id": "visit", "reward": 1})[1][
                "duplicate"
            ]
            for shard in (first, second)
        ]
        assert rewarded == [False, True]
        states = [shard.ask("GET", f"/v1/agents/shop{k}/state")[1] for shard in (first, second)]
        assert states[0]["decisions"] == states[1]["decisions"] == 1
    history = (
        first.ask("GET", "/v1/agents/shop1/history?bins=3"),
        second.ask("GET", "/v1/agents/shop1/history?bins=3"),
    )
    assert [answer[1]["seconds"] for answer in history]  # the query travels too
    assert len(history[0][1]["starts"]) == len(history[1][1]["starts"]) == 3
    assert first.ask("DELETE", "/v1/agents/shop1")[0] == 200
    assert second.ask("DELETE", "/v1/agents/shop2")[0] == 200
    assert [shard.choose("late", "shop1")[0] for shard in (first, second)] == [404, 404]


def test_refusals_of_the_owner_reach_the_caller_and_tokens_are_checked_by_both(
    shards: Street,
) -> None:
    first, second = shards.start(), shards.start()
    assert first.ask("POST", "/v1/agents", SHOP)[0] == 201
    _, other = owned(shards, first, second)
    status, problem = other.ask(
        "POST", CHOOSE, {"context": {"shoe": 44}}, **{"x-request-id": "my-own"}
    )
    assert (status, problem["request"]) == (422, "my-own")
    assert "no field 'shoe'" in problem["detail"]
    reader, kept = new_token(("shop",), ("read",))
    write_tokens(shards.tokens, {**read_tokens(shards.tokens), kept.id: kept})
    time.sleep(0.6)
    assert other.ask("POST", CHOOSE, {}, token=reader)[0] == 403
    assert other.ask("GET", "/v1/agents/shop/state", token=reader)[0] == 200
    assert other.ask("POST", CHOOSE, {}, token="tp_nobody_x")[0] == 401


def signed(shards: Street, to: str, path: str, body: bytes = b"{}") -> dict[str, str]:
    """Headers of a request that a shard forwards to another one."""
    handover = HandOver(read_secret(shards.tokens.parent / "shard.secret", make=False))
    token = shards.token.split("_")[1]
    mark = handover.sign(to, token, "r1", "POST", path.encode(), body)
    return {"x-tidepull-forwarded": mark.decode(), "x-request-id": "r1", "authorization": ""}


def test_request_that_was_forwarded_is_not_forwarded_again(shards: Street) -> None:
    first, second = shards.start(), shards.start()
    assert first.ask("POST", "/v1/agents", SHOP)[0] == 201
    owner, other = owned(shards, first, second)
    status, problem = other.ask("POST", CHOOSE, {}, **signed(shards, other.url, CHOOSE))
    assert (status, problem["detail"]) == (421, f"{owner.url} has this agent now.")
    assert owner.ask("POST", CHOOSE, {}, **signed(shards, owner.url, CHOOSE))[0] == 200


def test_only_a_shard_with_the_secret_can_say_that_it_forwards(shards: Street) -> None:
    first, second = shards.start(), shards.start()
    assert first.ask("POST", "/v1/agents", SHOP)[0] == 201
    owner, other = owned(shards, first, second)
    good = signed(shards, owner.url, CHOOSE)
    wrong = {
        "no signature": {"x-tidepull-forwarded": "-"},
        "for another shard": signed(shards, other.url, CHOOSE),
        "of another path": signed(shards, owner.url, CHOOSE + "/batch"),
        "of another body": signed(shards, owner.url, CHOOSE, b"{ }"),
        "another request": {**good, "x-request-id": "r2"},
        "too old": {
            **good,
            "x-tidepull-forwarded": re.sub(r" \d+\.", " 1.", good["x-tidepull-forwarded"], count=1),
        },
    }
    for what, headers in wrong.items():
        status, problem = owner.ask("POST", CHOOSE, {}, **headers)
        assert status == 401, what
        assert "No shard with the same secret" in problem["detail"]
    assert owner.ask("POST", CHOOSE, {}, **good)[0] == 200


def test_answer_of_a_stranger_whom_the_database_names_is_not_passed_on(shards: Street) -> None:
    first, second = shards.start(), shards.start()
    assert first.ask("POST", "/v1/agents", SHOP)[0] == 201
    _, other = owned(shards, first, second)
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as stranger:

        def lie() -> None:
            connection, _ = stranger.accept()
            with connection:
                heard.append(connection.recv(65536))
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n"
                    b"\r\n{}"
                )

        lying = threading.Thread(target=lie)
        lying.start()
        with psycopg.connect(shards.db, autocommit=True) as database:
            url = f"http://127.0.0.1:{stranger.getsockname()[1]}"
            database.execute("UPDATE tidepull_agents SET url = %s WHERE name = 'shop'", (url,))
        status, problem = other.ask("POST", CHOOSE, {})
        lying.join()
    assert status == 502
    assert "is no shard with the same secret" in problem["detail"]
    assert shards.token.encode() not in heard[0]
    assert b"authorization" not in heard[0].lower()


@pytest.mark.parametrize(
    "machines", [("", ""), ("one", "two")], ids=["one machine", "two machines"]
)
def test_agent_is_taken_over_when_its_owner_is_killed(
    shards: Street, machines: tuple[str, str]
) -> None:
    first, second = (shards.start(machine) for machine in machines)
    assert first.ask("POST", "/v1/agents", SHOP)[0] == 201
    owner, other = owned(shards, first, second)
    made = [other.choose(f"visit {n}") for n in range(20)]
    owner.end(signal.SIGKILL)
    started = time.monotonic()
    again = [other.choose(f"visit {n}") for n in range(20)]
    assert again == made
    assert time.monotonic() - started < 15
    assert other.choose("news")[0] == 200
    assert shards.owner() == other.url


def test_owner_that_was_held_up_writes_nothing_and_hands_requests_on_when_it_is_back(
    shards: Street,
) -> None:
    first, second = shards.start("one"), shards.start("two")
    assert first.ask("POST", "/v1/agents", SHOP)[0] == 201
    owner, other = owned(shards, first, second)
    assert owner.choose("before")[0] == 200
    late: list[tuple[int, Any]] = []
    owner.send(signal.SIGSTOP)
    waiting = threading.Thread(target=lambda: late.append(owner.choose("held up")))
    try:
        waiting.start()
        deadline = time.monotonic() + 20
        # 502 while nobody knows, then it is taken over; nothing is written yet that could stand in
        # the way.
        while (seen := other.ask("GET", "/v1/agents/shop/state"))[0] != 200:
            assert seen[0] in (502, 503), seen
            assert time.monotonic() < deadline
        assert shards.owner() == other.url
    finally:
        owner.send(signal.SIGCONT)
    waiting.join(30)
    assert late[0][0] in (200, 503), (
        late
    )  # it said that nothing was written, or asked the new owner
    made = [other.choose(id) for id in ("held up", "meanwhile")]
    assert [status for status, _ in made] == [200, 200], made
    assert late[0] in (made[0], (503, late[0][1]))
    deadline = time.monotonic() + 10
    while (found := owner.choose("meanwhile"))[0] == 503:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert found == made[1]
    assert other.ask("GET", "/v1/agents/shop/state")[1]["decisions"] == 3
    assert shards.owner() == other.url


def test_stop_hands_agents_over_and_a_shard_that_comes_back_gets_its_share(shards: Street) -> None:
    first, second = shards.start("one"), shards.start("two")
    for k in range(2):
        assert first.ask("POST", "/v1/agents", {**SHOP, "name": f"shop{k}"})[0] == 201
    made = [second.choose("visit", f"shop{k}") for k in range(2)]
    assert first.end(signal.SIGTERM) == 0
    assert [shard["url"] for shard in second.ask("GET", "/v1/service")[1]["shards"]] == [second.url]
    started = time.monotonic()
    assert [second.choose("visit", f"shop{k}") for k in range(2)] == made
    assert time.monotonic() - started < 4  # no lease has to lapse
    third = shards.start("one", first.port)
    callers = Callers(
        [second.port], shards.token, agents=["shop0", "shop1"]
    )  # there is always something to commit
    try:
        deadline = time.monotonic() + 25
        while {shards.owner("shop0"), shards.owner("shop1")} != {second.url, third.url}:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        wait_for(callers, 10)
    finally:
        callers.stop()
    assert audit(shards.db, callers) == []


def test_agent_of_a_process_that_takes_no_requests_is_a_503_that_names_it(shards: Street) -> None:
    from tidepull.agent.agent import Agent

    shard = shards.start()
    with Agent(f"{shards.db}&agent=mine", arms=["a", "b"], policy="bernoulli-ts"):
        started = time.monotonic()
        status, problem = shard.choose("visit", "mine")
        assert status == 503
        assert "is held by process" in problem["detail"]
        assert time.monotonic() - started < 5
    assert shard.choose("visit", "mine")[0] == 200


def test_request_that_the_owner_may_have_heard_is_a_502_and_is_not_sent_twice(
    shards: Street,
) -> None:
    first, second = shards.start(), shards.start()
    assert first.ask("POST", "/v1/agents", SHOP)[0] == 201
    _, other = owned(shards, first, second)
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as deaf:

        def hang_up() -> None:
            while True:
                try:
                    connection, _ = deaf.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(65536))

        listening = threading.Thread(target=hang_up)
        listening.start()
        with psycopg.connect(shards.db, autocommit=True) as database:
            url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
            database.execute("UPDATE tidepull_agents SET url = %s WHERE name = 'shop'", (url,))
        status, problem = other.ask("POST", CHOOSE, {}, **{"x-request-id": "once"})
        deaf.shutdown(socket.SHUT_RDWR)
        listening.join()
    assert (status, len(heard)) == (502, 1)
    assert "may or may not have been done: send it again with the same id." in problem["detail"]
    assert b"x-request-id: once" in heard[0]
    assert b"x-tidepull-forwarded: 1 " in heard[0]
    assert b"authorization" not in heard[0].lower()


def test_nothing_is_lost_or_doubled_when_the_database_is_away_for_a_moment(tmp_path: Path) -> None:
    with private() as server, street(server, tmp_path) as shards:
        first, second = shards.start(), shards.start()
        for agent in AGENTS:
            assert first.ask("POST", "/v1/agents", {**SHOP, "name": agent})[0] == 201
        callers = Callers([first.port, second.port], shards.token)
        try:
            wait_for(callers, 30)
            server.stop(signal.SIGKILL)
            time.sleep(1.0)
            server.start()
            wait_for(callers, 30)
        finally:
            callers.stop()
        assert callers.refused  # it was noticed
        assert audit(shards.db, callers) == []


def test_metrics_count_what_was_forwarded(shards: Street) -> None:
    import urllib.request

    first, second = shards.start(), shards.start()
    assert first.ask("POST", "/v1/agents", SHOP)[0] == 201
    owner, other = owned(shards, first, second)
    for shard in (owner, other, other):
        assert shard.ask("POST", CHOOSE, {})[0] == 200
    counted = {}
    for shard in (owner, other):
        asked = urllib.request.Request(
            f"{shard.url}/metrics", headers={"authorization": f"Bearer {shards.token}"}
        )
        with urllib.request.urlopen(asked, timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        counted[shard.url] = [
            line
            for line in lines
            if line.startswith(("tidepull_forwarded_total", "tidepull_decisions_total{"))
        ]
    assert counted[other.url] == ['tidepull_forwarded_total{outcome="answered"} 2.0']
    assert 'tidepull_decisions_total{agent="shop"} 3.0' in counted[owner.url]
