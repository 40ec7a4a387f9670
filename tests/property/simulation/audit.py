"""What callers were told, against what is true after everything: nothing lost, nothing doubled, the
order kept.

An acknowledged step is in the ledger exactly once, as it was told. One that was refused or never
answered is there at most once for each time that it was asked for. What was acknowledged before
another step was begun comes before it. The agent is in the state of a twin that has lived through
the same ledger without any fault.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.property.simulation.callers import UNKNOWN, Call, worth
from tests.property.simulation.image import TEXTS
from tests.property.simulation.plan import Plan
from tidepull import state as snapshots
from tidepull.agent.agent import Agent
from tidepull.agent.decisions import OURS
from tidepull.agent.ledger.base import MemoryLedger
from tidepull.agent.records import Choice, Kind, LearnAt, Record, unpack_reward
from tidepull.errors import TidepullError

EXPECTED = {
    "choose": (200, 503), "batch": (200, 503), "reward": (200, 404, 410, 503), "rewards": (200, 503),
    "state": (200, 503), "arm": (200, 422, 503), "freeze": (200, 503), "unfreeze": (200, 503),
    "rollback": (200, 503),
}  # fmt: skip


def audit(calls: list[Call], agent: Agent, plan: Plan, *, slack: float) -> list[str]:
    """Everything that is not as callers were told. Decisions may expire by `slack` seconds too
    early."""
    records = list(agent._commands.ledger.tail(0))
    book = Book(calls, records, agent, plan)
    found = [
        *book.statuses(),
        *book.numbers(),
        *book.decisions(),
        *book.rewards(),
        *book.order(),
        *book.rest(),
        *book.expired(slack),
    ]
    try:
        return [*found, *book.condition(), *twin(records, agent)]
    except TidepullError as error:
        return [*found, f"cannot be repeated: {error!r}"]


class Book:
    """Calls on one side, records on the other."""

    def __init__(self, calls: list[Call], records: list[Record], agent: Agent, plan: Plan) -> None:
        self._calls, self._records, self._agent, self._plan = calls, records, agent, plan
        self._by_seq = {record.seq: record for record in records}
        self._named = {r.name: r.seq for r in records if r.kind is Kind.DECISION and r.name}
        self._visits: dict[int, list[Record]] = defaultdict(list)
        self._about: dict[int, list[Record]] = defaultdict(list)
        for record in records:
            if record.kind is Kind.DECISION and record.context is not None:
                self._visits[int(json.loads(record.context)["visit"])].append(record)
            elif record.ref is not None:
                self._about[record.ref].append(record)

    def statuses(self) -> Iterator[str]:
        """Answers that must not be."""
        for call in self._calls:
            if call.status is not None and call.status not in EXPECTED[call.kind]:
                yield f"wrong answer: {call}"
            for body, answer in _rewards(call):
                allowed: tuple[int, ...] = (503, 404) if body["id"] == UNKNOWN else (503, 200)
                allowed += (410,) if self._plan.reward_within is not None else ()
                if answer is not None and answer["status"] not in allowed:
                    yield f"wrong answer for a reward: {answer} to {body} in {call}"

    def numbers(self) -> Iterator[str]:
        """Records are numbered in order."""
        for before, after in zip(self._records, self._records[1:], strict=False):
            if after.seq <= before.seq:
                yield f"order: record {after.seq} comes after {before.seq}"

    def decisions(self) -> Iterator[str]:
        """Each as it was told, once."""
        asked: Counter[int] = Counter()
        told: dict[int, list[Any]] = defaultdict(list)
        named: dict[int, str | None] = {}
        for call in self._calls:
            for body, answer in _choices(call):
                visit = body["context"]["visit"]
                named[visit] = call.key or body.get("id")
                asked[visit] += call.told or call.doubtful
                if answer is not None:
                    told[visit].append(answer)
                    yield from self._as_told(visit, named[visit], answer, call)
        for visit, rows in self._visits.items():
            most = min(1, asked[visit]) if named.get(visit) else asked[visit]
            if len(rows) > most:
                yield f"doubled: visit {visit} was asked for {asked[visit]} times, and was decided {len(rows)} times"
        for visit, answers in told.items():
            different = {tuple(answer.values()) for answer in answers}
            if len(different) != (1 if named[visit] else len(answers)):
                yield f"another answer: visit {visit} was told {answers}"

    def _as_told(self, visit: int, name: str | None, answer: Any, call: Call) -> Iterator[str]:
        record = self._by_seq.get(self._seq(answer["id"]))
        if record is None or record not in self._visits[visit]:
            yield f"lost decision: visit {visit} was told {answer} in {call}"
            return
        arm, _, propensity = Choice.head(record.body)
        label = self._agent._commands.state.arms.label(arm)
        if (label, propensity, record.at, record.name) != (
            answer["arm"], answer["propensity"], answer["at"], name
        ):  # fmt: skip
            yield f"another decision: visit {visit} was told {answer}, and the ledger has {record}"

    def rewards(self) -> Iterator[str]:
        """Each as it was told, once."""
        asked: dict[tuple[int, str | None], Counter[str]] = defaultdict(Counter)
        for call in self._calls:
            for body, answer in _rewards(call):
                if body["id"] == UNKNOWN:
                    continue
                counts = asked[self._seq(body["id"]), body.get("key")]
                status = None if answer is None else answer["status"]
                counts["asked"] += status is None or status == 200 or status >= 500
                counts["told"] += status == 200
                counts["new"] += status == 200 and not answer["duplicate"]
        for (seq, key), counts in asked.items():
            yield from self._paid(seq, key, counts)

    def _rows(self, body: Any) -> list[Record]:
        """The records of a reward."""
        seq, key = self._seq(body["id"]), body.get("key")
        name = None if key is None else f"{OURS}{seq}/{key}"
        return [
            record
            for record in self._about[seq]
            if record.kind is Kind.REWARD and record.name == name
        ]

    def _seq(self, id: str) -> int:
        """The number of the decision of an id; 0 where there is none of that name."""
        number = id.partition("-")[0]
        return self._named.get(id, int(number) if number.isdecimal() else 0)

    def _paid(self, seq: int, key: str | None, counts: Counter[str]) -> Iterator[str]:
        rows = self._rows({"id": f"{seq}-", "key": key})
        several = self._plan.again == "add" and key is None
        what = f"decision {seq}, key {key}: {dict(counts)}, and the ledger has {len(rows)}"
        if len(rows) < (counts["told"] if several else min(1, counts["told"])):
            yield f"lost reward: {what}"
        if len(rows) > (counts["asked"] if several else min(1, counts["asked"])):
            yield f"doubled reward: {what}"
        if counts["new"] > len(rows):
            yield f"new more than once: {what}"
        decision = self._by_seq.get(seq)
        if decision is not None and decision.context is not None:
            value = worth(
                int(json.loads(decision.context)["visit"]), key, add=self._plan.again == "add"
            )
            if any(unpack_reward(row.body) != value for row in rows):
                yield f"another reward: {what}"
        due = [record.seq for record in self._about[seq] if record.kind is Kind.DUE]
        learnt = [row.seq for row in rows if LearnAt.of(row.body) is not LearnAt.NEVER]
        if len(due) > 1 or (due and learnt and learnt[-1] > due[0]):
            yield f"settled, and then again: {what}"

    def order(self) -> Iterator[str]:
        """What was acknowledged before something else was begun comes before it, and batches are in
        order."""
        begun: dict[object, int] = {}
        steps: list[
            tuple[int, int, int]
        ] = []  # when it was begun, when it was acknowledged, its number
        for call in self._calls:
            last = 0
            for body, answer in _choices(call):
                first = begun.setdefault(body["context"]["visit"], call.started)
                if answer is None:
                    continue
                seq, named = self._seq(answer["id"]), bool(call.key or body.get("id"))
                if named or first == call.started:
                    steps.append((first, call.finished, seq))
                if not named and seq <= last:
                    yield f"order: in {call}"
                last = max(last, seq)
            for body, answer in _rewards(call):
                first = begun.setdefault((body["id"], body.get("key")), call.started)
                rows = self._rows(body) if answer is not None and not answer["duplicate"] else []
                if len(rows) == 1:
                    steps.append((first, call.finished, rows[0].seq))
        for _, finished, seq in steps:
            for other_first, _, other in steps:
                if finished < other_first and seq >= other:
                    yield f"order: {seq} was acknowledged at {finished}, {other} was begun at {other_first}"

    def expired(self, slack: float) -> Iterator[str]:
        """No reward is refused before its time is over, whatever the wall clock says."""
        first: dict[int, float] = {}
        begun: dict[str, float] = {}
        for call in self._calls:
            for body, answer in _choices(call):
                moment = first.setdefault(body["context"]["visit"], call.begun)
                if answer is not None:
                    begun[answer["id"]] = moment
        for call in self._calls:
            for body, answer in _rewards(call):
                if answer is not None and answer["status"] == 410:
                    waited = call.ended - begun[body["id"]]
                    if waited + slack + 1.0 < (self._plan.reward_within or 0.0):
                        yield f"expired: {body} after {waited:.1f} seconds in {call}"

    def rest(self) -> Iterator[str]:
        """Arms, freezes and rollbacks."""
        labels = [json.loads(r.body)["label"] for r in self._records if r.kind is Kind.ARMS]
        for label in {call.body["label"] for call in self._calls if call.kind == "arm"}:
            told = any(c.told for c in self._calls if c.kind == "arm" and c.body["label"] == label)
            if labels.count(label) > 1 or labels.count(label) < told:
                yield f"arm {label}: told {told}, and the ledger has {labels.count(label)}"
        for kind in (Kind.FREEZE, Kind.UNFREEZE, Kind.ROLLBACK):
            calls = [call for call in self._calls if call.kind == kind.name.lower()]
            count = sum(record.kind is kind for record in self._records)
            if not sum(call.told for call in calls) <= count <= len(calls):
                yield f"{kind.name.lower()}: the ledger has {count}, callers were told {list(map(str, calls))}"

    def condition(self) -> Iterator[str]:
        """What the agent itself finds, for every fourth history: its twin is repeated in any
        case."""
        faults = self._agent._commands.ledger.faults()
        if faults:
            yield f"unsound: {faults}"
        if self._plan.seed % 4 == 0 and not (condition := self._agent.check()).sound:
            yield f"unsound: {condition}"


def twin(records: list[Record], agent: Agent) -> Iterator[str]:
    """An agent that has lived through the same records, without any fault and any snapshot."""
    commands, undisturbed = agent._commands, MemoryLedger()
    undisturbed.write({key: commands.ledger.read(key) or "" for key in TEXTS})
    for record in records:
        undisturbed.append(record)
    other = Agent(undisturbed, training="manual")  # type: ignore[arg-type]
    if differences := other._commands.state.differences + commands.state.differences:
        yield f"otherwise: {differences} decisions when they were repeated"
    if _state(agent) != _state(other):
        yield "otherwise: the state is not that of its twin"
    # How far it has looked for what is due is not in the records: the twin goes on from there.
    other._commands.state.due = commands.state.due
    at = max([record.at for record in records], default=0.0) + 1.0
    if agent.choose({"visit": 0}, at=at) != other.choose({"visit": 0}, at=at):
        yield "otherwise: the next decision is not that of its twin"


def _state(agent: Agent) -> bytes:
    """All that an agent knows. How far it has looked for decisions that are due is no knowledge: it
    looks again."""
    return snapshots.dump({**agent._commands.state.take()(), "due": 0})


def _choices(call: Call) -> list[tuple[Any, Any]]:
    """Decisions that were asked for, each with its answer."""
    if call.kind == "choose":
        return [(call.body, call.answer if call.told else None)]
    if call.kind == "batch":
        answers = call.answer["decisions"] if call.told else [None] * len(call.body["decisions"])
        return list(zip(call.body["decisions"], answers, strict=True))
    return []


def _rewards(call: Call) -> list[tuple[Any, Any]]:
    """Rewards that were given, each with its answer."""
    if call.kind == "reward":
        if call.status is None:
            return [(call.body, None)]
        return [
            (
                call.body,
                {"status": call.status, "duplicate": not call.told or call.answer["duplicate"]},
            )
        ]
    if call.kind == "rewards":
        answers = call.answer["rewards"] if call.told else [None] * len(call.body["rewards"])
        answers = [None if a is None else {"duplicate": True, **a} for a in answers]
        return list(zip(call.body["rewards"], answers, strict=True))
    return []
