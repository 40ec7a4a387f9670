"""Group commit: one commit for everything that an agent decides in one turn of the event loop.

Steps are taken on the loop. The first one of a turn asks for a commit at the end of it; all that
were taken until then wait for that commit, and are answered after it, each by what became of its
own record. There is no batching delay.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Executor
from contextlib import suppress

from tidepull.agent.agent import Agent
from tidepull.service.metrics import Metrics


class CommitBatcher:
    """The commits of one agent. Where a commit waits for a network (`remote`), a thread waits for
    it, not the loop."""

    def __init__(self, agent: Agent, metrics: Metrics, executor: Executor, *, remote: bool) -> None:
        self._agent = agent
        self._metrics = metrics
        self._executor = executor
        self._remote = remote
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._committing = False

    @property
    def idle(self) -> bool:
        """Whether no request waits for a commit."""
        return not self._waiting and not self._committing

    def wait(self, seq: int) -> asyncio.Future[None]:
        """Done when the step of that number is safe; a `LedgerError` if it cannot be made so."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((seq, future))
        if len(self._waiting) == 1 and not self._committing:
            self._loop.call_soon(self._commit)
        return future

    def _commit(self) -> None:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        if self._remote:
            self._committing = True
            self._loop.create_task(self._commit_in_thread(waiting))
            return
        started = time.perf_counter()
        with suppress(Exception):  # `_resolve` raises it for each request
            self._agent.commit(_last(waiting))
        self._resolve(waiting, started)

    async def _commit_in_thread(self, waiting: list[tuple[int, asyncio.Future[None]]]) -> None:
        started = time.perf_counter()
        with suppress(Exception):
            await self._loop.run_in_executor(self._executor, self._agent.commit, _last(waiting))
        self._resolve(waiting, started)
        self._committing = False
        if self._waiting:
            self._commit()

    def _resolve(self, waiting: list[tuple[int, asyncio.Future[None]]], started: float) -> None:
        """Resolve each request by its own step, which is written or refused by now."""
        took, safe = time.perf_counter() - started, 0
        for seq, future in waiting:
            try:
                self._agent.commit(seq)
            except Exception as error:
                if not future.done():
                    future.set_exception(error)
            else:
                safe += 1
                if not future.done():
                    future.set_result(None)
        if safe:
            self._metrics.committed(took, safe)


def _last(waiting: list[tuple[int, asyncio.Future[None]]]) -> int:
    return max(seq for seq, _ in waiting)
