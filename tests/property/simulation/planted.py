"""Faults that were or could be in the code, planted on purpose: what does not find them finds
nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from tests.property.simulation.plan import Plan
from tests.property.simulation.vfs import Machine
from tidepull.agent.decisions import Decisions
from tidepull.agent.ledger.commits import GroupCommit
from tidepull.errors import LedgerError


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault: how to plant it, and in which histories it can show."""

    plant: Callable[[], AbstractContextManager[object]]
    shows: Callable[[Plan], bool]


@contextmanager
def forgiven() -> Iterator[None]:
    """A failed commit is forgotten at once: the ledger takes records again, and whoever else waits
    for it is told that it succeeded."""
    flush = GroupCommit.flush

    def kind(self: Any, seq: int) -> None:
        if seq <= getattr(self, "forgotten", 0):
            return
        try:
            flush(self, seq)
        except LedgerError:
            self.recover()
            self.forgotten = self.last
            raise

    with patch.object(GroupCommit, "flush", kind):
        yield


@contextmanager
def early() -> Iterator[None]:
    """Two of three commits are acknowledged before anything is written."""
    flush = GroupCommit.flush

    def hasty(self: Any, seq: int) -> None:
        self.turn = (getattr(self, "turn", 0) + 1) % 3
        if not self.turn or seq <= self.safe:
            flush(self, seq)

    with patch.object(GroupCommit, "flush", hasty):
        yield


@contextmanager
def reused() -> Iterator[None]:
    """The numbers of a failed commit's records are given to others, at once."""
    flush = GroupCommit.flush

    def thrifty(self: Any, seq: int) -> None:
        try:
            flush(self, seq)
        except LedgerError:
            self.recover()
            self.last = self.safe
            self._refused.clear()
            raise

    with patch.object(GroupCommit, "flush", thrifty):
        yield


@contextmanager
def twice() -> Iterator[None]:
    """A reward that is only in the ledger, not in memory, is taken once more."""
    load = Decisions.load

    def blind(self: Any, record: Any) -> Any:
        known = load(self, record)
        known.paid = ()
        return known

    with patch.object(Decisions, "load", blind):
        yield


def unsynced() -> AbstractContextManager[object]:
    """The log is written and not synced."""
    return patch.object(Machine, "synchronous", "OFF")


def _fails(plan: Plan) -> bool:
    return plan.fault in ("write", "sync", "full", "all")


def _dies(plan: Plan) -> bool:
    return plan.fault in ("kill", "power", "all")


PLANTED = {
    "a failed commit is forgotten": Planted(forgiven, _fails),
    "told before it is written": Planted(early, _dies),
    "numbers used a second time": Planted(reused, _fails),
    "a reward taken twice": Planted(twice, lambda plan: _fails(plan) or _dies(plan)),
    "a log without sync": Planted(
        unsynced, lambda plan: plan.ledger == "sqlite" and plan.power and _dies(plan)
    ),
}
