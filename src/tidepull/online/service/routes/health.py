"""Is it alive, is it ready, how is it doing, what can it be asked?"""

from __future__ import annotations

import msgspec

from tidepull.online.service.auth import Scope, require
from tidepull.online.service.messages import Health
from tidepull.online.service.openapi import document
from tidepull.online.service.operation import Call, Operation, Raw
from tidepull.online.service.problems import HttpError


async def healthz(call: Call) -> Health:
    """The process lives."""
    return Health(status=call.service.status)


async def readyz(call: Call) -> Health:
    """It can be asked."""
    if call.service.status != "ok":
        raise HttpError(503, f"The service is {call.service.status}.", {"retry-after": "1"})
    return Health(status="ok")


async def metrics(call: Call) -> Raw:
    """Numbers for Prometheus."""
    require(call.token, Scope.READ, None)
    return Raw(call.service.metrics.text(), b"text/plain; version=0.0.4; charset=utf-8")


async def openapi(_: Call) -> Raw:
    """What can be asked."""
    from tidepull.online.service.routes import OPERATIONS

    return Raw(msgspec.json.encode(document(OPERATIONS)), b"application/json")


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
        content_type="text/plain",
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
]
