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
from tidepull.agent.ledger.base import GroupCommit


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault: how to plant it, and in which histories it can show."""

    plant: Callable[[], AbstractContextManager[object]]
    shows: Callable[[Plan], bool]


@contextmanager
def forgiven() -> Iterator[None]:
    """Somebody has recovered since: whoever still waits for a failed commit is told that it
    succeeded."""
    flush, recover = GroupCommit.flush, GroupCommit.recover

    def forgetful(self: Any, *given: Any) -> None:
        recover(self, *given)
        self.forgotten = self.last

    def kind(self: Any, seq: int) -> None:
        if seq > getattr(self, "forgotten", 0):
            flush(self, seq)

    with patch.object(GroupCommit, "recover", forgetful), patch.object(GroupCommit, "flush", kind):
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
    """After a failed commit the numbers of its records are given to others."""
    recover = GroupCommit.recover

    def thrifty(self: Any, *given: Any) -> None:
        recover(self, *given)
        self.last = self.safe
        for name in ("_lost", "_refused"):
            getattr(self, name, []).clear()

    with patch.object(GroupCommit, "recover", thrifty):
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
