"""A service on a Ray cluster: Ray places shards, watches them and starts them again; requests never pass through it.

Each shard is an actor that runs the same server as `tidepull serve` on its machine and owns agents through leases in
the database. They outlive the command that started them: the same command finds them again.
"""

from __future__ import annotations

import hashlib
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tidepull import __version__
from tidepull._internal.clusters import connected
from tidepull.errors import InputError, ParameterError
from tidepull.service.actor import About, ShardActor
from tidepull.service.auth import read_tokens
from tidepull.service.server import Choices

NAMESPACE = "tidepull"
LOOK = 1.0
"""Seconds between two looks at the shards."""

_SLOW = 30.0
_STOPPING, _STOPPING_UNHEARD = 60.0, 5.0


@dataclass(slots=True)
class _Shard:
    """An actor, the answer that it owes, and what it said last."""

    name: str
    actor: Any
    asked: Any = None
    since: float = 0.0
    url: str | None = None
    warned: bool = False


class Cluster:
    """The shards of one database on one Ray cluster (None shards: one for each machine that is there now)."""

    def __init__(
        self, choices: Choices, address: str, shards: int | None, say: Callable[[str], None]
    ) -> None:
        _require_fit(choices)
        assert choices.tokens is not None
        self._tokens = choices.tokens
        self._say = say
        read_tokens(self._tokens)
        self._ray = connected(address, "a service on a Ray cluster", namespace=NAMESPACE)
        count = shards or sum(node["Alive"] for node in self._ray.nodes())
        self._shards = [self._placed(choices, k, count) for k in range(1, count + 1)]

    def _placed(self, choices: Choices, k: int, count: int) -> _Shard:
        name = f"tidepull-{hashlib.sha256(choices.db.encode()).hexdigest()[:8]}-{k}"
        actor = self._ray.remote(ShardActor).options(
            name=name,
            lifetime="detached",
            get_if_exists=True,
            num_cpus=1,
            max_restarts=-1,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )
        told = replace(choices, tokens=None)
        return _Shard(f"shard {k}", actor.remote(name, told, self._tokens.read_text(), count))

    def watch(self, stopped: threading.Event) -> None:
        """Say where shards are as they come and go, and keep their tokens up to date, until it is enough."""
        while not stopped.is_set():
            for shard in self._shards:
                self._look(shard)
            stopped.wait(LOOK)

    def stop(self) -> None:
        """Let shards finish, give their leases back, and end."""
        going = [(shard.actor.stop.remote(), shard.url is not None) for shard in self._shards]
        # One that was never heard of may have come back just now, or wait for a machine for ever.
        for heard, seconds in ((True, _STOPPING), (False, _STOPPING_UNHEARD)):
            asked = [answer for answer, known in going if known is heard]
            if asked:
                self._ray.wait(asked, num_returns=len(asked), timeout=seconds)
        for shard in self._shards:
            self._ray.kill(shard.actor, no_restart=True)
        self._ray.shutdown()

    def _look(self, shard: _Shard) -> None:
        if shard.asked is None:
            shard.asked, shard.since = shard.actor.about.remote(), time.monotonic()
        ready, _ = self._ray.wait([shard.asked], timeout=0)
        if not ready:
            if time.monotonic() - shard.since > _SLOW and not shard.warned:
                shard.warned = True
                self._say(f"{shard.name} waits for a machine with a free CPU")
            return
        asked, shard.asked = shard.asked, None
        try:
            about: About = self._ray.get(asked)
        except self._ray.exceptions.RayError as error:
            self._lost(shard, error)
            return
        self._heard(shard, about)

    def _lost(self, shard: _Shard, error: Exception) -> None:
        if isinstance(error, self._ray.exceptions.RaySystemError) or "ModuleNotFoundError" in str(error):
            raise InputError(
                f"{shard.name} cannot start: tidepull with the extras serve, postgres and cluster must be installed "
                "on every machine"
            )
        if shard.url is not None:
            self._say(f"{shard.name} at {shard.url} is gone; Ray starts it again")
            shard.url = None

    def _heard(self, shard: _Shard, about: About) -> None:
        if about.failure:
            raise InputError(f"{shard.name} cannot start: {about.failure}")
        if about.version != __version__:
            raise InputError(
                f"{shard.name} has tidepull {about.version}, and this is {__version__}: install the same everywhere"
            )
        if about.url != shard.url:
            shard.url, shard.warned = about.url, False
            self._say(f"{shard.name} listens on {about.url}")
        tokens = self._tokens.read_text()
        if about.tokens != hashlib.sha256(tokens.encode()).hexdigest():
            shard.actor.retoken.remote(tokens)


def _require_fit(choices: Choices) -> None:
    if "://" not in choices.db:
        raise ParameterError(
            "--on ray needs a database that all machines reach: --db postgresql://user@host/database"
        )
    if choices.insecure or choices.tokens is None:
        raise ParameterError("--on ray needs --tokens FILE; its hashes travel to the machines")
    if choices.here:
        raise ParameterError("--here is not for --on ray: each shard says where it is")
    if not choices.tokens.is_file():
        raise InputError(f"there is no tokens file {choices.tokens}: `tidepull token new` makes one")


def serve_on_ray(choices: Choices, address: str, shards: int | None, say: Callable[[str], None]) -> None:
    """Run shards on a cluster until SIGTERM or SIGINT."""
    cluster = Cluster(choices, address, shards, say)
    stopped = threading.Event()
    for which in (signal.SIGTERM, signal.SIGINT):
        signal.signal(which, lambda *_: stopped.set())
    try:
        cluster.watch(stopped)
    finally:
        cluster.stop()
