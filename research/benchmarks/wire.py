"""The cheapest client there is, so that a load is the server's and not the generator's: bytes that
were made before, over kept-alive connections."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any


def request(path: str, body: Any, token: str = "") -> bytes:
    data = json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "host: localhost",
        "content-type: application/json",
        f"content-length: {len(data)}",
    ]
    head = (
        "\r\n".join([*lines, *([f"authorization: Bearer {token}"] if token else [])]) + "\r\n\r\n"
    )
    return head.encode() + data


class Connection:
    """One request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, data: bytes) -> tuple[int, bytes]:
        self._writer.write(data)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        at = head.lower().index(b"content-length:") + 15
        length = int(head[at : head.index(b"\r\n", at)])
        return status, await self._reader.readexactly(length)

    def close(self) -> None:
        self._writer.close()


async def ready(port: int) -> None:
    """Until a service says that it is ready: kernels are loaded."""
    asked = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    connection = await Connection.to(port)
    while (await connection.ask(asked))[0] != 200:
        await asyncio.sleep(0.1)
    connection.close()


async def loaded(
    port: int,
    connections: int,
    seconds: float,
    ask: Callable[[int], bytes],
    heard: Callable[[bytes], None],
) -> tuple[int, list[float], float]:
    """Ask as fast as answers come; how many were answered, how long each took, and for how long it
    went on. `heard` is given every answer."""
    took: list[float] = []
    counter = iter(range(1 << 60))
    opened = [await Connection.to(port) for _ in range(connections)]
    started = time.perf_counter()
    end = started + seconds

    async def caller(connection: Connection) -> None:
        while (begun := time.perf_counter()) < end:
            status, body = await connection.ask(ask(next(counter)))
            took.append(time.perf_counter() - begun)
            if status != 200:
                raise RuntimeError(f"status {status}: {body[:300]!r}")
            heard(body)

    await asyncio.gather(*(caller(connection) for connection in opened))
    passed = time.perf_counter() - started
    for connection in opened:
        connection.close()
    return len(took), took, passed
