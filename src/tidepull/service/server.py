"""Running a service: sockets, signals, and a stop that finishes what was accepted."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import ipaddress
import logging
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import httptools
import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tidepull._internal.files import explained
from tidepull.errors import InputError, ParameterError
from tidepull.service.app import App
from tidepull.service.auth import Limits, Tokens
from tidepull.service.handlers import OPERATIONS
from tidepull.service.handlers.system import dashboard_pages
from tidepull.service.messages import NAME
from tidepull.service.metrics import RequestLog
from tidepull.service.personalizer import Personalizer
from tidepull.service.problem_details import HttpError
from tidepull.service.service import Service
from tidepull.service.stores import AgentStore, Directory, SharedDatabase

TOKENS, AUDIT = "tokens.json", "audit.jsonl"
REQUEST_TIMEOUT = 10
"""Seconds that a request may take to come."""

MAX_HEAD = 65_536
"""Bytes that the head of a request may have."""

SWITCH_INTERVAL = 0.001
"""Seconds after which a thread that computes lets another one go on: an answer changes threads four
times, and Python's 5 ms each would be seen."""

_SHARD_URL = re.compile(r"^http://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):\d{1,5}$")
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


def prepare(config: ServerConfig) -> App:
    """The application; raises an error for every option that does not fit."""
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
    _require_safe(config, path)
    store: AgentStore = (
        SharedDatabase(config.db, config.here) if shared else Directory(Path(config.db))
    )
    beside = path.parent if shared and path is not None else None if shared else Path(config.db)
    audit = config.audit or (None if beside is None else beside / AUDIT)
    request_log = RequestLog(None if config.quiet else _access_log(config.log), audit)
    service = Service(store, Tokens(path), config.limits, request_log)
    if config.personalizer is not None:
        if not re.match(NAME, config.personalizer):
            raise ParameterError(
                "--personalizer must name an agent: up to 63 of a-z, 0-9, - and _, beginning with "
                "a letter or number, "
                f"got {config.personalizer!r}"
            )
        service.personalizer = Personalizer(config.personalizer)
    return App(service, OPERATIONS, dashboard_pages())


def _require_safe(config: ServerConfig, path: Path | None) -> None:
    if config.here and not _SHARD_URL.match(config.here):
        raise ParameterError(
            "--here must be http://HOST:PORT, where other services reach this one, got "
            f"{config.here!r}"
        )
    if config.insecure:
        if config.tokens is not None:
            raise ParameterError("--insecure and --tokens contradict each other: give one of them")
        if not is_loopback(config.host):
            raise ParameterError(
                "--insecure lets anybody in, so it is for loopback only: use --host 127.0.0.1, or "
                "tokens"
            )
    elif path is not None and not path.is_file():
        raise InputError(
            f"there is no tokens file {path}: make a token with `tidepull token new --tokens "
            f"{path} "
            "--agent '*' --scope admin`, or try things out with --insecure"
        )


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
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    give_memory_back()
    sys.setswitchinterval(SWITCH_INTERVAL)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=RequestTimeouts,
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
    return Server(config, ready, app.service)


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


class RequestTimeouts(asyncio.Protocol):
    """Uvicorn's protocol behind a check of what arrives: requests must be HTTP, with short heads,
    and end in time.

    A parser of its own follows the bytes, so nothing of uvicorn is known here but
    `asyncio.Protocol` and the arguments with which a server makes the class that
    `uvicorn.Config(http=...)` names.
    """

    def __init__(self, **arguments: Any) -> None:
        self._server = HttpToolsProtocol(**arguments)
        self._parser = httptools.HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        self._deadline: asyncio.TimerHandle | None = None
        self._url = b""
        self._in_head = False
        self._head_bytes = 0
        self.pause_writing = self._server.pause_writing  # type: ignore[method-assign]
        self.resume_writing = self._server.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: Any) -> None:
        """Start the deadline of the first request."""
        self._transport = transport
        self._start_deadline()
        self._server.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on to uvicorn if they are part of a request."""
        self._start_deadline()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # uvicorn answers as if no upgrade was asked for
        except httptools.HttpParserError:
            self._refuse(NOT_HTTP)
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD:
                self._refuse(TOO_LONG)
                return
        self._server.data_received(data)

    def eof_received(self) -> None:
        """The client sends no more; the connection is closed."""
        self._server.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline."""
        self._stop_deadline()
        self._server.connection_lost(exc)

    def on_message_begin(self) -> None:
        """A request begins (called by the parser)."""
        self._start_deadline()
        self._url, self._in_head, self._head_bytes = b"", True, 0

    def on_url(self, url: bytes) -> None:
        """A part of the target arrives (called by the parser)."""
        self._url += url

    def on_headers_complete(self) -> None:
        """The head is complete (called by the parser); an error in here is a parser error."""
        self._in_head = False
        httptools.parse_url(self._url).path.decode("ascii")

    def on_message_complete(self) -> None:
        """The request is complete (called by the parser)."""
        self._stop_deadline()

    def _start_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(
                REQUEST_TIMEOUT, self._refuse, TOO_SLOW
            )

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, response: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(response)
            self._transport.close()


def _response(problem: HttpError) -> bytes:
    """An answer without the application, after which the connection is closed."""
    body = msgspec.json.encode(problem.body())
    head = (
        f"HTTP/1.1 {problem.status} {problem.title}\r\ncontent-type: application/problem+json\r\n"
    )
    return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body


NOT_HTTP = _response(HttpError(400, "This is not a request as HTTP has them."))
TOO_SLOW = _response(
    HttpError(408, f"The request did not come to its end within {REQUEST_TIMEOUT} seconds.")
)
TOO_LONG = _response(HttpError(431, f"The head of the request is longer than {MAX_HEAD:,} bytes."))
