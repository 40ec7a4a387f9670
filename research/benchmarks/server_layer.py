"""Processor time of one `choose` between the socket and the agent: Litestar, and the service's own
app.

    pip install litestar                                            # for the first row only
    PYTHONPATH=src:. python research/benchmarks/server_layer.py litestar
    PYTHONPATH=src:. python research/benchmarks/server_layer.py own

Both applications are called in process (ASGI, no sockets), with an agent that answers at once.
Litestar has a guard, a path parameter and a typed body; the service has its tokens, limits,
metrics, access log and security headers as well. Prints microseconds a request, five times 3,000
requests. Figures: research/lab/design.md.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

REQUESTS, REPEATS, WARM_UP = 3000, 5, 200
BODY = json.dumps({"context": {"device": "phone", "age": 31}}).encode()


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a choose."""

    context: dict[str, Any] | None = None
    arms: list[str] | None = None
    subject: str | None = None
    at: float | str | None = None
    id: str | None = None


class Answer(msgspec.Struct):
    """The answer to a choose."""

    id: str
    arm: str
    propensity: float
    group: str
    at: float


ANSWER = Answer("17-aa", "green", 0.5, "policy", 1.0)


async def measure(app: Any, token: str) -> list[float]:
    """Microseconds of processor time a request, once for each repeat."""
    path = "/v1/agents/shop/choose"
    headers = [
        (b"host", b"localhost"),
        (b"authorization", f"Bearer {token}".encode()),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(BODY)).encode()),
    ]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "headers": headers,
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {},
    }  # fmt: skip
    statuses = set()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": BODY, "more_body": False}

    async def send(message: Any) -> None:
        statuses.add(message.get("status", 200))

    async def run(requests: int) -> float:
        started = time.process_time()
        for _ in range(requests):
            await app(dict(scope), receive, send)
        return 1e6 * (time.process_time() - started) / requests

    await run(WARM_UP)
    times = [await run(REQUESTS) for _ in range(REPEATS)]
    assert statuses == {200}, statuses
    return times


def litestar_times() -> list[float]:
    """A bare Litestar application."""
    from litestar import Litestar, post
    from litestar.connection import ASGIConnection
    from litestar.exceptions import NotAuthorizedException

    def guard(connection: ASGIConnection, _: Any) -> None:
        if connection.headers.get("authorization") != "Bearer secret":
            raise NotAuthorizedException

    async def choose(name: str, data: Body) -> Answer:  # noqa: ARG001
        return ANSWER

    handler = post("/v1/agents/{name:str}/choose", guards=[guard], status_code=200)(choose)
    return asyncio.run(measure(Litestar([handler], openapi_config=None), "secret"))


def own_times() -> list[float]:
    """The whole application of the service, without its agent."""
    from tests.integration.service.houses import House
    from tidepull.service.app import App
    from tidepull.service.handlers import OPERATIONS
    from tidepull.service.operations import Call

    async def choose(_: Call) -> Answer:
        return ANSWER

    operations = [
        dataclasses.replace(one, handler=choose) if one.id == "choose" else one
        for one in OPERATIONS
    ]
    with tempfile.TemporaryDirectory() as folder:
        house = House(Path(folder))
        try:
            return house.run(measure(App(house.service, operations), house.admin))  # type: ignore[no-any-return]
        finally:
            house.close()


if __name__ == "__main__":
    times = {"litestar": litestar_times, "own": own_times}[sys.argv[1]]()
    print(sys.argv[1], [round(value, 1) for value in times])
