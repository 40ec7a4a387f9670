"""Shards that share one database: which one holds an agent, and forwarding requests to it.

A request is forwarded at most once: a shard that receives a forwarded one answers it or says 421,
whereupon the first looks again. What an owner may have heard without answering is not sent a second
time from here: whether it was done is not known, and the caller alone knows whether it may be
repeated.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httptools

from tidepull.errors import HeldError
from tidepull.service.handover import FORWARDED, SIGNED, HandOver
from tidepull.service.metrics import Metrics
from tidepull.service.operations import RawResponse
from tidepull.service.problem_details import HttpError
from tidepull.service.stores import AgentStore

if TYPE_CHECKING:
    from tidepull.service.hosting import Hosting
    from tidepull.service.links import Links
    from tidepull.service.operations import Call, Operation

Headers = list[tuple[bytes, bytes]]
OWNER_TIMEOUT = 8.0
"""Seconds for which a request waits until an agent has an owner; longer than a lease."""

LEASE_CHECK, MISSED_CHECKS = 1.0, 3
"""While an owner is waited for, its lease is looked at so often (seconds); found without one so
many times, it is given up."""

RETRY_PAUSE = 0.05
WORKER_TIMEOUT = 1.0
"""Seconds within which the other workers of a machine say how they are."""

MISDIRECTED = 421
_SENT = (b"content-type", b"content-encoding", b"idempotency-key")
"""Headers that are forwarded; a token never is."""

_RETURNED = {
    b"content-type",
    b"content-disposition",
    b"retry-after",
    b"www-authenticate",
    b"allow",
    b"operation-location",
}

UNREACHABLE = 1.0
"""Seconds for which a shard that could not be reached is not asked again."""

CONNECT_TIMEOUT = 2.0
"""Seconds that a shard may take to accept a connection."""

KEEP_ALIVE = 30.0
"""Seconds for which an idle connection is kept; the other side closes it after 75."""


class OtherShardError(Exception):
    """Another shard holds the agent, or is the one to take it; nothing was done here."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class NoOwnerError(Exception):
    """The agent is between two owners; nothing was done, and in a moment one will be found."""


class ShardRouting:
    """Which shard has an agent: read from the database once, and known until it proves wrong."""

    def __init__(self, store: AgentStore) -> None:
        self._store = store
        self._owners: dict[str, str] = {}
        self._unreachable: dict[str, float] = {}

    def known(self, name: str) -> str | None:
        """The shard that had an agent when it was last looked for."""
        return self._owners.get(name)

    def forget(self, name: str, url: str, *, unreachable: bool = False) -> None:
        """That shard does not have it; or it did not even listen."""
        if self._owners.get(name) == url:
            del self._owners[name]
        if unreachable and not self._store.fixed:
            self._unreachable[url] = time.monotonic() + UNREACHABLE

    def find(self, name: str, *, place: bool) -> str | None:
        """The shard to ask for an agent; None: this one may try to take it. With `place`, an agent
        without an owner goes to the shard with the fewest agents, to this one among equals. Asks
        the database."""
        owner = self._store.owner(name)
        if owner is None and place:
            owner = self._emptiest()
        if not owner or owner == self._store.here or self._is_unreachable(owner):
            return None
        self._owners[name] = owner
        return owner

    def home(self, name: str) -> str | None:
        """The shard that a new agent should go to, unless it is this one. Asks the database."""
        url = self._store.owner(name) if self._store.fixed else self._emptiest()
        return None if url == self._store.here else url

    def surplus(self) -> int:
        """How many agents this shard has more than the one that has fewest. Asks the database."""
        counts = {shard.url: len(shard.agents) for shard in self._store.shards()}
        return counts.get(self._store.here, 0) - min(counts.values(), default=0)

    def _emptiest(self) -> str | None:
        here = self._store.here
        shards = [shard for shard in self._store.shards() if not self._is_unreachable(shard.url)]
        shards.sort(key=lambda shard: (len(shard.agents), shard.url != here))
        return shards[0].url if shards else None

    def _is_unreachable(self, url: str) -> bool:
        return self._unreachable.get(url, 0.0) > time.monotonic()


class UnreachableShardError(Exception):
    """The shard cannot be reached; it has not heard the request."""


class UnansweredError(Exception):
    """The shard may have heard the request, and gave no answer."""


@dataclass(slots=True)
class Response:
    """The response of another shard, as httptools parses it."""

    status: int = 0
    headers: Headers = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    complete: bool = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header arrives (called by the parser)."""
        self.headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        """A part of the body arrives (called by the parser)."""
        self.parts.append(body)

    def on_message_complete(self) -> None:
        """The response is complete (called by the parser)."""
        self.complete = True


class ShardClient:
    """HTTP requests to other shards over connections that are kept; httpx needs ten times the
    processor time."""

    def __init__(self) -> None:
        self._idle: dict[str, list[_Connection]] = {}

    async def send(
        self, url: str, method: str, path: bytes, headers: Headers, body: bytes
    ) -> Response:
        """Send a request and wait for its response."""
        connection = self._idle_connection(url) or await _Connection.open(url)
        try:
            response = await connection.send(method, path, headers, body)
        except (OSError, EOFError, httptools.HttpParserError) as error:
            connection.close()
            raise UnansweredError(f"{type(error).__name__}: {error}") from None
        except BaseException:
            connection.close()
            raise
        if dict(response.headers).get(b"connection", b"").lower() == b"close":
            connection.close()
        else:
            self._idle.setdefault(url, []).append(connection)
        return response

    def close(self) -> None:
        """Close all connections."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    def _idle_connection(self, url: str) -> _Connection | None:
        connections = self._idle.get(url, [])
        while connections:
            connection = connections.pop()
            if connection.usable:
                return connection
            connection.close()
        return None


class _Connection:
    """One request at a time."""

    def __init__(
        self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._host = host
        self._reader, self._writer = reader, writer
        self._used = time.monotonic()

    @classmethod
    async def open(cls, url: str) -> _Connection:
        parts = urlsplit(url)
        try:
            streams = await asyncio.wait_for(
                asyncio.open_connection(parts.hostname, parts.port or 80), CONNECT_TIMEOUT
            )
        except (OSError, TimeoutError) as error:
            raise UnreachableShardError(str(error) or "it does not answer in time") from None
        return cls(parts.netloc, *streams)

    @property
    def usable(self) -> bool:
        """Whether the other side has not closed it, and will not just now."""
        return not self._reader.at_eof() and time.monotonic() - self._used < KEEP_ALIVE

    async def send(self, method: str, path: bytes, headers: Headers, body: bytes) -> Response:
        lines = [method.encode() + b" " + path + b" HTTP/1.1", b"host: " + self._host.encode()]
        lines += [name + b": " + value for name, value in headers]
        lines += [b"content-length: " + str(len(body)).encode(), b"", body]
        self._writer.write(b"\r\n".join(lines))
        await self._writer.drain()
        response = Response()
        parser = httptools.HttpResponseParser(response)
        while not response.complete:
            data = await self._reader.read(65_536)
            if not data:
                raise EOFError("the connection was closed")
            parser.feed_data(data)
        response.status = parser.get_status_code()
        self._used = time.monotonic()
        return response

    def close(self) -> None:
        self._writer.close()


class Forwarder:
    """Answers requests: by this shard's own agents, or by request the shard that has the agent."""

    def __init__(
        self, hosting: Hosting, metrics: Metrics, handover: HandOver, links: Links | None
    ) -> None:
        self._hosting = hosting
        self._metrics = metrics
        self._handover = handover
        self._links = links
        self._client = ShardClient()

    def close(self) -> None:
        """Close all connections to other shards."""
        self._client.close()
        if self._links is not None:
            self._links.close()

    async def ask_workers(
        self, operation: str, call: Call, query: bytes = b""
    ) -> dict[str, RawResponse]:
        """What the other workers of this machine answer; none to a request that one of them
        forwarded."""
        if self._links is None or call.forwarded:
            return {}
        return await self._links.ask_all(operation, call, query, WORKER_TIMEOUT)

    async def answer(self, operation: Operation, call: Call, scope: Any, body: bytes) -> Any:
        """What an operation gives, here or elsewhere; handlers do nothing before they have their
        agent, so they can be called again."""
        deadline = time.monotonic() + OWNER_TIMEOUT
        while True:
            try:
                return await operation.handle(call)
            except HeldError:
                self._hosting.suspect()
                raise
            except OtherShardError as other:
                if call.forwarded:
                    self._hosting.routing.forget(call.name, other.url)  # look again, next time
                    raise HttpError(MISDIRECTED, f"{other.url} has this agent now.") from None
                response = await self._forward(other.url, operation, call, scope, body)
                if response is not None:
                    call.answered_by = other.url
                    return response
            except NoOwnerError:
                pass
            if time.monotonic() > deadline:
                raise _no_owner() from None
            await asyncio.sleep(RETRY_PAUSE)

    async def _forward(
        self, url: str, operation: Operation, call: Call, scope: Any, body: bytes
    ) -> RawResponse | None:
        """The answer of another shard; None where it was not asked, or has not got the agent."""
        name = call.name
        try:
            if self._links is not None and url in self._links.place.others:
                query = scope["query_string"]
                response = await self._links.ask(url, operation.id, call, query, body)
            else:
                response = await self._over_http(url, call, scope, body)
        except UnreachableShardError:
            self._metrics.forwarded("unreachable")
            self._hosting.routing.forget(name, url, unreachable=True)
            return None
        except UnansweredError:
            self._metrics.forwarded("unanswered")
            self._hosting.routing.forget(name, url, unreachable=True)
            raise _no_answer(url) from None
        if response.status == MISDIRECTED:
            self._metrics.forwarded("moved")
            self._hosting.routing.forget(name, url)
            return None
        self._metrics.forwarded("answered")
        return response

    async def _over_http(self, url: str, call: Call, scope: Any, body: bytes) -> RawResponse:
        """The answer of a shard with the same secret, as long as it has the lease of the agent."""
        method, path = scope["method"], target_of(scope)
        signature = self._handover.sign(url, call.token.id, call.request, method, path, body)
        headers = [(name, call.headers[name]) for name in _SENT if name in call.headers]
        headers += [(b"x-request-id", call.request.encode()), (FORWARDED, signature)]
        request = asyncio.ensure_future(self._client.send(url, method, path, headers, body))
        name, missed = call.name, 0
        try:
            while not (await asyncio.wait((request,), timeout=LEASE_CHECK))[0]:
                missed = 0 if not name or await self._hosting.still_at(name, url) else missed + 1
                if missed == MISSED_CHECKS:
                    raise UnansweredError("its lease has ended")
            response = request.result()
        finally:
            request.cancel()
        signed = dict(response.headers).get(SIGNED, b"")
        if not self._handover.is_answer(signed, signature, response.status):
            self._metrics.forwarded("unsigned")
            self._hosting.routing.forget(name, url, unreachable=True)
            raise _not_signed(url)
        return _raw(response)


def target_of(scope: Any) -> bytes:
    """Path and query of a request."""
    query: bytes = scope["query_string"]
    return scope["raw_path"] + (b"?" + query if query else b"")  # type: ignore[no-any-return]


def _raw(response: Response) -> RawResponse:
    by_name = dict(response.headers)
    headers = tuple(
        pair for pair in response.headers if pair[0] in _RETURNED and pair[0] != b"content-type"
    )
    return RawResponse(
        b"".join(response.parts),
        by_name.get(b"content-type", b"application/octet-stream"),
        headers,
        response.status,
    )


def _no_owner() -> HttpError:
    return HttpError(
        503,
        f"No shard could take this agent within {OWNER_TIMEOUT:g} seconds; nothing was done: try "
        "again.",
        {"retry-after": "1"},
    )


def _not_signed(url: str) -> HttpError:
    return HttpError(
        502,
        f"{url}, which should have this agent, is no shard with the same secret: give all shards "
        "the same --shard-secret, and keep their clocks right.",
    )


def _no_answer(url: str) -> HttpError:
    return HttpError(
        502,
        f"{url}, which has this agent, was asked and gave no answer; it may or may not have been "
        "done: "
        "send it again with the same id.",
        {"retry-after": "1"},
    )
