"""Threads as greenlets: one runs at a time, and the seed says who runs next wherever a real one
could be interrupted.

They change places only at `point`, which the simulated disk and store call, and where a lock is
taken that another one holds. The event loop is a thread like the others: while it waits for a lock
or a disk, they go on.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent, greenlet

from tests.property.simulation.process import Killed, Process

PATIENCE = 10_000
"""Turns without anybody getting on, after which it is a deadlock."""


class DeadlockError(Exception):
    """Everybody waits for somebody else."""


class Threads:
    """The threads of one process. Whoever made this object is the loop's own thread."""

    def __init__(self, process: Process, rng: random.Random) -> None:
        self._process = process
        self._rng = rng
        self._hub = getcurrent()
        self._running: list[greenlet] = []

    @property
    def busy(self) -> bool:
        """Whether any thread has work."""
        return bool(self._running)

    def start(self, work: Callable[[], None]) -> None:
        """A thread that does some work, from its next turn on."""
        self._running.append(greenlet(work, self._hub))

    def turn(self) -> None:
        """One thread goes on until its next point."""
        thread = self._rng.choice(self._running)
        thread.switch()
        if thread.dead and thread in self._running:
            self._running.remove(thread)
        if not self._process.alive:
            raise Killed

    def point(self) -> None:
        """Here a thread can be interrupted, and the process can die."""
        self._process.require()
        if getcurrent() is not self._hub:
            self._away()
        else:
            while self._running and self._rng.random() < 0.3:
                self.turn()

    def wait(self) -> None:
        """Somebody else has what this thread needs: let them go on."""
        if getcurrent() is not self._hub:
            self._away()
        elif self._running:
            self.turn()
        else:
            raise DeadlockError("the loop waits for a lock that nobody will release")

    def _away(self) -> None:
        self._hub.switch()
        if not self._process.alive:
            raise Killed

    def end(self) -> None:
        """The process is dead: unwind what its threads were doing, without effect."""
        for thread in self._running:
            if thread:
                thread.throw(Killed)
        self._running.clear()


class Lock:
    """`threading.Lock` for simulated threads."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, as soon as nobody has it."""
        turns = 0
        while self._held:
            if not blocking:
                return False
            self._threads.wait()
            turns += 1
            if turns > PATIENCE:
                raise DeadlockError("a lock is never released")
        self._held = True
        return True

    def release(self) -> None:
        """Let others have it."""
        self._held = False

    def locked(self) -> bool:
        """Whether somebody has it."""
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Threading:
    """The module `threading` as simulated code sees it."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    def Lock(self) -> Lock:  # noqa: N802
        """A lock of simulated threads."""
        return Lock(self._threads)

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)
