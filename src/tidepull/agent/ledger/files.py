"""Files of open ledgers: a lock that dies with its process, and a thread that notices deleted
files."""

from __future__ import annotations

import gc
import json
import logging
import os
import socket
import sqlite3
import sys
import threading
import time
import weakref
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from tidepull._internal.files import explained
from tidepull.errors import HeldError, LedgerError, TidepullError


class FileLock:
    """The right to write to an agent's file, for as long as this object is not released and its
    process lives."""

    def __init__(self, path: Path) -> None:
        try:
            import fcntl  # not on Windows, where agents in memory and in PostgreSQL work
        except ModuleNotFoundError:
            raise LedgerError(
                f"{path} cannot be locked: this system has no flock; keep the agent in memory or "
                "in PostgreSQL"
            ) from None
        self._path = path.with_name(path.name + ".lock")
        with explained("open", self._path):
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _acquire(self._file, fcntl):
            holder = _describe(os.pread(self._file, 4096, 0))
            os.close(self._file)
            raise HeldError(
                f"{path} is held by {holder}; one process at a time can write to an agent: "
                "close it there, open it with read_only=True, or let `tidepull serve` have it, "
                "which many processes can call"
            )
        self._marked = os.pread(self._file, _MARK_SIZE, _MARK_AT)
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        about = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "program": _program(),
            "since": now,
        }
        with explained("write", self._path):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(about).encode(), 0)
        _LOCKS.add(self)

    def marked(self, file: object) -> int:
        """The number of the last record that was safe when a process died with a file open; 0 where
        it was another file, or it was closed."""
        name, _, seq = self._marked.decode(errors="replace").strip("\0 ").rpartition(" ")
        return int(seq) if name == str(file) and seq.isdecimal() else 0

    def mark(self, file: object, seq: int) -> None:
        """Note that a record of a file is safe, in the system's cache alone; 0: it is closed."""
        text = f"{file} {seq}".encode() if seq else b""
        with suppress(OSError):  # an earlier mark is true, too
            os.pwrite(self._file, text.ljust(_MARK_SIZE, b"\0"), _MARK_AT)

    def release(self) -> None:
        """Others may write now."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


_MARK_AT, _MARK_SIZE = 1024, 64
"""Where in a lock's file the mark is, in bytes."""

RELEASE_SECONDS = 1.0
"""How long a lock of this process is waited for: an agent that was dropped frees its file when the
slice of work that its thread is doing ends."""


def _acquire(file: int, fcntl: Any) -> bool:
    """Whether the lock is ours now."""
    deadline = time.monotonic() + RELEASE_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            ours = _holder(os.pread(file, 4096, 0)).get("pid") == os.getpid()
            if not ours or time.monotonic() > deadline:
                return False
        gc.collect()  # a dropped agent may wait in a cycle, such as that of an exception
        time.sleep(0.01)


_LOCKS: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _release_in_child() -> None:
    """A fork's child holds no lock of its parent, so that the file is free when that ends."""
    for lock in list(_LOCKS):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)


def _program() -> str:
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"


def _holder(data: bytes) -> dict[str, Any]:
    """What a lock's file says of its holder; empty where it says nothing."""
    try:
        about = json.loads(data.partition(b"\0")[0])
    except ValueError:
        return {}
    return about if isinstance(about, dict) else {}


def _describe(data: bytes) -> str:
    match _holder(data):
        case {"pid": pid, "host": host, "program": program, "since": since}:
            where = "this process" if pid == os.getpid() else f"process {pid}"
            return f"{where} ({program} on {host}, since {since})"
    return "another process"


_LOG = logging.getLogger("tidepull")
INTERVAL = 0.5
"""Seconds between two looks."""


class HasFiles(Protocol):
    """Something on disk that is open."""

    path: Path

    def inspect(self) -> None:
        """Notice files that were deleted or replaced."""


class Watch:
    """Inspects all that was added, in a thread of its own, until it is removed or gone."""

    def __init__(self) -> None:
        # Not a WeakSet: that cannot be listed while another thread adds to it.
        self._open: dict[int, weakref.ref[HasFiles]] = {}
        self._thread: threading.Thread | None = None

    def add(self, one: HasFiles) -> None:
        """Inspect it from now on."""
        self._open[id(one)] = weakref.ref(one)
        if self._thread is None or not self._thread.is_alive():  # a fork has no threads
            self._thread = threading.Thread(target=self._run, name="tidepull-watch", daemon=True)
            self._thread.start()

    def remove(self, one: HasFiles) -> None:
        """It is closed."""
        self._open.pop(id(one), None)

    def _run(self) -> None:
        while True:
            time.sleep(INTERVAL)
            for known in list(self._open.values()):
                one = known()
                try:
                    if one is not None:
                        one.inspect()
                except (TidepullError, sqlite3.Error, OSError) as error:
                    _LOG.error("%s could not be inspected: %s", one.path, error)  # type: ignore[union-attr]


WATCH = Watch()
"""The watch of this process."""


def identity(path: Path) -> tuple[int, int] | None:
    """What a name stands for: a file that replaces another has another number."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
