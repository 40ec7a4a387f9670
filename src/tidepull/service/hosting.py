"""Many named agents in one store, each opened when it is asked for, and closed when nobody asks any more."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from tidepull.agent.agent import Agent
from tidepull.agent.insight import Insight
from tidepull.errors import HeldError, NewerStoreError, TidepullError, WrongStoreError
from tidepull.service.books import Books
from tidepull.service.messages import NAME
from tidepull.service.metrics import Metrics
from tidepull.service.problems import HttpError
from tidepull.service.stores import Store
from tidepull.service.turns import Turns
from tidepull.service.warming import warm
from tidepull.service.whereabouts import ElsewhereError, UnsettledError, Whereabouts

if TYPE_CHECKING:
    from tidepull.agent.ledger.database import Shard

T = TypeVar("T")
_LOG = logging.getLogger("tidepull.serve")
_NAME = re.compile(NAME)
IDLE = 900.0
"""Seconds after which an agent that nobody asks is closed."""

MOST_OPEN = 256


class Hosted:
    """An agent that is open. `saving`: a snapshot is under way; `ailing`: its upkeep failed, and rests."""

    def __init__(self, name: str, agent: Agent, turns: Turns, executor: ThreadPoolExecutor) -> None:
        self.name = name
        self.agent = agent
        self.turns = turns
        self.touched = time.monotonic()
        self.saving = False
        self.ailing = False
        self._executor = executor
        self._users = 0
        self._books = Books(agent)

    @property
    def idle(self) -> bool:
        """Whether nobody is waiting for it."""
        return self._users == 0 and not self.saving and self.turns.idle

    @property
    def can_leave_soon(self) -> bool:
        """Whether it waits for commits at most, and for nothing that takes long."""
        return self._users == 0 and not self.saving

    async def look(self, question: Callable[[Insight], T]) -> T:
        """Let a thread look into it, while it decides."""
        return await self.elsewhere(lambda _: self._books.ask(question))

    async def elsewhere(self, question: Callable[[Agent], T]) -> T:
        """Let a thread ask the agent something that takes long."""
        with self.in_use():
            return await asyncio.get_running_loop().run_in_executor(self._executor, question, self.agent)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """It is not closed meanwhile."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1


class Hosting:
    """Finds, makes, opens, closes and deletes agents; only the event loop may call it. An agent that another shard has
    is an `ElsewhereError`; `forwarded`: another shard sent the request, so that this one should take the agent."""

    def __init__(self, store: Store, metrics: Metrics, most: int) -> None:
        self._store = store
        self._metrics = metrics
        self._most = most
        self._open: dict[str, Hosted] = {}
        self._doors: dict[str, asyncio.Lock] = {}
        self._suspicious = False
        self.whereabouts = Whereabouts(store)
        self.executor = ThreadPoolExecutor(4, thread_name_prefix="tidepull-serve")
        # Opening may take seconds, and commits must not wait for that.
        self._aside = ThreadPoolExecutor(4, thread_name_prefix="tidepull-open")

    @property
    def here(self) -> str:
        """Where other shards reach this one."""
        return self._store.here

    @property
    def opened(self) -> list[Hosted]:
        """Those in memory."""
        return list(self._open.values())

    async def names(self) -> list[str]:
        """All agents, sorted."""
        return await self._elsewhere(self._store.names)

    def is_open(self, name: str) -> bool:
        """Whether an agent is in memory."""
        return name in self._open

    async def get(self, name: str, *, forwarded: bool = False) -> Hosted:
        """The agent of that name; a 404 if there is none."""
        hosted = self._open.get(name)
        if hosted is None:
            hosted = await self._opened(name, forwarded)
        elif hosted.agent.is_dirty:
            await hosted.elsewhere(Agent.recover)
        hosted.touched = time.monotonic()
        return hosted

    async def make(self, name: str, given: dict[str, Any], *, forwarded: bool = False) -> Hosted:
        """A new agent; a 409 if there is one of that name."""
        async with self._door(name):
            if not forwarded and (url := await self._elsewhere(self.whereabouts.emptiest)) is not None:
                raise ElsewhereError(url)
            if name in self._open or await self._elsewhere(lambda: self._store.exists(name)):
                raise HttpError(
                    409, f"There is an agent '{name}' already: delete it first, or choose another name."
                )
            if len(await self.names()) >= self._most:
                raise HttpError(
                    409, f"There are {self._most} agents already, which is the most that this service takes."
                )
            await self._elsewhere(lambda: self._store.make(name, given))
            return await self._load(name)

    async def delete(self, name: str, *, forwarded: bool = False) -> None:
        """Delete an agent for good; a 404 if there is none."""
        await self.get(name, forwarded=forwarded)
        async with self._door(name):
            await self._let_go(name, save=False)
            await self._elsewhere(lambda: self._store.remove(name))
            with suppress(KeyError):
                self._metrics.forget(name)

    def suspect(self) -> None:
        """Another process holds an agent that is open here: look for it in a moment."""
        self._suspicious = True

    async def drop_lost(self) -> None:
        """Let go of agents that other processes hold now; nothing of them can be written here any more."""
        lost = set(await self._elsewhere(self._store.lost))
        if self._suspicious:
            self._suspicious = False
            lost |= {hosted.name for hosted in self._open.values() if hosted.agent.is_dirty}
        for name in lost & set(self._open):
            async with self._door(name):
                with suppress(TidepullError):
                    await self._let_go(name, save=False)

    async def still_at(self, name: str, url: str) -> bool:
        """Whether a shard has the lease of an agent; also where nobody can say so at the moment."""
        try:
            return await self._elsewhere(lambda: self._store.owner(name)) == url
        except TidepullError:
            return True

    async def announce(self) -> None:
        """Say that this shard lives."""
        await self._elsewhere(self._store.announce)

    async def shards(self) -> list[Shard]:
        """All shards that live."""
        return await self._elsewhere(self._store.shards)

    async def share(self) -> None:
        """Let go of an agent if another shard has fewer by two: the next request takes it there."""
        busiest = max(
            (hosted for hosted in self._open.values() if hosted.can_leave_soon),
            key=lambda hosted: hosted.touched,
            default=None,
        )
        if busiest is not None and await self._elsewhere(self.whereabouts.surplus) >= 2:
            async with self._door(busiest.name):
                if self._open.get(busiest.name) is busiest:
                    await self._let_go(busiest.name)

    async def close_idle(self, idle: float = IDLE) -> None:
        """Close what nobody asked for a while, and what is too much."""
        now = time.monotonic()
        by_age = sorted(self._open.values(), key=lambda hosted: hosted.touched)
        for place, hosted in enumerate(by_age):
            old = now - hosted.touched > idle or place < len(by_age) - MOST_OPEN
            if old and hosted.idle:
                async with self._door(hosted.name):
                    if hosted.idle and self._open.get(hosted.name) is hosted:
                        await self._let_go(hosted.name)

    async def close(self) -> None:
        """Snapshot and close everything."""
        with suppress(TidepullError):
            await self._elsewhere(self._store.leave)
        for name in list(self._open):
            async with self._door(name):
                try:
                    await self._let_go(name)
                except TidepullError as error:  # what was acknowledged is safe; only the snapshot is missing
                    _LOG.warning("agent %s was closed without a snapshot: %s", name, error)
        await self._elsewhere(self._store.close)
        self.executor.shutdown(wait=True)
        self._aside.shutdown(wait=True)

    async def _opened(self, name: str, forwarded: bool) -> Hosted:
        if not forwarded and (url := self.whereabouts.known(name)) is not None:
            raise ElsewhereError(url)
        if not _NAME.match(name) or not await self._elsewhere(lambda: self._store.exists(name)):
            raise _unknown(name)
        async with self._door(name):
            if name in self._open:
                return self._open[name]
            url = await self._elsewhere(lambda: self.whereabouts.find(name, place=not forwarded))
            if url is not None:
                raise ElsewhereError(url)
            try:
                return await self._load(name)
            except NewerStoreError:
                raise
            except WrongStoreError:
                raise _unknown(name) from None
            except HeldError:
                if not self._store.remote or await self._elsewhere(lambda: self._store.owner(name)) == "":
                    raise  # who has it takes no requests
                raise UnsettledError from None

    async def _load(self, name: str) -> Hosted:
        agent = await self._elsewhere(lambda: _warmed(self._store.open(name)))
        turns = Turns(agent, self._metrics, self.executor, remote=self._store.remote)
        self._open[name] = Hosted(name, agent, turns, self.executor)
        self._metrics.open_agents.set(len(self._open))
        return self._open[name]

    async def _let_go(self, name: str, *, save: bool = True) -> None:
        hosted = self._open.pop(name, None)
        if hosted is None:
            return
        while not hosted.idle:
            await asyncio.sleep(0.001)
        self._metrics.open_agents.set(len(self._open))
        await self._elsewhere(lambda: _closed(hosted.agent, save))

    def _door(self, name: str) -> asyncio.Lock:
        return self._doors.setdefault(name, asyncio.Lock())

    async def _elsewhere(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._aside, work)


def _warmed(agent: Agent) -> Agent:
    try:
        warm(agent)
    except BaseException:
        agent.close()
        raise
    return agent


def _closed(agent: Agent, save: bool) -> None:
    try:
        if save and agent.state().records > agent.state().saved:
            agent.save()
    finally:
        agent.close()


def _unknown(name: str) -> HttpError:
    return HttpError(404, f"There is no agent {name[:64]!r}.")
