"""One thread that looks twice a second whether the files of open ledgers are still there."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
import weakref
from pathlib import Path
from typing import Protocol

from tidepull.errors import TidepullError

_LOG = logging.getLogger("tidepull")
INTERVAL = 0.5
"""Seconds between two looks."""


class Inspected(Protocol):
    """Something on disk that is open."""

    path: Path

    def inspect(self) -> None:
        """Notice files that were deleted or replaced."""


class Watch:
    """Inspects all that was added, in a thread of its own, until it is removed or gone."""

    def __init__(self) -> None:
        self._open: weakref.WeakSet[Inspected] = weakref.WeakSet()
        self._thread: threading.Thread | None = None

    def add(self, one: Inspected) -> None:
        """Inspect it from now on."""
        self._open.add(one)
        if self._thread is None or not self._thread.is_alive():  # a fork has no threads
            self._thread = threading.Thread(target=self._run, name="tidepull-watch", daemon=True)
            self._thread.start()

    def remove(self, one: Inspected) -> None:
        """It is closed."""
        self._open.discard(one)

    def _run(self) -> None:
        while True:
            time.sleep(INTERVAL)
            for one in list(self._open):
                try:
                    one.inspect()
                except (TidepullError, sqlite3.Error, OSError) as error:
                    _LOG.error("%s could not be inspected: %s", one.path, error)


WATCH = Watch()
"""The watch of this process."""


def identity(path: Path) -> tuple[int, int] | None:
    """What a name stands for: a file that replaces another has another number."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
