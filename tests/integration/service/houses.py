"""A service without sockets, to be asked in tests."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx

from tidepull.service.app import App
from tidepull.service.auth import Limits, Tokens, new_token, write_tokens
from tidepull.service.handlers import OPERATIONS
from tidepull.service.logs import RequestLog
from tidepull.service.service import Service
from tidepull.service.stores import AgentStore, Directory, SharedDatabase

SHOP: dict[str, Any] = {
    "name": "shop",
    "arms": ["blue", "green", "red"],
    "context": {"device": ["phone", "desktop"], "age": "number"},
    "policy": "bernoulli-ts",
    "seed": 7,
}


class House:
    """A service in a directory, or with agents in the database `db`; `ask` is one request, by
    default with a token that may do everything."""

    def __init__(
        self,
        root: Path,
        *,
        insecure: bool = False,
        limits: Limits | None = None,
        db: str | None = None,
    ) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self.db = db
        self.limits = limits or Limits()
        self.tokens_file = root / "tokens.json"
        self.clear: dict[str, str] = {}
        self._kept: dict[str, Any] = {}
        self.insecure = insecure
        self.admin = "" if insecure else self.token("*", "admin")
        self._runner = asyncio.Runner()
        self.open()

    def open(self) -> None:
        tokens = Tokens(None if self.insecure else self.tokens_file)
        self._access = (self.root / "access.jsonl").open("a")
        request_log = RequestLog(self._access, self.root / "audit.jsonl")
        self.service = Service(self.store(), tokens, self.limits, request_log)
        self.app = App(self.service, OPERATIONS)
        self._runner.run(self.service.start())
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def store(self) -> AgentStore:
        """Where agents are kept."""
        return Directory(self.root) if self.db is None else SharedDatabase(self.db)

    def token(self, agents: str, *scopes: str, **given: Any) -> str:
        """A new token in clear."""
        clear, token = new_token((agents,), scopes, **given)
        self._kept[token.id] = token
        self._write_tokens()
        return clear

    def revoke(self, clear: str) -> None:
        del self._kept[clear.split("_")[1]]
        self._write_tokens()

    def _write_tokens(self) -> None:
        write_tokens(self.tokens_file, self._kept)
        if hasattr(self, "service"):
            self.service.tokens.reload()

    def run(self, work: Any) -> Any:
        return self._runner.run(work)

    async def asked(self, method: str, path: str, body: Any = None, **given: Any) -> httpx.Response:
        headers = {**given.pop("headers", {})}
        token = given.pop("token", self.admin)
        if token:
            headers.setdefault("authorization", f"Bearer {token}")
        if body is not None:
            given["content"] = body if isinstance(body, bytes) else json.dumps(body)
            headers.setdefault("content-type", "application/json")
        return await self.client.request(method, path, headers=headers, **given)

    def ask(self, method: str, path: str, body: Any = None, **given: Any) -> httpx.Response:
        return self.run(self.asked(method, path, body, **given))  # type: ignore[no-any-return]

    def make(self, **given: Any) -> None:
        answer = self.ask("POST", "/v1/agents", {**SHOP, **given})
        assert answer.status_code == 201, answer.text

    def lines(self, name: str) -> list[dict[str, Any]]:
        self.service.request_log.flush()
        return [json.loads(line) for line in (self.root / name).read_text().splitlines()]

    def stop(self) -> None:
        self.run(self.client.aclose())
        self.run(self.service.stop())
        self._access.close()

    def close(self) -> None:
        self.stop()
        self._runner.close()
