"""Connections of clients: how many there may be, and what may arrive on one of them."""

from __future__ import annotations

import asyncio
import resource
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidepull.service.problem_details import HttpError

REQUEST_TIMEOUT = 10
"""Seconds that a request may take to come."""

MAX_HEAD = 65_536
"""Bytes that the head of a request may have."""

FILES_OF_AN_AGENT = 6
"""Descriptors of an open agent: its lock, two connections, and their log and index."""

RESERVED_FILES = 64
"""Descriptors for logs, sockets of the database, libraries and the rest."""

MAX_OPEN, MAX_CONNECTIONS = 256, 8192
"""Open agents and connections where there are descriptors enough."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """How many agents may be open and how many connections there may be, given a limit of file
    descriptors."""

    limit: int
    agents: int
    connections: int

    @classmethod
    def available(cls) -> Descriptors:
        """What the process may use, after its soft limit has been raised to the hard one."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = RESERVED_FILES + FILES_OF_AN_AGENT * MAX_OPEN + MAX_CONNECTIONS
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
        return cls.within(most if soft == resource.RLIM_INFINITY else soft)

    @classmethod
    def within(cls, limit: int) -> Descriptors:
        """Half for agents, half for connections, as far as they are needed.

        >>> Descriptors.within(1024)
        Descriptors(limit=1024, agents=80, connections=480)
        >>> Descriptors.within(65536).agents
        256
        """
        half = max(0, limit - RESERVED_FILES) // 2
        agents = max(1, min(MAX_OPEN, half // FILES_OF_AN_AGENT))
        rest = limit - RESERVED_FILES - FILES_OF_AN_AGENT * agents
        return cls(limit, agents, max(8, min(MAX_CONNECTIONS, rest)))


class Connections:
    """All connections, the one that was silent for longest first. Beyond `limit` the longest silent
    ones are closed; if these are busy, a new one is refused."""

    ENDED_AT_ONCE = 4

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._open: OrderedDict[ClientConnection, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def make(self, **arguments: Any) -> ClientConnection:
        """The protocol of a new connection, for uvicorn."""
        return ClientConnection(self, **arguments)

    def admit(self, connection: ClientConnection) -> bool:
        """Whether there is room for a new one."""
        if len(self._open) >= self.limit:
            for silent in list(self._open)[: self.ENDED_AT_ONCE]:
                silent.end()
            if len(self._open) >= self.limit + RESERVED_FILES // 4:
                return False
        self._open[connection] = None
        return True

    def touch(self, connection: ClientConnection) -> None:
        """Something has arrived on it."""
        if connection in self._open:
            self._open.move_to_end(connection)

    def remove(self, connection: ClientConnection) -> None:
        """It is closed."""
        self._open.pop(connection, None)


class ClientConnection(asyncio.Protocol):
    """Uvicorn's protocol behind a check of what arrives: requests must be HTTP, with short heads
    and no trailers, and end in time.

    A parser of its own follows the bytes, so nothing of uvicorn is known here but
    `asyncio.Protocol` and the arguments with which a server makes the class that
    `uvicorn.Config(http=...)` names.
    """

    def __init__(self, connections: Connections, **arguments: Any) -> None:
        self._connections = connections
        self._server = HttpToolsProtocol(**arguments)
        self._parser = httptools.HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        self._deadline: asyncio.TimerHandle | None = None
        self._refused = False
        self._url = b""
        self._in_head = self._has_trailer = False
        self._head_bytes = 0
        self.pause_writing = self._server.pause_writing  # type: ignore[method-assign]
        self.resume_writing = self._server.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: Any) -> None:
        """Start the deadline of the first request."""
        self._transport = transport
        if not self._connections.admit(self):
            self._refused = True
            self._refuse(TOO_MANY)
            return
        self._start_deadline()
        self._server.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on to uvicorn if they are part of a request."""
        if self._refused:
            return
        self._connections.touch(self)
        self._start_deadline()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # uvicorn answers as if no upgrade was asked for
        except httptools.HttpParserError:
            self._refuse(TRAILER if self._has_trailer else NOT_HTTP)
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD:
                self._refuse(TOO_LONG)
                return
        self._server.data_received(data)

    def eof_received(self) -> None:
        """The client sends no more; the connection is closed."""
        if not self._refused:
            self._server.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline."""
        self._stop_deadline()
        self._connections.remove(self)
        if not self._refused:
            self._server.connection_lost(exc)

    def end(self) -> None:
        """Close the connection, after the answer that is under way."""
        self._server.shutdown()

    def on_message_begin(self) -> None:
        """A request begins (called by the parser)."""
        self._start_deadline()
        self._url, self._in_head, self._head_bytes = b"", True, 0

    def on_url(self, url: bytes) -> None:
        """A part of the target arrives (called by the parser)."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header arrives (called by the parser); behind a body, uvicorn would take it for one of
        the head."""
        if not self._in_head:
            self._has_trailer = True
            raise ValueError("a trailer")

    def on_headers_complete(self) -> None:
        """The head is complete (called by the parser); an error in here is a parser error."""
        self._in_head = False
        httptools.parse_url(self._url).path.decode("ascii")

    def on_message_complete(self) -> None:
        """The request is complete (called by the parser)."""
        self._stop_deadline()

    def _start_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(
                REQUEST_TIMEOUT, self._refuse, TOO_SLOW
            )

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, response: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(response)
            self._transport.close()


def _response(problem: HttpError) -> bytes:
    """An answer without the application, after which the connection is closed."""
    body = msgspec.json.encode(problem.body())
    head = (
        f"HTTP/1.1 {problem.status} {problem.title}\r\ncontent-type: application/problem+json\r\n"
    )
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body


NOT_HTTP = _response(HttpError(400, "This is not a request as HTTP has them."))
TOO_SLOW = _response(
    HttpError(408, f"The request did not come to its end within {REQUEST_TIMEOUT} seconds.")
)
TRAILER = _response(
    HttpError(400, "Fields behind the body (trailers) are not taken: send headers before it.")
)
TOO_MANY = _response(
    HttpError(503, "There are too many connections: try again later.", {"retry-after": "1"})
)
TOO_LONG = _response(HttpError(431, f"The head of the request is longer than {MAX_HEAD:,} bytes."))
