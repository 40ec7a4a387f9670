"""Whether a service should get requests now, and why not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tidepull._internal import compiler

if TYPE_CHECKING:
    from tidepull.service.hosted import HostedAgent
    from tidepull.service.service import Service

STORE_TIMEOUT = 5.0
"""Seconds without a word from the disk or the database after which a service is not ready."""

MIN_FREE = 32 << 20
"""Bytes that must be free where agents are files; a log alone may take 16 MB."""


def obstacle(service: Service) -> str | None:
    """Why a service is not ready; None where it is."""
    if service.status != "ok":
        return f"The service is {service.status}."
    if service.opening is not None:
        if service.warm and not compiler.is_ready():
            return "The service warms up: kernels are compiled or loaded."
        done, of = service.opening
        return f"The service warms up: {done} of {of} agents are open."
    silent = time.monotonic() - service.store_seen
    if silent > STORE_TIMEOUT:
        what = "database" if service.store.remote else "disk"
        return f"The {what} has not answered for {silent:.0f} seconds."
    health = service.store_health
    if health.problem is not None:
        return health.problem
    if health.free is not None and health.free < MIN_FREE:
        return f"Only {health.free / 1e6:.0f} MB are free where the agents are: free some space."
    if service.metrics.commit_failure is not None:
        return f"The last commit failed: {service.metrics.commit_failure}"
    return None


def agent_obstacle(hosted: HostedAgent | None) -> str | None:
    """Why an agent is not ready; None where it is, or is not open."""
    if hosted is None or not hosted.upgrading:
        return None
    done, of = hosted.agent.upgrading or (0, 0)
    return (
        f"Agent {hosted.name!r} is being rebuilt for this release from its ledger: {done:,} of "
        f"{of:,} records."
    )
