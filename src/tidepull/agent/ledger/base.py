"""The seam between an agent and its store: the `Ledger` protocol, one in memory, and what ledgers in
SQL share."""

from __future__ import annotations

import time
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import chain, groupby, repeat
from typing import Any, Protocol

from tidepull.agent.ledger.commits import GroupCommit
from tidepull.agent.records import Kind, Record
from tidepull.errors import LedgerError


class Ledger(Protocol):
    """An append-only list of records, numbered from 1, with snapshots beside it.

    `append` only hands a record over; it is safe once `flush` has returned for its own number. What
    was not flushed when the process died may be gone, and nothing after a lost record is kept. One
    thread at a time appends; any may flush.
    """

    def append(self, record: Record) -> None:
        """Take a record, whose number must be `last` + 1."""

    def flush(self, seq: int) -> None:
        """Return when record `seq` is safe. If its write failed it is a `LedgerError`, now and
        later, whoever has called `recover` since: the record may be there or not."""

    @property
    def last(self) -> int:
        """The number of the last record that was appended; 0 if there is none."""

    @property
    def safe(self) -> int:
        """The number of the last record that is safe."""

    @property
    def failed(self) -> bool:
        """Whether a `flush` failed, and `recover` was not called since."""

    def decision(self, seq: int) -> Record | None:
        """The decision of that number."""

    def named(self, name: str) -> Record | None:
        """The decision that its caller named so."""

    def about(self, seq: int) -> list[Record]:
        """What is known of a decision: its rewards, and that its time is over, in order."""

    def tail(self, after: int, upto: int | None = None) -> Iterator[Record]:
        """Records from number `after` + 1 on, in order, as far as they are safe."""

    def of_kind(self, kind: Kind) -> list[Record]:
        """All records of one of the rare kinds, in order."""

    def recover(self) -> None:
        """After a failed `flush`: read from the store what is safe, and take records again."""

    def save(self, seq: int, at: float, data: bytes) -> None:
        """Keep a snapshot of the state after record `seq`; older ones are thinned out."""

    def drop_snapshots(self, after: int) -> None:
        """Snapshots of later states are of no use any more."""

    def snapshots(self) -> list[int]:
        """The numbers of the snapshots that are kept, newest first."""

    def snapshot(self, seq: int) -> bytes:
        """One of them."""

    def read(self, key: str) -> str | None:
        """A text that belongs to the ledger as a whole."""

    def write(self, values: Mapping[str, str]) -> None:
        """Keep such texts; safe on return."""

    def remove(self, *, upto: int = 0, subject: bytes | None = None) -> int:
        """Delete decisions up to a number, or of a subject, with all that is about them, and
        snapshots of earlier states but for the newest two; how many decisions. Where records were
        deleted, one of kind REMOVED has the hash of the last of them. The ledger is not whole any
        more (text `whole`: "no")."""

    def drop_contexts(self, upto: int, before: float) -> None:
        """Forget the contexts of decisions up to a number that were made before a moment."""

    def faults(self) -> list[str]:
        """What is wrong with the store itself; none is good."""

    def now(self) -> float:
        """The present moment by the clock that all who write to the store share, in seconds since
        1970."""

    def close(self) -> None:
        """Let go of everything; what was not flushed is flushed."""


PAGES = (64, 512, 2000)
"""Records of the first page that `tail` reads from a store, of the second, and of all further ones:
most want few."""

KEPT = 4
"""Snapshots that are kept whatever their age; beyond them, one for each doubling of the distance
from the newest."""


def surplus_snapshots(seqs: list[int]) -> list[int]:
    """Which snapshots to drop.

    >>> surplus_snapshots([10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
    [10, 20, 40, 50]
    """
    newest_first = sorted(seqs, reverse=True)
    keep, seen = set(newest_first[:KEPT]), set()
    for seq in newest_first[KEPT:]:
        if (distance := (newest_first[0] - seq).bit_length()) not in seen:
            seen.add(distance)
            keep.add(seq)
    return sorted(set(seqs) - keep)


class MemoryLedger:
    """A ledger that dies with its process."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._last = 0
        self._about: dict[int, list[Record]] = {}
        self._named: dict[str, int] = {}
        self._snapshots: dict[int, bytes] = {}
        self._texts: dict[str, str] = {}

    @property
    def last(self) -> int:
        """The number of the last record."""
        return self._last

    safe = last
    failed = False

    def append(self, record: Record) -> None:
        """Take a record."""
        self._records.append(record)
        self._last = record.seq
        if record.ref is not None:
            self._about.setdefault(record.ref, []).append(record)
        if record.name is not None:
            self._named[record.name] = record.seq

    def flush(self, seq: int) -> None:
        """Memory needs none."""

    def decision(self, seq: int) -> Record | None:
        """The decision of that number."""
        place = bisect_left(self._records, seq, key=lambda record: record.seq)
        if place == len(self._records) or self._records[place].seq != seq:
            return None
        record = self._records[place]
        return record if record.kind is Kind.DECISION else None

    def named(self, name: str) -> Record | None:
        """The decision that its caller named so."""
        return self.decision(self._named.get(name, 0))

    def about(self, seq: int) -> list[Record]:
        """What is known of a decision."""
        return list(self._about.get(seq, ()))

    def tail(self, after: int, upto: int | None = None) -> Iterator[Record]:
        """Records in order."""
        start = bisect_right(self._records, after, key=lambda record: record.seq)
        for record in self._records[start:]:
            if upto is not None and record.seq > upto:
                return
            yield record

    def of_kind(self, kind: Kind) -> list[Record]:
        """All records of a kind."""
        return [record for record in self._records if record.kind is kind]

    def recover(self) -> None:
        """Memory does not fail."""

    def drop_snapshots(self, after: int) -> None:
        """Without later ones."""
        self._snapshots = {seq: data for seq, data in self._snapshots.items() if seq <= after}

    def save(self, seq: int, at: float, data: bytes) -> None:
        """Keep a snapshot."""
        self._snapshots[seq] = data
        for old in surplus_snapshots(list(self._snapshots)):
            del self._snapshots[old]

    def snapshots(self) -> list[int]:
        """Newest first."""
        return sorted(self._snapshots, reverse=True)

    def snapshot(self, seq: int) -> bytes:
        """One of them."""
        return self._snapshots[seq]

    def read(self, key: str) -> str | None:
        """A text."""
        return self._texts.get(key)

    def write(self, values: Mapping[str, str]) -> None:
        """Keep texts."""
        self._texts.update(values)

    def remove(self, *, upto: int = 0, subject: bytes | None = None) -> int:
        """Delete decisions."""
        gone = {
            record.seq
            for record in self._records
            if record.kind is Kind.DECISION
            and (record.seq <= upto or (subject is not None and record.subject == subject))
        }
        self._records = [
            Record(Kind.REMOVED, r.at, seq=r.seq, hash=r.hash) if {r.seq, r.ref} & gone else r
            for r in self._records
        ]
        runs = groupby(self._records, key=lambda record: record.kind is Kind.REMOVED)
        self._records = [r for removed, run in runs for r in ([*run][-1:] if removed else run)]
        self._about = {ref: about for ref, about in self._about.items() if ref not in gone}
        self._named = {name: seq for name, seq in self._named.items() if seq not in gone}
        self._snapshots = {seq: self._snapshots[seq] for seq in self.snapshots()[:2]}
        self._texts["whole"] = "no"
        return len(gone)

    def drop_contexts(self, upto: int, before: float) -> None:
        """Forget contexts."""
        self._texts["whole"] = "no"
        self._records = [
            record._replace(context=None) if record.seq <= upto and record.at < before else record
            for record in self._records
        ]

    def faults(self) -> list[str]:
        """Memory has none."""
        return []

    def now(self) -> float:
        """By the machine's clock."""
        return time.time()

    def close(self) -> None:
        """Nothing to let go of."""


COLUMNS = "kind, at, slices, ref, body, context, subject, name, seq, hash"
"""Columns of the table of records."""

_KEEP = (
    "INSERT INTO {texts} ({of}key, value) VALUES ({id}?, ?) "
    "ON CONFLICT ({of}key) DO UPDATE SET value = EXCLUDED.value"
)


class SqlLedger:
    """What ledgers in SQL share: group commit, and all statements about records, snapshots and texts.

    Statements have `?` for each value and `{records}`, `{snapshots}` and `{texts}` for the tables.
    `{mine}` is the condition that a row is of this ledger; where many ledgers share the tables,
    `{of}` and `{id}` begin a list of columns and a list of values.
    """

    where: str
    _commits: GroupCommit
    _names: Mapping[str, str]  # what stands for the names in braces
    _contexts_from = 0  # no decision before it has a context any more

    def _rows(self, query: str, *values: Any) -> list[Any]:
        """All rows that a query finds on disk."""
        raise NotImplementedError

    def _writing(self, *, long: bool = False) -> AbstractContextManager[Callable[..., Any]]:
        """A transaction between two commits: a function that runs a statement with some values, and
        returns its cursor. `long`: it is about all records."""
        raise NotImplementedError

    def _records(self, where: str, *values: Any) -> list[Record]:
        """The records on disk for which a condition holds."""
        raise NotImplementedError

    @property
    def last(self) -> int:
        """The number of the last record that was appended."""
        return self._commits.last

    @property
    def safe(self) -> int:
        """The number of the last record that is on disk."""
        return self._commits.safe

    @property
    def failed(self) -> bool:
        """Whether a write failed since the last recovery."""
        return self._commits.failed

    def append(self, record: Record) -> None:
        """Take a record."""
        self._commits.append(record)

    def flush(self, seq: int) -> None:
        """Return when record `seq` is on disk."""
        self._commits.flush(seq)

    def decision(self, seq: int) -> Record | None:
        """The decision of that number, if it is on disk."""
        return next(iter(self._records("seq = ? AND kind = 1", seq)), None)

    def named(self, name: str) -> Record | None:
        """The record of that name, if it is on disk."""
        return next(iter(self._records("name = ?", name)), None)

    def about(self, seq: int) -> list[Record]:
        """The records about a decision that are on disk."""
        return self._records("ref = ? ORDER BY seq", seq)

    def tail(self, after: int, upto: int | None = None) -> Iterator[Record]:
        """Records in order, as far as they are on disk."""
        upto = 2**62 if upto is None else upto
        for page in chain(PAGES, repeat(PAGES[-1])):
            records = self._records("seq > ? AND seq <= ? ORDER BY seq LIMIT ?", after, upto, page)
            yield from records
            if len(records) < page:
                return
            after = records[-1].seq

    def of_kind(self, kind: Kind) -> list[Record]:
        """All records of one of the rare kinds."""
        return self._records("kind = ? AND kind > 3 ORDER BY seq", int(kind))

    def save(self, seq: int, at: float, data: bytes) -> None:
        """Keep a snapshot, after everything before it is safe."""
        self.flush(seq)
        packed = zlib.compress(data, 1)
        with self._writing() as write:
            write(
                "INSERT INTO {snapshots} ({of}seq, at, checksum, data) VALUES ({id}?, ?, ?, ?) "
                "ON CONFLICT ({of}seq) DO UPDATE "
                "SET at = EXCLUDED.at, checksum = EXCLUDED.checksum, data = EXCLUDED.data",
                seq, at, zlib.crc32(packed), packed,
            )  # fmt: skip
            rows = write("SELECT seq FROM {snapshots} WHERE {mine}").fetchall()
            for old in surplus_snapshots([row[0] for row in rows]):
                write("DELETE FROM {snapshots} WHERE {mine} AND seq = ?", old)

    def drop_snapshots(self, after: int) -> None:
        """Without later ones."""
        with self._writing() as write:
            write("DELETE FROM {snapshots} WHERE {mine} AND seq > ?", after)

    def snapshots(self) -> list[int]:
        """Newest first."""
        return [
            r[0] for r in self._rows("SELECT seq FROM {snapshots} WHERE {mine} ORDER BY seq DESC")
        ]

    def snapshot(self, seq: int) -> bytes:
        """A snapshot; a `LedgerError` where it is damaged."""
        query = "SELECT checksum, data FROM {snapshots} WHERE {mine} AND seq = ?"
        rows = self._rows(query, seq)
        checksum, packed = rows[0] if rows else (None, b"")
        if zlib.crc32(packed) != checksum:
            raise LedgerError(
                f"the snapshot {seq} in {self.where} is damaged: its checksum does not fit"
            )
        try:
            return zlib.decompress(packed)
        except zlib.error as error:
            raise LedgerError(f"the snapshot {seq} in {self.where} is damaged: {error}") from None

    def read(self, key: str) -> str | None:
        """A text."""
        rows = self._rows("SELECT value FROM {texts} WHERE {mine} AND key = ?", key)
        return rows[0][0] if rows else None

    def write(self, values: Mapping[str, str]) -> None:
        """Keep texts."""
        with self._writing() as write:
            for key, value in values.items():
                write(_KEEP, key, value)

    def remove(self, *, upto: int = 0, subject: bytes | None = None) -> int:
        """Delete decisions for good."""
        which = "{mine} AND kind = 1 AND (seq <= ? OR subject = ?)"
        remove = (
            "UPDATE {records} SET kind = 15, slices = 0, ref = NULL, body = ?, context = NULL, "
            "subject = NULL, name = NULL WHERE "
        )
        about = "{mine} AND ref IN (SELECT seq FROM {records} WHERE " + which + ")"
        newest = "SELECT seq FROM {snapshots} WHERE {mine} ORDER BY seq DESC LIMIT 2"
        with self._writing(long=True) as write:
            write(remove + about, b"", upto, subject)
            count = int(write(remove + which, b"", upto, subject).rowcount)
            write(
                "DELETE FROM {records} AS old WHERE {mine} AND kind = 15 AND 15 = (SELECT kind "
                "FROM {records} WHERE {mine} AND seq > old.seq ORDER BY seq LIMIT 1)"
            )
            write("DELETE FROM {snapshots} WHERE {mine} AND seq NOT IN (" + newest + ")")
            write(_KEEP, "whole", "no")
        return count

    def drop_contexts(self, upto: int, before: float) -> None:
        """Forget contexts."""
        with self._writing(long=True) as write:
            write(
                "UPDATE {records} SET context = NULL WHERE {mine} AND kind = 1 AND seq >= ? "
                "AND seq <= ? AND at < ? AND context IS NOT NULL",
                self._contexts_from, upto, before,
            )  # fmt: skip
            left = write(
                "SELECT seq FROM {records} WHERE {mine} AND seq >= ? AND context IS NOT NULL "
                "ORDER BY seq LIMIT 1",
                self._contexts_from,
            ).fetchone()
            self._contexts_from = left[0] if left else self._contexts_from
            write(_KEEP, "whole", "no")

    def _flush_all(self) -> None:
        """Write what waits, before the store is closed; it may not have been opened."""
        waiting: GroupCommit | None = getattr(self, "_commits", None)
        if waiting is not None and not waiting.empty:
            self.flush(waiting.last)
