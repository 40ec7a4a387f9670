"""Metrics for Prometheus, the access log and the audit log.

Logs are JSON lines. They hold the id of a token, the path and the status; never a token, a body or
a query.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tidepull._internal.files import explained

_LOG = logging.getLogger("tidepull.serve")
LONGEST_PATH = 200
"""Characters of a path that logs keep."""

_BUFFERED_LINES = 64
_FAST = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
_GROUP = (1, 2, 4, 8, 16, 32, 64, 128)


class Timing(NamedTuple):
    """How often something was timed, and within how many milliseconds half of it, and 99%, was
    done."""

    times: int
    p50: float | None
    p99: float | None


class Metrics:
    """The numbers of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        counter = partial(Counter, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        self._requests = counter(
            "tidepull_requests_total",
            "Requests by what was asked and what was answered.",
            ["operation", "status"],
        )
        self._seconds = histogram(
            "tidepull_request_seconds", "From request to answer.", ["operation"], buckets=_FAST
        )
        self._decisions = counter(
            "tidepull_decisions_total", "Decisions that were made.", ["agent"]
        )
        self._rewards = counter("tidepull_rewards_total", "Rewards that were news.", ["agent"])
        self._ignored = counter(
            "tidepull_personalizer_rewards_ignored_total",
            "Rewards through Personalizer's interface that had no effect: second, or late.",
            ["why"],
        )
        self._commits = histogram(
            "tidepull_commit_seconds", "How long a commit took.", buckets=_FAST
        )
        self._groups = histogram(
            "tidepull_commit_requests", "Requests that shared a commit.", buckets=_GROUP
        )
        self.slices = counter("tidepull_upkeep_slices_total", "Slices of upkeep.")
        self.slice_seconds = histogram(
            "tidepull_upkeep_slice_seconds", "How long a slice of upkeep took.", buckets=_FAST
        )
        self.snapshots = counter("tidepull_snapshots_total", "Snapshots that were taken.")
        self._forwarded = counter(
            "tidepull_forwarded_total",
            "Requests for another shard's agents: answered there, moved on since, unanswered, "
            "unreachable.",
            ["outcome"],
        )
        self._shed = counter(
            "tidepull_shed_total",
            "Requests that were refused with 429 as too much was under way.",
            ["why"],
        )
        self._failed_commits = counter("tidepull_failed_commits_total", "Commits that failed.")
        self.open_agents = gauge("tidepull_open_agents", "Agents in memory.")
        self.log_lines_lost = gauge(
            "tidepull_log_lines_lost", "Lines of logs that could not be written."
        )
        self.tokens_sound = gauge(
            "tidepull_tokens_file_sound", "Whether the tokens file could be read."
        )

    def answered(self, operation: str, status: int, seconds: float) -> None:
        """A request came to its end."""
        found = self._children.get((operation, status))
        if found is None:
            found = self._requests.labels(operation, status), self._seconds.labels(operation)
            self._children[operation, status] = found
        found[0].inc()
        found[1].observe(seconds)

    def committed(self, seconds: float, requests: int) -> None:
        """A commit that so many requests waited for."""
        self._commits.observe(seconds)
        self._groups.observe(requests)

    def commit_failed(self, why: str) -> None:
        """A commit did not come about."""
        self._failed_commits.inc()

    def shed(self, why: str) -> None:
        """A request was refused as too much is under way."""
        self._shed.labels(why).inc()

    def decided(self, agent: str, count: int = 1) -> None:
        """Decisions were made."""
        self._decisions.labels(agent).inc(count)

    def rewarded(self, agent: str, count: int = 1) -> None:
        """Rewards came."""
        self._rewards.labels(agent).inc(count)

    def forwarded(self, outcome: str) -> None:
        """Another shard was asked."""
        self._forwarded.labels(outcome).inc()

    def ignored(self, why: str) -> None:
        """A reward came through Personalizer's interface that has no effect."""
        self._ignored.labels(why).inc()

    def forget(self, agent: str) -> None:
        """An agent is gone."""
        for counter in (self._decisions, self._rewards):
            counter.remove(agent)

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.registry)

    @property
    def operations(self) -> dict[str, Timing]:
        """How long requests took, by what was asked."""
        return dict(sorted(_timings(self._seconds).items()))

    @property
    def commits(self) -> Timing:
        """How long commits took."""
        return _timings(self._commits)[""]

    @property
    def slices_timing(self) -> Timing:
        """How long slices of upkeep took."""
        return _timings(self.slice_seconds)[""]


def total(counter: Counter) -> int:
    """The value of a counter without labels."""
    return int(next(iter(counter.collect())).samples[0].value)


def _timings(timed: Histogram) -> dict[str, Timing]:
    """By operation (one without labels: by ""). Reads no other: asking the registry reads them
    all."""
    below: dict[str, list[float]] = {}
    for sample in next(iter(timed.collect())).samples:
        if sample.name.endswith("_bucket"):
            below.setdefault(sample.labels.get("operation", ""), []).append(sample.value)
    return {
        name: Timing(int(counts[-1]), *map(_end(counts), (0.5, 0.99)))
        for name, counts in below.items()
    }


def _end(below: list[float]) -> Callable[[float], float | None]:
    """Milliseconds within which a share was done; None: longer than the last bin, or nothing was
    done."""

    def end(share: float) -> float | None:
        if not below[-1]:
            return None
        found = (
            1000 * end
            for end, count in zip(_FAST, below, strict=False)
            if count >= share * below[-1]
        )
        return next(found, None)

    return end


class RequestLog:
    """The access log (None: there is none) and the audit trail."""

    def __init__(self, access: TextIO | None, audit: Path | None) -> None:
        self._access = access
        self._lines: list[bytes] = []
        self._audit = -1
        self.lost = 0
        if audit is not None:
            with explained("write", audit):
                self._audit = os.open(
                    audit, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
                )

    def write(self, entry: dict[str, Any]) -> None:
        """A request that was answered."""
        if self._access is not None:
            self._lines.append(msgspec.json.encode(entry))
            if len(self._lines) >= _BUFFERED_LINES:
                self.flush()

    def write_audit(self, entry: dict[str, Any]) -> None:
        """What an admin did, or was refused; on disk when this returns."""
        if self._audit < 0:
            return
        line = msgspec.json.encode({"at": timestamp(), **entry})
        try:
            os.write(self._audit, line + b"\n")
            os.fsync(self._audit)
        except OSError as error:
            self.lost += 1
            _LOG.error("the audit trail cannot be written (%s): %s", error, line.decode())

    def flush(self) -> None:
        """Write what waits; what cannot be written is dropped and counted, and requests go on."""
        if self._access is not None and self._lines:
            lines, self._lines = self._lines, []
            try:
                self._access.write(b"\n".join(lines).decode() + "\n")
                self._access.flush()
            except OSError:
                self.lost += len(lines)

    def close(self) -> None:
        """Write everything and let go."""
        self.flush()
        if self._audit >= 0:
            os.close(self._audit)
            self._audit = -1


def timestamp() -> str:
    """The moment, as logs have it."""
    moment = time.time()
    return f"{_second(int(moment))}.{int(moment % 1 * 1000):03d}Z"


@lru_cache(maxsize=2)
def _second(moment: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
