"""What the service writes about itself, as JSON lines: every request, and for good every action of an admin.

Neither has a token in it, nor a body, nor a query: only the token's id, the path and what came of it.
"""

from __future__ import annotations

import logging
import os
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

import msgspec

from tidepull._internal.files import explained

_LOG = logging.getLogger("tidepull.serve")
LONGEST = 200
_FULL = 64


class Journal:
    """The access log (None: there is none) and the audit trail."""

    def __init__(self, access: TextIO | None, audit: Path | None) -> None:
        self._access = access
        self._lines: list[bytes] = []
        self._audit = -1
        self.lost = 0
        if audit is not None:
            with explained("write", audit):
                self._audit = os.open(audit, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def request(self, entry: dict[str, Any]) -> None:
        """A request that was answered."""
        if self._access is not None:
            self._lines.append(msgspec.json.encode(entry))
            if len(self._lines) >= _FULL:
                self.flush()

    def admin(self, entry: dict[str, Any]) -> None:
        """What an admin did, or was refused; on disk when this returns."""
        if self._audit < 0:
            return
        line = msgspec.json.encode({"at": now(), **entry})
        try:
            os.write(self._audit, line + b"\n")
            os.fsync(self._audit)
        except OSError as error:
            self.lost += 1
            _LOG.error("the audit trail cannot be written (%s): %s", error, line.decode())

    def flush(self) -> None:
        """Write what waits; what cannot be written is dropped and counted, and requests go on."""
        if self._access is not None and self._lines:
            lines, self._lines = self._lines, []
            try:
                self._access.write(b"\n".join(lines).decode() + "\n")
                self._access.flush()
            except OSError:
                self.lost += len(lines)

    def close(self) -> None:
        """Write everything and let go."""
        self.flush()
        if self._audit >= 0:
            os.close(self._audit)
            self._audit = -1


def now() -> str:
    """The moment, as logs have it."""
    moment = time.time()
    return f"{_second(int(moment))}.{int(moment % 1 * 1000):03d}Z"


@lru_cache(maxsize=2)
def _second(moment: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
