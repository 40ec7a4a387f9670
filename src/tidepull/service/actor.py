"""One shard as a Ray actor: the same server as everywhere, in a thread of the actor's process."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from tidepull import __version__
from tidepull.errors import InputError
from tidepull.service.auth import write_private
from tidepull.service.server import Choices, Server, make_server, prepare, url_of


@dataclass(frozen=True, slots=True)
class About:
    """What a shard says of itself; `failure`: why it could not start."""

    url: str
    version: str
    tokens: str
    failure: str = ""


class ShardActor:
    """Ray calls its methods one at a time; requests come to the server's own socket."""

    def __init__(self, name: str, choices: Choices, tokens: str, ports: int) -> None:
        self._folder = Path.home() / ".tidepull" / name
        self._server: Server | None = None
        self._url = self._failure = ""
        self._stopping = False
        self._listening, self._ended = threading.Event(), threading.Event()
        try:
            self._start(choices, tokens, ports)
        except Exception as error:
            self._failure = str(error) or type(error).__name__

    def _start(self, choices: Choices, tokens: str, ports: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.retoken(tokens)
        host = choices.host or _address()
        listening = _bound(host, choices.port, ports)
        audit = choices.audit or self._folder / "audit.jsonl"
        called = _address() if host in ("0.0.0.0", "::") else host
        here = url_of(called, listening.getsockname()[1])
        made = replace(choices, host=host, tokens=self._folder / "tokens.json", audit=audit, here=here)
        self._server = make_server(prepare(made), host, choices.port, lambda _: self._listening.set())
        threading.Thread(target=self._run, args=(listening,), daemon=True).start()
        if not self._listening.wait(60):
            raise InputError("its server did not start within 60 seconds")
        self._url = here

    def _run(self, listening: socket.socket) -> None:
        assert self._server is not None
        try:
            self._server.run(sockets=[listening])
        finally:
            self._ended.set()
            if not self._stopping:
                os._exit(1)  # Ray starts it again

    def about(self) -> About:
        """Where it is."""
        tokens = (self._folder / "tokens.json").read_bytes() if self._url else b""
        return About(self._url, __version__, hashlib.sha256(tokens).hexdigest(), self._failure)

    def retoken(self, tokens: str) -> None:
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


def _bound(host: str, port: int, ports: int) -> socket.socket:
    """A socket at the first port that is free: another shard may be on this machine."""
    for tried in range(port, port + ports) if port else [0]:
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, tried))
        except OSError:
            made.close()
            continue
        return made
    raise InputError(f"the ports {port} to {port + ports - 1} of {host} are taken")
