"""Many named agents in one store, each opened at its first request, and closed when it is idle."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from tidepull._internal import compiler
from tidepull.agent.served import ServedAgent
from tidepull.errors import HeldError, NewerStoreError, TidepullError, WrongStoreError
from tidepull.service.hosted import HostedAgent
from tidepull.service.messages import NAME
from tidepull.service.metrics import Metrics
from tidepull.service.problem_details import HttpError
from tidepull.service.shards import NoOwnerError, OtherShardError, ShardRouting
from tidepull.service.stores import AgentStore

if TYPE_CHECKING:
    from tidepull.agent.ledger.database import Shard

T = TypeVar("T")
_LOG = logging.getLogger("tidepull.serve")
_NAME = re.compile(NAME)
IDLE = 900.0
"""Seconds after which an agent without requests is closed."""

UPGRADES = 1
"""Agents of another release whose policies are made anew at a time."""

THREADS = 32
"""Threads for what may take long: opening, looking, replaying. Steps and commits have a
pool of their own. An agent occupies four at most."""


class Hosting:
    """Finds, makes, opens, closes and deletes agents; only the event loop may call it. An agent
    that another shard has is an `OtherShardError`; `forwarded`: another shard sent the request, so
    that this one should take the agent."""

    def __init__(self, store: AgentStore, metrics: Metrics, max_agents: int, max_open: int) -> None:
        self._store = store
        self._metrics = metrics
        self._max_agents = max_agents
        self._max_open = max_open
        self._open: dict[str, HostedAgent] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._upgrades: dict[str, asyncio.Task[None]] = {}
        self._upgrade_slots = asyncio.Semaphore(UPGRADES)
        self._check_leases = False
        self.routing = ShardRouting(store)
        self.executor = ThreadPoolExecutor(THREADS, thread_name_prefix="tidepull-serve")
        # As many as there are agents: one whose disk hangs keeps no other from committing.
        self._steps = ThreadPoolExecutor(2 * max_open, thread_name_prefix="tidepull-steps")

    @property
    def here(self) -> str:
        """Where other shards reach this one."""
        return self._store.here

    @property
    def opened(self) -> list[HostedAgent]:
        """Those in memory."""
        return list(self._open.values())

    async def names(self) -> list[str]:
        """All agents, sorted."""
        return await self.in_thread(self._store.names)

    async def recent_names(self, most: int) -> list[str]:
        """Agents that were written to last, as far as the store says so."""
        return await self.in_thread(lambda: self._store.recent(most))

    def hosted(self, name: str) -> HostedAgent | None:
        """An agent that is in memory."""
        return self._open.get(name)

    def is_open(self, name: str) -> bool:
        """Whether an agent is in memory."""
        return name in self._open

    async def get(self, name: str, *, forwarded: bool = False) -> HostedAgent:
        """The agent of that name; a 404 if there is none."""
        hosted = self._open.get(name)
        if hosted is None:
            hosted = await self._find_or_open(name, forwarded)
        hosted.touched = time.monotonic()
        if (why := hosted.obstacle) is not None:
            raise HttpError(503, f"{why} Try again later.", {"retry-after": "5"})
        return hosted

    async def create(
        self, name: str, settings: dict[str, Any], *, forwarded: bool = False
    ) -> HostedAgent:
        """A new agent; a 409 if there is one of that name."""
        async with self._lock(name):
            url = None if forwarded else await self.in_thread(lambda: self.routing.home(name))
            if url is not None:
                raise OtherShardError(url)
            if name in self._open or await self.in_thread(lambda: self._store.exists(name)):
                raise HttpError(
                    409,
                    f"There is an agent '{name}' already: delete it first, or choose another name.",
                )
            if len(await self.names()) >= self._max_agents:
                raise HttpError(
                    409,
                    f"There are {self._max_agents} agents already, which is the most that this "
                    "service takes.",
                )
            await self.in_thread(lambda: self._store.create(name, settings))
            return await self._load(name)

    async def delete(self, name: str, *, forwarded: bool = False) -> None:
        """Delete an agent for good; a 404 if there is none."""
        await self.get(name, forwarded=forwarded)
        async with self._lock(name):
            await self._close(name, save=False)
            await self.in_thread(lambda: self._store.remove(name))
            with suppress(KeyError):
                self._metrics.forget(name)

    def suspect(self) -> None:
        """Another process holds an agent that is open here: look for it in a moment."""
        self._check_leases = True

    async def drop_lost(self) -> None:
        """Let go of agents that other processes hold now; nothing of them can be written here any
        more."""
        lost = set(await self.in_thread(self._store.lost))
        if self._check_leases:
            self._check_leases = False
            lost |= {hosted.name for hosted in self._open.values() if hosted.agent.is_dirty}
        for name in lost & set(self._open):
            async with self._lock(name):
                with suppress(TidepullError):
                    await self._close(name, save=False)

    async def still_at(self, name: str, url: str) -> bool:
        """Whether a shard has the lease of an agent; also while the database does not answer."""
        try:
            return await self.in_thread(lambda: self._store.owner(name)) == url
        except TidepullError:
            return True

    async def announce(self) -> None:
        """Say that this shard lives."""
        await self.in_thread(self._store.announce)

    async def shards(self) -> list[Shard]:
        """All shards that live."""
        return await self.in_thread(self._store.shards)

    async def balance(self) -> None:
        """Let go of an agent if another shard has fewer by two: the next request takes it there."""
        busiest = max(
            (hosted for hosted in self._open.values() if hosted.can_leave_soon),
            key=lambda hosted: hosted.touched,
            default=None,
        )
        if busiest is not None and await self.in_thread(self.routing.surplus) >= 2:
            async with self._lock(busiest.name):
                if self._open.get(busiest.name) is busiest:
                    await self._close(busiest.name)

    async def close_idle(self, idle: float = IDLE) -> None:
        """Close agents without recent requests, and the oldest of too many."""
        now = time.monotonic()
        by_age = sorted(self._open.values(), key=lambda hosted: hosted.touched)
        for place, hosted in enumerate(by_age):
            old = now - hosted.touched > idle or place < len(by_age) - self._max_open
            if old and hosted.idle:
                async with self._lock(hosted.name):
                    if hosted.idle and self._open.get(hosted.name) is hosted:
                        await self._close(hosted.name)

    async def close(self) -> None:
        """Snapshot and close everything."""
        with suppress(TidepullError):
            await self.in_thread(self._store.leave)
        for name in list(self._open):
            async with self._lock(name):
                try:
                    await self._close(name)
                except TidepullError as error:  # what was acknowledged is safe
                    _LOG.warning("agent %s was closed without a snapshot: %s", name, error)
        await self.in_thread(self._store.close)
        self.executor.shutdown(wait=True)
        self._steps.shutdown(wait=True)

    async def _find_or_open(self, name: str, forwarded: bool) -> HostedAgent:
        if not forwarded and (url := self.routing.known(name)) is not None:
            raise OtherShardError(url)
        if not _NAME.fullmatch(name) or not await self.in_thread(lambda: self._store.exists(name)):
            raise _not_found(name)
        async with self._lock(name):
            if name in self._open:
                return self._open[name]
            url = await self.in_thread(lambda: self.routing.find(name, place=not forwarded))
            if url is not None:
                raise OtherShardError(url)
            try:
                return await self._load(name)
            except NewerStoreError:
                raise
            except WrongStoreError:
                raise _not_found(name) from None
            except HeldError:
                if (
                    not self._store.remote
                    or await self.in_thread(lambda: self._store.owner(name)) == ""
                ):
                    raise  # its owner takes no requests
                raise NoOwnerError from None

    async def _load(self, name: str) -> HostedAgent:
        await self._make_room()
        agent = await self.in_thread(lambda: self._store.open(name))
        hosted = HostedAgent(name, agent, self._metrics, self._steps, self.executor)
        self._open[name] = hosted
        self._metrics.open_agents.set(len(self._open))
        if agent.upgrading is not None:
            hosted.upgrading = True
            self._upgrades[name] = asyncio.create_task(self._upgrade(hosted))
        return hosted

    async def _make_room(self) -> None:
        """Close the agent that was idle for longest where no more may be open."""
        if len(self._open) < self._max_open:
            return
        idle = min(
            (hosted for hosted in self._open.values() if hosted.idle),
            key=lambda hosted: hosted.touched,
            default=None,
        )
        if idle is None:
            raise HttpError(
                503,
                f"{self._max_open} agents are open and busy, which is the most for this limit of "
                "file descriptors: raise it (LimitNOFILE), or try again later.",
                {"retry-after": "1"},
            )
        await self._close(idle.name)

    async def _upgrade(self, hosted: HostedAgent) -> None:
        """Make the policy of an agent of another release anew, beside all other agents."""
        try:
            async with self._upgrade_slots:
                await hosted.change(ServedAgent.upgrade)
        except TidepullError as error:
            _LOG.error("agent %s could not be rebuilt: %s", hosted.name, error)
        finally:
            hosted.upgrading = False
            self._upgrades.pop(hosted.name, None)

    async def _close(self, name: str, *, save: bool = True) -> None:
        hosted = self._open.pop(name, None)
        if hosted is None:
            return
        self._metrics.open_agents.set(len(self._open))
        await hosted.close(lambda agent: agent.close(save=save))

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Let a thread do something that may take long."""
        return await asyncio.get_running_loop().run_in_executor(self.executor, work)


def load_kernels(stopping: Callable[[], bool]) -> None:
    """Load what agents with the default policy need; wait for the compiler if need be, unless the
    service is stopping."""
    compiler.wait(stopping=stopping)
    if stopping():
        return
    with ServedAgent.memory(arms=["a", "b"], context={"x": float}, seed=0) as agent:
        for n in range(20):
            agent.reward(agent.choose({}).id, float(n % 2))


def _not_found(name: str) -> HttpError:
    return HttpError(404, f"There is no agent {name[:64]!r}.")
