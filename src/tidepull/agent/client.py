"""Clients of `tidepull serve`, waiting (`Client`) and asynchronous (`AsyncClient`); extra `serve`.

Connections are kept and shared. What fails on the way is tried again within one deadline, and counts
once all the same: every decision has an id, every reward a key.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, ParamSpec, Self, TypeVar

from tidepull._internal.extras import needs
from tidepull.agent import requests
from tidepull.agent.attempts import Attempts, ClientSettings
from tidepull.agent.requests import AgentRequests, HttpRequest, TimeLike, date_fields
from tidepull.errors import ServiceError

with needs("tidepull.Client", "serve"):
    import httpx

P = ParamSpec("P")
T = TypeVar("T")


class _TimeLeft(dict[str, float]):
    """The timeouts of httpx, each as long as the deadline leaves when it begins."""

    def __init__(self, attempts: Attempts) -> None:
        self._end = time.monotonic() + attempts.left

    def get(self, _: str, default: Any = None) -> float:
        return max(0.001, self._end - time.monotonic())

    def require(self) -> None:
        """An error when no time is left."""
        if time.monotonic() > self._end:
            raise httpx.ReadTimeout("the deadline passed")


class _ClientBase:
    """What both clients share: their settings, and connections of `httpx`."""

    _connections: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: str | None = None,
        timeout: float = 2.0,
        long_timeout: float = 300.0,
        retries: int = 4,
        breaker: int = 5,
        cooldown: float = 5.0,
        transport: Any = None,
    ) -> None:
        self._settings = ClientSettings(
            url,
            timeout=timeout,
            long_timeout=long_timeout,
            retries=retries,
            breaker=breaker,
            cooldown=cooldown,
        )
        headers = {"user-agent": "tidepull"}
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        self._http = self._connections(headers=headers, transport=transport)


class Client(_ClientBase):
    """A client of `tidepull serve`, whose agents have the methods of `tidepull.Agent`.

    Parameters
    ----------
    url : str or sequence of str
        Address of the service, or several: the next one is used when one does not answer.
    token : str, optional
        Token of the service (`tidepull token`).
    timeout : float, default: 2.0
        Seconds within which a decision or a reward must be answered, repetitions included.
    long_timeout : float, default: 300.0
        The same for all other requests, such as making an agent or an export.
    retries : int, default: 4
        How often a request is repeated, where a repetition is safe.
    breaker : int, default: 5
        Number of requests in a row without an answer after which the service is not asked for
        `cooldown` seconds. 0 asks it always.
    cooldown : float, default: 5.0
        Seconds after which one request tries whether the service is back.
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

    _http: httpx.Client
    _connections = httpx.Client

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
        try:
            return self._send(request)
        except ServiceError as error:
            return request.answer_failure(error)

    def _send(self, request: HttpRequest[T]) -> T:
        if request.known is not None:
            return request.known
        attempts = self._settings.begin(request)
        while True:
            try:
                answer, content = self._exchange(request, attempts)
            except httpx.TransportError as error:
                time.sleep(attempts.after_error(error, sent=_sent(error)))
                continue
            wait = attempts.after_answer(answer.status_code, answer.headers.get("retry-after"))
            if wait is None:
                kind = answer.headers.get("content-type", "")
                return request.answer(answer.status_code, content, kind)
            time.sleep(wait)

    def _exchange(
        self, request: HttpRequest[T], attempts: Attempts
    ) -> tuple[httpx.Response, bytes]:
        """One attempt; the answer is read a part at a time, so that a slow one ends in time."""
        left = _TimeLeft(attempts)
        with self._http.stream(
            request.method,
            attempts.url,
            json=request.body,
            params=request.query,
            extensions={"timeout": left},
        ) as answer:
            parts = []
            for part in answer.iter_bytes():
                parts.append(part)
                left.require()
        return answer, b"".join(parts)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RemoteAgent(AgentRequests):
    """An agent of a service, with the methods of `tidepull.Agent`.

    `Client.agent` makes it.

    Parameters
    ----------
    client : Client
        The client that sends the requests.
    name : str
        Name of the agent.
    """

    client: Client

    @property
    def arms(self) -> list[str]:
        """Labels of the arms that can be chosen."""
        return self.client.send(requests.arms_of(self))

    def history(self, kind: Literal["pandas", "polars", "rows"] = "pandas") -> Any:
        """Return all decisions as a table, one row each, with their rewards.

        A token with the scope admin is needed.

        Parameters
        ----------
        kind : {"pandas", "polars", "rows"}, default: "pandas"
            What to return.

        Returns
        -------
        DataFrame or list of dict
            The table, as `tidepull.Agent.history` returns it.
        """
        from tidepull.agent import table

        rows = self.client.send(requests.rows_of(self))
        state = self.state()
        return table.frame(rows, kind, date_fields(state))

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

        self.export(path, before=before)
        count = sum(1 for _ in table.read(Path(path)))
        return self.client.send(requests.delete_before(self, before, count))


class AsyncClient(_ClientBase):
    """A client of `tidepull serve` for `async` programs; see `Client`.

    Parameters
    ----------
    url : str or sequence of str
        Address of the service, or several: the next one is used when one does not answer.
    token : str, optional
        Token of the service (`tidepull token`).
    timeout : float, default: 2.0
        Seconds within which a decision or a reward must be answered, repetitions included.
    long_timeout : float, default: 300.0
        The same for all other requests, such as making an agent or an export.
    retries : int, default: 4
        How often a request is repeated, where a repetition is safe.
    breaker : int, default: 5
        Number of requests in a row without an answer after which the service is not asked for
        `cooldown` seconds. 0 asks it always.
    cooldown : float, default: 5.0
        Seconds after which one request tries whether the service is back.
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

    _http: httpx.AsyncClient
    _connections = httpx.AsyncClient

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
        try:
            return await self._send(request)
        except ServiceError as error:
            return request.answer_failure(error)

    async def _send(self, request: HttpRequest[T]) -> T:
        if request.known is not None:
            return request.known
        attempts = self._settings.begin(request)
        while True:
            try:
                async with asyncio.timeout(attempts.left):
                    answer = await self._http.request(
                        request.method,
                        attempts.url,
                        json=request.body,
                        params=request.query,
                        timeout=None,
                    )
            except (httpx.TransportError, TimeoutError) as error:
                await asyncio.sleep(attempts.after_error(error, sent=_sent(error)))
                continue
            wait = attempts.after_answer(answer.status_code, answer.headers.get("retry-after"))
            if wait is None:
                kind = answer.headers.get("content-type", "")
                return request.answer(answer.status_code, answer.content, kind)
            await asyncio.sleep(wait)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncRemoteAgent(AgentRequests):
    """An agent of a service, whose methods are coroutines; see `RemoteAgent`.

    `AsyncClient.agent` makes it. Its `arms` is a coroutine, too.

    Parameters
    ----------
    client : AsyncClient
        The client that sends the requests.
    name : str
        Name of the agent.
    """

    client: AsyncClient

    async def arms(self) -> list[str]:
        """Return the labels of the arms that can be chosen."""
        return await self.client.send(requests.arms_of(self))

    async def history(self, kind: Literal["pandas", "polars", "rows"] = "pandas") -> Any:
        """Return all decisions as a table, one row each, with their rewards.

        A token with the scope admin is needed.

        Parameters
        ----------
        kind : {"pandas", "polars", "rows"}, default: "pandas"
            What to return.

        Returns
        -------
        DataFrame or list of dict
            The table, as `tidepull.Agent.history` returns it.
        """
        from tidepull.agent import table

        rows = await self.client.send(requests.rows_of(self))
        state = await self.state()
        return table.frame(rows, kind, date_fields(state))

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

        await self.export(path, before=before)
        count = sum(1 for _ in table.read(Path(path)))
        return await self.client.send(requests.delete_before(self, before, count))


def _sent(error: Exception) -> bool:
    """Whether the request may have arrived."""
    return not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
