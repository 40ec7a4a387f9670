"""A ledger over a store that refuses, or keeps and does not say so: quick, and with the agent's
real queue before it.

The store is like a database on another machine. It keeps a group of records whole or not at all,
and outlives the process.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.property.simulation.process import Process
from tests.property.simulation.threads import Threads
from tidepull.agent.ledger.base import MemoryLedger
from tidepull.agent.ledger.commits import GroupCommit
from tidepull.agent.records import Kind, Record
from tidepull.errors import LedgerError


class Shelf(MemoryLedger):
    """What is durable. `refuses` is how often a write fails and nothing is kept, `doubts` how often
    it fails although all is kept, `unreadable` how often a look fails."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng
        self.refuses = self.doubts = self.unreadable = 0.0
        self.refused = self.doubted = 0

    def keep(self, records: list[Record]) -> None:
        """A group of records, in one piece."""
        names = [record.name for record in records if record.name is not None]
        if (
            records[0].seq <= self.last
            or len(set(names)) < len(names)
            or any(map(self.named, names))
        ):
            raise LedgerError("simulated: a number or a name is there already")
        for record in records:
            self.append(record)

    def write_fails(self, *, before: bool) -> None:
        """Perhaps a write fails, before or after it has been done."""
        if self._rng.random() < (self.refuses if before else self.doubts):
            self.refused += before
            self.doubted += not before
            raise LedgerError("simulated: the store cannot be written to")

    def look_fails(self) -> None:
        """Perhaps a look fails."""
        if self.unreadable and self._rng.random() < self.unreadable:
            raise LedgerError("simulated: the store cannot be read")

    def heal(self) -> None:
        """Nothing fails any more."""
        self.refuses = self.doubts = self.unreadable = 0.0


class ShelfLedger:
    """A process's ledger on a shelf."""

    def __init__(
        self, shelf: Shelf, process: Process, threads: Threads, now: Callable[[], float]
    ) -> None:
        self._shelf, self._process, self._threads = shelf, process, threads
        self.now = now
        self._point()
        self._shelf.look_fails()
        self._commits = GroupCommit(shelf.last, self._write, "the simulated store")

    @property
    def last(self) -> int:
        return self._commits.last

    @property
    def safe(self) -> int:
        return self._commits.safe

    @property
    def failed(self) -> bool:
        return self._commits.failed

    def append(self, record: Record) -> None:
        self._commits.append(record)

    def flush(self, seq: int) -> None:
        self._commits.flush(seq)

    def recover(self) -> None:
        self._point()
        self._shelf.look_fails()
        self._commits.recover(self._shelf.last)

    def _write(self, records: list[Record]) -> None:
        self._point()
        self._shelf.write_fails(before=True)
        self._shelf.keep(records)
        self._point()
        self._shelf.write_fails(before=False)

    def _changed(self, change: Any) -> Any:
        with self._commits.lock:
            self._point()
            self._shelf.write_fails(before=True)
            result = change()
            self._point()
            return result

    def _look(self) -> Shelf:
        if not self._process.alive:
            self._process.require()
        self._shelf.look_fails()
        return self._shelf

    def decision(self, seq: int) -> Record | None:
        return self._look().decision(seq)

    def named(self, name: str) -> Record | None:
        return self._look().named(name)

    def about(self, seq: int) -> list[Record]:
        return self._look().about(seq)

    def tail(self, after: int, upto: int | None = None) -> Iterator[Record]:
        return iter(list(self._look().tail(after, upto)))

    def of_kind(self, kind: Kind) -> list[Record]:
        return self._look().of_kind(kind)

    def save(self, seq: int, at: float, data: bytes) -> None:
        self.flush(seq)
        self._changed(lambda: self._shelf.save(seq, at, data))

    def drop_snapshots(self, after: int) -> None:
        self._changed(lambda: self._shelf.drop_snapshots(after))

    def snapshots(self) -> list[int]:
        return self._look().snapshots()

    def snapshot(self, seq: int) -> bytes:
        return self._look().snapshot(seq)

    def read(self, key: str) -> str | None:
        return self._look().read(key)

    def write(self, values: Mapping[str, str]) -> None:
        self._changed(lambda: self._shelf.write(values))

    def remove(self, *, upto: int = 0, subject: bytes | None = None) -> int:
        count: int = self._changed(lambda: self._shelf.remove(upto=upto, subject=subject))
        return count

    def drop_contexts(self, upto: int, before: float) -> None:
        self._changed(lambda: self._shelf.drop_contexts(upto, before))

    def faults(self) -> list[str]:
        return []

    def close(self) -> None:
        if self._process.alive and not self._commits.empty:
            self.flush(self._commits.last)

    def _point(self) -> None:
        self._threads.point()
