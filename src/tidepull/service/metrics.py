"""Metrics for Prometheus."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
)

from tidepull import __version__
from tidepull.errors import HeldError, LedgerError

if TYPE_CHECKING:
    from tidepull.service.hosted import HostedAgent
    from tidepull.service.service import Service

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
        ProcessCollector(registry=self.registry)
        Info("tidepull_build", "What runs.", registry=self.registry).info(
            {"version": __version__, "python": platform.python_version()}
        )
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
        self._refused = counter(
            "tidepull_refused_total",
            "Requests that were refused before anything was done: token, address, origin.",
            ["why"],
        )
        self._refused_lately = 0
        self.commit_failure: str | None = None  # why the last commit failed
        self.loop_lag = histogram(
            "tidepull_loop_lag_seconds", "How late the event loop was.", buckets=_FAST
        )
        self.scrubbed = counter(
            "tidepull_scrubbed_records_total", "Records whose hashes were checked."
        )
        self.damaged = gauge(
            "tidepull_damaged_records", "Records that are not as they were written.", ["agent"]
        )
        self.open_agents = gauge("tidepull_open_agents", "Agents in memory.")
        self.log_lines_lost = gauge(
            "tidepull_log_lines_lost", "Lines of logs that could not be written."
        )
        self.webhook_messages = counter(
            "tidepull_webhook_messages_total", "Alarms for the webhook: sent, lost.", ["outcome"]
        )
        self.tokens_sound = gauge(
            "tidepull_tokens_file_sound", "Whether the tokens file could be read."
        )

    def answered(self, operation: str, status: int, seconds: float) -> None:
        """A request came to its end."""
        series = self._children.get((operation, status))
        if series is None:
            series = self._requests.labels(operation, status), self._seconds.labels(operation)
            self._children[operation, status] = series
        series[0].inc()
        series[1].observe(seconds)

    def committed(self, seconds: float, requests: int) -> None:
        """A commit that so many requests waited for."""
        self.commit_failure = None
        self._commits.observe(seconds)
        self._groups.observe(requests)

    def commit_failed(self, error: LedgerError) -> None:
        """A commit did not come about."""
        self._failed_commits.inc()
        if not isinstance(error, HeldError):
            self.commit_failure = str(error)

    def refused(self, why: str) -> None:
        """A request was refused before anything was done."""
        self._refused.labels(why).inc()
        self._refused_lately += 1

    def take_refused(self) -> int:
        """How many were refused since this was last asked."""
        count, self._refused_lately = self._refused_lately, 0
        return count

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
        for metric in (self._decisions, self._rewards, self.damaged):
            with suppress(KeyError):
                metric.remove(agent)

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


def watch_service(service: Service) -> None:
    """Numbers that are looked at when somebody asks for them."""
    registry, hosting, store = service.metrics.registry, service.hosting, service.store

    def gauge(name: str, what: str, value: Callable[[], float]) -> None:
        Gauge(f"tidepull_{name}", what, registry=registry).set_function(value)

    def agents() -> list[HostedAgent]:
        return hosting.opened

    gauge("requests_under_way", "Requests under way.", lambda: service.requests_under_way)
    gauge("connections", "Connections of clients.", lambda: len(service.connections))
    gauge("steps_waiting", "Steps in queues.", lambda: sum(one.waiting for one in agents()))
    gauge(
        "upkeep_pending",
        "Agents with upkeep to do.",
        lambda: sum(one.agent.has_work for one in agents()),
    )
    gauge(
        "records_since_snapshot",
        "Records since the last snapshot, of the agent with most.",
        lambda: max((one.agent.unsaved_records for one in agents()), default=0),
    )
    gauge(
        "snapshot_age_seconds",
        "Age of the last snapshot, of the agent with records since it and the oldest.",
        lambda: max((one.snapshot_age for one in agents() if one.agent.unsaved_records), default=0),
    )
    gauge("upgrading_agents", "Agents being rebuilt.", lambda: sum(a.upgrading for a in agents()))
    gauge("ready", "Whether /readyz says 200.", lambda: service.obstacle is None)
    if store.remote:
        state = store.lease_state
        gauge("leases_held", "Agents owned.", lambda: state().held)  # type: ignore[union-attr]
        gauge(
            "lease_seconds_left",
            "Seconds until the first lease ends unless it is renewed.",
            lambda: state().seconds_left,  # type: ignore[union-attr]
        )
        gauge(
            "takeovers",
            "Agents that other shards have taken over since the start.",
            lambda: state().taken_over,  # type: ignore[union-attr]
        )
    else:
        gauge(
            "disk_free_bytes",
            "Bytes free where agents are.",
            lambda: service.store_health.free or math.nan,
        )


def merged(texts: dict[str, str]) -> bytes:
    """The numbers of several workers as one text: each sample has the label of its worker.

    >>> merged({"1": "# TYPE a gauge\\na 1\\n", "2": "# TYPE a gauge\\na{b=\\"c\\"} 2\\n"}).decode()
    '# TYPE a gauge\\na{worker="1"} 1\\na{worker="2",b="c"} 2\\n'
    """
    families: dict[str, tuple[list[str], list[str]]] = {}
    for worker, text in texts.items():
        for line in text.splitlines():
            if line.startswith("#"):
                about, samples = families.setdefault(line.split(" ", 3)[2], ([], []))
                if line not in about:
                    about.append(line)
                continue
            name, _, rest = line.partition(" ")
            if "{" in name:
                name, _, rest = line.partition("{")
                samples.append(f'{name}{{worker="{worker}",{rest}')
            else:
                samples.append(f'{name}{{worker="{worker}"}} {rest}')
    lines = [line for about, samples in families.values() for line in (*about, *samples)]
    return "\n".join(lines).encode() + b"\n"


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
        ends = (
            1000 * end
            for end, count in zip(_FAST, below, strict=False)
            if count >= share * below[-1]
        )
        return next(ends, None)

    return end
