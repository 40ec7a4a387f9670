"""All parts of one running service, and the work that it does between requests."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal
from weakref import WeakKeyDictionary

from tidepull._internal import compiler
from tidepull.agent.replay import Scrub
from tidepull.agent.served import ServedAgent
from tidepull.errors import LedgerError, TidepullError
from tidepull.service.auth import Limits, RateLimiter, Tokens
from tidepull.service.connections import Connections, Descriptors
from tidepull.service.handover import HandOver
from tidepull.service.hosted import HostedAgent
from tidepull.service.hosting import Hosting, load_kernels
from tidepull.service.links import Links
from tidepull.service.logs import RequestLog
from tidepull.service.metrics import Metrics, watch_service
from tidepull.service.personalizer import Personalizer
from tidepull.service.problem_details import HttpError
from tidepull.service.shards import Forwarder
from tidepull.service.stores import AgentStore, StoreHealth
from tidepull.service.webhook import AlarmWatch, Webhook

_LOG = logging.getLogger("tidepull.serve")
IDLE_AFTER = 0.002
"""Seconds without a request after which the loop counts as idle."""

REST_FACTOR = 4.0
"""While requests keep coming, a slice of upkeep is followed by a rest so many times as long."""

LONGEST_REST = 0.05

BALANCE_EVERY = 10
"""Seconds between two looks at whether another shard has fewer agents."""

HOUSEKEEPING_INTERVAL = 1.0
RELOAD_INTERVAL = 0.5
"""Seconds between two looks at the tokens file."""

FREEZE_INTERVAL = 0.2
"""Seconds between two looks at whether kernels are loaded."""

RESTART_INTERVAL = 1.0
"""Seconds after which failed work between requests is tried again."""

STORE_TIMEOUT = 5.0
"""Seconds without a word from the disk or the database after which a service is not ready."""

MIN_FREE = 32 << 20
"""Bytes that must be free where agents are files; a log alone may take 16 MB."""

SCRUB_INTERVAL = 1.0
"""Seconds between two looks for damage, each at one agent."""

SCRUB_RECORDS = 1000
"""Records of a look: a million in a quarter of an hour, for some milliseconds a second."""

OPENED_AT_START = 16
"""Agents that are opened before a service with a directory is ready, those that were written to
last."""


@dataclass
class Service:
    """Agents, tokens, limits, numbers and logs."""

    store: AgentStore
    tokens: Tokens
    limits: Limits
    request_log: RequestLog
    metrics: Metrics = field(default_factory=Metrics)
    handover: HandOver = field(default_factory=lambda: HandOver(b""))
    drain: float = 0.0
    warm: bool = False
    status: Literal["ok", "starting", "stopping"] = "starting"
    personalizer: Personalizer | None = None
    links: Links | None = None
    before_close: Callable[[], Awaitable[None]] | None = None
    webhook: Webhook | None = None

    def __post_init__(self) -> None:
        self.rates = RateLimiter(self.limits.requests)
        self.last_request = 0.0
        self.started = self.store_seen = time.monotonic()
        self.store_health = StoreHealth()
        self.opening: tuple[int, int] | None = None
        self.descriptors = Descriptors.within(1024)
        self.connections = Connections(self.descriptors.connections)
        self.requests_under_way = 0
        self._work = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin; the event loop runs."""
        self.hosting = Hosting(
            self.store, self.metrics, self.limits.agents, self.descriptors.agents
        )
        self.forwarder = Forwarder(self.hosting, self.metrics, self.handover, self.links)
        watch_service(self)
        scrub = Scrubber(self.hosting, self.metrics).run
        for work in (self._upkeep, self._housekeeping, scrub):
            self._run(work)
        if self.webhook is not None:
            self._run(AlarmWatch(self.hosting, self.webhook).run)
        if not self.tokens.insecure:
            self._run(self._reload_tokens)
        self._run(self._keep_in_touch if self.store.remote else self._check_store)
        self.status = "ok"

    def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._tasks.append(asyncio.create_task(_until_done(work)))

    async def listen(self, url: str) -> None:
        """Requests are taken at a URL from now on: say so to other shards, and open agents."""
        if not self.store.here:
            self.store.here = url
        await self.hosting.announce()
        names = await self.hosting.recent_names(OPENED_AT_START)
        if names or self.warm:
            self.opening = (0, len(names))
            self._run(partial(self._warm_up, names))
        self._run(self._freeze)

    async def _warm_up(self, names: list[str]) -> None:
        """Load kernels and open agents, so that first requests need not wait for them."""
        if self.warm:
            await self.hosting.in_thread(partial(load_kernels, lambda: self.status == "stopping"))
        for done, name in enumerate(names):
            self.opening = (done, len(names))
            with suppress(TidepullError, HttpError):
                await self.hosting.get(name)
        self.opening = None

    async def _freeze(self) -> None:
        """Leave what lives when kernels are loaded out of garbage collections, which hold all
        threads for 50 to 200 ms otherwise; without kernels, when agents are open."""
        while self.opening is not None:
            await asyncio.sleep(FREEZE_INTERVAL)
        gc.freeze()
        while not compiler.is_ready():
            await asyncio.sleep(FREEZE_INTERVAL)
        gc.freeze()

    @contextmanager
    def under_way(self, counts: bool) -> Iterator[None]:
        """A request is being answered; too many at a time are a 429. `counts`: it may be refused."""
        if counts and self.requests_under_way >= self.limits.under_way:
            self.metrics.shed("service")
            raise HttpError(
                429,
                f"{self.limits.under_way:,} requests are under way: try again in a moment.",
                {"retry-after": "1"},
            )
        self.requests_under_way += 1
        try:
            yield
        finally:
            self.requests_under_way -= 1

    @property
    def obstacle(self) -> str | None:
        """Why it should get no requests now; None where it should."""
        if self.status != "ok":
            return f"The service is {self.status}."
        if self.opening is not None:
            if self.warm and not compiler.is_ready():
                return "The service warms up: kernels are compiled or loaded."
            done, of = self.opening
            return f"The service warms up: {done} of {of} agents are open."
        silent = time.monotonic() - self.store_seen
        if silent > STORE_TIMEOUT:
            what = "database" if self.store.remote else "disk"
            return f"The {what} has not answered for {silent:.0f} seconds."
        health = self.store_health
        if health.problem is not None:
            return health.problem
        if health.free is not None and health.free < MIN_FREE:
            free = f"{health.free / 1e6:.0f} MB"
            return f"Only {free} are free where the agents are: free some space."
        if self.metrics.commit_failure is not None:
            return f"The last commit failed: {self.metrics.commit_failure}"
        return None

    async def stop(self) -> None:
        """Snapshot and close all agents, after the last request."""
        self.status = "stopping"
        if self.before_close is not None:
            await self.before_close()
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        if self.webhook is not None:
            self.webhook.close()
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
            await hosted.ask(ServedAgent.slice)
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
            if await hosted.aside(ServedAgent.save_if_due):
                hosted.saved_at = time.monotonic()
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
                if self.status == "ok":
                    await self.hosting.announce()
                await self.hosting.drop_lost()
                if turn % BALANCE_EVERY == 0:
                    await self.hosting.balance()
                self.store_seen = time.monotonic()
                self.metrics.commit_failure = None  # what failed was written to just now
            except TidepullError as error:
                if time.monotonic() - self.store_seen < 2.0:
                    _LOG.warning("the shared database does not answer (said once): %s", error)

    async def _check_store(self) -> None:
        """Look every second at the disk that agents are on; where a commit failed, try to write."""
        while True:
            failed = self.metrics.commit_failure is not None
            health = await self.hosting.in_thread(partial(self.store.health, write=failed))
            self.store_health, self.store_seen = health, time.monotonic()
            if failed and health.problem is None:
                self.metrics.commit_failure = None
            await asyncio.sleep(1.0)

    async def _reload_tokens(self) -> None:
        while True:
            await asyncio.sleep(RELOAD_INTERVAL)
            await self.hosting.in_thread(self.tokens.reload)
            self.metrics.tokens_sound.set(self.tokens.sound)

    async def _housekeeping(self) -> None:
        for turn in itertools.count(1):
            due = time.monotonic() + HOUSEKEEPING_INTERVAL
            await asyncio.sleep(HOUSEKEEPING_INTERVAL)
            self.metrics.loop_lag.observe(max(0.0, time.monotonic() - due))
            self.metrics.log_lines_lost.set(self.request_log.lost)
            if turn % 60 == 0 and (refused := self.metrics.take_refused()):
                _LOG.warning("%d requests were refused in the last minute", refused)
            try:
                await self.hosting.close_idle()
            except TidepullError as error:
                _LOG.warning("an agent could not be closed: %s", error)


async def _until_done(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do some work, again after an error that it does not expect: what ended would not be missed."""
    while True:
        try:
            return await work()
        except Exception as error:
            about = {
                "message": "work between requests failed; it is tried again",
                "exception": error,
            }
            asyncio.get_running_loop().call_exception_handler(about)
            await asyncio.sleep(RESTART_INTERVAL)


class Scrubber:
    """Checks hashes of open agents' records in the background, a few at a time, and says once what
    is damaged: no request would meet it."""

    def __init__(self, hosting: Hosting, metrics: Metrics) -> None:
        self._hosting, self._metrics = hosting, metrics
        self._scrubs: WeakKeyDictionary[HostedAgent, Scrub] = WeakKeyDictionary()
        self._damaged: WeakKeyDictionary[HostedAgent, set[int]] = WeakKeyDictionary()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(SCRUB_INTERVAL)
            for hosted in self._hosting.opened:
                await self.look(hosted)
                await asyncio.sleep(SCRUB_INTERVAL)

    async def look(self, hosted: HostedAgent) -> None:
        """Check the next records of an agent, unless it was closed meanwhile."""
        if self._hosting.hosted(hosted.name) is not hosted:
            return
        scrub = self._scrubs.setdefault(hosted, Scrub())
        try:
            count, damaged = await hosted.aside(lambda agent: agent.scrub(scrub, SCRUB_RECORDS))
        except LedgerError as error:
            count, damaged = 0, [scrub.position]
            _LOG.error("agent %s cannot be read: %s", hosted.name, error)
        self._metrics.scrubbed.inc(count)
        known = self._damaged.setdefault(hosted, set())
        for seq in set(damaged) - known:
            known.add(seq)
            _LOG.error(
                "agent %s is damaged: record %d is not as it was written, or one before it is "
                "missing; `tidepull agent FILE check` says more, and a copy should be restored",
                hosted.name, seq,
            )  # fmt: skip
        if known:
            self._metrics.damaged.labels(hosted.name).set(len(known))
