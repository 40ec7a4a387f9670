"""Alarms are sent to a webhook: signed, in order, again after a failure, and nothing waits for it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.integration.service.houses import House
from tidepull.cli.app import app
from tidepull.errors import InputError, ParameterError
from tidepull.service import webhook
from tidepull.service.metrics import Metrics
from tidepull.service.webhook import SIGNATURE, AlarmWatch, Webhook, sign

SECRET = b"sixteen letters at least"


class Receiver:
    """A server that notes what it is sent, and answers what it is told to."""

    def __init__(self) -> None:
        self.answers: list[int] = []
        self.requests: list[tuple[Any, bytes]] = []
        self.open = threading.Event()
        self.open.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.open.wait(10)
                receiver.requests.append((self.headers, body))
                self.send_response(receiver.answers.pop(0) if receiver.answers else 204)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        end = time.monotonic() + 20
        while len(self.requests) < count:
            assert time.monotonic() < end, self.requests
            time.sleep(0.01)
        return [json.loads(body) for _, body in self.requests]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(webhook, "RETRIES", (0.01, 0.01))
    receiver = Receiver()
    threading.Thread(target=receiver.server.serve_forever, daemon=True).start()
    yield receiver
    receiver.open.set()
    receiver.server.shutdown()
    receiver.server.server_close()


def visits(shop: House, first: int, last: int, *, paid: bool) -> None:
    for n in range(first, last):
        at = 1_782_900_000.0 + 300 * n
        made = shop.ask("POST", "/v1/agents/shop/choose", {"at": at}).json()
        if paid:
            reward = {"id": made["id"], "reward": 1, "at": at + 60}
            shop.ask("POST", "/v1/agents/shop/reward", reward)


def test_alarm_is_sent_once_when_it_begins_and_when_it_is_over(
    shop: House, receiver: Receiver
) -> None:
    hook = Webhook(receiver.url, SECRET, shop.service.metrics)
    watch = AlarmWatch(shop.service.hosting, hook)
    visits(shop, 0, 50, paid=True)
    shop.run(watch.look())
    visits(shop, 50, 80, paid=False)
    shop.run(watch.look())
    visits(shop, 80, 82, paid=False)
    shop.run(watch.look())
    visits(shop, 82, 83, paid=True)
    shop.run(watch.look())
    raised, cleared = receiver.wait_for(2)
    hook.close()
    assert (raised["agent"], raised["alarm"], raised["status"]) == (
        "shop",
        "rewards-stopped",
        "raised",
    )
    assert raised["text"].startswith("shop: Rewards have stopped coming")
    assert (cleared["alarm"], cleared["status"]) == ("rewards-stopped", "cleared")
    headers, body = receiver.requests[0]
    moment = int(headers[SIGNATURE].split(",")[0].removeprefix("t="))
    assert headers[SIGNATURE] == sign(SECRET, moment, body)
    assert headers[SIGNATURE] != sign(b"another secret of enough", moment, body)


def test_failures_are_tried_again_and_refusals_are_not(receiver: Receiver) -> None:
    metrics = Metrics()
    hook = Webhook(receiver.url, b"", metrics)
    receiver.answers = [500, 503, 204, 400, 500, 500, 500, 204]
    for n in range(4):
        hook.put({"agent": str(n)})
    sent = receiver.wait_for(8)
    hook.close()
    assert [message["agent"] for message in sent] == [*"000", "1", *"222", "3"]
    assert SIGNATURE not in receiver.requests[0][0]
    counted = metrics.text().decode()
    assert 'tidepull_webhook_messages_total{outcome="lost"} 2.0' in counted


def test_nothing_waits_for_a_receiver_that_hangs(
    shop: House, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "MOST_WAITING", 2)
    receiver.open.clear()
    hook = Webhook(receiver.url, SECRET, shop.service.metrics)
    begun = time.monotonic()
    for _ in range(5):
        hook.put({"agent": "shop"})
    visits(shop, 0, 1, paid=True)
    assert time.monotonic() - begun < 3
    receiver.open.set()
    receiver.wait_for(2)
    hook.close()
    assert 'outcome="lost"} 3.0' in shop.service.metrics.text().decode()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--webhook", "ftp://x"], "--webhook must be an http:// or https:// URL"),
        (["--webhook", "http://x", "--webhook-secret", "/none"], "--webhook-secret: cannot read"),
    ],
)
def test_wrong_options_are_one_sentence(words: list[str], said: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["serve", "--db", str(tmp_path), "--insecure", *words])
    assert isinstance(result.exception, InputError | ParameterError)
    assert said in str(result.exception)
