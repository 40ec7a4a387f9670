"""`tidepull serve --on ray` as a user starts it, and what it says."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psycopg

from tests.integration.service.houses import SHOP
from tests.integration.service.neighbourhood import ask, new_database
from tests.machines import ENVIRONMENT
from tests.postgres import Server
from tidepull.service.auth import new_token, write_tokens

SERVE = "import sys; from tidepull.cli import main; sys.argv.insert(1, 'serve'); main()"
_LISTENS = re.compile(r"shard (\d+) listens on (http://\S+)")


class RayService:
    """Shards on the cluster at an address, with a database of their own."""

    def __init__(self, postgres: Server, address: str, folder: Path) -> None:
        self.db = new_database(postgres)
        self.tokens = folder / "tokens.json"
        self.token, kept = new_token(("*",), ("admin",))
        write_tokens(self.tokens, {kept.id: kept})
        self._log = folder / "serve.log"
        given = [
            "--db",
            self.db,
            "--tokens",
            str(self.tokens),
            "--port",
            "0",
            "--quiet",
            "--host",
            "127.0.0.1",
        ]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", SERVE, *given, "--on", "ray", "--address", address],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**ENVIRONMENT, "HOME": str(folder)},
                cwd=folder,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        self.process.kill()
        self.process.wait()

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def urls(self) -> list[str]:
        """Where the shards are that live, by the database."""
        with psycopg.connect(self.db) as connection:
            there = connection.execute("SELECT to_regclass('tidepull_shards')::text").fetchone()
            if there is None or there[0] is None:
                return []
            rows = connection.execute(
                "SELECT url FROM tidepull_shards WHERE expires > clock_timestamp()"
            )
            return [row[0] for row in rows]

    @property
    def ports(self) -> list[int]:
        return [int(url.rsplit(":", 1)[1]) for url in self.urls]

    def wait_for_shards(self, count: int, *, heard: int | None = None) -> None:
        """Wait until so many shards live, and the service has said of `heard` that they listen."""
        heard = count if heard is None else heard
        self._wait(
            lambda: len(self.urls) >= count and len(_LISTENS.findall(self.said)) >= heard, 200
        )

    def wait_for_word(self, word: str, seconds: float = 60) -> None:
        self._wait(lambda: word in self.said, seconds)

    def wait_until_spread(self, agents: tuple[str, ...], seconds: float = 60) -> None:
        self._wait(lambda: len({self.owner(agent) for agent in agents}) == len(agents), seconds)

    def owner(self, agent: str) -> str | None:
        with psycopg.connect(self.db) as connection:
            row = connection.execute(
                "SELECT url FROM tidepull_agents WHERE name = %s AND expires > clock_timestamp()",
                (agent,),
            ).fetchone()
        return row[0] if row else None

    def make(self, agent: str, policy: str = "bernoulli-ts") -> None:
        body = {**SHOP, "name": agent, "policy": policy}
        status, answer = ask(self.urls[0], self.token, "POST", "/v1/agents", body)
        assert status == 201, answer

    def _wait(self, done: Any, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < deadline, self.said
            time.sleep(0.1)
