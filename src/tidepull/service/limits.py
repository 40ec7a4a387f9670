"""How much one caller may ask for, and how that is noticed before it costs anything."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidepull.service.problems import HttpError

MOST_FIELDS, MOST_TEXT, MOST_TAGS, MOST_NAME = 256, 1000, 256, 256
"""Of one context: fields, characters of a text, entries of a list; characters of a name."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes of a body, items of a batch, agents, requests a second for each token."""

    body: int = 1_000_000
    batch: int = 1000
    agents: int = 1000
    requests: float = 10_000.0


class Rates:
    """A bucket for each token: it fills at a constant rate and holds what a second brings."""

    def __init__(self, each_second: float, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = each_second
        self._now = now
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, token: str) -> None:
        """One request of a token; too many are a 429 that says when to come again."""
        now = self._now()
        left, since = self._buckets.get(token, (max(1.0, self._rate), now))
        left = min(max(1.0, self._rate), left + (now - since) * self._rate)
        if left < 1.0:
            self._buckets[token] = (left, now)
            wait = (1.0 - left) / self._rate
            raise HttpError(
                429,
                f"This token has made more than {self._rate:g} requests in a second: slow down, or use batches.",
                {"retry-after": str(max(1, round(wait)))},
            )
        self._buckets[token] = (left - 1.0, now)


async def read_body(receive: Callable[[], Any], declared: bytes | None, limits: Limits) -> bytes:
    """The body of a request; too large is a 413. How long it may take is the connection's business (`server.py`)."""
    if declared is not None and (not declared.isdigit() or int(declared) > limits.body):
        raise _too_large(limits)
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        body, more = message.get("body", b""), message.get("more_body", False)
        size += len(body)
        if size > limits.body:
            raise _too_large(limits)
        parts.append(body)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limits: Limits) -> HttpError:
    return HttpError(
        413, f"The body is larger than {limits.body:,} bytes: send smaller batches.", {"connection": "close"}
    )
