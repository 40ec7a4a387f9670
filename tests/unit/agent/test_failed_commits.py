"""The n-th commit fails, for every n: whoever was told of success finds it in the ledger, once,
after a restart.

A refused step may be there or not; a retry with its id settles it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.service.houses import House
from tests.postgres import Server
from tidepull.agent.commands import Request
from tidepull.agent.ledger.postgres import PostgresLedger
from tidepull.agent.ledger.sqlite import SqliteLedger
from tidepull.agent.records import Kind, Record
from tidepull.agent.served import ServedAgent
from tidepull.errors import LedgerError, OtherRewardError
from tidepull.service.handlers import decisions as decision_handlers

MADE: dict[str, Any] = {"arms": ["a", "b", "c"], "context": {}, "policy": "bernoulli-ts", "seed": 3}


class FailingOnce:
    """The n-th commit of any ledger raises: before anything is written, or after all of it was
    (`late`)."""

    def __init__(self, n: int, *, late: bool) -> None:
        self._n, self._late, self._count = n, late, 0
        self.awaited = False  # whether it had decisions or rewards, which somebody waits for

    def around(self, honest: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def insert(ledger: Any, records: Any) -> None:
            self._count += 1
            fails = self._count == self._n
            if fails:
                self.awaited = any(
                    record.kind in (Kind.DECISION, Kind.REWARD) for record in records
                )
            if fails and not self._late:
                raise LedgerError("this commit fails")
            honest(ledger, records)
            if fails:
                raise LedgerError("this commit fails after all was written")

        return insert

    @property
    def happened(self) -> bool:
        return self._count >= self._n


@dataclass
class Place:
    """Where one agent is kept: `path` for an agent, `db` for a service (None: a directory)."""

    path: str
    name: str
    db: str | None = None


@pytest.fixture(params=["sqlite", "postgres"])
def new_place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Place]:
    def made() -> Place:
        name = f"shop-{uuid4().hex[:12]}"
        if request.param == "sqlite":
            return Place(str(tmp_path / f"{name}.db"), name)
        server: Server = request.getfixturevalue("postgres")
        return Place(server.url(name), name, server.url())

    return made


@dataclass
class Told:
    """What callers were told: the arms of decisions and the rewards that were taken, by the ids of
    decisions."""

    arms: dict[str, str] = field(default_factory=dict)
    rewards: dict[str, float] = field(default_factory=dict)
    refused: int = 0

    def audit(self, place: Place) -> None:
        """Compare with what is read from the store anew."""
        with ServedAgent(place.path) as agent:
            assert agent.check().sound
            rows = {row["id"]: row for row in agent.history("rows")}
            ledger, name = agent._commands.ledger, agent._commands.decisions.id
            ids = {r.seq: r.name or name(r.seq) for r in ledger.tail(0) if r.kind is Kind.DECISION}
            paid = Counter(ids[r.ref or 0] for r in ledger.tail(0) if r.kind is Kind.REWARD)
        for id, arm in self.arms.items():
            assert id in rows, f"decision {id} was acknowledged and is lost"
            assert rows[id]["arm"] == arm
        for id, reward in self.rewards.items():
            assert paid[id] == 1, (
                f"the reward of {id} was acknowledged, and is there {paid[id]} times"
            )
            assert rows[id]["reward"] == reward
        assert len(set(ids.values())) == len(ids)
        assert all(count == 1 for count in paid.values())


def every_commit(
    monkeypatch: pytest.MonkeyPatch,
    new_place: Callable[[], Place],
    late: bool,
    play: Callable[[Place, Told], None],
) -> None:
    for n in range(1, 200):
        place, told, fault = new_place(), Told(), FailingOnce(n, late=late)
        with ServedAgent(place.path, **MADE):
            pass
        with monkeypatch.context() as patched:
            for kind in (SqliteLedger, PostgresLedger):
                patched.setattr(kind, "_insert", fault.around(kind._insert))
            play(place, told)
        told.audit(place)
        if not fault.happened:
            break
        assert told.refused or not fault.awaited, f"commit {n} failed, and nobody was told"
    assert n > 8


def in_process(place: Place, told: Told) -> None:
    """Three threads decide and reward, one of them in batches; what was refused is asked again."""
    with ServedAgent(place.path, training="manual") as agent, ThreadPoolExecutor(3) as threads:

        def one(id: str) -> None:
            for _ in range(2):
                try:
                    told.arms[id] = agent.choose(id=id).arm
                    assert agent.reward(id, 1.0) in (True, False)
                    told.rewards[id] = 1.0
                    return
                except LedgerError:
                    told.refused += 1

        def many(prefix: str) -> None:
            ids = [f"{prefix}{k}" for k in range(4)]
            for _ in range(2):
                try:
                    made, seq = agent.choose_ahead([Request(id=id) for id in ids])
                    agent.commit(seq)
                    told.arms |= {id: decision.arm for id, decision in zip(ids, made, strict=True)}
                    steps = {id: agent.reward_ahead(id, 0.0)[1] for id in ids}
                    for id, step in steps.items():
                        agent.commit(step)
                        told.rewards[id] = 0.0
                    return
                except LedgerError:
                    told.refused += 1

        work = [threads.submit(one, f"single {k}") for k in range(5)]
        work += [threads.submit(many, f"batch {k} ") for k in range(3)]
        for done in work:
            done.result()


@pytest.mark.parametrize("late", [False, True], ids=["before writing", "after writing"])
def test_whoever_was_answered_in_process_finds_it_when_the_nth_commit_fails(
    monkeypatch: pytest.MonkeyPatch, new_place: Callable[[], Place], late: bool
) -> None:
    every_commit(monkeypatch, new_place, late, in_process)


def over_http(place: Place, told: Told, folder: Path) -> None:
    """Callers at the same time: singles with and without an id, and batches, whose rewards give way
    to others."""
    house = House(folder, db=place.db)
    path = f"/v1/agents/{place.name}"

    async def asked(what: str, body: Any) -> Any:
        answer = await house.asked("POST", f"{path}/{what}", body)
        if answer.status_code == 503:
            told.refused += 1
            return None
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def single(n: int) -> None:
        for _ in range(2):
            body = {"id": f"single {n}"} if n % 2 else {}
            made = await asked("choose", body)
            if made is not None:
                id = body.get("id", made["id"])
                told.arms[id] = made["arm"]
                for _ in range(2):
                    if await asked("reward", {"id": id, "reward": 1.0}) is not None:
                        told.rewards[id] = 1.0
                        return

    async def batch(n: int) -> None:
        ids = [f"batch {n} {k}" for k in range(4)]
        for _ in range(2):
            made = await asked("choose/batch", {"decisions": [{"id": id} for id in ids]})
            if made is not None:
                told.arms |= {
                    id: one["arm"] for id, one in zip(ids, made["decisions"], strict=True)
                }
                break
        wanted = ids
        for _ in range(2):
            taken = await asked(
                "rewards", {"rewards": [{"id": id, "reward": 0.0} for id in wanted]}
            )
            if taken is not None:
                told.rewards |= {one["id"]: 0.0 for one in taken["rewards"] if one["status"] == 200}
                wanted = [one["id"] for one in taken["rewards"] if one["status"] == 503]
                told.refused += len(wanted)
                if not wanted:
                    return

    async def caller(n: int) -> None:
        """Begins in a turn of its own, so that commits are shared by some and not by all."""
        for _ in range(7 * n):
            await asyncio.sleep(0)
        for round in range(4):
            await (single if n % 3 else batch)(10 * round + n)

    async def all_at_once() -> None:
        await asyncio.gather(*(caller(n) for n in range(8)))

    try:
        house.run(all_at_once())
    finally:
        house.close()


@pytest.mark.parametrize("late", [False, True], ids=["before writing", "after writing"])
def test_whoever_was_answered_over_http_finds_it_when_the_nth_commit_fails(
    monkeypatch: pytest.MonkeyPatch, new_place: Callable[[], Place], late: bool, tmp_path: Path
) -> None:
    monkeypatch.setattr(decision_handlers, "REWARDS_SECONDS", -1.0)
    every_commit(monkeypatch, new_place, late, lambda place, told: over_http(place, told, tmp_path))


def test_what_was_written_by_a_failed_commit_is_answered_when_it_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, new_place: Callable[[], Place]
) -> None:
    place, told = new_place(), Told()

    def late(play: Callable[[], object]) -> None:
        """Play while the commit fails after all was written."""
        with monkeypatch.context() as patched:
            fault = FailingOnce(1, late=True)
            for kind in (SqliteLedger, PostgresLedger):
                patched.setattr(kind, "_insert", fault.around(kind._insert))
            with pytest.raises(LedgerError, match="after all was written"):
                play()

    with ServedAgent(place.path, **MADE, training="manual") as agent:
        late(lambda: agent.choose(id="single"))
        told.arms["single"] = agent.choose(id="single").arm
        late(lambda: agent.reward("single", 1.0))
        assert agent.reward("single", 1.0) is False
        batch = [Request(id="one"), Request(id="two")]
        _, seq = agent.choose_ahead(batch)
        late(lambda: agent.commit(seq))
        made, again = agent.choose_ahead(batch)
        agent.commit(again)
        told.arms |= {"one": made[0].arm, "two": made[1].arm}
        with pytest.raises(LedgerError, match="after all was written"):
            agent.commit(seq)  # whoever was refused stays so
        told.rewards["single"] = 1.0
    told.audit(place)


def test_state_is_not_trusted_before_all_of_it_was_read_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with ServedAgent(tmp_path / "a.db", **MADE, training="manual") as agent:
        ledger = agent._commands.ledger
        with monkeypatch.context() as patched:
            patched.setattr(
                SqliteLedger, "_insert", FailingOnce(1, late=False).around(SqliteLedger._insert)
            )
            with pytest.raises(LedgerError):
                agent.choose(id="first")
        with monkeypatch.context() as patched:
            patched.setattr(
                SqliteLedger, "snapshots", lambda _: ledger.snapshot(-1)
            )  # nothing can be read
            with pytest.raises((LedgerError, IndexError)):
                agent.choose(id="first")
            assert agent.is_dirty
        assert agent.choose(id="first") == agent.choose(id="first")
        assert [row["id"] for row in agent.history("rows")] == ["first"]


def test_a_step_before_a_failed_commit_is_refused_whoever_recovers(tmp_path: Path) -> None:
    with ServedAgent(tmp_path / "a.db", **MADE, training="manual") as agent:
        first, seq = agent.choose_ahead([Request(id="first")])
        ledger = agent._commands.ledger
        assert isinstance(ledger, SqliteLedger)
        honest = ledger._insert

        def failing(waiting: list[Record]) -> None:
            raise LedgerError(f"this commit of {len(waiting)} fails")

        ledger._insert = failing  # type: ignore[method-assign]
        with pytest.raises(LedgerError):
            agent.choose(id="second")
        ledger._insert = honest  # type: ignore[method-assign]
        agent.recover()
        third, after = agent.choose_ahead([Request(id="third")])
        agent.commit(after)
        with pytest.raises(LedgerError, match="this commit of 2 fails"):
            agent.commit(seq)
        assert [row["id"] for row in agent.history("rows")] == ["third"]
        again = agent.choose(id="first")
        assert (first[0].id, again.id, third[0].id) == ("first", "first", "third")
        assert [row["id"] for row in agent.history("rows")] == ["third", "first"]
        agent.reward("first", 1.0)
        with pytest.raises(OtherRewardError):
            agent.reward("first", 0.0)
