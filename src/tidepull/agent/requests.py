"""What a client asks a service, without saying how it is sent: one place for paths, bodies, answers and retries."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np

from tidepull.agent.decisions import Decision, DecisionId, id_of
from tidepull.agent.fields import is_missing
from tidepull.errors import ServiceError

T = TypeVar("T")
AGAIN = (429, 503)
"""Statuses that say that nothing was done, and that it may work later."""

UNSURE = (502, 504)
"""Statuses after which nobody knows whether it was done."""

LONGEST_WAIT = 10.0
TimeLike = float | datetime | str


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """What an agent says of itself: `str()` of it is plain words, `data` is all that was answered."""

    data: dict[str, Any]

    def __str__(self) -> str:
        return str(self.data["words"])


@dataclass(frozen=True, slots=True)
class RewardResult:
    """What became of one reward of many: `status` 200, or why not (`detail`)."""

    id: str
    status: int
    duplicate: bool = False
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class HttpRequest(Generic[T]):
    """A request; `read` makes its answer. `repeatable`: to send it twice is to send it once."""

    method: str
    path: str
    read: Any
    body: Any = None
    query: dict[str, Any] | None = None
    repeatable: bool = True

    def answer(self, status: int, content: bytes, kind: str) -> T:
        """What the answer means; a `ServiceError` if it is a refusal."""
        if status >= 400:
            raise service_error(status, content)
        found: T = self.read(json.loads(content) if kind.partition(";")[0] == "application/json" else content)
        return found

    def may_repeat(self, status: int | None, *, sent: bool) -> bool:
        """Whether to try again after a status (None: there was no answer; `sent`: the request may have arrived)."""
        if status is None:
            return self.repeatable or not sent
        return status in AGAIN or (status in UNSURE and self.repeatable)


def service_error(status: int, content: bytes) -> ServiceError:
    """The problem that a service answered."""
    try:
        problem = json.loads(content)
        return ServiceError(status, str(problem["detail"]), problem.get("request"))
    except (ValueError, KeyError, TypeError):
        return ServiceError(status, f"the service answered {status}")


def pause(attempt: int, after: str | None) -> float:
    """Seconds to wait before the next attempt: what the service said, or longer each time, never all at once."""
    if after is not None and after.isdigit():
        return min(LONGEST_WAIT, float(after))
    return min(2.0, 0.05 * 2.0**attempt) * (0.5 + random.random() / 2)


def moment(at: TimeLike | None) -> float | str | None:
    """A moment as it is sent."""
    return at.isoformat() if isinstance(at, datetime) else at


def plain_value(value: Any) -> Any:
    """A value of a context as it is sent."""
    if is_missing(value):
        return None
    if isinstance(value, Decimal | np.number):
        return float(value)
    return str(value) if isinstance(value, UUID) else moment(value)


def seconds(given: float | timedelta | None) -> float | None:
    """A duration as it is sent."""
    return given.total_seconds() if isinstance(given, timedelta) else given


def without_none(**values: Any) -> dict[str, Any]:
    """Without what was not given."""
    return {name: value for name, value in values.items() if value is not None}


def choice_body(
    context: Mapping[str, Any] | None,
    arms: Iterable[str] | None,
    subject: str | int | UUID | None,
    at: TimeLike | None,
    id: str | int | UUID | None,
) -> dict[str, Any]:
    """The body of a decision; it has an id in any case, so that it can be repeated."""
    return without_none(
        context=None if context is None else {name: plain_value(value) for name, value in context.items()},
        arms=None if arms is None else list(arms),
        subject=id_of(subject),
        at=moment(at),
        id=id_of(id) or uuid.uuid4().hex,
    )


def reward_body(id: DecisionId, reward: float, at: TimeLike | None, key: str | None) -> dict[str, Any]:
    """The body of a reward; it has a key in any case, so that it counts once where rewards add up."""
    return without_none(id=id_of(id), reward=float(reward), at=moment(at), key=key or uuid.uuid4().hex)


_KINDS: dict[Any, str] = {
    float: "number",
    int: "number",
    str: "text",
    bool: "boolean",
    datetime: "moment",
    list: "tags",
}


def agent_body(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The body that makes an agent, from what `tidepull.Agent` takes."""
    body = without_none(name=name, **settings)
    if isinstance(body.get("context"), Mapping):
        body["context"] = {
            field: _KINDS[kind] if isinstance(kind, type) and kind in _KINDS else kind
            for field, kind in body["context"].items()
        }
    if isinstance(body.get("policy"), tuple):
        id, parameters = body["policy"]
        body["policy"] = {"id": id, "parameters": parameters}
    if isinstance(body.get("timezone"), ZoneInfo):
        body["timezone"] = body["timezone"].key
    for field in ("reward_within", "retention"):
        if field in body:
            body[field] = seconds(body[field])
    if "arms" in body and not isinstance(body["arms"], Mapping):
        body["arms"] = list(body["arms"])
    return body


class AgentRequests:
    """All that can be asked of one agent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._path = f"/v1/agents/{quote(name, safe='')}"

    def choose(self, body: dict[str, Any]) -> HttpRequest[Decision]:
        """A decision."""
        return HttpRequest("POST", f"{self._path}/choose", lambda made: Decision.from_seconds(**made), body)

    def choose_many(self, bodies: Sequence[dict[str, Any]]) -> HttpRequest[list[Decision]]:
        """Decisions, all or none."""

        def read(made: Any) -> list[Decision]:
            return [Decision.from_seconds(**one) for one in made["decisions"]]

        return HttpRequest("POST", f"{self._path}/choose/batch", read, {"decisions": list(bodies)})

    def reward(self, body: dict[str, Any]) -> HttpRequest[bool]:
        """A reward."""
        return HttpRequest("POST", f"{self._path}/reward", lambda taken: not taken["duplicate"], body)

    def rewards(self, bodies: Sequence[dict[str, Any]]) -> HttpRequest[list[RewardResult]]:
        """Rewards, each for itself."""

        def read(taken: Any) -> list[RewardResult]:
            return [RewardResult(**one) for one in taken["rewards"]]

        return HttpRequest("POST", f"{self._path}/rewards", read, {"rewards": list(bodies)})

    def words(self, what: str, **query: Any) -> HttpRequest[TextAnswer]:
        """What it says of itself: `explain` or `lift`."""
        return HttpRequest("GET", f"{self._path}/{what}", TextAnswer, query=without_none(**query))

    def table(self, what: str, **query: Any) -> HttpRequest[dict[str, Any]]:
        """Numbers: `state`, `history`, `heatmap`, `waiting`."""
        return HttpRequest("GET", f"{self._path}/{what}", dict, query=without_none(**query))

    def arms(self) -> HttpRequest[list[str]]:
        """The arms that can be chosen."""
        return HttpRequest("GET", f"{self._path}/arms", _open)

    def change(self, op: str, label: str, **more: Any) -> HttpRequest[list[str]]:
        """Arms come and go."""
        body = without_none(op=op, label=label, **more)
        return HttpRequest("POST", f"{self._path}/arms", _open, body, repeatable=False)

    def act(self, what: str) -> HttpRequest[dict[str, Any]]:
        """`freeze`, `unfreeze`."""
        return HttpRequest("POST", f"{self._path}/{what}", dict)

    def rollback(self, to: TimeLike | Decision) -> HttpRequest[dict[str, Any]]:
        """Go back to a moment or a decision."""
        body = {"to": to.id if isinstance(to, Decision) else moment(to)}
        return HttpRequest("POST", f"{self._path}/rollback", dict, body, repeatable=False)

    def export(self, format: str) -> HttpRequest[bytes]:
        """Every decision, as a file."""
        return HttpRequest("GET", f"{self._path}/export", bytes, query={"format": format})

    def delete(self) -> HttpRequest[None]:
        """It goes."""
        return HttpRequest("DELETE", self._path, lambda _: None, repeatable=False)


def create(body: dict[str, Any]) -> HttpRequest[str]:
    """An agent is made; its name."""
    return HttpRequest("POST", "/v1/agents", lambda state: str(state["name"]), body, repeatable=False)


def agents() -> HttpRequest[list[str]]:
    """The agents that the token is for."""
    return HttpRequest("GET", "/v1/agents", lambda found: [one["name"] for one in found["agents"]])


def _open(found: Any) -> list[str]:
    return [arm["label"] for arm in found["arms"] if not arm["retired"]]
