"""A real service in a thread, behind a real socket, with a small shop in its directory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from tidepull.agent.commands import Request
from tidepull.agent.served import ServedAgent
from tidepull.service.server import ServerConfig, prepare

HTML = "<img src=x onerror=alert(1)>"
QUARTER = 900.0


def fill(
    path: Path, decisions: int, *, silent: int = 0, arms: tuple[str, ...] = ("coffee", HTML)
) -> None:
    """An agent that decided every 15 minutes until now; a visitor likes every third banner, and
    says so after two minutes; of the last `silent` decisions nobody says anything. In the middle an
    arm was added."""
    start = time.time() - decisions * QUARTER
    agent = ServedAgent(
        path, arms=arms, context={"device": ["phone", "desktop"]}, policy="bernoulli-ts", seed=1,
        control=0.2, capacity=8, training="manual", shadow=["random"],
    )  # fmt: skip
    with agent:
        for n in range(decisions):
            at = start + n * QUARTER
            if n == decisions // 2:
                agent.add("tea", at=at)
            visitor = {"device": ("phone", "desktop")[n % 2]}
            (made,), _ = agent.choose_ahead([Request(context=visitor, at=at)])
            if n < decisions - silent:
                agent.reward_ahead(made.id, float(n % 3 == 0), at=at + 120)
        agent.save()


class Served:
    """Where a service listens, and what it answers."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}

    def get(self, path: str, **query: Any) -> Any:
        """An answer, as the page gets it too."""
        return (
            httpx.get(self.url + path, params=query, headers=self._headers)
            .raise_for_status()
            .json()
        )


@contextmanager
def serving(directory: Path, *, port: int = 0, tokens: Path | None = None) -> Iterator[Served]:
    """Serve a directory; without tokens anybody may ask."""
    app = prepare(ServerConfig(str(directory), tokens=tokens, insecure=tokens is None, quiet=True))
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, log_config=None, lifespan="on", ws="none")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        bound = server.servers[0].sockets[0].getsockname()[1]
        yield Served(f"http://127.0.0.1:{bound}")
    finally:
        server.should_exit = True
        thread.join()
