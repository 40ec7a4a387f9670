"""A real service in a process of its own, to be talked to over sockets, stopped and killed."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidepull.service import connections, server, workers
from tidepull.service.auth import new_token, write_tokens

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.integration.service.running"])


def main(root: str, pipe: Any, patience: float, given: dict[str, Any]) -> None:
    if descriptors := given.pop("descriptors", None):
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    connections.REQUEST_TIMEOUT = patience  # type: ignore[assignment]
    beside = Path(root)
    chosen: dict[str, Any] = {
        "db": root,
        "tokens": beside / "tokens.json",
        "log": beside / "access.jsonl",
    }
    if count := given.pop("workers", None):
        config = server.ServerConfig(**{**chosen, "port": 0, **given})
        workers.serve_workers(config, count, pipe.send)
        return
    app = server.prepare(server.ServerConfig(**{**chosen, **given}))
    server.serve(app, "127.0.0.1", 0, pipe.send)


class Running:
    """A service that listens at `port`; `token` may do everything. `given` are other choices at its
    start."""

    def __init__(self, root: Path, patience: float = 10.0, **given: Any) -> None:
        self.root = root
        clear, token = new_token(("*",), ("admin",))
        write_tokens(root / "tokens.json", {token.id: token})
        self.token = clear
        here, there = PROCESSES.Pipe()
        self.process = PROCESSES.Process(
            target=main, args=(str(root), there, patience, given), daemon=True
        )
        self.process.start()
        assert here.poll(60), "the service did not start"
        self.url: str = here.recv()
        self.port = int(self.url.rsplit(":", 1)[1])

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, json.loads(data)

    def say(self, data: bytes) -> bytes:
        """Send bytes and read until the other side closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(data)
            heard = b""
            while part := connection.recv(65536):
                heard += part
        return heard

    def end(self, signal: int) -> int | None:
        os.kill(self.pid, signal)
        self.process.join(40)
        return self.process.exitcode


@contextmanager
def running(root: Path, patience: float = 10.0, **given: Any) -> Iterator[Running]:
    service = Running(root, patience, **given)
    try:
        yield service
    finally:
        if service.process.is_alive():
            service.process.kill()
        service.process.join()
