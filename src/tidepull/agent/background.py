"""One thread in the background that does an agent's heavy work, a slice at a time, and takes its
snapshots."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from typing import Protocol

from tidepull.errors import TidepullError

_LOG = logging.getLogger("tidepull")


class HasWork(Protocol):
    """Somebody who has work to do."""

    def work(self) -> bool:
        """One piece of it; True while there is more."""


class Background:
    """HasWork for its owner until that is closed or gone. Between two pieces it rests as long as
    the last one took, so that calls never wait for more than one."""

    def __init__(self, owner: HasWork) -> None:
        self._owner = weakref.ref(owner)
        self._wake = threading.Event()
        self._stop = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """There may be something to do."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tidepull-upkeep", daemon=True)
            self._thread.start()
        self._wake.set()

    def close(self) -> None:
        """Stop after the piece that is being done."""
        self._stop = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop:
            if not self._wake.wait(1.0):
                if self._owner() is None:
                    return
                continue
            self._wake.clear()
            while not self._stop and self._piece():
                pass

    def _piece(self) -> bool:
        owner = self._owner()
        if owner is None:
            self._stop = True
            return False
        started = time.perf_counter()
        try:
            more = owner.work()
        except TidepullError as error:
            _LOG.warning("work in the background failed: %s", error)
            return False
        except Exception:  # a thread that ends here would never be missed
            _LOG.exception("work in the background failed")
            return False
        del owner
        time.sleep(min(0.05, time.perf_counter() - started))
        return more
