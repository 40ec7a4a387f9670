"""Is it alive, is it ready, how is it doing, what can it be asked?"""

from __future__ import annotations

import time

import msgspec

from tidepull import __version__
from tidepull.service.auth import Scope, require
from tidepull.service.messages import Health, ServiceShown, ShardShown, Speed
from tidepull.service.metrics import Spans, total
from tidepull.service.openapi import document
from tidepull.service.operation import Call, Operation, Raw
from tidepull.service.problems import HttpError
from tidepull.service.service import OUT_OF_TOUCH


async def healthz(call: Call) -> Health:
    """The process lives."""
    return Health(status=call.service.status)


async def readyz(call: Call) -> Health:
    """It can be asked."""
    if call.service.status != "ok":
        raise HttpError(503, f"The service is {call.service.status}.", {"retry-after": "1"})
    silent = time.monotonic() - call.service.in_touch
    if call.service.store.remote and silent > OUT_OF_TOUCH:
        raise HttpError(503, f"The database has not answered for {silent:.0f} seconds.", {"retry-after": "1"})
    return Health(status="ok")


async def service(call: Call) -> ServiceShown:
    """How the service is doing."""
    numbers = call.service.metrics
    shards = [
        ShardShown(
            url=shard.url,
            seconds=round(shard.seconds, 1),
            agents=[name for name in shard.agents if call.token.is_for(name)],
        )
        for shard in await call.service.hosting.shards()
    ]
    return ServiceShown(
        version=__version__,
        status=call.service.status,
        seconds=round(time.monotonic() - call.service.started, 1),
        open_agents=len(call.service.hosting.opened),
        upkeep_slices=total(numbers.slices),
        snapshots=total(numbers.snapshots),
        commits=_speed(numbers.commits),
        slices=_speed(numbers.sliced),
        operations={name: _speed(spans) for name, spans in numbers.operations.items()},
        here=call.service.store.here,
        shards=shards,
    )


def _speed(spans: Spans) -> Speed:
    return Speed(count=spans.times, p50=spans.half, p99=spans.most)


async def metrics(call: Call) -> Raw:
    """Numbers for Prometheus."""
    require(call.token, Scope.READ, None)
    return Raw(call.service.metrics.text(), b"text/plain; version=0.0.4; charset=utf-8")


async def openapi(_: Call) -> Raw:
    """What can be asked."""
    from tidepull.service.routes import OPERATIONS

    return Raw(msgspec.json.encode(document(OPERATIONS)), b"application/json")


_SPEED = {"count": 17, "p50": 0.5, "p99": 2.0}
OPERATIONS = [
    Operation(
        "GET",
        "/healthz",
        "healthz",
        "Whether the process lives.",
        healthz,
        None,
        Health,
        answered={"status": "ok"},
    ),
    Operation(
        "GET",
        "/readyz",
        "readyz",
        "Whether it takes requests.",
        readyz,
        None,
        Health,
        problems=(503,),
        answered={"status": "ok"},
    ),
    Operation(
        "GET",
        "/metrics",
        "metrics",
        "Numbers for Prometheus (a read token for all agents).",
        metrics,
        "any",
        content_types=("text/plain",),
        answered='tidepull_decisions_total{agent="shop"} 17.0\n',
    ),
    Operation(
        "GET",
        "/v1/openapi.json",
        "openapi",
        "This description.",
        openapi,
        "any",
        dict,
        answered={"openapi": "3.1.0"},
    ),
    Operation(
        "GET",
        "/v1/service",
        "service",
        "How the service is doing: speed, upkeep, commits; who shares its database and has which agent.",
        service,
        "any",
        ServiceShown,
        answered={
            "version": "0.1.0",
            "status": "ok",
            "seconds": 3600.0,
            "open_agents": 1,
            "upkeep_slices": 120,
            "snapshots": 1,
            "commits": _SPEED,
            "slices": _SPEED,
            "operations": {"choose": _SPEED},
            "here": "http://one:8000",
            "shards": [{"url": "http://one:8000", "seconds": 3600.0, "agents": ["shop"]}],
        },
    ),
]
