"""An agent as servers use it: many steps for one commit, work a slice at a time, and views that
other threads read while it decides; and for asyncio, where its calls run in one thread of their own,
so that the event loop never waits for a disk or a computation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, Self, TypeVar

from tidepull.agent.agent import Agent
from tidepull.agent.decisions import Decision, DecisionId, id_of
from tidepull.agent.insight import Insight
from tidepull.agent.log import LogReader
from tidepull.agent.point_in_time import DecisionWhy, PointInTime, latest_decisions
from tidepull.agent.records import Record
from tidepull.agent.replay import Scrub


class ServedAgent(Agent):
    """An agent with the steps of a server. Whoever takes a step "ahead" must wait for its commit
    before anybody is told of it."""

    choose_ahead = Agent._choose_all
    choose_each_ahead = Agent._choose_each
    reward_ahead = Agent._record_reward
    rows_aside = Agent._rows
    has_work = Agent._has_work
    snapshot_is_due = Agent._snapshot_is_due
    save_if_due = Agent._save_if_due

    def activate_ahead(self, id: DecisionId) -> tuple[bool, int]:
        """Activate a deferred decision before the activation is durable.

        A deferred decision counts from its activation on. The activation is durable when
        `commit(number)` has returned.

        Parameters
        ----------
        id : str, int, UUID or Decision
            The decision.

        Returns
        -------
        new : bool
            True if the decision is activated now, False if it was active already.
        number : int
            The number to give to `commit`.

        Raises
        ------
        DecisionError
            If there is no such decision.
        """
        with self._lock:
            pending = self._ready().decisions.find(id)
            news = self._commands.activate(id_of(id), pending)
            return news, self._commands.number_to_wait_for(pending.latest)

    def commit(self, seq: int) -> None:
        """Wait until a step is durable.

        Any thread may call it while others take steps.

        Parameters
        ----------
        seq : int
            The number that `choose_ahead`, `reward_ahead` or `activate_ahead` returned.

        Raises
        ------
        LedgerError
            If the commit of the step failed.
        """
        self._commands.flush(seq)

    @property
    def describes(self) -> bool:
        """Whether the features of arms are free-form objects."""
        return self._commands.state.arms.described

    def aside(self, reader: LogReader | None = None) -> Insight:
        """Return a view that another thread can read while the agent continues.

        Parameters
        ----------
        reader : LogReader, optional
            A result of `reader`. If it was used before, only new records are read.

        Returns
        -------
        Insight
            The view.
        """
        with self._lock:
            self._ready()
            insight = Insight(self._commands.state, self._commands.ledger, reader)
            insight.summarise_policy()
            return insight

    def reader(self) -> LogReader:
        """Return a reader for `aside`; one thread at a time may use it."""
        return LogReader(self.settings, self._commands.clock)

    def decisions_aside(
        self, insight: Insight, until: float | None, limit: int
    ) -> list[DecisionWhy]:
        """Return the last decisions of a view, with the reason of each.

        Parameters
        ----------
        insight : Insight
            A result of `aside`.
        until : float, optional
            Moment until which they were made, in seconds since 1970.
        limit : int
            Most decisions to return.

        Returns
        -------
        list of DecisionWhy
            The decisions, latest first.
        """
        return latest_decisions(insight, self._commands.decisions.id, until, limit)

    def find_decision(self, id: DecisionId) -> Record:
        """Return the record of a decision, with its context.

        Parameters
        ----------
        id : str, int, UUID or Decision
            The decision.

        Returns
        -------
        Record
            The record.

        Raises
        ------
        DecisionError
            If there is no such decision.
        """
        with self._lock:
            record = self._ready().decisions.find(id).record
            self._commands.flush(record.seq)
            return self._commands.ledger.decision(record.seq) or record

    def point_in_time(self, upto: int, before: PointInTime | None = None) -> PointInTime:
        """Return the agent as it was after a record, to be replayed with `advance`.

        The agent continues meanwhile; another thread can replay and ask.

        Parameters
        ----------
        upto : int
            Number of the record.
        before : PointInTime, optional
            An earlier result, which is continued if the record is a later one.

        Returns
        -------
        PointInTime
            The agent at that point.

        Raises
        ------
        InputError
            If the state cannot be rebuilt.
        """
        with self._lock:
            self._ready()
            self._commands.flush()
            if before is not None and before.reaches(self._commands, upto):
                before.upto = upto
                return before
            return PointInTime(self._commands, upto)

    def scrub(self, scrub: Scrub, count: int) -> tuple[int, list[int]]:
        """Check the hashes of some more records.

        Parameters
        ----------
        scrub : Scrub
            How far the check has come.
        count : int
            Number of records to check.

        Returns
        -------
        count : int
            Number of records that were checked.
        damaged : list of int
            Numbers of records that are not as they were written.
        """
        return scrub.step(self._commands.ledger, count)

    def slice(self) -> bool:
        """Do one slice of pending work, if there is any.

        Returns
        -------
        bool
            True while there is more to do.
        """
        with self._lock:
            self._ready()
            self._work_a_little()
            return self.has_work

    @property
    def unsaved_records(self) -> int:
        """Records since the last snapshot, which a restart replays."""
        return self._commands.ledger.last - self._commands.saved

    @property
    def is_dirty(self) -> bool:
        """Whether a step failed, so that the next call reads the state from the ledger again."""
        return self._commands.dirty

    def recover(self) -> None:
        """Read the state from the ledger again if a step failed; the next call does so too."""
        with self._lock:
            self._ready()


P = ParamSpec("P")
T = TypeVar("T")

SWITCH_SECONDS = 0.001
"""Time after which the agent's thread lets the event loop run; Python's own is 5 ms."""


class AsyncAgent:
    """An agent whose methods are coroutines, for FastAPI and other asyncio programs.

    Calls run one after another in a thread of their own. A call that is cancelled while it runs
    still takes effect; one that waits for its turn does not. The interpreter's switch interval is
    lowered to 1 ms, so that the agent's thread blocks the event loop for no longer.

    Parameters
    ----------
    agent : Agent
        The agent. Only the AsyncAgent may use it from now on.

    Examples
    --------
    >>> import asyncio, tidepull
    >>> async def visit() -> bool:
    ...     agent = tidepull.Agent.memory(arms=["a", "b"], context={}, policy="random")
    ...     async with tidepull.AsyncAgent(agent) as shop:
    ...         decision = await shop.choose()
    ...         return await shop.reward(decision.id, 1.0)
    >>> asyncio.run(visit())
    True
    """

    def __init__(self, agent: Agent) -> None:
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_SECONDS))
        self._agent = agent
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tidepull-agent")

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call any method of the agent, such as `shop.call(agent.add, "pink")`.

        Parameters
        ----------
        function : callable
            A method of the agent.
        *args
            Its arguments.
        **kwargs
            Its keyword arguments.

        Returns
        -------
        object
            What the method returns.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(function, *args, **kwargs))

    async def choose(self, context: Mapping[str, Any] | None = None, **options: Any) -> Decision:
        """Choose an arm.

        Parameters
        ----------
        context : mapping of str to value, optional
            Values of the context's fields.
        **options
            Keyword arguments of `Agent.choose`.

        Returns
        -------
        Decision
            The arm with its propensity. The decision is durable.
        """
        return await self.call(self._agent.choose, context, **options)

    async def choose_many(self, contexts: Sequence[Mapping[str, Any] | None]) -> list[Decision]:
        """Make one decision for each context, all or none, in one commit.

        Parameters
        ----------
        contexts : sequence of mapping
            Values of the context's fields, for each decision.

        Returns
        -------
        list of Decision
            A decision for each context, in order.
        """
        return await self.call(self._agent.choose_many, contexts)

    async def reward(self, id: Any, reward: float, **options: Any) -> bool:
        """Report the reward of a decision.

        Parameters
        ----------
        id : str, int, UUID or Decision
            The decision.
        reward : float
            Its reward.
        **options
            Keyword arguments of `Agent.reward`.

        Returns
        -------
        bool
            True if the reward is new, False if it is a duplicate.
        """
        return await self.call(self._agent.reward, id, reward, **options)

    async def close(self) -> None:
        """Close the agent after the calls that were made before."""
        await self.call(self._agent.close)
        self._thread.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
