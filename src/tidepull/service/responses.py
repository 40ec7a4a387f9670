"""Responses: security headers, answers that are whole, files a part at a time, and problems."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self
from uuid import uuid4

import msgspec

from tidepull.service.problem_details import CONTENT_TYPE, HttpError, personalizer_error

JSON = b"application/json"
PART = 262_144
"""Bytes of a file that are sent at a time."""

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; "
        b"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class FileParts:
    """A file in a temporary directory, read a part at a time by threads; both are gone
    afterwards."""

    def __init__(self, directory: TemporaryDirectory[str], path: Path) -> None:
        self._directory = directory
        self._file = path.open("rb")
        self.size = path.stat().st_size

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._close)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while part := await asyncio.to_thread(self._file.read, PART):
            yield part

    def move(self, folder: Path) -> Path:
        """Leave the file to another process, in a folder on the same disk."""
        moved = Path(self._file.name).rename(folder / f"export-{uuid4().hex}")
        self._close()
        return moved

    def _close(self) -> None:
        self._file.close()
        self._directory.cleanup()


@dataclass(frozen=True, slots=True)
class RawResponse:
    """An answer that is not a structure. `status`: where it is not the operation's own; `file`: is
    sent instead of `data`."""

    data: bytes
    content_type: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    status: int | None = None
    file: FileParts | None = None


async def send_plain(
    send: Any,
    status: int,
    data: bytes,
    content_type: bytes,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> None:
    """Send a response whole."""
    length = str(len(data)).encode()
    start = (
        [(b"content-type", content_type), (b"content-length", length), *headers]
        if status != 204
        else []
    )
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": data})


async def send_raw(send: Any, answer: RawResponse, status: int) -> None:
    """An answer as it is; a file is sent a part at a time."""
    status = answer.status or status
    if answer.file is None:
        await send_plain(send, status, answer.data, answer.content_type, answer.headers)
        return
    async with answer.file as parts:
        length = str(parts.size).encode()
        headers = [(b"content-type", answer.content_type), (b"content-length", length)]
        start = {"status": status, "headers": [*headers, *answer.headers]}
        await send({"type": "http.response.start", **start})
        async for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def problem_response(problem: HttpError, request: str, personalizer: bool = False) -> RawResponse:
    """An error, in the form that the interface has."""
    headers = tuple((name.encode(), value.encode()) for name, value in problem.headers.items())
    if personalizer:
        status, body = personalizer_error(problem)
        return RawResponse(msgspec.json.encode(body), JSON, headers, status)
    data = msgspec.json.encode(problem.body(request))
    return RawResponse(data, CONTENT_TYPE, headers, problem.status)
