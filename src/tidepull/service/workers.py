"""Several workers behind one port of one machine: processes that share a directory or a database.

The parent process accepts connections and gives them to the workers in turn; it reads none. Each
agent belongs to one worker, and a request that arrives at another one is forwarded. A worker that
dies is replaced at once. Workers are forks of the parent, which has imported everything and has no
threads: a new one needs no time to start.
"""

from __future__ import annotations

import asyncio
import logging
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from tidepull.errors import InputError, TidepullError
from tidepull.service.auth import read_tokens
from tidepull.service.handlers import OPERATIONS
from tidepull.service.links import LinkServer
from tidepull.service.logs import message
from tidepull.service.server import (
    SHUTDOWN_TIMEOUT,
    Server,
    ServerConfig,
    listener,
    prepare,
    require_fit,
    server_config,
    url_of,
)
from tidepull.service.stores import WorkerPlace

_CONNECTION, _DRAIN, _STOP, _CLOSE = b"+", b"d", b"s", b"c"
"""What a worker is told: here is a connection; stop after a while; stop now; close the agents."""

_READY, _IDLE, _FAILED = b"r", b"i", b"f"
"""What a worker says: it takes requests; it has answered all of its own; why it cannot start."""

RESTART_PAUSE = 0.5
"""Seconds before a worker that died while it started is started again."""

ACCEPTED_AT_ONCE = 64


class WorkerServer(Server):
    """The server of a worker: its connections come from the parent."""

    def __init__(self, config: uvicorn.Config, links: LinkServer, channel: socket.socket) -> None:
        service = config.app.service  # type: ignore[union-attr]
        super().__init__(config, None, service)
        self._links, self._channel = links, channel
        self._may_close = asyncio.Event()
        service.before_close = self._wait_for_others

    async def startup(self, sockets: Any = None) -> None:
        """Listen to the parent and to other workers."""
        assert self._service is not None
        await uvicorn.Server.startup(self, sockets)
        self._loop = asyncio.get_running_loop()
        await self._links.listen()
        address = self.servers[0].sockets[0].getsockname()[:2] if self.servers else ("", 0)
        await self._service.listen(url_of(*address))
        self._channel.setblocking(False)
        self._loop.add_reader(self._channel, self._read)
        self._channel.send(_READY)

    def _read(self) -> None:
        """A byte of the parent, perhaps with a connection."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._channel, 1, 1)
        except BlockingIOError:
            return
        except OSError:
            data, descriptors = b"", []
        for descriptor in descriptors:
            connection = socket.socket(fileno=descriptor)
            connection.setblocking(False)
            self._loop.create_task(self._serve_connection(connection))
        if data == _DRAIN:
            self.handle_exit(signal.SIGTERM, None)
        elif data in (_STOP, b""):
            self.handle_exit(signal.SIGINT, None)
        if data in (_CLOSE, b""):  # nothing: the parent has died
            self._may_close.set()
        if not data:
            self._loop.remove_reader(self._channel)

    async def _serve_connection(self, connection: socket.socket) -> None:
        state = {"server_state": self.server_state, "app_state": self.lifespan.state}
        with suppress(OSError):  # it was closed meanwhile
            await self._loop.connect_accepted_socket(
                lambda: self.config.http_protocol_class(config=self.config, **state),  # type: ignore[call-arg]
                connection,
            )

    async def _wait_for_others(self) -> None:
        """Until no worker has a request under way that may be for an agent of this one."""
        with suppress(OSError, TimeoutError):
            self._channel.send(_IDLE)
            await asyncio.wait_for(self._may_close.wait(), SHUTDOWN_TIMEOUT)


def _run_worker(config: ServerConfig, place: WorkerPlace, channel: socket.socket) -> None:
    """Serve in this process until the parent says that it is enough, or is gone."""
    sockets = []
    if "://" in config.db:  # shards on other machines must reach this very worker
        own = config.port and config.port + place.number
        if config.here:
            parts = urlsplit(config.here)
            config = replace(
                config, here=url_of(parts.hostname or "", (parts.port or 80) + place.number)
            )
        sockets = [listener(config.host, own)]
    app = prepare(replace(config, place=place))
    links = LinkServer(app.service, OPERATIONS, place)
    WorkerServer(server_config(app, config.host, config.port), links, channel).run(sockets)


@dataclass(slots=True)
class _Worker:
    """A worker as the parent knows it: its process, and how to talk to it."""

    place: WorkerPlace
    pid: int = 0
    channel: socket.socket | None = None
    ready: bool = False
    idle: bool = False
    start_at: float | None = 0.0
    failure: str = ""


class Supervisor:
    """The parent: starts the workers, gives them connections, replaces those that die."""

    def __init__(
        self, config: ServerConfig, workers: int, folder: Path, ready: Callable[[str], None]
    ) -> None:
        self._config, self._ready = config, ready
        self._workers = [_Worker(WorkerPlace(k + 1, workers, folder)) for k in range(workers)]
        self._listening = listener(config.host, config.port)
        self._listening.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = socket.socketpair()
        self._turn = 0
        self._announced = self._stopping = False
        self._closes_at = self._kill_at = float("inf")
        self._failure = ""

    def run(self) -> None:
        """Until SIGTERM or SIGINT; then let the workers finish what was accepted."""
        self._selector.register(self._listening, selectors.EVENT_READ, self._accept)
        for one in (self._wake, self._woken):
            one.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, self._hear_signal)
        signal.set_wakeup_fd(self._wake.fileno())
        for which in (signal.SIGTERM, signal.SIGINT):
            signal.signal(which, lambda *_: None)
        while any(worker.channel or worker.start_at is not None for worker in self._workers):
            self._look_at_clock()
            for key, _ in self._selector.select(0.2):
                key.data()
        if self._failure:
            raise InputError(f"a worker could not start: {self._failure}")

    def _look_at_clock(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker.start_at is not None and now >= worker.start_at:
                self._start(worker)
            if now >= self._kill_at and worker.channel is not None:
                os.kill(worker.pid, signal.SIGKILL)
        if now >= self._closes_at and self._listening.fileno() >= 0:
            self._selector.unregister(self._listening)
            self._listening.close()

    def _start(self, worker: _Worker) -> None:
        mine, theirs = socket.socketpair()
        worker.start_at = None
        worker.pid = os.fork()
        if worker.pid == 0:
            mine.close()
            self._become(worker.place, theirs)
        theirs.close()
        mine.setblocking(False)
        worker.channel, worker.ready, worker.idle = mine, False, False
        self._selector.register(mine, selectors.EVENT_READ, lambda: self._hear(worker))

    def _become(self, place: WorkerPlace, channel: socket.socket) -> None:
        """Be a worker from now on, in a fork; never returns."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for which in (signal.SIGTERM, signal.SIGINT):
                signal.signal(which, signal.SIG_IGN)  # the parent says when to stop
            self._selector.close()
            channels = [worker.channel for worker in self._workers]
            for one in (self._listening, self._wake, self._woken, *channels):
                if one is not None:
                    one.close()
            _run_worker(self._config, place, channel)
            code = 0
        except TidepullError as error:
            channel.sendall(_FAILED + str(error).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            logging.shutdown()
            sys.stderr.flush()
            os._exit(code)

    def _accept(self) -> None:
        """Give new connections to the workers in turn; while there are none, they wait."""
        if not any(worker.ready for worker in self._workers):
            time.sleep(0.01)
            return
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, _address = self._listening.accept()
            except OSError:
                return
            with connection:
                self._hand_over(connection)

    def _hand_over(self, connection: socket.socket) -> None:
        for _ in self._workers:
            self._turn = (self._turn + 1) % len(self._workers)
            worker = self._workers[self._turn]
            if worker.channel is not None and worker.ready:
                with suppress(OSError):
                    socket.send_fds(worker.channel, [_CONNECTION], [connection.fileno()])
                    return

    def _hear(self, worker: _Worker) -> None:
        assert worker.channel is not None
        try:
            message = worker.channel.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self._bury(worker)
        elif message.startswith(_FAILED):
            worker.failure = message[1:].decode()
        else:
            worker.ready |= _READY in message
            worker.idle |= _IDLE in message
        if not self._announced and all(one.ready for one in self._workers):
            self._announced = True
            self._ready(url_of(*self._listening.getsockname()[:2]))
        if self._stopping and all(one.idle or one.channel is None for one in self._workers):
            self._tell(_CLOSE)

    def _bury(self, worker: _Worker) -> None:
        """Replace a worker that has died, unless all are to stop."""
        assert worker.channel is not None
        self._selector.unregister(worker.channel)
        worker.channel.close()
        _, status = os.waitpid(worker.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        worker.channel, was_ready, worker.ready = None, worker.ready, False
        if self._stopping:
            return
        if not self._announced:
            self._failure = worker.failure or "its log says why"
            self._stop(_STOP)
            return
        worker.start_at = time.monotonic() + (0.0 if was_ready else RESTART_PAUSE)
        why = worker.failure or f"exit code {code}"
        text = f"worker {worker.place.number} (process {worker.pid}) ended ({why}); it is replaced"
        worker.failure = ""
        print(message(text, "error").decode(), file=sys.stderr, flush=True)

    def _hear_signal(self) -> None:
        for number in self._woken.recv(64):
            if number in (signal.SIGTERM, signal.SIGINT):
                self._stop(_DRAIN if number == signal.SIGTERM else _STOP)

    def _stop(self, how: bytes) -> None:
        drain = self._config.drain if how == _DRAIN else 0.0
        self._stopping = True
        self._closes_at = min(self._closes_at, time.monotonic() + drain)
        self._kill_at = min(self._kill_at, time.monotonic() + drain + 2 * SHUTDOWN_TIMEOUT)
        for worker in self._workers:
            worker.start_at = None
        self._tell(how)

    def _tell(self, what: bytes) -> None:
        for worker in self._workers:
            if worker.channel is not None:
                with suppress(OSError):
                    worker.channel.send(what)


def serve_workers(config: ServerConfig, workers: int, ready: Callable[[str], None]) -> None:
    """Serve with several processes until SIGTERM or SIGINT."""
    tokens = require_fit(config)
    if tokens is not None:
        read_tokens(tokens)
    with TemporaryDirectory(prefix="tidepull-") as folder:
        Supervisor(config, workers, Path(folder), ready).run()
