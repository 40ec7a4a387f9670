"""The access log, the audit trail and the service's own messages, all as JSON lines.

They hold the id of a token, the path and the status; never a token, a body or a query. Threads
write them, so that a disk or a pipe that hangs holds up no request but those that are audited.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

import msgspec

from tidepull._internal.files import explained

_LOG = logging.getLogger("tidepull.serve")
LONGEST_PATH = 200
"""Characters of a path that logs keep."""

MAX_BUFFERED = 10_000
"""Lines that wait for a slow disk or pipe; further ones are dropped and counted."""

GATHERING = 0.05
"""Seconds for which lines are gathered before they are written: waking a thread for each of them
costs more than all the rest of logging."""

CLOSE_TIMEOUT = 2.0
"""Seconds that a stop waits for lines to be written."""


class LineWriter:
    """Writes lines to a stream in a thread of its own; callers never wait."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: deque[bytes] = deque()
        self._wake, self._hurry = threading.Event(), threading.Event()
        self._closed = False
        self._taken = self._done = self.lost = 0
        self._thread = threading.Thread(target=self._run, name="tidepull-log", daemon=True)
        self._thread.start()

    def write(self, line: bytes) -> None:
        """Take a line."""
        if self._closed or len(self._lines) >= MAX_BUFFERED:
            self.lost += 1
            return
        self._taken += 1
        self._lines.append(line)
        if not self._wake.is_set():
            self._wake.set()

    def flush(self, timeout: float = CLOSE_TIMEOUT) -> None:
        """Return when all lines are written, or after some seconds."""
        deadline = time.monotonic() + timeout
        self._hurry.set()
        while self._done < self._taken and time.monotonic() < deadline:
            time.sleep(0.001)
        self._hurry.clear()

    def close(self) -> None:
        """Write what waits, and stop."""
        self.flush()
        self._closed = True
        self._wake.set()

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait()
            self._hurry.wait(GATHERING)
            self._wake.clear()
            while self._lines:
                lines = [self._lines.popleft() for _ in range(len(self._lines))]
                try:
                    self._stream.write(b"\n".join(lines).decode() + "\n")
                    self._stream.flush()
                except (OSError, ValueError):  # a full disk, or a stream that was closed
                    self.lost += len(lines)
                self._done += len(lines)


class RequestLog:
    """The access log (None: there is none) and the audit trail (None: there is none)."""

    def __init__(self, access: TextIO | None, audit: Path | None) -> None:
        self._access = None if access is None else LineWriter(access)
        self._audit = -1
        self._audit_lost = 0
        if audit is not None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="tidepull-audit")
            with explained("write", audit):
                self._audit = os.open(
                    audit, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
                )

    @property
    def lost(self) -> int:
        """Lines that could not be written."""
        return self._audit_lost + (0 if self._access is None else self._access.lost)

    def write(self, entry: dict[str, Any]) -> None:
        """A request that was answered."""
        if self._access is not None:
            self._access.write(msgspec.json.encode(entry))

    async def audit(self, entry: dict[str, Any]) -> None:
        """What an admin asks, or was answered; on disk when this returns."""
        if self._audit >= 0:
            line = msgspec.json.encode({"at": timestamp(), **entry})
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._write_audit, line)

    def _write_audit(self, line: bytes) -> None:
        try:
            os.write(self._audit, line + b"\n")
            os.fsync(self._audit)
        except OSError as error:
            self._audit_lost += 1
            _LOG.error("the audit trail cannot be written (%s): %s", error, line.decode())

    def flush(self) -> None:
        """Return when what waits is written, or after some seconds."""
        if self._access is not None:
            self._access.flush()

    def close(self) -> None:
        """Write everything and let go."""
        if self._access is not None:
            self._access.close()
        if self._audit >= 0:
            self._thread.shutdown(wait=True)
            os.close(self._audit)
            self._audit = -1


def message(text: str, level: str = "info", **more: Any) -> bytes:
    """A message of the program as a line."""
    return msgspec.json.encode({"at": timestamp(), "level": level, "message": text, **more})


class JsonHandler(logging.Handler):
    """Messages of the program as JSON lines: moment, level, text, and the traceback of an error."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.writer = LineWriter(stream)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message."""
        more = {"logger": record.name}
        if record.exc_info:
            more["traceback"] = logging.Formatter().formatException(record.exc_info)
        self.writer.write(message(record.getMessage(), record.levelname.lower(), **more))

    def close(self) -> None:
        """Write what waits."""
        self.writer.close()
        super().close()


def timestamp() -> str:
    """The moment, as logs have it."""
    moment = time.time()
    return f"{_second(int(moment))}.{int(moment % 1 * 1000):03d}Z"


@lru_cache(maxsize=2)
def _second(moment: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
