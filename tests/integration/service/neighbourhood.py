"""Shards in processes of their own that share one database, to be asked, stopped, held and
killed."""

from __future__ import annotations

import http.client
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg

from tests.integration.service.running import PROCESSES
from tests.postgres import Server
from tidepull.agent.ledger import leases
from tidepull.service import server, service
from tidepull.service.auth import new_token, write_tokens


def main(db: str, tokens: str, pipe: Any, machine: str, port: int) -> None:
    if (
        machine
    ):  # as if it ran on a machine of its own, where nobody can see whether its process lives
        leases._machine = lambda: machine
    service.BALANCE_EVERY = 2
    choices = server.ServerConfig(
        db, port=port, tokens=Path(tokens), quiet=True, personalizer="menu"
    )
    server.serve(server.prepare(choices), "127.0.0.1", port, pipe.send)


class Process:
    """A shard that listens at `url`."""

    def __init__(self, street: Street, machine: str, port: int) -> None:
        self._street = street
        here, there = PROCESSES.Pipe()
        given = (street.db, str(street.tokens), there, machine, port)
        self.process = PROCESSES.Process(target=main, args=given, daemon=True)
        self.process.start()
        assert here.poll(60), "the shard did not start"
        self.url: str = here.recv()
        self.port = int(self.url.rsplit(":", 1)[1])

    def send(self, which: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, which)

    def end(self, which: signal.Signals) -> int | None:
        self.send(which)
        self.process.join(40)
        return self.process.exitcode

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str = "", **headers: str
    ) -> tuple[int, Any]:
        return ask(self.url, token or self._street.token, method, path, body, **headers)

    def choose(self, id: str, agent: str = "shop") -> tuple[int, Any]:
        return self.ask("POST", f"/v1/agents/{agent}/choose", {"id": id})


def ask(url: str, token: str, method: str, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=40)
    told = {"authorization": f"Bearer {token}", "content-type": "application/json", **headers}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), told)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


class Street:
    """All shards of one database; `token` may do everything."""

    def __init__(self, db: str, folder: Path) -> None:
        self.db = db
        self.tokens = folder / "tokens.json"
        self.token, kept = new_token(("*",), ("admin",))
        write_tokens(self.tokens, {kept.id: kept})
        self.shards: list[Process] = []

    def start(self, machine: str = "", port: int = 0) -> Process:
        self.shards.append(Process(self, machine, port))
        return self.shards[-1]

    def owner(self, agent: str = "shop") -> str | None:
        """Where an agent is, as the database has it."""
        with psycopg.connect(self.db) as connection:
            row = connection.execute(
                "SELECT url FROM tidepull_agents WHERE name = %s AND expires > clock_timestamp()",
                (agent,),
            ).fetchone()
        return row[0] if row else None

    def close(self) -> None:
        for shard in self.shards:
            if shard.process.is_alive():
                shard.process.kill()
            shard.process.join()


@contextmanager
def street(postgres: Server, folder: Path) -> Iterator[Street]:
    """Shards with a database of their own."""
    made = Street(new_database(postgres), folder)
    try:
        yield made
    finally:
        made.close()


def new_database(postgres: Server) -> str:
    """The URL of an empty database that nobody else has."""
    name = f"shards_{uuid4().hex[:12]}"
    with psycopg.connect(postgres.url(), autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name}".encode())
    return postgres.url(database=name)
