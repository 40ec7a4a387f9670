"""Clients of `tidepull serve`, waiting (`Client`) and asynchronous (`AsyncClient`); extra `client`.

Connections are kept and shared. What fails on the way is tried again, and counts once all the same: every decision
has an id, every reward a key.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from tidepull.agent import requests
from tidepull.agent.decisions import Decision, DecisionId
from tidepull.agent.requests import (
    AgentRequests,
    HttpRequest,
    RewardResult,
    TextAnswer,
    TimeLike,
    choice_body,
    moment,
    pause,
    reward_body,
)
from tidepull.errors import MissingExtraError, ParameterError, ServiceError

try:
    import httpx
except ModuleNotFoundError:
    raise MissingExtraError("tidepull.Client", "client") from None

T = TypeVar("T")


class _Settings:
    """The settings that both clients share."""

    def __init__(
        self, url: str | Sequence[str], token: str | None, timeout: float, retries: int, transport: Any
    ) -> None:
        headers = {"user-agent": "tidepull"} | ({} if token is None else {"authorization": f"Bearer {token}"})
        self.retries = retries
        self.addresses = _Addresses(url)
        self.http: dict[str, Any] = {"headers": headers, "timeout": timeout}
        if transport is not None:
            self.http["transport"] = transport


class _Addresses:
    """Where a service can be reached; the next one is taken when one fails."""

    def __init__(self, url: str | Sequence[str]) -> None:
        given = [url] if isinstance(url, str) else list(url)
        if not given:
            raise ParameterError("url must be an address, or a list of at least one")
        self._urls = [one.rstrip("/") for one in given]
        self._now = 0

    def of(self, path: str) -> str:
        """The address of a path."""
        return self._urls[self._now] + path

    def next(self, attempt: int, after: str | None) -> float:
        """Go on with the next one; how long to wait before. One that was not tried yet is asked at once."""
        self._now = (self._now + 1) % len(self._urls)
        return 0.0 if attempt + 1 < len(self._urls) else pause(attempt + 1 - len(self._urls), after)


class Client:
    """A client of `tidepull serve`, whose agents have the methods of `tidepull.Agent`.

    Parameters
    ----------
    url : str or sequence of str
        Address of the service, or several: the next one is asked when one does not answer.
    token : str, optional
        Token of the service (`tidepull token`).
    timeout : float, default 10.0
        Seconds to wait for an answer.
    retries : int, default 4
        How often a request is repeated, where a repetition is safe.
    transport : optional
        Transport of `httpx`, for tests.

    Raises
    ------
    ServiceError
        From its methods: the service refused a request, or could not be reached.

    Examples
    --------
    >>> import tidepull
    >>> with tidepull.Client("http://localhost:8000", token="tp_...") as client:  # doctest: +SKIP
    ...     shop = client.agent("shop")
    ...     decision = shop.choose({"device": "phone", "age": 31})
    ...     shop.reward(decision, 1.0)
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: int = 4,
        transport: Any = None,
    ) -> None:
        settings = _Settings(url, token, timeout, retries, transport)
        self._retries, self._addresses = settings.retries, settings.addresses
        self._http = httpx.Client(**settings.http)

    def agent(self, name: str) -> RemoteAgent:
        """An agent of the service, without a request.

        Parameters
        ----------
        name : str
            Name of the agent.

        Returns
        -------
        RemoteAgent
            The agent.
        """
        return RemoteAgent(self, name)

    def agents(self) -> list[str]:
        """List the agents that the token is for.

        Returns
        -------
        list of str
            Their names.
        """
        return self.send(requests.agents())

    def create(self, name: str, **settings: Any) -> RemoteAgent:
        """Make an agent.

        Parameters
        ----------
        name : str
            Name of the agent.
        **settings
            Settings of `tidepull.Agent`, such as `arms` and `context`.

        Returns
        -------
        RemoteAgent
            The agent.
        """
        return RemoteAgent(self, self.send(requests.create(requests.agent_body(name, settings))))

    def send(self, request: HttpRequest[T]) -> T:
        """Send a request, again where that is safe."""
        for attempt in range(self._retries + 1):
            try:
                answer = self._http.request(
                    request.method, self._addresses.of(request.path), json=request.body, params=request.query
                )
            except httpx.TransportError as error:
                if attempt == self._retries or not request.may_repeat(None, sent=_sent(error)):
                    raise _unreachable(error) from error
                time.sleep(self._addresses.next(attempt, None))
                continue
            if attempt < self._retries and request.may_repeat(answer.status_code, sent=True):
                time.sleep(self._addresses.next(attempt, answer.headers.get("retry-after")))
                continue
            return request.answer(answer.status_code, answer.content, answer.headers.get("content-type", ""))
        raise AssertionError

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RemoteAgent:
    """An agent of a service; its methods are those of `tidepull.Agent`."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._send = client.send
        self._requests = AgentRequests(name)

    def choose(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        arms: Iterable[str] | None = None,
        subject: str | int | UUID | None = None,
        at: TimeLike | None = None,
        id: str | int | UUID | None = None,
    ) -> Decision:
        """Choose an arm; the decision is on disk when this returns. The same `id` again is the same decision again."""
        return self._send(self._requests.choose(choice_body(context, arms, subject, at, id)))

    def choose_many(self, contexts: Sequence[Mapping[str, Any]]) -> list[Decision]:
        """One decision for each context, all in one commit."""
        bodies = [choice_body(context, None, None, None, None) for context in contexts]
        return self._send(self._requests.choose_many(bodies))

    def reward(
        self, id: DecisionId, reward: float, *, at: TimeLike | None = None, key: str | None = None
    ) -> bool:
        """What a decision was worth; False if that was known."""
        return self._send(self._requests.reward(reward_body(id, reward, at, key)))

    def rewards(self, rewards: Mapping[str, float]) -> list[RewardResult]:
        """What many decisions were worth, by their ids; each is taken or refused for itself."""
        return self._send(
            self._requests.rewards([reward_body(id, worth, None, None) for id, worth in rewards.items()])
        )

    @property
    def arms(self) -> list[str]:
        """The arms that can be chosen."""
        return self._send(self._requests.arms())

    def add(self, label: str, features: Mapping[str, Any] | None = None) -> list[str]:
        """A new arm, or a retired one again; the arms that there are now."""
        return self._send(self._requests.change("add", label, features=features))

    def retire(self, label: str) -> list[str]:
        """An arm is not chosen any more; the arms that are left."""
        return self._send(self._requests.change("retire", label))

    def rename(self, label: str, to: str) -> list[str]:
        """An arm has another name from now on."""
        return self._send(self._requests.change("rename", label, to=to))

    def explain(self) -> TextAnswer:
        """What it believes, in plain words: print it."""
        return self._send(self._requests.words("explain"))

    def lift(self, *, since: TimeLike | None = None, level: float = 0.95, points: int = 0) -> TextAnswer:
        """The gain over the control group, with an interval."""
        return self._send(self._requests.words("lift", since=moment(since), level=level, points=points))

    def state(self) -> dict[str, Any]:
        """Where it stands."""
        return self._send(self._requests.table("state"))

    def history(
        self, *, since: TimeLike | None = None, until: TimeLike | None = None, bins: int = 120
    ) -> dict[str, Any]:
        """Decisions and rewards over time, by arm and group."""
        return self._send(
            self._requests.table("history", since=moment(since), until=moment(until), bins=bins)
        )

    def heatmap(self) -> dict[str, Any]:
        """The best arm of every hour of the week."""
        return self._send(self._requests.table("heatmap"))

    def waiting(self) -> dict[str, Any]:
        """How rewards come."""
        return self._send(self._requests.table("waiting"))

    def freeze(self) -> None:
        """Nothing is learnt from now on."""
        self._send(self._requests.act("freeze"))

    def unfreeze(self) -> None:
        """Rewards are learnt again."""
        self._send(self._requests.act("unfreeze"))

    def rollback(self, to: TimeLike | Decision) -> None:
        """Forget what was learnt after a moment, or after a decision of that id."""
        self._send(self._requests.rollback(to))

    def export(self, path: str | Path) -> None:
        """Every decision into a .jsonl, .csv or .parquet file."""
        Path(path).write_bytes(self._send(self._requests.export(Path(path).suffix.lstrip("."))))

    def delete(self) -> None:
        """Delete it and all it knows, for good."""
        self._send(self._requests.delete())


class AsyncClient:
    """A client of `tidepull serve` for `async` programs; see `Client`.

    Parameters
    ----------
    url : str or sequence of str
        Address of the service, or several: the next one is asked when one does not answer.
    token : str, optional
        Token of the service (`tidepull token`).
    timeout : float, default 10.0
        Seconds to wait for an answer.
    retries : int, default 4
        How often a request is repeated, where a repetition is safe.
    transport : optional
        Transport of `httpx`, for tests.

    Examples
    --------
    >>> import tidepull
    >>> async def choose() -> str:
    ...     async with tidepull.AsyncClient("http://localhost:8000", token="tp_...") as client:
    ...         return (await client.agent("shop").choose({"age": 31})).arm
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: int = 4,
        transport: Any = None,
    ) -> None:
        settings = _Settings(url, token, timeout, retries, transport)
        self._retries, self._addresses = settings.retries, settings.addresses
        self._http = httpx.AsyncClient(**settings.http)

    def agent(self, name: str) -> AsyncRemoteAgent:
        """An agent of the service, without a request.

        Parameters
        ----------
        name : str
            Name of the agent.

        Returns
        -------
        AsyncRemoteAgent
            The agent.
        """
        return AsyncRemoteAgent(self, name)

    async def agents(self) -> list[str]:
        """List the agents that the token is for.

        Returns
        -------
        list of str
            Their names.
        """
        return await self.send(requests.agents())

    async def create(self, name: str, **settings: Any) -> AsyncRemoteAgent:
        """Make an agent.

        Parameters
        ----------
        name : str
            Name of the agent.
        **settings
            Settings of `tidepull.Agent`, such as `arms` and `context`.

        Returns
        -------
        AsyncRemoteAgent
            The agent.
        """
        return AsyncRemoteAgent(self, await self.send(requests.create(requests.agent_body(name, settings))))

    async def send(self, request: HttpRequest[T]) -> T:
        """Send a request, again where that is safe."""
        for attempt in range(self._retries + 1):
            try:
                answer = await self._http.request(
                    request.method, self._addresses.of(request.path), json=request.body, params=request.query
                )
            except httpx.TransportError as error:
                if attempt == self._retries or not request.may_repeat(None, sent=_sent(error)):
                    raise _unreachable(error) from error
                await asyncio.sleep(self._addresses.next(attempt, None))
                continue
            if attempt < self._retries and request.may_repeat(answer.status_code, sent=True):
                await asyncio.sleep(self._addresses.next(attempt, answer.headers.get("retry-after")))
                continue
            return request.answer(answer.status_code, answer.content, answer.headers.get("content-type", ""))
        raise AssertionError

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncRemoteAgent:
    """An agent of a service; see `RemoteAgent`."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name = name
        self._send = client.send
        self._requests = AgentRequests(name)

    async def choose(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        arms: Iterable[str] | None = None,
        subject: str | int | UUID | None = None,
        at: TimeLike | None = None,
        id: str | int | UUID | None = None,
    ) -> Decision:
        """Choose an arm; the decision is on disk when this returns. The same `id` again is the same decision again."""
        return await self._send(self._requests.choose(choice_body(context, arms, subject, at, id)))

    async def choose_many(self, contexts: Sequence[Mapping[str, Any]]) -> list[Decision]:
        """One decision for each context, all in one commit."""
        bodies = [choice_body(context, None, None, None, None) for context in contexts]
        return await self._send(self._requests.choose_many(bodies))

    async def reward(
        self, id: DecisionId, reward: float, *, at: TimeLike | None = None, key: str | None = None
    ) -> bool:
        """What a decision was worth; False if that was known."""
        return await self._send(self._requests.reward(reward_body(id, reward, at, key)))

    async def rewards(self, rewards: Mapping[str, float]) -> list[RewardResult]:
        """What many decisions were worth, by their ids; each is taken or refused for itself."""
        bodies = [reward_body(id, worth, None, None) for id, worth in rewards.items()]
        return await self._send(self._requests.rewards(bodies))

    async def arms(self) -> list[str]:
        """The arms that can be chosen."""
        return await self._send(self._requests.arms())

    async def add(self, label: str, features: Mapping[str, Any] | None = None) -> list[str]:
        """A new arm, or a retired one again; the arms that there are now."""
        return await self._send(self._requests.change("add", label, features=features))

    async def retire(self, label: str) -> list[str]:
        """An arm is not chosen any more; the arms that are left."""
        return await self._send(self._requests.change("retire", label))

    async def rename(self, label: str, to: str) -> list[str]:
        """An arm has another name from now on."""
        return await self._send(self._requests.change("rename", label, to=to))

    async def explain(self) -> TextAnswer:
        """What it believes, in plain words: print it."""
        return await self._send(self._requests.words("explain"))

    async def lift(
        self, *, since: TimeLike | None = None, level: float = 0.95, points: int = 0
    ) -> TextAnswer:
        """The gain over the control group, with an interval."""
        return await self._send(self._requests.words("lift", since=moment(since), level=level, points=points))

    async def state(self) -> dict[str, Any]:
        """Where it stands."""
        return await self._send(self._requests.table("state"))

    async def history(
        self, *, since: TimeLike | None = None, until: TimeLike | None = None, bins: int = 120
    ) -> dict[str, Any]:
        """Decisions and rewards over time, by arm and group."""
        return await self._send(
            self._requests.table("history", since=moment(since), until=moment(until), bins=bins)
        )

    async def heatmap(self) -> dict[str, Any]:
        """The best arm of every hour of the week."""
        return await self._send(self._requests.table("heatmap"))

    async def waiting(self) -> dict[str, Any]:
        """How rewards come."""
        return await self._send(self._requests.table("waiting"))

    async def freeze(self) -> None:
        """Nothing is learnt from now on."""
        await self._send(self._requests.act("freeze"))

    async def unfreeze(self) -> None:
        """Rewards are learnt again."""
        await self._send(self._requests.act("unfreeze"))

    async def rollback(self, to: TimeLike | Decision) -> None:
        """Forget what was learnt after a moment, or after a decision of that id."""
        await self._send(self._requests.rollback(to))

    async def export(self, path: str | Path) -> None:
        """Every decision into a .jsonl, .csv or .parquet file."""
        data = await self._send(self._requests.export(Path(path).suffix.lstrip(".")))
        Path(path).write_bytes(data)

    async def delete(self) -> None:
        """Delete it and all it knows, for good."""
        await self._send(self._requests.delete())


def _sent(error: Exception) -> bool:
    """Whether the request may have arrived."""
    return not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _unreachable(error: Exception) -> ServiceError:
    return ServiceError(0, f"the service cannot be reached ({type(error).__name__}: {error})")
