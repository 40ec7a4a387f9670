"""The service itself: health, metrics, its OpenAPI document, and the page at `/`.

The page's files are read once. uPlot 1.6.32 draws its charts (see dashboard/uPlot.LICENSE.txt).
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tidepull import __version__
from tidepull.service.auth import Scope, require
from tidepull.service.metrics import Timing, merged, total
from tidepull.service.openapi import document
from tidepull.service.operations import Call, Operations, RawResponse
from tidepull.service.problem_details import HttpError, sentence

if TYPE_CHECKING:
    from tidepull.service.service import Service

OPERATIONS = Operations()
_DASHBOARD = resources.files("tidepull.service") / "dashboard"
_CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


class Health(Struct, kw_only=True):
    """Whether the service is well."""

    status: Literal["ok", "starting", "stopping"]


class Speed(Struct, kw_only=True, frozen=True):
    """How often, and how long in milliseconds (upper ends of bins)."""

    count: int
    p50: float | None
    p99: float | None


class ShardShown(Struct, kw_only=True):
    """A process that shares the database: where it is, for how many seconds, and the agents that it
    has."""

    url: str
    seconds: float
    agents: list[str]


class ServiceShown(Struct, kw_only=True):
    """How the service is doing since it was started. `shards` are all that share its database, with
    the agents that the token is for; `here` is the one that answers (empty where agents are
    files). All but `status` is told to tokens that may read all agents."""

    status: str
    version: str = ""
    seconds: float = 0.0
    open_agents: int = 0
    upkeep_slices: int = 0
    snapshots: int = 0
    commits: Speed = Speed(count=0, p50=None, p99=None)
    slices: Speed = Speed(count=0, p50=None, p99=None)
    operations: dict[str, Speed] = {}
    here: str = ""
    shards: list[ShardShown] = []


@OPERATIONS.get("/healthz", None)
async def healthz(call: Call) -> Health:
    """Liveness of the process."""
    return Health(status=call.service.status)


class ReadyQuery(Struct, kw_only=True):
    """`agent`: also whether that one is ready."""

    agent: Annotated[str, Meta(max_length=64)] | None = None


@OPERATIONS.get("/readyz", None, problems=(503,))
async def readyz(call: Call, query: ReadyQuery) -> Health:
    """Readiness for requests; 503 says what is missing."""
    why = call.service.obstacle
    if why is None and query.agent is not None:
        hosted = call.service.hosting.hosted(query.agent)
        why = None if hosted is None else hosted.obstacle
    if why is not None:
        raise HttpError(503, sentence(why), {"retry-after": "1"})
    asked = b"" if query.agent is None else urlencode({"agent": query.agent}).encode()
    for answer in (await call.service.forwarder.ask_workers("readyz", call, asked)).values():
        if answer.status != 200:
            return replace(answer, headers=((b"retry-after", b"1"),))  # type: ignore[return-value]
    return Health(status="ok")


@OPERATIONS.get("/v1/service", "any")
async def service(call: Call) -> ServiceShown:
    """Speed, training and commits of the service, the services that share its database, and the
    agents of each. A token for some agents sees the status only."""
    if not (call.token.is_for(None) and call.token.allows(Scope.READ)):
        return ServiceShown(status=call.service.status)
    numbers = call.service.metrics
    others = await call.service.forwarder.ask_workers("service", call)
    shards = [
        ShardShown(
            url=shard.url,
            seconds=round(shard.seconds, 1),
            agents=[name for name in shard.agents if call.token.is_for(name)],
        )
        for shard in await call.service.hosting.shards()
    ]
    if call.service.store.fixed:
        shards = [_worker(call.service)]
    mine = ServiceShown(
        version=__version__,
        status=call.service.status,
        seconds=round(time.monotonic() - call.service.started, 1),
        open_agents=len(call.service.hosting.opened),
        upkeep_slices=total(numbers.slices),
        snapshots=total(numbers.snapshots),
        commits=_speed(numbers.commits),
        slices=_speed(numbers.slices_timing),
        operations={name: _speed(timing) for name, timing in numbers.operations.items()},
        here=call.service.store.here,
        shards=shards,
    )
    answers = [answer.data for answer in others.values() if answer.status == 200]
    return over_workers([mine, *(msgspec.json.decode(one, type=ServiceShown) for one in answers)])


def over_workers(shown: list[ServiceShown]) -> ServiceShown:
    """Of all workers of a machine: counts are added up, times are those of the slowest."""
    first = shown[0]
    operations = sorted({name for one in shown for name in one.operations})
    return msgspec.structs.replace(
        first,
        open_agents=sum(one.open_agents for one in shown),
        upkeep_slices=sum(one.upkeep_slices for one in shown),
        snapshots=sum(one.snapshots for one in shown),
        commits=_slowest([one.commits for one in shown]),
        slices=_slowest([one.slices for one in shown]),
        shards=list({shard.url: shard for one in shown for shard in one.shards}.values()),
        operations={
            name: _slowest([one.operations[name] for one in shown if name in one.operations])
            for name in operations
        },
    )


def _worker(service: Service) -> ShardShown:
    """One of several workers, and the agents that are open in it."""
    names = sorted(hosted.name for hosted in service.hosting.opened)
    seconds = round(time.monotonic() - service.started, 1)
    return ShardShown(url=service.store.here, seconds=seconds, agents=names)


def _slowest(speeds: list[Speed]) -> Speed:
    times = [[one.p50 for one in speeds], [one.p99 for one in speeds]]
    p50, p99 = (max((each for each in one if each is not None), default=None) for one in times)
    return Speed(count=sum(one.count for one in speeds), p50=p50, p99=p99)


def _speed(timing: Timing) -> Speed:
    return Speed(count=timing.times, p50=timing.p50, p99=timing.p99)


@OPERATIONS.get("/metrics", "any", content_types=("text/plain",))
async def metrics(call: Call) -> RawResponse:
    """Prometheus metrics; the token must have the scope `read` for all agents."""
    require(call.token, Scope.READ, None)
    service, text = call.service, call.service.metrics.text()
    if service.links is not None and not call.forwarded:
        others = await service.forwarder.ask_workers("metrics", call)
        texts = {url: one.data for url, one in others.items() if one.status == 200}
        texts[f"worker:{service.links.place.number}"] = text
        text = merged({url.partition(":")[2]: texts[url].decode() for url in sorted(texts)})
    return RawResponse(text, b"text/plain; version=0.0.4; charset=utf-8")


@OPERATIONS.get("/v1/openapi.json", "any", answer=dict)
async def openapi(_: Call) -> RawResponse:
    """This OpenAPI document."""
    from tidepull.service.handlers import OPERATIONS

    return RawResponse(msgspec.json.encode(document(OPERATIONS)), b"application/json")


def dashboard_pages() -> list[BaseRoute]:
    """A route for the page and one for each file that it needs."""
    files = [file for file in _DASHBOARD.iterdir() if _suffix(file.name) in _CONTENT_TYPES]
    routes = [_route(f"/dashboard/{file.name}", file.name, file.read_bytes()) for file in files]
    index = _DASHBOARD / "index.html"
    return [_route("/", index.name, index.read_bytes()), *routes]


def _route(path: str, name: str, data: bytes) -> Route:
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {
        "cache-control": "no-cache",
        "etag": tag,
        "content-type": _CONTENT_TYPES[_suffix(name)],
    }

    async def file(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(data, headers=headers)

    return Route(path, file, methods=["GET"])


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]
