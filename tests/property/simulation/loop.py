"""An event loop without a selector and without waiting: time goes on when there is nothing else to
do.

What `call_soon` was given runs in that order, as asyncio promises. Everything that comes from
outside, requests and threads that are done, comes between any two callbacks, by seed.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from tests.property.simulation.clock import Clocks
from tests.property.simulation.process import Killed, Process
from tests.property.simulation.threads import Threads

_Base: Any = (
    asyncio.AbstractEventLoop
)  # most of it is about sockets and processes, of which there are none


class Loop(_Base):  # type: ignore[misc]
    """The loop of one process; `step` runs one callback."""

    def __init__(self, process: Process, threads: Threads, clocks: Clocks) -> None:
        self._process = process
        self._threads = threads
        self._clocks = clocks
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = itertools.count()
        self._tasks: list[asyncio.Task[Any]] = []
        self.errors: list[dict[str, Any]] = []

    # ---- what the simulation asks

    @property
    def ready(self) -> bool:
        """Whether a callback can run now."""
        return bool(self._ready)

    def step(self) -> None:
        """Run one callback; `Killed` if the process dies in it."""
        self._process.require()
        handle = self._ready.popleft()
        if not handle.cancelled():
            asyncio._set_running_loop(self)
            try:
                handle._run()
            finally:
                asyncio._set_running_loop(None)
        if not self._process.alive:
            raise Killed

    def wait(self) -> float:
        """Let time pass until the next timer; how many seconds."""
        before = self._clocks.elapsed
        if self._timers:
            self._clocks.pass_by(self._timers[0][0] - self.time())
            self.due()
        return self._clocks.elapsed - before

    def due(self) -> None:
        """Timers whose time has come."""
        while self._timers and self._timers[0][0] <= self.time():
            self._ready.append(heapq.heappop(self._timers)[2])

    def end(self) -> None:
        """The process is dead: forget everything, and let nothing have an effect."""
        for task in self._tasks:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                coroutine: Any = task.get_coro()
                with suppress(Killed, RuntimeError, ValueError):
                    coroutine.close()
        self._ready.clear()
        self._timers.clear()
        self._tasks.clear()

    # ---- what asyncio asks

    def time(self) -> float:
        return self._clocks.monotonic()

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._count), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, Any], **given: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, **given)
        self._tasks.append(task)
        return task

    def run_in_executor(
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """A simulated thread does it, whatever the executor."""
        future = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except Killed:
                return
            except BaseException as error:
                self.call_soon(_fail, future, error)
            else:
                self.call_soon(_succeed, future, result)

        self._threads.start(work)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._process.alive:
            self.errors.append(context)


def _succeed(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
