"""A service on a Ray cluster: Ray places shards, watches them and starts them again; requests never
pass through it.

Each shard is an actor that runs the same server as `tidepull serve` on its machine and owns agents
through leases in the database. They outlive the command that started them: the same command finds
them again.
"""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tidepull import __version__
from tidepull._internal.system import connected
from tidepull.errors import InputError, ParameterError
from tidepull.service.auth import read_tokens, write_private
from tidepull.service.server import (
    SECRET,
    Server,
    ServerConfig,
    make_server,
    prepare,
    secret_of,
    url_of,
)

NAMESPACE = "tidepull"
CHECK_INTERVAL = 1.0
"""Seconds between two checks of the shards."""

_SLOW = 30.0
_STOPPING, _STOPPING_UNHEARD = 60.0, 5.0


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """What a shard says of itself; `failure`: why it could not start."""

    url: str
    version: str
    tokens: str
    failure: str = ""


class ShardActor:
    """Ray calls its methods one at a time; requests come to the server's own socket."""

    def __init__(
        self, name: str, config: ServerConfig, tokens: str, secret: str, ports: int
    ) -> None:
        self._folder = Path.home() / ".tidepull" / name
        self._server: Server | None = None
        self._url = self._failure = ""
        self._stopping = False
        self._listening, self._ended = threading.Event(), threading.Event()
        try:
            self._start(config, tokens, secret, ports)
        except Exception as error:
            self._failure = str(error) or type(error).__name__

    def _start(self, config: ServerConfig, tokens: str, secret: str, ports: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.update_tokens(tokens)
        write_private(self._folder / SECRET, secret)
        host = config.host or _address()
        sock = _bind(host, config.port, ports)
        audit = config.audit or self._folder / "audit.jsonl"
        reachable = _address() if host in ("0.0.0.0", "::") else host
        here = url_of(reachable, sock.getsockname()[1])
        config = replace(
            config,
            host=host,
            tokens=self._folder / "tokens.json",
            shard_secret=self._folder / SECRET,
            audit=audit,
            here=here,
        )
        self._server = make_server(
            prepare(config), host, config.port, lambda _: self._listening.set()
        )
        threading.Thread(target=self._run, args=(sock,), daemon=True).start()
        if not self._listening.wait(60):
            raise InputError("its server did not start within 60 seconds")
        self._url = here

    def _run(self, sock: socket.socket) -> None:
        assert self._server is not None
        try:
            self._server.run(sockets=[sock])
        finally:
            self._ended.set()
            if not self._stopping:
                os._exit(1)  # Ray starts it again

    def info(self) -> ShardInfo:
        """Where it is."""
        tokens = (self._folder / "tokens.json").read_bytes() if self._url else b""
        return ShardInfo(self._url, __version__, hashlib.sha256(tokens).hexdigest(), self._failure)

    def update_tokens(self, tokens: str) -> None:
        """Other tokens are valid from now on."""
        write_private(self._folder / "tokens.json", tokens)

    def stop(self) -> None:
        """Finish what was accepted, and give leases back."""
        self._stopping = True
        if self._server is not None:
            self._server.should_exit = True
            self._ended.wait()


def _address() -> str:
    """This machine's, as other machines of the cluster know it."""
    import ray

    mine = ray.get_runtime_context().get_node_id()
    return next(str(node["NodeManagerAddress"]) for node in ray.nodes() if node["NodeID"] == mine)


def _bind(host: str, port: int, ports: int) -> socket.socket:
    """A socket at the first port that is free: another shard may be on this machine."""
    for tried in range(port, port + ports) if port else [0]:
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, tried))
        except OSError:
            sock.close()
            continue
        return sock
    raise InputError(f"the ports {port} to {port + ports - 1} of {host} are taken")


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
    """The shards of one database on one Ray cluster (None shards: one for each machine that is
    there now)."""

    def __init__(
        self, config: ServerConfig, address: str, shards: int | None, say: Callable[[str], None]
    ) -> None:
        _require_fit(config)
        assert config.tokens is not None
        self._tokens = config.tokens
        self._say = say
        self._secret = secret_of(config, self._tokens).decode()
        read_tokens(self._tokens)
        self._ray = connected(address, "a service on a Ray cluster", namespace=NAMESPACE)
        count = shards or sum(node["Alive"] for node in self._ray.nodes())
        self._shards = [self._start(config, k, count) for k in range(1, count + 1)]

    def _start(self, config: ServerConfig, k: int, count: int) -> _Shard:
        name = f"tidepull-{hashlib.sha256(config.db.encode()).hexdigest()[:8]}-{k}"
        actor = self._ray.remote(ShardActor).options(
            name=name,
            lifetime="detached",
            get_if_exists=True,
            num_cpus=1,
            max_restarts=-1,
            max_task_retries=0,
            scheduling_strategy="SPREAD",
        )
        sent, tokens = replace(config, tokens=None, shard_secret=None), self._tokens.read_text()
        return _Shard(f"shard {k}", actor.remote(name, sent, tokens, self._secret, count))

    def watch(self, stopped: threading.Event) -> None:
        """Say where shards are as they come and go, and keep their tokens up to date, until it is
        enough."""
        while not stopped.is_set():
            for shard in self._shards:
                self._check(shard)
            stopped.wait(CHECK_INTERVAL)

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

    def _check(self, shard: _Shard) -> None:
        if shard.asked is None:
            shard.asked, shard.since = shard.actor.info.remote(), time.monotonic()
        ready, _ = self._ray.wait([shard.asked], timeout=0)
        if not ready:
            if time.monotonic() - shard.since > _SLOW and not shard.warned:
                shard.warned = True
                self._say(f"{shard.name} waits for a machine with a free CPU")
            return
        asked, shard.asked = shard.asked, None
        try:
            info: ShardInfo = self._ray.get(asked)
        except self._ray.exceptions.RayError as error:
            self._lost(shard, error)
            return
        self._update(shard, info)

    def _lost(self, shard: _Shard, error: Exception) -> None:
        if isinstance(error, self._ray.exceptions.RaySystemError) or "ModuleNotFoundError" in str(
            error
        ):
            raise InputError(
                f"{shard.name} cannot start: tidepull with the extras serve, postgres and cluster "
                "must be installed "
                "on every machine"
            )
        if shard.url is not None:
            self._say(f"{shard.name} at {shard.url} is gone; Ray starts it again")
            shard.url = None

    def _update(self, shard: _Shard, info: ShardInfo) -> None:
        if info.failure:
            raise InputError(f"{shard.name} cannot start: {info.failure}")
        if info.version != __version__:
            raise InputError(
                f"{shard.name} has tidepull {info.version}, and this is {__version__}: install the "
                "same everywhere"
            )
        if info.url != shard.url:
            shard.url, shard.warned = info.url, False
            self._say(f"{shard.name} listens on {info.url}")
        tokens = self._tokens.read_text()
        if info.tokens != hashlib.sha256(tokens.encode()).hexdigest():
            shard.actor.update_tokens.remote(tokens)


def _require_fit(config: ServerConfig) -> None:
    if "://" not in config.db:
        raise ParameterError(
            "--on ray needs a database that all machines reach: --db postgresql://user@host/database"
        )
    if config.insecure or config.tokens is None:
        raise ParameterError("--on ray needs --tokens FILE; its hashes travel to the machines")
    if config.here:
        raise ParameterError("--here is not for --on ray: each shard says where it is")
    if not config.tokens.is_file():
        raise InputError(f"there is no tokens file {config.tokens}: `tidepull token new` makes one")


def serve_on_ray(
    config: ServerConfig, address: str, shards: int | None, say: Callable[[str], None]
) -> None:
    """Run shards on a cluster until SIGTERM or SIGINT."""
    cluster = Cluster(config, address, shards, say)
    stopped = threading.Event()
    for which in (signal.SIGTERM, signal.SIGINT):
        signal.signal(which, lambda *_: stopped.set())
    try:
        cluster.watch(stopped)
    finally:
        cluster.stop()
