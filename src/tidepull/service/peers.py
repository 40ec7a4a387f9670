"""Asking other shards over connections that are kept: just as much HTTP as this service itself speaks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

Headers = list[tuple[bytes, bytes]]
CONNECTING = 2.0
"""Seconds that a shard may take to accept a connection."""

KEPT = 30.0
"""Seconds for which a connection that nobody uses is kept; the other side would close it after 75."""

_LONGEST_HEAD = 65_536


class NotAskedError(Exception):
    """The shard cannot be reached; it has not heard the request."""


class NoAnswerError(Exception):
    """The shard may have heard the request, and gave no answer."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer."""

    status: int
    headers: Headers
    body: bytes


class Peers:
    """Connections to all shards that were asked."""

    def __init__(self) -> None:
        self._idle: dict[str, list[_Connection]] = {}

    async def ask(self, url: str, method: str, path: bytes, headers: Headers, body: bytes) -> Heard:
        """One request and its answer."""
        connection = self._kept(url) or await _Connection.to(url)
        try:
            heard = await connection.ask(method, path, headers, body)
        except (OSError, EOFError, ValueError, LookupError, asyncio.LimitOverrunError) as error:
            connection.close()
            raise NoAnswerError(f"{type(error).__name__}: {error}") from None
        except BaseException:
            connection.close()
            raise
        if dict(heard.headers).get(b"connection", b"").lower() == b"close":
            connection.close()
        else:
            self._idle.setdefault(url, []).append(connection)
        return heard

    def close(self) -> None:
        """Close all."""
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    def _kept(self, url: str) -> _Connection | None:
        connections = self._idle.get(url, [])
        while connections:
            connection = connections.pop()
            if connection.usable:
                return connection
            connection.close()
        return None


class _Connection:
    """One request at a time."""

    def __init__(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._host = host
        self._reader, self._writer = reader, writer
        self._used = time.monotonic()

    @classmethod
    async def to(cls, url: str) -> _Connection:
        parts = urlsplit(url)
        opening = asyncio.open_connection(parts.hostname, parts.port or 80, limit=_LONGEST_HEAD)
        try:
            reader, writer = await asyncio.wait_for(opening, CONNECTING)
        except (OSError, TimeoutError) as error:
            raise NotAskedError(str(error) or "it does not answer in time") from None
        return cls(parts.netloc, reader, writer)

    @property
    def usable(self) -> bool:
        """Whether the other side has not closed it, and will not just now."""
        return not self._reader.at_eof() and time.monotonic() - self._used < KEPT

    async def ask(self, method: str, path: bytes, headers: Headers, body: bytes) -> Heard:
        lines = [method.encode() + b" " + path + b" HTTP/1.1", b"host: " + self._host.encode()]
        lines += [name + b": " + value for name, value in headers]
        lines += [b"content-length: " + str(len(body)).encode(), b"", body]
        self._writer.write(b"\r\n".join(lines))
        await self._writer.drain()
        first, *rest = (await self._reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        told = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in rest)]
        status = int(first.split(b" ", 2)[1])
        answer = b"" if method == "HEAD" or status == 204 else await self._reader.readexactly(_length(told))
        self._used = time.monotonic()
        return Heard(status, told, answer)

    def close(self) -> None:
        self._writer.close()


def _length(headers: Iterable[tuple[bytes, bytes]]) -> int:
    for name, value in headers:
        if name == b"content-length":
            return int(value)
    raise ValueError("the answer has no length")
