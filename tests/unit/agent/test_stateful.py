"""Ledgers and arms under any sequence of calls, compared with the simplest thing that could be
right."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.postgres import Server
from tests.property.quick import QUICK
from tests.unit.agent.worlds import SHOP, START, visit
from tidepull.agent.agent import Agent
from tidepull.agent.ledger import ledger_at
from tidepull.agent.ledger.base import MemoryLedger
from tidepull.agent.ledger.sqlite import SqliteLedger
from tidepull.agent.records import Kind, Record
from tidepull.errors import ArmError, HeldError, RewardError
from tidepull.state import difference

FEW = settings(QUICK, max_examples=12, stateful_step_count=25)


class LedgerMachine(RuleBasedStateMachine):
    """A list is the model. What was flushed is there after the ledger is opened again; what was not
    may be gone."""

    def opened(self) -> Any:
        raise NotImplementedError

    def crash(self) -> None:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.ledger: Any = self.opened()
        self.model: list[Record] = []
        self.safe = 0
        self.saved: dict[int, bytes] = {}

    @rule(
        kind=st.sampled_from(list(Kind)),
        ref=st.none() | st.integers(1, 5),
        body=st.binary(max_size=20),
    )
    def append(self, kind: Kind, ref: int | None, body: bytes) -> None:
        seq = len(self.model) + 1
        record = Record(
            kind,
            float(seq),
            seq % 3,
            ref,
            body,
            body or None,
            None,
            f"n{seq}" if seq % 2 else None,
            seq,
        )
        self.ledger.append(record)
        self.model.append(record)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def flush(self, data: st.DataObject) -> None:
        seq = data.draw(st.integers(1, len(self.model)))
        self.ledger.flush(seq)
        if seq > self.safe:
            self.safe = len(self.model)  # all that wait go together

    @precondition(lambda self: self.model)
    @rule(data=st.binary(max_size=50))
    def save(self, data: bytes) -> None:
        self.ledger.save(len(self.model), 0.0, data)
        self.saved[len(self.model)] = data
        self.safe = len(self.model)

    @rule()
    def die(self) -> None:
        self.crash()
        self.ledger = self.opened()
        self.model = self.model[: self.safe]

    @invariant()
    def same(self) -> None:
        safe = self.model[: self.safe]
        assert self.ledger.last == len(self.model)
        assert list(self.ledger.tail(0)) == safe
        assert list(self.ledger.tail(2, 4)) == safe[2:4]
        for seq in range(1, 4):
            assert self.ledger.about(seq) == [record for record in safe if record.ref == seq]
            found = (
                safe[seq - 1] if seq <= len(safe) and safe[seq - 1].kind is Kind.DECISION else None
            )
            assert self.ledger.decision(seq) == found
        assert self.ledger.of_kind(Kind.NOTE) == [
            record for record in safe if record.kind is Kind.NOTE
        ]
        kept = self.ledger.snapshots()
        assert all(self.ledger.snapshot(seq) == self.saved[seq] for seq in kept)
        assert not self.saved or kept[0] == max(self.saved)

    def teardown(self) -> None:
        self.ledger.close()


class SqliteMachine(LedgerMachine):
    def opened(self) -> SqliteLedger:
        self.folder = getattr(self, "folder", None) or Path(tempfile.mkdtemp())
        return SqliteLedger(self.folder / "a.db")

    def crash(self) -> None:
        self.ledger._writer.close()
        lock = self.ledger._file_lock
        assert lock is not None
        lock.release()

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


class MemoryMachine(LedgerMachine):
    """It has no file to open again, and is always safe."""

    def opened(self) -> MemoryLedger:
        return MemoryLedger()

    @rule()
    def die(self) -> None:
        self.safe = len(self.model)

    @invariant()
    def same(self) -> None:
        self.safe = len(self.model)
        super().same()


class PostgresMachine(LedgerMachine):
    """Another agent of one database each time."""

    server: Server

    def opened(self) -> Any:
        self.name = getattr(self, "name", None) or uuid4().hex
        given_up = time.monotonic() + 20
        while True:
            try:
                return ledger_at(self.server.url(self.name, tail="&lease=0.2"))[0]
            except (
                HeldError
            ):  # on a starved machine the server may be slow to see that a session has ended
                if time.monotonic() > given_up:
                    raise

    def crash(self) -> None:
        self.ledger._leases._held.clear()
        self.ledger._leases.close()


class AgentMachine(RuleBasedStateMachine):
    """Arms come and go, rewards come late or twice, the agent is closed and opened; a twin in
    memory that is never closed decides alike."""

    @initialize(
        policy=st.sampled_from(["ucb", "lin-ts", "lin-ts with features"]),
        context=st.sampled_from([SHOP["context"], None]),
    )
    def open(self, policy: str, context: Any) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.described = policy.endswith("features")
        arms = (
            {label: self.features(label) for label in SHOP["arms"]}
            if self.described
            else SHOP["arms"]
        )
        given = {
            **SHOP,
            "arms": arms,
            "policy": policy.split()[0],
            "context": context,
            "training": "inline",
        }
        self.agent = Agent(self.folder / "a.db", **given, snapshot_every=15)
        self.twin = Agent.memory(**given)
        self.arms = list(SHOP["arms"])
        self.decisions: list[tuple[str, str]] = []
        self.paid: dict[int, float] = {}

    def features(self, label: str) -> dict[str, float]:
        return {"length": float(len(label)), "first": float(ord(label[0]))}

    @rule(n=st.integers(0, 50), among=st.none() | st.sets(st.integers(0, 4), min_size=1))
    def choose(self, n: int, among: set[int] | None) -> None:
        arms = None if among is None else sorted({self.arms[k % len(self.arms)] for k in among})
        at = START + 60.0 * len(self.decisions)
        made = [one.choose(visit(n), arms=arms, at=at) for one in (self.agent, self.twin)]
        assert made[0].arm in (arms or self.arms)
        assert (made[0].arm, made[0].propensity, made[0].group) == (
            made[1].arm,
            made[1].propensity,
            made[1].group,
        )
        self.decisions.append((made[0].id, made[1].id))

    @precondition(lambda self: bool(getattr(self, "decisions", ())))
    @rule(data=st.data(), value=st.sampled_from([0.0, 1.0, 2.5]))
    def reward(self, data: st.DataObject, value: float) -> None:
        n = data.draw(st.integers(0, len(self.decisions) - 1))
        for one, id in zip((self.agent, self.twin), self.decisions[n], strict=True):
            try:
                news = one.reward(id, value)
                assert self.paid.get(n, value) == value
                assert news == (n not in self.paid)
            except RewardError:
                assert self.paid[n] != value
        self.paid.setdefault(n, value)

    @rule(
        label=st.sampled_from(["blue", "green", "red", "pink", "grey", "gold"]),
        op=st.sampled_from(["add", "retire"]),
    )
    def change(self, label: str, op: str) -> None:
        fits = (
            (label not in self.arms) if op == "add" else (label in self.arms and len(self.arms) > 1)
        )
        for one in (self.agent, self.twin):
            try:
                getattr(one, op)(
                    label, *([self.features(label)] if op == "add" and self.described else [])
                )
                assert fits
            except ArmError:
                assert not fits
        if fits:
            (self.arms.append if op == "add" else self.arms.remove)(label)

    @rule()
    def reopen(self) -> None:
        self.agent.close()
        self.agent = Agent(self.folder / "a.db", training="inline", snapshot_every=15)
        assert self.agent._commands.state.differences == 0
        learnt, by_twin = (one._commands.state.learning.take()() for one in (self.agent, self.twin))
        assert difference(learnt, by_twin, "learning") is None

    @invariant()
    def arms_are_the_same(self) -> None:
        if hasattr(self, "agent"):
            assert set(self.agent.arms) == set(self.twin.arms) == set(self.arms)

    def teardown(self) -> None:
        if hasattr(self, "agent"):
            self.reopen()
            self.agent.close()
            shutil.rmtree(self.folder)


@pytest.fixture
def for_machines(postgres: Server) -> None:
    PostgresMachine.server = postgres


TestSqliteLedger = SqliteMachine.TestCase
TestSqliteLedger.settings = FEW
TestMemoryLedger = MemoryMachine.TestCase
TestMemoryLedger.settings = FEW
TestPostgresLedger = pytest.mark.usefixtures("for_machines")(PostgresMachine.TestCase)
TestPostgresLedger.settings = settings(FEW, max_examples=6, stateful_step_count=15)
TestAgent = AgentMachine.TestCase
TestAgent.settings = FEW
