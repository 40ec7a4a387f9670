"""An agent that is open in a service: a queue of steps, which one thread at a time makes in order.

The event loop puts a step into the queue and never waits for the agent's lock, its store or its
disk. A thread makes all steps that wait, and then answers each. The first answer commits the
records of all of them (group commit), and each step is answered by what became of its own record.

A thread begins when the loop has read all requests that have arrived: two threads of Python that
both have something to do hinder each other, and one commit for eight requests costs little more
than for one. Nobody waits for requests that have not arrived.

Where a turn does not end (a disk or a database that hangs), requests that wait for it are answered
503 after two seconds, and later ones at once, until it ends.

What takes long (charts, exports, replays) runs in another thread, beside the steps.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from itertools import groupby
from typing import Any, NamedTuple, TypeVar, cast

from tidepull.agent.commands import Request
from tidepull.agent.decisions import Decision
from tidepull.agent.insight import Insight
from tidepull.agent.point_in_time import PointInTime
from tidepull.agent.served import ServedAgent
from tidepull.errors import InputError, LedgerError
from tidepull.service.metrics import Metrics
from tidepull.service.problem_details import HttpError

T = TypeVar("T")
Made = TypeVar("Made")

MAX_WAITING = 1000
"""Steps that may wait for one agent; about a second of work with `tide`."""

PATIENCE = 2.0
"""Seconds after which requests are told that an agent's store does not answer; the default deadline
of a client."""

QUIET_TURNS = 2
"""Turns of the event loop without a new step after which a thread makes those that wait: a request
that has arrived is a step after two."""

GATHERED = 64
"""Steps that do not wait for further ones."""

MAX_LOOKS = 16
"""Charts and exports of one agent that may wait for each other."""

REPLAY_SECONDS, REPLAY_KEPT = 10.0, 600.0
"""Seconds that a request replays a ledger at most, half of them at rest; and for which the state
that it made is kept."""


class _QueuedStep(NamedTuple):
    make: Callable[[ServedAgent], Any] | Request
    answer: Callable[[ServedAgent, Any], Any] | None
    future: asyncio.Future[Any]


_StepResult = tuple[_QueuedStep, Any, BaseException | None]
"""A step with its result, or its error."""


class _Turn(NamedTuple):
    """What became of the steps of one turn: results or errors, how long the commit took, how many
    it made safe, and why it failed."""

    outcomes: list[tuple[asyncio.Future[Any], Any, BaseException | None]]
    took: float
    safe: int
    failure: LedgerError | None


class HostedAgent:
    """An agent and its queue; only the event loop may call it. `steps` has a thread for every open
    agent, `executor` those for what takes long.

    `saving`: a snapshot is under way; `failing`: its upkeep failed, and rests; `upgrading`: its
    policy is being made anew, and it takes no requests.
    """

    def __init__(
        self, name: str, agent: ServedAgent, metrics: Metrics, steps: Executor, executor: Executor
    ) -> None:
        self.name = name
        self.agent = agent
        self.touched = self.saved_at = time.monotonic()
        self.saving = self.failing = self.upgrading = False
        self._metrics = metrics
        self._pool, self._executor = steps, executor
        self._loop = asyncio.get_running_loop()
        self._steps: list[_QueuedStep] = []
        self._busy = self._stuck = False
        self._committing_since = math.inf
        self._waiting = self._looks = self._aside = 0
        self._looking, self._changing = asyncio.Lock(), asyncio.Lock()
        self._replaying, self._past = asyncio.Lock(), cast(PointInTime | None, None)
        self._past_timer: asyncio.TimerHandle | None = None
        self._reader = agent.reader()

    @property
    def waiting(self) -> int:
        """How many steps wait or are being made."""
        return self._waiting

    @property
    def obstacle(self) -> str | None:
        """Why it takes no requests now; None where it does."""
        if not self.upgrading:
            return None
        done, of = self.agent.upgrading or (0, 0)
        return (
            f"Agent {self.name!r} is being rebuilt for this release from its ledger: {done:,} of "
            f"{of:,} records."
        )

    @property
    def snapshot_age(self) -> float:
        """Seconds since the last snapshot, or since it was opened."""
        return time.monotonic() - self.saved_at

    @property
    def idle(self) -> bool:
        """Whether no request waits for it."""
        return not self._waiting and not self._aside

    @property
    def can_leave_soon(self) -> bool:
        """Whether it waits for steps at most, and for nothing that takes long."""
        return not self._aside

    def make(
        self,
        make: Callable[[ServedAgent], Made] | Request,
        answer: Callable[[ServedAgent, Made], T],
    ) -> asyncio.Future[T]:
        """Make a step; `answer` is called with it afterwards, and waits for its commit."""
        if self._waiting >= MAX_WAITING:
            self._metrics.shed("agent")
            raise HttpError(
                429,
                f"{MAX_WAITING:,} requests wait for this agent already: try again in a moment.",
                {"retry-after": "1"},
            )
        if self._stuck:
            raise _no_answer()
        return self._put(make, answer)

    def choose(self, request: Request) -> asyncio.Future[Decision]:
        """Make a decision, together with others that wait; done when it is on disk."""
        return self.make(request, _committed)

    def durable(self, make: Callable[[ServedAgent], tuple[T, int]]) -> asyncio.Future[T]:
        """Make a step that returns its result and its number; done when it is on disk."""
        return self.make(make, _committed)

    def ask(self, question: Callable[[ServedAgent], T]) -> asyncio.Future[T]:
        """Ask the agent something quick, between its steps."""
        return self._put(question, None)

    def _put(self, make: Any, answer: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._waiting += 1
        self._steps.append(_QueuedStep(make, answer, future))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._gather, 1)
        return future

    def _gather(self, seen: int, quiet: int = 0) -> None:
        """Begin a turn when no more steps come; `seen` were there a turn of the loop ago."""
        count = len(self._steps)
        quiet = quiet + 1 if count == seen else 0
        if quiet < QUIET_TURNS and count < GATHERED:
            self._loop.call_soon(self._gather, count, quiet)
            return
        steps, self._steps = self._steps, []
        self._committing_since = math.inf
        turn = self._loop.run_in_executor(self._pool, self._turn, steps)
        self._timer = self._loop.call_later(PATIENCE, self._give_up, steps)
        turn.add_done_callback(self._end)

    def _give_up(self, steps: list[_QueuedStep]) -> None:
        """Answer what waits for a commit that does not come back. The turn goes on: its records
        may still be written, and a request that is repeated with its id gets its answer. Requests
        behind it are dropped."""
        left = self._committing_since + PATIENCE - time.monotonic()
        if left > 0:  # the agent is busy, not its ledger, or has only begun to commit
            self._timer = self._loop.call_later(min(left, PATIENCE), self._give_up, steps)
            return
        self._stuck = True
        dropped = [step for step in self._steps if step.answer is not None]
        self._steps = [step for step in self._steps if step.answer is None]
        self._waiting -= len(dropped)
        for step in (*steps, *dropped):
            if step.answer is not None and not step.future.done():
                step.future.set_exception(_no_answer())

    def _end(self, done: asyncio.Future[_Turn]) -> None:
        self._timer.cancel()
        self._stuck = False
        turn = done.result()
        self._busy = bool(self._steps)
        if self._busy:
            self._loop.call_soon(self._gather, 0)
        self._waiting -= len(turn.outcomes)
        if turn.safe:
            self._metrics.committed(turn.took, turn.safe)
        if turn.failure is not None:
            self._metrics.commit_failed(turn.failure)
        for future, value, error in turn.outcomes:
            if future.done():
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

    async def query_log(self, question: Callable[[Insight], T]) -> T:
        """Look into the log while the agent decides, one look at a time; only records that are new
        are read."""
        if self._looks >= MAX_LOOKS:
            self._metrics.shed("look")
            raise HttpError(
                429,
                f"{MAX_LOOKS} charts and exports of this agent are under way: try again later.",
                {"retry-after": "5"},
            )
        self._looks += 1
        try:
            async with self._looking:
                return await self.aside(lambda agent: question(agent.aside(self._reader)))
        finally:
            self._looks -= 1

    async def replay(self, upto: int, question: Callable[[PointInTime], T]) -> T:
        """Ask what was known after a record, one replay at a time; a 429 says how far it has come,
        and the next call continues."""
        async with self._replaying:
            before, self._past = self._past, None
            point = await self.aside(lambda agent: agent.point_in_time(upto, before))
            done = await self.aside(lambda _: point.advance(REPLAY_SECONDS))
            self._keep(point)
            if not done:
                raise HttpError(
                    429,
                    f"Replaying the ledger: {point.position:,} of {upto:,} records are done. Ask "
                    "again.",
                    {"retry-after": "1"},
                )
            return await self.aside(lambda _: question(point))

    def _keep(self, point: PointInTime) -> None:
        if self._past_timer is not None:
            self._past_timer.cancel()
        self._past = point
        self._past_timer = self._loop.call_later(REPLAY_KEPT, self._drop_past)

    def _drop_past(self) -> None:
        self._past = None

    async def change(self, work: Callable[[ServedAgent], T]) -> T:
        """Let a thread change the agent in a way that may take long, one change at a time."""
        async with self._changing:
            return await self.aside(work)

    async def erase(self, work: Callable[[ServedAgent], T]) -> T:
        """Let a thread delete records; charts are read anew after it."""
        async with self._looking:
            try:
                return await self.change(work)
            finally:
                self._reader = self.agent.reader()
                self._drop_past()

    async def aside(self, work: Callable[[ServedAgent], T]) -> T:
        """Let a thread do something beside the steps; the agent is not closed meanwhile."""
        self._aside += 1
        try:
            return await self._loop.run_in_executor(self._executor, work, self.agent)
        finally:
            self._aside -= 1

    async def close(self, work: Callable[[ServedAgent], None]) -> None:
        """Do a last thing after all steps and looks."""
        while self._aside:
            await asyncio.sleep(0.01)
        await self._put(work, None)

    def _turn(self, steps: list[_QueuedStep]) -> _Turn:
        """Make steps, then answer them; in a thread."""
        results = list[_StepResult]()
        for is_decision, run in groupby(steps, lambda step: isinstance(step.make, Request)):
            run_all = _decisions_of if is_decision else _results_of
            results += run_all(self.agent, list(run))
        self._committing_since = time.monotonic()
        started, safe, failure = time.perf_counter(), 0, None
        outcomes: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []
        for step, value, error in results:
            if error is None and step.answer is not None:
                try:
                    value = step.answer(self.agent, value)
                    safe += 1
                except Exception as raised:
                    error = raised
            if isinstance(error, LedgerError):
                failure = error
            outcomes.append((step.future, value, error))
        return _Turn(outcomes, time.perf_counter() - started, safe, failure)


def _no_answer() -> HttpError:
    return HttpError(
        503,
        f"The agent's ledger has not answered for {PATIENCE:g} s: repeat the request with its id.",
        {"retry-after": "1"},
    )


def _results_of(agent: ServedAgent, steps: list[_QueuedStep]) -> list[_StepResult]:
    results = list[_StepResult]()
    for step in steps:
        try:
            make = cast(Callable[[ServedAgent], Any], step.make)
            results.append((step, make(agent), None))
        except Exception as error:
            results.append((step, None, error))
    return results


def _decisions_of(agent: ServedAgent, steps: list[_QueuedStep]) -> list[_StepResult]:
    """Decisions of several callers; one after the other they cost more."""
    try:
        decisions = agent.choose_each_ahead([cast(Request, step.make) for step in steps])
    except Exception as error:
        return [(step, None, error) for step in steps]
    return [
        (step, None, one) if isinstance(one, InputError) else (step, one, None)
        for step, one in zip(steps, decisions, strict=True)
    ]


def _committed(agent: ServedAgent, step: tuple[T, int]) -> T:
    value, seq = step
    agent.commit(seq)
    return value
