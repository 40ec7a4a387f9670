"""Letting whoever holds an agent answer a request that reached this shard.

A request is handed on at most once: a shard that was handed one answers it or says 421, whereupon the first looks
again. What may have been heard by an owner that gave no answer is not sent a second time from here: whether it was done
is not known, and the caller alone knows whether it may be repeated.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tidepull.errors import HeldError
from tidepull.service.hosting import Hosting
from tidepull.service.metrics import Metrics
from tidepull.service.operation import Call, Operation, Raw
from tidepull.service.peers import Headers, Heard, NoAnswerError, NotAskedError, Peers
from tidepull.service.problems import HttpError
from tidepull.service.whereabouts import ElsewhereError, UnsettledError

MARK = b"x-tidepull-forwarded"
PATIENCE = 8.0
"""Seconds for which a request waits until an agent has an owner; longer than a lease."""

LOOK, MISSES = 1.0, 3
"""While an owner is waited for, its lease is looked at so often (seconds); found without one so many times, it is given
up."""

AGAIN = 0.05
_MISDIRECTED = 421
_HOP = {b"connection", b"keep-alive", b"host", b"content-length", b"transfer-encoding", b"te", b"trailer", b"upgrade",
        b"expect", b"proxy-connection", b"x-request-id", MARK}  # fmt: skip
_BACK = {
    b"content-type",
    b"content-disposition",
    b"retry-after",
    b"www-authenticate",
    b"allow",
    b"operation-location",
}


class Forwarding:
    """Answers requests: by this shard's own agents, or by asking the shard that has the agent."""

    def __init__(self, hosting: Hosting, metrics: Metrics) -> None:
        self._hosting = hosting
        self._metrics = metrics
        self._peers = Peers()

    def close(self) -> None:
        """Close all connections to other shards."""
        self._peers.close()

    async def answered(self, operation: Operation, call: Call, scope: Any, body: bytes) -> Any:
        """What an operation gives, here or elsewhere; handlers do nothing before they have their agent, so they can be
        called again."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return await operation.handler(call)
            except HeldError:
                self._hosting.suspect()
                raise
            except ElsewhereError as elsewhere:
                if call.forwarded:
                    self._hosting.whereabouts.wrong(call.name, elsewhere.url)  # look again, next time
                    raise HttpError(_MISDIRECTED, f"{elsewhere.url} has this agent now.") from None
                heard = await self._asked(elsewhere.url, call, scope, body)
                if heard is not None:
                    call.answered_by = elsewhere.url
                    return _passed_on(heard)
            except UnsettledError:
                pass
            if time.monotonic() > deadline:
                raise _nobody() from None
            await asyncio.sleep(AGAIN)

    async def _asked(self, url: str, call: Call, scope: Any, body: bytes) -> Heard | None:
        """The answer of another shard; None where it was not asked, or has not got the agent."""
        path: bytes = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        asking = asyncio.ensure_future(
            self._peers.ask(url, scope["method"], path, _handed_on(call, self._hosting.here), body)
        )
        name, missed = call.name, 0
        try:
            while not (await asyncio.wait((asking,), timeout=LOOK))[0]:
                missed = 0 if not name or await self._hosting.still_at(name, url) else missed + 1
                if missed == MISSES:
                    raise NoAnswerError("its lease has ended")
            heard = asking.result()
        except NotAskedError:
            self._metrics.forwarded("unreachable")
            self._hosting.whereabouts.wrong(name, url, silent=True)
            return None
        except NoAnswerError:
            self._metrics.forwarded("unanswered")
            self._hosting.whereabouts.wrong(name, url, silent=True)
            raise _unknown_end(url) from None
        finally:
            asking.cancel()
        if heard.status == _MISDIRECTED:
            self._metrics.forwarded("moved")
            self._hosting.whereabouts.wrong(name, url)
            return None
        self._metrics.forwarded("answered")
        return heard


def _handed_on(call: Call, here: str) -> Headers:
    kept = [(name, value) for name, value in call.headers.items() if name not in _HOP]
    return [*kept, (b"x-request-id", call.request.encode()), (MARK, here.encode() or b"-")]


def _passed_on(heard: Heard) -> Raw:
    told = dict(heard.headers)
    headers = tuple(pair for pair in heard.headers if pair[0] in _BACK and pair[0] != b"content-type")
    return Raw(heard.body, told.get(b"content-type", b"application/octet-stream"), headers, heard.status)


def _nobody() -> HttpError:
    return HttpError(
        503,
        f"No shard could take this agent within {PATIENCE:g} seconds; nothing was done: try again.",
        {"retry-after": "1"},
    )


def _unknown_end(url: str) -> HttpError:
    return HttpError(
        502,
        f"{url}, which has this agent, was asked and gave no answer; it may or may not have been done: "
        "send it again with the same id.",
        {"retry-after": "1"},
    )
