"""All parts of one running service, and the work that it does between requests."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from tidepull.agent.agent import Agent
from tidepull.errors import TidepullError
from tidepull.service.auth import Limits, RateLimiter, Tokens
from tidepull.service.hosted import HostedAgent
from tidepull.service.hosting import Hosting
from tidepull.service.metrics import Metrics, RequestLog
from tidepull.service.personalizer import Personalizer
from tidepull.service.shards import Forwarder
from tidepull.service.stores import AgentStore

_LOG = logging.getLogger("tidepull.serve")
IDLE_AFTER = 0.002
"""Seconds without a request after which the loop counts as idle."""

REST_FACTOR = 4.0
"""While requests keep coming, a slice of upkeep is followed by a rest so many times as long."""

LONGEST_REST = 0.05

BALANCE_EVERY = 10
"""Seconds between two looks at whether another shard has fewer agents."""

DATABASE_TIMEOUT = 5.0
"""Seconds without a word from a shared database after which a service says that it is not ready."""


@dataclass
class Service:
    """Agents, tokens, limits, numbers and logs."""

    store: AgentStore
    tokens: Tokens
    limits: Limits
    request_log: RequestLog
    metrics: Metrics = field(default_factory=Metrics)
    status: Literal["ok", "starting", "stopping"] = "starting"
    personalizer: Personalizer | None = None

    def __post_init__(self) -> None:
        self.rates = RateLimiter(self.limits.requests)
        self.last_request = 0.0
        self.started = self.database_seen = time.monotonic()
        self._work = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin; the event loop runs."""
        self.hosting = Hosting(self.store, self.metrics, self.limits.agents)
        self.forwarder = Forwarder(self.hosting, self.metrics)
        work = [
            self._upkeep(),
            self._housekeeping(),
            *([self._keep_in_touch()] if self.store.remote else []),
        ]
        self._tasks = [asyncio.create_task(one) for one in work]
        self.status = "ok"

    async def listen(self, url: str) -> None:
        """Requests are taken at a URL from now on: say so to other shards."""
        if not self.store.here:
            self.store.here = url
        await self.hosting.announce()

    async def stop(self) -> None:
        """Snapshot and close all agents, after the last request."""
        self.status = "stopping"
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        await self.hosting.close()
        self.forwarder.close()
        self.request_log.close()

    def schedule_upkeep(self, hosted: HostedAgent) -> None:
        """Steps were taken: there may be something to do in quiet moments."""
        hosted.failing = False
        if hosted.agent.has_work or hosted.agent.snapshot_is_due:
            self._work.set()

    async def _upkeep(self) -> None:
        """A slice at a time: at once while no request comes, else with rests in between."""
        while True:
            await self._work.wait()
            self._work.clear()
            busy = True
            while busy:
                busy = False
                for hosted in self.hosting.opened:
                    if hosted.agent.snapshot_is_due and not (hosted.saving or hosted.failing):
                        await self._snapshot(hosted)
                    if hosted.agent.has_work and not (hosted.failing or hosted.agent.is_dirty):
                        busy = True
                        await self._rest(await self._slice(hosted))

    async def _slice(self, hosted: HostedAgent) -> float:
        started = time.perf_counter()
        try:
            await hosted.ask(Agent.slice)
        except Exception:
            hosted.failing = (
                True  # until its next request, which reads the state from the ledger again
            )
            _LOG.exception("upkeep of agent %s failed", hosted.name)
        took = time.perf_counter() - started
        self.metrics.slices.inc()
        self.metrics.slice_seconds.observe(took)
        return took

    async def _rest(self, took: float) -> None:
        quiet = time.monotonic() - self.last_request > IDLE_AFTER
        await asyncio.sleep(0 if quiet else min(LONGEST_REST, REST_FACTOR * took))

    async def _snapshot(self, hosted: HostedAgent) -> None:
        hosted.saving = True
        try:
            if await hosted.aside(Agent.save_if_due):
                self.metrics.snapshots.inc()
        except Exception:
            hosted.failing = True
            _LOG.exception("a snapshot of agent %s failed", hosted.name)
        finally:
            hosted.saving = False

    async def _keep_in_touch(self) -> None:
        """Tell other shards that this one lives, let go of what they have taken, share what there
        is."""
        for turn in itertools.count(1):
            await asyncio.sleep(1.0)
            try:
                await self.hosting.announce()
                await self.hosting.drop_lost()
                if turn % BALANCE_EVERY == 0:
                    await self.hosting.balance()
                self.database_seen = time.monotonic()
            except TidepullError as error:
                if time.monotonic() - self.database_seen < 2.0:
                    _LOG.warning("the shared database does not answer (said once): %s", error)

    async def _housekeeping(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self.request_log.flush()
            self.tokens.reload()
            self.metrics.tokens_sound.set(self.tokens.sound)
            self.metrics.log_lines_lost.set(self.request_log.lost)
            try:
                await self.hosting.close_idle()
            except TidepullError as error:
                _LOG.warning("an agent could not be closed: %s", error)
