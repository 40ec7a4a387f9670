"""A webhook for alarms: what `explain` warns of is sent to a URL when it begins and when it is over.

One thread sends, in order, with a timeout and retries. The event loop never waits for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore, Event
from typing import Any
from urllib.parse import urlsplit

import httpx

from tidepull.agent.insight import Insight
from tidepull.errors import ParameterError, TidepullError
from tidepull.service.hosting import Hosting
from tidepull.service.logs import timestamp
from tidepull.service.metrics import Metrics
from tidepull.service.problem_details import HttpError

_LOG = logging.getLogger("tidepull.serve")
CHECK_INTERVAL = 60.0
"""Seconds between two looks at the alarms of agents that were used meanwhile."""

TIMEOUT = 5.0
RETRIES = (1.0, 5.0, 25.0, 125.0)
"""Seconds of rest before each further attempt."""

MOST_WAITING = 1000
"""Messages that may wait to be sent."""

SIGNATURE = "X-Tidepull-Signature"


def require_url(url: str) -> str:
    """A URL that messages can be sent to."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ParameterError(f"--webhook must be an http:// or https:// URL, got {url!r}")
    return url


def sign(secret: bytes, at: int, body: bytes) -> str:
    """The signature of a message: HMAC-SHA256 of the moment, a dot and the body."""
    digest = hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


class Webhook:
    """Sends messages to a URL from a thread of its own."""

    def __init__(self, url: str, secret: bytes, metrics: Metrics) -> None:
        self._url, self._secret, self._metrics = url, secret, metrics
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="tidepull-webhook")
        self._stopped = Event()
        self._room = BoundedSemaphore(MOST_WAITING)

    def put(self, message: dict[str, Any]) -> None:
        """Send a message as soon as those before it are sent."""
        if not self._room.acquire(blocking=False):
            self._lost(message, f"{MOST_WAITING:,} others wait")
            return
        self._executor.submit(self._send, message)

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        try:
            for rest in (*RETRIES, None):
                why, final = self._attempt(body)
                if not why:
                    self._metrics.webhook_messages.labels("sent").inc()
                    return
                if final or rest is None or self._stopped.wait(rest):
                    break
            self._lost(message, why)
        finally:
            self._room.release()

    def _attempt(self, body: bytes) -> tuple[str, bool]:
        """Why an attempt failed (empty: it did not), and whether another one is of no use."""
        headers, at = {"content-type": "application/json"}, int(time.time())
        if self._secret:
            headers[SIGNATURE] = sign(self._secret, at, body)
        try:
            answer = httpx.post(self._url, content=body, headers=headers, timeout=TIMEOUT)
        except httpx.HTTPError as error:
            return type(error).__name__, False
        if answer.is_success:
            return "", True
        refused = answer.is_client_error and answer.status_code not in (408, 429)
        return f"status {answer.status_code}", refused or answer.is_redirect

    def _lost(self, message: dict[str, Any], why: str) -> None:
        self._metrics.webhook_messages.labels("lost").inc()
        _LOG.warning("an alarm of agent %s was not sent (%s)", message["agent"], why)

    def close(self) -> None:
        """Send no more."""
        self._stopped.set()
        self._executor.shutdown(wait=False, cancel_futures=True)


class AlarmWatch:
    """Looks at the alarms of open agents, and tells a webhook what has begun and what is over."""

    def __init__(self, hosting: Hosting, webhook: Webhook) -> None:
        self._hosting, self._webhook = hosting, webhook
        self._known: dict[str, dict[str, str]] = {}
        self._records: dict[str, int] = {}

    async def run(self) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            await self.look()

    async def look(self) -> None:
        """Look once at each agent that has new records."""
        for hosted in self._hosting.opened:
            try:
                records = await hosted.ask(lambda agent: agent.state().records)
                if records == self._records.get(hosted.name):
                    continue
                alarms = await hosted.query_log(Insight.alarms)
            except (TidepullError, HttpError) as error:
                _LOG.warning("alarms of agent %s cannot be read: %s", hosted.name, error)
                continue
            self._records[hosted.name] = records
            self._tell(hosted.name, alarms)

    def _tell(self, agent: str, alarms: dict[str, str]) -> None:
        before = self._known.get(agent, {})
        self._known[agent] = alarms
        news = [(name, words, "raised") for name, words in alarms.items() if name not in before]
        news += [(name, words, "cleared") for name, words in before.items() if name not in alarms]
        for name, words, status in news:
            text = f"{agent}: {words}" if status == "raised" else f"{agent}: over: {words}"
            self._webhook.put(
                {"agent": agent, "alarm": name, "status": status, "at": timestamp(), "text": text}
            )
