"""Running a service: sockets, signals, and a stop that finishes what was accepted."""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import uvicorn

from tidepull._internal.files import explained
from tidepull.errors import InputError, ParameterError
from tidepull.service.app import App
from tidepull.service.auth import Limits, Tokens
from tidepull.service.connections import Connections, Descriptors
from tidepull.service.handlers import OPERATIONS
from tidepull.service.handlers.system import dashboard_pages
from tidepull.service.handover import HandOver, read_secret
from tidepull.service.links import Links
from tidepull.service.logs import JsonHandler, RequestLog
from tidepull.service.messages import NAME
from tidepull.service.personalizer import Personalizer
from tidepull.service.service import Service
from tidepull.service.stores import (
    AgentStore,
    Directory,
    SharedDatabase,
    WorkerDirectory,
    WorkerPlace,
)
from tidepull.service.webhook import Webhook, require_url

TOKENS, AUDIT, SECRET = "tokens.json", "audit.jsonl", "shard.secret"
SWITCH_INTERVAL = 0.001
"""Seconds after which a thread that computes lets another one go on: an answer changes threads four
times, and Python's 5 ms each would be seen."""

_SHARD_URL = re.compile(r"http://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):\d{1,5}")
_MMAP_THRESHOLD = -3  # of malloc.h
SHUTDOWN_TIMEOUT = 30
"""Seconds that a stop waits for requests that were accepted."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Options of `tidepull serve`."""

    db: str
    host: str = "127.0.0.1"
    port: int = 8000
    tokens: Path | None = None
    insecure: bool = False
    quiet: bool = False
    log: Path | None = None
    audit: Path | None = None
    here: str = ""
    personalizer: str | None = None
    limits: Limits = field(default_factory=Limits)
    shard_secret: Path | None = None
    drain: float = 0.0
    warm: bool = False
    place: WorkerPlace | None = None
    webhook: str = ""
    webhook_secret: str = ""


def require_fit(config: ServerConfig) -> Path | None:
    """The tokens file; an error for every option that does not fit."""
    shared = "://" in config.db
    path = None if config.insecure else config.tokens
    if not config.insecure and path is None:
        if shared:
            raise ParameterError("--tokens is needed with a database: say where the tokens file is")
        path = Path(config.db) / TOKENS
    if not shared and Path(config.db).exists() and not Path(config.db).is_dir():
        raise ParameterError(
            f"--db must be a directory or a postgresql:// URL, {config.db} is a file"
        )
    if config.personalizer is not None and not re.match(NAME, config.personalizer):
        raise ParameterError(
            "--personalizer must name an agent: up to 63 of a-z, 0-9, - and _, beginning with "
            "a letter or number, "
            f"got {config.personalizer!r}"
        )
    _require_safe(config, path)
    return path


def prepare(config: ServerConfig) -> App:
    """The application; raises an error for every option that does not fit."""
    path, shared = require_fit(config), "://" in config.db
    store = _store(config)
    beside = path.parent if shared and path is not None else None if shared else Path(config.db)
    audit = config.audit or (None if beside is None else beside / AUDIT)
    request_log = RequestLog(None if config.quiet else _access_log(config.log), audit)
    handover = HandOver(secret_of(config, path) if shared else b"")
    service = Service(store, Tokens(path), config.limits, request_log, handover=handover)
    service.drain, service.warm = config.drain, config.warm
    if config.place is not None:
        service.links = Links(config.place)
    if config.webhook:
        secret = config.webhook_secret.encode()
        service.webhook = Webhook(require_url(config.webhook), secret, service.metrics)
    if config.personalizer is not None:
        service.personalizer = Personalizer(config.personalizer)
    return App(service, OPERATIONS, dashboard_pages())


def _store(config: ServerConfig) -> AgentStore:
    if "://" in config.db:
        return SharedDatabase(config.db, config.here)
    root = Path(config.db)
    return Directory(root) if config.place is None else WorkerDirectory(root, config.place)


def _require_safe(config: ServerConfig, path: Path | None) -> None:
    if config.here and not _SHARD_URL.fullmatch(config.here):
        raise ParameterError(
            "--here must be http://HOST:PORT, where other services reach this one, got "
            f"{config.here!r}"
        )
    if config.insecure:
        if config.tokens is not None:
            raise ParameterError("--insecure and --tokens contradict each other: give one of them")
        if not is_loopback(config.host):
            raise ParameterError(
                "--insecure accepts requests without a token, so it is for loopback only: use --host 127.0.0.1, or "
                "tokens"
            )
    elif path is not None and not path.is_file():
        raise InputError(
            f"there is no tokens file {path}: make a token with `tidepull token new --tokens "
            f"{path} "
            "--agent '*' --scope admin`, or try things out with --insecure"
        )


def secret_of(config: ServerConfig, tokens: Path | None) -> bytes:
    """What all shards of a database know: told by the environment, in a file, or, for shards that
    share a tokens file, beside it."""
    secret = os.environ.get("TIDEPULL_SHARD_SECRET", "").encode()
    if secret:
        return secret
    if config.shard_secret is not None:
        return read_secret(config.shard_secret, make=False)
    if tokens is None:
        return b"insecure"  # anybody may ask anything
    return read_secret(tokens.parent / SECRET, make=True)


def _access_log(path: Path | None) -> TextIO:
    if path is None:
        return sys.stderr
    with explained("write", path):
        return path.open("a")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(app: App, host: str, port: int, ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; then finish what was accepted, take snapshots, and return."""
    listening = listener(host, port)
    server = make_server(app, host, port, ready)
    server.run(sockets=[listening])
    if not server.started:
        raise InputError(f"the service could not start on {host}:{port}")


def listener(host: str, port: int) -> socket.socket:
    """A socket that listens; an `InputError` where it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(
            f"cannot listen on {host}:{port} ({why}): choose another --port (0: any that is free) "
            "or --host"
        ) from None


def make_server(app: App, host: str, port: int, ready: Callable[[str], None] | None) -> Server:
    """A server that is not running yet."""
    return Server(server_config(app, host, port), ready, app.service)


def server_config(app: App, host: str, port: int) -> uvicorn.Config:
    """What uvicorn is told; the process gets ready for it."""
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.WARNING, handlers=[JsonHandler(sys.stderr)])
    give_memory_back()
    sys.setswitchinterval(SWITCH_INTERVAL)
    descriptors = Descriptors.available()
    app.service.connections = Connections(descriptors.connections)
    app.service.descriptors = descriptors
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=app.service.connections.make,  # type: ignore[arg-type]
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
        h11_max_incomplete_event_size=65536,
        lifespan="on",
    )


def give_memory_back(above: int = 1 << 20) -> None:
    """Blocks of more than so many bytes go back to the system when they are freed. GNU's C library
    keeps them once a few have been freed, so that every snapshot of an agent would leave some
    behind; others stay as they are."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, above)


class Server(uvicorn.Server):
    """Uvicorn's server, but for signals: one that stops it is not raised again, so that the exit
    code is 0."""

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Callable[[str], None] | None,
        service: Service | None = None,
    ) -> None:
        super().__init__(config)
        self._ready = ready
        self._service = service
        self._closes_at: float | None = None

    def handle_exit(self, sig: int, frame: Any) -> None:
        """At SIGTERM `/readyz` is 503 for a while before the port closes, so that balancers send
        requests elsewhere."""
        drain = 0.0 if self._service is None else self._service.drain
        if sig != signal.SIGTERM or not drain or self._closes_at is not None:
            super().handle_exit(sig, frame)
            return
        assert self._service is not None
        self._service.status = "stopping"
        self._closes_at = time.monotonic() + drain

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether it is time to close the port."""
        if self._closes_at is not None and time.monotonic() >= self._closes_at:
            self.should_exit = True
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and SIGINT, where this is the process's own business."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {
            sig: signal.signal(sig, self.handle_exit) for sig in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            yield
        finally:
            for sig, handler in handlers.items():
                signal.signal(sig, handler)

    async def startup(self, sockets: Any = None) -> None:
        """Say where it listens."""
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            if self._service is not None:
                await self._service.listen(url_of(reachable(host), port))
            if self._ready is not None:
                self._ready(url_of(host, port))


def reachable(host: str) -> str:
    """What others can call an address to listen on: where that is every address, the machine's
    name."""
    return socket.gethostname() if ipaddress.ip_address(host).is_unspecified else host


def url_of(host: str, port: int) -> str:
    """An address and a port as a URL."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
