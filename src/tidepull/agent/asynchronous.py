"""An agent for asyncio: its calls run in one thread of their own, so the event loop never waits for
a disk or a computation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, Self, TypeVar

from tidepull.agent.agent import Agent
from tidepull.agent.decisions import Decision

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
