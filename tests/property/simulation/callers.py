"""Callers of the service: what they ask, what they were told, and what they ask again.

A visit has a number of its own in its context, so that the ledger shows whose decision is whose.
What a visit is worth follows from that number.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

AGENT = "/v1/agents/shop"
UNKNOWN = "never made"


@dataclass(slots=True)
class Call:
    """One request. `status` None: no answer came, for the process died. `started` and `finished`
    count steps of the history, `begun` and `ended` are true moments."""

    number: int
    caller: int
    kind: str
    method: str
    path: str
    body: Any
    key: str | None = None
    started: int = 0
    finished: int = 0
    begun: float = 0.0
    ended: float = 0.0
    status: int | None = None
    answer: Any = None

    @property
    def told(self) -> bool:
        """Whether it was acknowledged."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def doubtful(self) -> bool:
        """Whether it may or may not have been done: no answer, or one that says try again."""
        return self.status is None or self.status >= 500

    def __str__(self) -> str:
        return f"call {self.number} of caller {self.caller}, {self.kind} {self.body} -> {self.status} {self.answer}"


@dataclass
class Town:
    """What all callers know together: decisions that were acknowledged, by id, with the number of
    the visit."""

    rng: random.Random
    again: str
    calls: list[Call] = field(default_factory=list)
    made: list[tuple[str, int]] = field(default_factory=list)
    visits: int = 0

    def visit(self) -> dict[str, Any]:
        """A new visitor."""
        self.visits += 1
        asked: dict[str, Any] = {"context": {"visit": self.visits}}
        if self.rng.random() < 0.4:
            asked["id"] = f"visit {self.visits}"
        if self.rng.random() < 0.2:
            asked["subject"] = f"person {self.rng.randrange(4)}"
        return asked

    def worth(self) -> dict[str, Any]:
        """What a decision was worth: one of those that were acknowledged, or seldom one that never
        was."""
        if not self.made or self.rng.random() < 0.02:
            return {"id": UNKNOWN, "reward": 1.0}
        recent = self.made[-20:] if self.rng.random() < 0.8 else self.made
        id, visit = self.rng.choice(recent)
        if self.again != "add":
            return {"id": id, "reward": worth(visit)}
        key = self.rng.choice((None, "key 1", "key 2"))
        return {"id": id, "reward": worth(visit, key, add=True), "key": key}


def worth(visit: int, key: str | None = None, *, add: bool = False) -> float:
    """What a visit is worth, whoever says so; where rewards add up, one of them is all of it."""
    return float(visit * 7 % 3 == 0 and (not add or key == "key 1"))


class Caller:
    """One caller: one request at a time; what was refused is often asked again."""

    def __init__(self, number: int, town: Town) -> None:
        self.number = number
        self._town = town
        self._last: Call | None = None
        self.waiting = False

    def next(self) -> Call:
        """What is asked next."""
        rng, last = self._town.rng, self._last
        again = last is not None and (rng.random() < 0.75 if last.doubtful else rng.random() < 0.06)
        call = self._again(last) if again and last is not None else self._new()
        self._town.calls.append(call)
        self._last = call
        self.waiting = True
        return call

    def _again(self, last: Call) -> Call:
        path = last.path.removeprefix(AGENT)
        return self._call(last.kind, last.method, path, last.body, last.key)

    def _new(self) -> Call:
        town, rng = self._town, self._town.rng
        chance = rng.random()
        if chance < 0.35:
            return self._choice(town.visit())
        if chance < 0.50:
            visits = [town.visit() for _ in range(rng.randrange(2, 5))]
            return self._call("batch", "POST", "/choose/batch", {"decisions": visits})
        if chance < 0.70:
            return self._call("reward", "POST", "/reward", town.worth())
        if chance < 0.90:
            rewards = [town.worth() for _ in range(rng.choice((2, 4, 12)))]
            return self._call("rewards", "POST", "/rewards", {"rewards": rewards})
        if chance < 0.94:
            return self._call("state", "GET", "", None)
        if chance < 0.97:
            body = {"op": "add", "label": f"arm {rng.randrange(12)}"}
            return self._call("arm", "POST", "/arms", body)
        if chance < 0.985 or not town.made:
            kind = rng.choice(("freeze", "unfreeze"))
            return self._call(kind, "POST", f"/{kind}", None)
        return self._call("rollback", "POST", "/rollback", {"to": rng.choice(town.made)[0]})

    def _choice(self, visit: dict[str, Any]) -> Call:
        key = visit.pop("id") if "id" in visit and self._town.rng.random() < 0.3 else None
        return self._call("choose", "POST", "/choose", visit, key)

    def _call(self, kind: str, method: str, path: str, body: Any, key: str | None = None) -> Call:
        return Call(len(self._town.calls), self.number, kind, method, f"{AGENT}{path}", body, key)

    def hears(self, call: Call) -> None:
        """The answer, or that none will come."""
        self.waiting = False
        if not call.told:
            return
        if call.kind == "choose":
            self._town.made.append((call.answer["id"], call.body["context"]["visit"]))
        elif call.kind == "batch":
            pairs = zip(call.answer["decisions"], call.body["decisions"], strict=True)
            self._town.made += [(made["id"], asked["context"]["visit"]) for made, asked in pairs]
