"""A client whose service does not answer: one deadline, a fallback arm that is marked, and a breaker
that stops asking."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

import tidepull
from tidepull.errors import ParameterError, ServiceError


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that treats every connection so; its address."""
    server, connections = socket.create_server(("127.0.0.1", 0)), list[socket.socket]()

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            connections.append(connection)
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        for one in (server, *connections):
            one.close()


def silent(connection: socket.socket) -> None:
    connection.recv(65536)


def trickling(connection: socket.socket) -> None:
    """An answer that never ends, a byte at a time."""
    connection.recv(65536)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"
    try:
        connection.sendall(head)
        while True:
            connection.sendall(b" ")
            time.sleep(0.02)
    except OSError:
        return


def ask(url: str, asynchronous: bool, **given: Any) -> tidepull.Decision:
    """A decision, by one of the clients."""
    given, options = {**given}, {"timeout": given.pop("timeout", 0.3)}
    if not asynchronous:
        with tidepull.Client(url, **options) as client:
            return client.agent("shop").choose(**given)

    async def choose() -> tidepull.Decision:
        async with tidepull.AsyncClient(url, **options) as client:
            return await client.agent("shop").choose(**given)

    return asyncio.run(choose())


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("answer", [silent, trickling])
def test_request_ends_at_its_deadline_whatever_the_service_does(
    answer: Callable[[socket.socket], None], asynchronous: bool
) -> None:
    with listening(answer) as url:
        started = time.monotonic()
        with pytest.raises(ServiceError, match=r"did not answer within 0\.3 seconds") as error:
            ask(url, asynchronous)
        assert 0.25 < time.monotonic() - started < 1.0
        assert error.value.status == 0


@pytest.mark.parametrize("asynchronous", [False, True])
def test_fallback_is_returned_and_marked_when_the_deadline_passes(asynchronous: bool) -> None:
    with listening(silent) as url:
        started = time.monotonic()
        decision = ask(url, asynchronous, id="order 17", fallback="blue")
        assert time.monotonic() - started < 1.0
    assert (decision.id, decision.arm, decision.group) == ("order 17", "blue", "fallback")
    assert decision.is_fallback


def test_default_deadline_is_two_seconds() -> None:
    with listening(silent) as url, tidepull.Client(url) as client:
        started = time.monotonic()
        assert client.agent("shop").choose(fallback="blue").is_fallback
        assert 1.8 < time.monotonic() - started < 3.0


class Scripted(httpx.BaseTransport):
    """Answers with these statuses, one after the other; 0 is no answer."""

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.asked = list(statuses), list[tuple[str, Any]]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.url.path, json.loads(request.read() or b"null")))
        status = self.statuses.pop(0) if self.statuses else 200
        if not status:
            raise httpx.ConnectError("nobody there")
        made = {"id": "1", "arm": "red", "propensity": 1.0, "group": "policy", "at": 0.0}
        return httpx.Response(status, json=made if status == 200 else {"detail": f"it is {status}"})


def scripted(*statuses: int, **given: Any) -> tuple[Any, Scripted]:
    transport = Scripted(*statuses)
    client = tidepull.Client("http://shop", **{"retries": 0, **given, "transport": transport})
    return client.agent("shop"), transport


@pytest.mark.parametrize("status", [0, 429, 500, 503])
def test_fallback_is_for_a_service_that_is_not_well(status: int) -> None:
    shop, _ = scripted(status)
    assert shop.choose(fallback="blue").is_fallback
    many, _ = scripted(status)
    assert [one.arm for one in many.choose_many([{}, {}], fallback="blue")] == ["blue", "blue"]


@pytest.mark.parametrize("status", [401, 404, 422])
def test_fallback_hides_no_mistake_of_the_caller(status: int) -> None:
    shop, _ = scripted(status)
    with pytest.raises(ServiceError, match=f"it is {status}"):
        shop.choose(fallback="blue")


def test_reward_of_a_fallback_is_not_sent() -> None:
    shop, transport = scripted(503)
    assert shop.reward(shop.choose(fallback="blue"), 1.0) is False
    assert [path for path, _ in transport.asked] == ["/v1/agents/shop/choose"]


def test_breaker_stops_asking_and_tries_again_after_a_while() -> None:
    shop, transport = scripted(0, 0, 0, 503, breaker=3, cooldown=0.2)
    for _ in range(10):
        assert shop.choose(fallback="blue").is_fallback
    assert len(transport.asked) == 3
    with pytest.raises(ServiceError, match="was not asked: it failed 3 requests in a row") as error:
        shop.choose()
    assert error.value.status == 0
    time.sleep(0.25)
    assert shop.choose(fallback="blue").is_fallback  # the trial fails
    assert shop.choose(fallback="blue").is_fallback
    assert len(transport.asked) == 4
    time.sleep(0.25)
    assert shop.choose(fallback="blue").arm == "red"
    assert shop.choose().arm == "red"
    assert len(transport.asked) == 6


def test_refusals_do_not_open_the_breaker() -> None:
    shop, transport = scripted(*[422] * 10, breaker=3)
    for _ in range(10):
        with pytest.raises(ServiceError, match="it is 422"):
            shop.choose()
    assert len(transport.asked) == 10


def test_second_address_has_its_share_of_the_deadline() -> None:
    with listening(silent) as hanging, listening(trickling) as slow:
        client = tidepull.Client([hanging, slow], timeout=0.6)
        started = time.monotonic()
        with client, pytest.raises(ServiceError, match="did not answer within"):
            client.agent("shop").choose()
        assert 0.5 < time.monotonic() - started < 1.2


def test_deadline_must_be_positive() -> None:
    with pytest.raises(ParameterError, match="timeout must be a positive number of seconds"):
        tidepull.Client("http://shop", timeout=0)
