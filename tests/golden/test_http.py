"""HTTP exchanges on record: what the service answers to a fixed list of requests, one after the
other.

The real application is asked in process. Seeds (from which salts follow) and the agents' clock are
fixed, and what differs from run to run is replaced by a placeholder (`settled`). `python -m
tests.golden.test_http` records anew.

Decisions are exact where the arithmetic is equal; elsewhere only statuses and headers are compared.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest

from tests.golden import records
from tests.integration.service.houses import House
from tidepull.agent.served import ServedAgent
from tidepull.service.personalizer import Personalizer
from tidepull.service.stores import AgentStore, Directory

NAME = "http"
START, MINUTE, DAY = 1_782_900_000.0, 60.0, 86_400.0
VOLATILE = ("request", "version", "x-request-id", "upkeep_pending")
"""Fields and headers that differ from run to run, with the load, or with every release."""


@dataclass(frozen=True)
class Ask:
    """A request. `body` is JSON unless it is bytes; `who`: whose token it has; `after`: seconds
    since the last one."""

    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    who: Literal["admin", "reader", "stranger", "nobody"] = "admin"
    after: float = MINUTE

    @property
    def plain(self) -> dict[str, Any]:
        """As it is recorded."""
        body = self.body.decode() if isinstance(self.body, bytes) else self.body
        return {
            "method": self.method,
            "path": self.path,
            "token": self.who,
            **({"headers": self.headers} if self.headers else {}),
            **({"body": body} if body is not None else {}),
        }


SHOP = {
    "name": "shop",
    "arms": ["blue", "green", "red"],
    "context": {"device": ["phone", "desktop"], "age": "number", "vip": "boolean"},
    "policy": "bernoulli-ts",
    "seed": 7,
    "control": 0.3,
    "reward_within": DAY,
}
MENU = {
    "name": "menu",
    "arms": ["news", "sport"],
    "context": {"features": {"kind": "Hashed", "columns": 8}},
    "policy": "lin-ts",
    "seed": 3,
    "control": 0,
    "reward_within": DAY,
    "default_reward": 0,
}
PHONE = {"device": "phone", "age": 31}
KEY = {"idempotency-key": "order 17"}
JSON = {"content-type": "application/json"}
VISITS = [{"context": {"device": "desktop", "age": 20 + n}, "id": f"visit {n}"} for n in range(48)]
PAID = [{"id": f"visit {n}", "reward": int(n % 3 == 0)} for n in range(48)]
ACTIONS = [
    {"id": "news", "features": [{"kind": "text"}]},
    {"id": "sport", "features": [{"kind": "video"}]},
]
CHESS = {"id": "chess", "features": [{"kind": "game"}]}
SEEN = [{"hour": "morning"}, {"user": {"age": 31, "vip": True}}]
A, P = "/v1/agents/shop", "/personalizer/v1.0"

ASKED: tuple[Ask, ...] = (
    # health
    Ask("GET", "/healthz", who="nobody"),
    Ask("GET", "/readyz", who="nobody"),
    # agents
    Ask("GET", "/v1/agents"),
    Ask("POST", "/v1/agents", SHOP),
    Ask("POST", "/v1/agents", SHOP),
    Ask("POST", "/v1/agents", {**SHOP, "name": "other", "policy": "bernouli-ts"}),
    Ask("POST", "/v1/agents", {**SHOP, "name": "other", "control_arm": "pink"}),
    Ask("POST", "/v1/agents", {**SHOP, "name": "Not A Name"}),
    Ask("GET", "/v1/agents"),
    # decisions
    Ask("POST", f"{A}/choose", {"context": PHONE}),
    Ask("POST", f"{A}/choose", {"context": PHONE, "subject": "user 1", "arms": ["blue", "red"]}),
    Ask("POST", f"{A}/choose", {"context": PHONE}, KEY),
    Ask("POST", f"{A}/choose", {"context": PHONE}, KEY),
    Ask("POST", f"{A}/choose", {"context": {"device": "desktop"}}, KEY),
    Ask("POST", f"{A}/choose", {"context": PHONE, "id": "order 18"}, KEY),
    Ask("POST", f"{A}/choose/batch", {"decisions": VISITS}),
    Ask("POST", f"{A}/choose/batch", {"decisions": [{"context": PHONE}, {"context": {"shoe": 1}}]}),
    # rewards
    Ask("POST", f"{A}/reward", {"id": "order 17", "reward": 1}),
    Ask("POST", f"{A}/reward", {"id": "order 17", "reward": 1}),
    Ask("POST", f"{A}/reward", {"id": "order 17", "reward": 0}),
    Ask("POST", f"{A}/reward", {"id": "order 99", "reward": 1}),
    Ask(
        "POST",
        f"{A}/rewards",
        {"rewards": [{"id": "order 17", "reward": 1}, {"id": "1-0", "reward": 1}]},
    ),
    Ask("POST", f"{A}/rewards", {"rewards": PAID}),
    # what is refused
    Ask("POST", "/v1/agents/nobody/choose", {"context": PHONE}),
    Ask("GET", "/v1/nothing"),
    Ask("POST", f"{A}/choose", {"context": PHONE, "colour": "blue"}),
    Ask("POST", f"{A}/choose", {"context": {"device": "phone", "age": "old"}}),
    Ask("POST", f"{A}/choose", {"context": PHONE, "arms": ["pink"]}),
    Ask("POST", f"{A}/choose", {"context": PHONE, "at": "yesterday"}),
    Ask("POST", f"{A}/choose", b'{"context": ', JSON),
    Ask("POST", f"{A}/choose", b"", JSON),
    Ask(
        "POST",
        f"{A}/choose",
        b"context=phone",
        {"content-type": "application/x-www-form-urlencoded"},
    ),
    Ask("POST", f"{A}/choose", b"{}", {**JSON, "content-encoding": "gzip"}),
    Ask("POST", f"{A}/choose", {"context": PHONE}, who="nobody"),
    Ask(
        "POST",
        f"{A}/choose",
        {"context": PHONE},
        {"authorization": "Bearer tp_none_none"},
        "nobody",
    ),
    Ask("POST", f"{A}/choose", {"context": PHONE}, who="reader"),
    Ask("GET", A, who="stranger"),
    Ask("GET", "/v1/agents", who="stranger"),
    Ask("PUT", f"{A}/choose", {"context": PHONE}),
    # looking
    Ask("GET", f"{A}/explain", who="reader"),
    Ask("GET", f"{A}/lift", who="reader"),
    Ask("GET", f"{A}/lift?level=0.8&points=2", who="reader"),
    Ask("GET", f"{A}/lift?level=2", who="reader"),
    Ask("GET", f"{A}/history?bins=3", who="reader"),
    Ask("GET", f"{A}/export"),
    Ask("GET", f"{A}/export?format=csv"),
    Ask("GET", f"{A}/export", who="reader"),
    # arms, holding still, going back
    Ask("POST", f"{A}/arms", {"op": "add", "label": "pink"}),
    Ask("POST", f"{A}/arms", {"op": "add", "label": "pink"}),
    Ask("POST", f"{A}/arms", {"op": "retire", "label": "blue"}),
    Ask("POST", f"{A}/arms", {"op": "rename", "label": "red", "to": "crimson"}),
    Ask("POST", f"{A}/arms", {"op": "rename", "label": "red"}),
    Ask("GET", f"{A}/arms"),
    Ask("POST", f"{A}/freeze"),
    Ask("POST", f"{A}/choose", {"context": PHONE, "id": "late"}),
    Ask("POST", f"{A}/unfreeze"),
    Ask("POST", f"{A}/rollback", {"to": "3-8fb9280c"}),
    Ask("POST", f"{A}/rollback", {"to": "visit 99"}),
    Ask("GET", f"{A}/state", who="reader"),
    Ask("HEAD", A, who="reader"),
    Ask("POST", f"{A}/reward", {"id": "late", "reward": 1}, after=DAY),
    Ask("POST", f"{A}/choose", {"context": PHONE}),
    Ask("POST", f"{A}/choose", {"context": PHONE, "at": "2026-07-02T10:30"}),
    # Personalizer
    Ask("POST", f"{P}/events/first/reward", {"value": 1}),
    Ask("POST", "/v1/agents", MENU),
    Ask("POST", f"{P}/rank", {"actions": ACTIONS, "contextFeatures": SEEN, "eventId": "first"}),
    Ask("POST", f"{P}/rank", {"actions": ACTIONS, "contextFeatures": SEEN, "eventId": "first"}),
    Ask(
        "POST",
        f"{P}/rank",
        {"actions": [*ACTIONS, CHESS], "excludedActions": ["news"], "eventId": "second"},
    ),
    Ask("POST", f"{P}/rank", {"actions": ACTIONS, "eventId": "third", "deferActivation": True}),
    Ask("POST", f"{P}/rank", {"actions": []}),
    Ask("POST", f"{P}/rank", {"actions": ACTIONS}, who="nobody"),
    Ask("POST", f"{P}/events/first/reward", {"value": 1}),
    Ask("POST", f"{P}/events/third/reward", {"value": 0.5}),
    Ask("POST", f"{P}/events/third/activate"),
    Ask("POST", f"{P}/events/fourth/reward", {"value": 1}),
    Ask("POST", f"{P}/events/first/reward", {"value": 7}),
    Ask("GET", "/v1/agents/menu/state"),
    # the end
    Ask("GET", "/v1/openapi.json"),
    Ask("DELETE", A, who="reader"),
    Ask("DELETE", A),
    Ask("GET", A),
    Ask("GET", "/v1/agents"),
)


class Clock:
    """What the agents' clock shows."""

    now = START

    def __call__(self) -> float:
        return self.now


class Timed(Directory):
    """Agents as files, all by one clock."""

    def __init__(self, root: Path, clock: Clock) -> None:
        super().__init__(root)
        self._clock = clock

    def open(self, name: str) -> ServedAgent:
        return ServedAgent(self.root / f"{name}.db", training="manual", now=self._clock)

    def create(self, name: str, given: dict[str, Any]) -> None:
        super().create(name, {**given, "now": self._clock})


class TimedHouse(House):
    """A service whose agents all go by one clock; Personalizer's interface is open too."""

    def __init__(self, root: Path) -> None:
        self.clock = Clock()
        super().__init__(root)
        self.service.personalizer = Personalizer("menu")
        self.tokens = {
            "admin": self.admin,
            "reader": self.token("*", "read"),
            "stranger": self.token("another", "admin"),
            "nobody": "",
        }

    def store(self) -> AgentStore:
        return Timed(self.root, self.clock)

    def answer(self, asked: Ask) -> httpx.Response:
        self.clock.now += asked.after
        return self.ask(
            asked.method,
            asked.path,
            asked.body,
            headers=asked.headers,
            token=self.tokens[asked.who],
        )


def settled(value: Any) -> Any:
    """The same in every run: what is volatile is replaced."""
    if isinstance(value, list):
        return [settled(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: f"<{name}>" if name in VOLATILE and isinstance(one, str | bool) else settled(one)
        for name, one in value.items()
    }


def body_of(answer: httpx.Response) -> Any:
    """A body that people can read: JSON, or lines of text; of the OpenAPI document its paths and a
    hash."""
    if answer.url.path.endswith("openapi.json"):
        document = settled(answer.json())
        paths = {path: sorted(of) for path, of in document["paths"].items()}
        return {"hash": records.digest(json.dumps(document, sort_keys=True)), "paths": paths}
    if (
        "json" in answer.headers.get("content-type", "")
        and "jsonl" not in answer.headers["content-type"]
    ):
        return settled(answer.json()) if answer.content else None
    return answer.text.splitlines() or None


def exchanged(folder: Path) -> dict[str, Any]:
    """All exchanges. Headers that every answer has are said once."""
    house = TimedHouse(folder)
    try:
        answers = [house.answer(asked) for asked in ASKED]
    finally:
        house.close()
    headers = [settled(dict(answer.headers)) for answer in answers]
    for one in headers:
        one.pop("content-length", None)  # follows from the body
    common = dict(set(headers[0].items()).intersection(*(one.items() for one in headers)))
    exchanges = [
        {
            "request": asked.plain,
            "answer": {
                "status": answer.status_code,
                "headers": {name: value for name, value in own.items() if name not in common},
                "body": body_of(answer),
            },
        }
        for asked, answer, own in zip(ASKED, answers, headers, strict=True)
    ]
    return {"headers of every answer": dict(sorted(common.items())), "exchanges": exchanges}


def without_body(exchange: dict[str, Any]) -> dict[str, Any]:
    answer = {name: value for name, value in exchange["answer"].items() if name != "body"}
    return {**exchange, "answer": answer}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return exchanged(tmp_path_factory.mktemp("house"))


@pytest.mark.parametrize(
    "n", range(len(ASKED)), ids=lambda n: f"{n} {ASKED[n].method} {ASKED[n].path}"
)
def test_answer_is_as_recorded(found: Any, n: int) -> None:
    recorded = records.read(NAME)["exchanges"]
    assert len(recorded) == len(ASKED), records.advice(NAME)
    exchange, expected = json.loads(json.dumps(found["exchanges"][n])), recorded[n]
    if not records.is_exact(NAME):
        exchange, expected = without_body(exchange), without_body(expected)
    differ = list(records.differences(exchange, expected, 0))
    assert not differ, "\n".join([*differ, records.advice(NAME)])


def test_every_answer_has_the_recorded_headers(found: Any) -> None:
    name = "headers of every answer"
    assert found[name] == records.read(NAME)[name], records.advice(NAME)


def record() -> None:
    with tempfile.TemporaryDirectory() as folder:
        records.write(NAME, exchanged(Path(folder)))


if __name__ == "__main__":
    record()
