"""One commit for everything that an agent decided in one turn of the event loop.

Steps are taken on the loop. The first one of a turn asks for a commit at the end of it; all that were taken until then
wait for that commit, and are answered after it. Nobody waits for company: the turn itself is the group.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Executor

from tidepull.online.agent import Agent
from tidepull.online.service.metrics import Metrics


class Turns:
    """The commits of one agent. Where a commit waits for a network (`remote`), a thread waits for it, not the loop."""

    def __init__(self, agent: Agent, metrics: Metrics, executor: Executor, *, remote: bool) -> None:
        self._agent = agent
        self._metrics = metrics
        self._executor = executor
        self._remote = remote
        self._loop = asyncio.get_running_loop()
        self._waiting: list[asyncio.Future[None]] = []
        self._committing = False

    @property
    def idle(self) -> bool:
        """Whether nobody waits for a commit."""
        return not self._waiting and not self._committing

    def committed(self) -> asyncio.Future[None]:
        """Done when all steps so far are safe; a `LedgerError` if they cannot be made so."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(future)
        if len(self._waiting) == 1 and not self._committing:
            self._loop.call_soon(self._commit)
        return future

    def _commit(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        if self._remote:
            self._committing = True
            self._loop.create_task(self._commit_elsewhere(waiting))
            return
        started = time.perf_counter()
        try:
            self._agent.commit()
        except Exception as error:
            _fail(waiting, error)
        else:
            self._metrics.committed(time.perf_counter() - started, len(waiting))
            _done(waiting)

    async def _commit_elsewhere(self, waiting: list[asyncio.Future[None]]) -> None:
        started = time.perf_counter()
        try:
            await self._loop.run_in_executor(self._executor, self._agent.commit)
        except Exception as error:
            _fail(waiting, error)
        else:
            self._metrics.committed(time.perf_counter() - started, len(waiting))
            _done(waiting)
        self._committing = False
        if self._waiting:
            self._commit()


def _done(waiting: list[asyncio.Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)


def _fail(waiting: list[asyncio.Future[None]], error: Exception) -> None:
    for future in waiting:
        if not future.done():
            future.set_exception(error)
