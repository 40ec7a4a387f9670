"""One writer for each agent: a lock that dies with its process, and says who has it."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from tidepull._internal.files import explained
from tidepull.errors import HeldError


class Hold:
    """The right to write to an agent's file, for as long as this object is not released and its process lives."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        with explained("open", self._path):
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = _describe(os.pread(self._file, 4096, 0))
            os.close(self._file)
            raise HeldError(
                f"{path} is held by {holder}; one process at a time can write to an agent: "
                "close it there, or open it with read_only=True"
            ) from None
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        about = {"pid": os.getpid(), "host": socket.gethostname(), "program": _program(), "since": now}
        with explained("write", self._path):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(about).encode(), 0)

    def release(self) -> None:
        """Others may write now."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _program() -> str:
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"


def _describe(data: bytes) -> str:
    try:
        about: dict[str, Any] = json.loads(data)
        where = "this process" if about["pid"] == os.getpid() else f"process {about['pid']}"
        return f"{where} ({about['program']} on {about['host']}, since {about['since']})"
    except (ValueError, KeyError, TypeError):
        return "another process"
