"""Clients of `tidepull serve`, waiting (`Client`) and asynchronous (`AsyncClient`); extra `serve`.

Connections are kept and shared. What fails on the way is tried again, and counts once all the same:
every decision has an id, every reward a key.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from tidepull.agent import requests
from tidepull.agent.requests import AgentRequests, HttpRequest, TimeLike, pause
from tidepull.errors import MissingExtraError, ParameterError, ServiceError

try:
    import httpx
except ModuleNotFoundError:
    raise MissingExtraError("tidepull.Client", "serve") from None

P = ParamSpec("P")
T = TypeVar("T")


class _Settings:
    """The settings that both clients share."""

    def __init__(
        self,
        url: str | Sequence[str],
        token: str | None,
        timeout: float,
        retries: int,
        transport: Any,
    ) -> None:
        headers = {"user-agent": "tidepull"} | (
            {} if token is None else {"authorization": f"Bearer {token}"}
        )
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
        """Go on with the next one; how long to wait before. One that was not tried yet is asked at
        once."""
        self._now = (self._now + 1) % len(self._urls)
        return 0.0 if attempt + 1 < len(self._urls) else pause(attempt + 1 - len(self._urls), after)


class Client:
    """A client of `tidepull serve`, whose agents have the methods of `tidepull.Agent`.

    Parameters
    ----------
    url : str or sequence of str
        Address of the service, or several: the next one is used when one does not answer.
    token : str, optional
        Token of the service (`tidepull token`).
    timeout : float, default: 10.0
        Seconds to wait for an answer.
    retries : int, default: 4
        How often a request is repeated, where a repetition is safe.
    transport : httpx.BaseTransport, optional
        Transport of `httpx`, for tests.

    Raises
    ------
    MissingExtraError
        If the extra `serve` is not installed.
    ServiceError
        From its methods: if the service refuses a request, or cannot be reached.

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
        """Return an agent of the service, without a request.

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
        """Send a request, and repeat it where that is safe.

        Parameters
        ----------
        request : HttpRequest
            The request.

        Returns
        -------
        object
            What the request reads from the answer.

        Raises
        ------
        ServiceError
            If the service refuses the request, or cannot be reached.
        """
        for attempt in range(self._retries + 1):
            try:
                answer = self._http.request(
                    request.method,
                    self._addresses.of(request.path),
                    json=request.body,
                    params=request.query,
                )
            except httpx.TransportError as error:
                if attempt == self._retries or not request.may_repeat(None, sent=_sent(error)):
                    raise _unreachable(error) from error
                time.sleep(self._addresses.next(attempt, None))
                continue
            if attempt < self._retries and request.may_repeat(answer.status_code, sent=True):
                time.sleep(self._addresses.next(attempt, answer.headers.get("retry-after")))
                continue
            return request.answer(
                answer.status_code, answer.content, answer.headers.get("content-type", "")
            )
        raise AssertionError

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _blocking(
    build: Callable[Concatenate[AgentRequests, P], HttpRequest[T]],
) -> Callable[Concatenate[RemoteAgent, P], T]:
    """A method that sends the request that `build` makes, and waits for its answer."""

    @wraps(build)
    def method(self: RemoteAgent, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.client.send(build(self.requests, *args, **kwargs))

    return method


class RemoteAgent:
    """An agent of a service, with the methods of `tidepull.Agent`.

    `Client.agent` makes it.

    Parameters
    ----------
    client : Client
        The client that sends the requests.
    name : str
        Name of the agent.
    """

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self.client = client
        self.requests = AgentRequests(name)

    @property
    def arms(self) -> list[str]:
        """Labels of the arms that can be chosen."""
        return self.client.send(self.requests.arms())

    choose = _blocking(AgentRequests.choose)
    choose_many = _blocking(AgentRequests.choose_many)
    reward = _blocking(AgentRequests.reward)
    rewards = _blocking(AgentRequests.rewards)
    add = _blocking(AgentRequests.add)
    retire = _blocking(AgentRequests.retire)
    rename = _blocking(AgentRequests.rename)
    change = _blocking(AgentRequests.change)
    explain = _blocking(AgentRequests.explain)
    lift = _blocking(AgentRequests.lift)
    state = _blocking(AgentRequests.state)
    history = _blocking(AgentRequests.history)
    heatmap = _blocking(AgentRequests.heatmap)
    waiting = _blocking(AgentRequests.waiting)
    freeze = _blocking(AgentRequests.freeze)
    unfreeze = _blocking(AgentRequests.unfreeze)
    rollback = _blocking(AgentRequests.rollback)
    export = _blocking(AgentRequests.export)
    forget = _blocking(AgentRequests.forget)
    delete = _blocking(AgentRequests.delete)

    def compact(self, path: str | Path, before: TimeLike) -> int:
        """Move old decisions from the service to a file.

        The decisions are deleted after the file was written.

        Parameters
        ----------
        path : str or pathlib.Path
            The .jsonl, .csv or .parquet file.
        before : float, datetime or str
            Moment before which decisions are moved.

        Returns
        -------
        int
            Number of moved decisions.
        """
        from tidepull.agent import table

        self.client.send(self.requests.export(path, before=before))
        count = sum(1 for _ in table.read(Path(path)))
        return self.client.send(self.requests.delete_before(before, count))


class AsyncClient:
    """A client of `tidepull serve` for `async` programs; see `Client`.

    Parameters
    ----------
    url : str or sequence of str
        Address of the service, or several: the next one is used when one does not answer.
    token : str, optional
        Token of the service (`tidepull token`).
    timeout : float, default: 10.0
        Seconds to wait for an answer.
    retries : int, default: 4
        How often a request is repeated, where a repetition is safe.
    transport : httpx.AsyncBaseTransport, optional
        Transport of `httpx`, for tests.

    Raises
    ------
    MissingExtraError
        If the extra `serve` is not installed.
    ServiceError
        From its methods: if the service refuses a request, or cannot be reached.

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
        """Return an agent of the service, without a request.

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
        return AsyncRemoteAgent(
            self, await self.send(requests.create(requests.agent_body(name, settings)))
        )

    async def send(self, request: HttpRequest[T]) -> T:
        """Send a request, and repeat it where that is safe.

        Parameters
        ----------
        request : HttpRequest
            The request.

        Returns
        -------
        object
            What the request reads from the answer.

        Raises
        ------
        ServiceError
            If the service refuses the request, or cannot be reached.
        """
        for attempt in range(self._retries + 1):
            try:
                answer = await self._http.request(
                    request.method,
                    self._addresses.of(request.path),
                    json=request.body,
                    params=request.query,
                )
            except httpx.TransportError as error:
                if attempt == self._retries or not request.may_repeat(None, sent=_sent(error)):
                    raise _unreachable(error) from error
                await asyncio.sleep(self._addresses.next(attempt, None))
                continue
            if attempt < self._retries and request.may_repeat(answer.status_code, sent=True):
                await asyncio.sleep(
                    self._addresses.next(attempt, answer.headers.get("retry-after"))
                )
                continue
            return request.answer(
                answer.status_code, answer.content, answer.headers.get("content-type", "")
            )
        raise AssertionError

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _awaiting(
    build: Callable[Concatenate[AgentRequests, P], HttpRequest[T]],
) -> Callable[Concatenate[AsyncRemoteAgent, P], Coroutine[Any, Any, T]]:
    """A coroutine that sends the request that `build` makes, and awaits its answer."""

    @wraps(build)
    async def method(self: AsyncRemoteAgent, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.client.send(build(self.requests, *args, **kwargs))

    return method


class AsyncRemoteAgent:
    """An agent of a service, whose methods are coroutines; see `RemoteAgent`.

    `AsyncClient.agent` makes it. Its `arms` is a coroutine, too.

    Parameters
    ----------
    client : AsyncClient
        The client that sends the requests.
    name : str
        Name of the agent.
    """

    def __init__(self, client: AsyncClient, name: str) -> None:
        self.name = name
        self.client = client
        self.requests = AgentRequests(name)

    arms = _awaiting(AgentRequests.arms)
    choose = _awaiting(AgentRequests.choose)
    choose_many = _awaiting(AgentRequests.choose_many)
    reward = _awaiting(AgentRequests.reward)
    rewards = _awaiting(AgentRequests.rewards)
    add = _awaiting(AgentRequests.add)
    retire = _awaiting(AgentRequests.retire)
    rename = _awaiting(AgentRequests.rename)
    change = _awaiting(AgentRequests.change)
    explain = _awaiting(AgentRequests.explain)
    lift = _awaiting(AgentRequests.lift)
    state = _awaiting(AgentRequests.state)
    history = _awaiting(AgentRequests.history)
    heatmap = _awaiting(AgentRequests.heatmap)
    waiting = _awaiting(AgentRequests.waiting)
    freeze = _awaiting(AgentRequests.freeze)
    unfreeze = _awaiting(AgentRequests.unfreeze)
    rollback = _awaiting(AgentRequests.rollback)
    export = _awaiting(AgentRequests.export)
    forget = _awaiting(AgentRequests.forget)
    delete = _awaiting(AgentRequests.delete)

    async def compact(self, path: str | Path, before: TimeLike) -> int:
        """Move old decisions from the service to a file.

        The decisions are deleted after the file was written.

        Parameters
        ----------
        path : str or pathlib.Path
            The .jsonl, .csv or .parquet file.
        before : float, datetime or str
            Moment before which decisions are moved.

        Returns
        -------
        int
            Number of moved decisions.
        """
        from tidepull.agent import table

        await self.client.send(self.requests.export(path, before=before))
        count = sum(1 for _ in table.read(Path(path)))
        return await self.client.send(self.requests.delete_before(before, count))


def _sent(error: Exception) -> bool:
    """Whether the request may have arrived."""
    return not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _unreachable(error: Exception) -> ServiceError:
    return ServiceError(0, f"the service cannot be reached ({type(error).__name__}: {error})")
