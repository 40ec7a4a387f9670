"""Group commit: records of many callers are written at once, and each caller waits for its own."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable

from tidepull.agent.records import Record
from tidepull.errors import LedgerError


class GroupCommit:
    """A queue before a store that writes many records at once. `write` keeps all that it is given,
    in one piece, or raises. `lock` is held by whoever writes to the store.

    A failed write refuses its records for good: whoever waits for one of their numbers gets the
    error, also after `recover`, and the numbers are never used again in this process. Whether they
    reached the store is unknown.
    """

    def __init__(self, last: int, write: Callable[[list[Record]], None], where: str) -> None:
        self.lock = threading.Lock()
        self.last = self.safe = last
        self._write = write
        self._where = where
        self._mutex = threading.Lock()  # guards all below, `last` and `safe`
        self._records: list[Record] = []
        self._failure: LedgerError | None = None
        self._refused: list[
            tuple[int, int, LedgerError]
        ] = []  # spans (after, upto] of failed writes, in order

    def append(self, record: Record) -> None:
        """Take a record."""
        with self._mutex:
            if self._failure is not None:
                raise _again(self._failure)
            self.last = record.seq
            self._records.append(record)

    def flush(self, seq: int) -> None:
        """Return when record `seq` is written; an error if its write failed, whatever was written
        since."""
        if self._is_written(seq):
            return
        with self.lock:
            if self._is_written(seq):
                return
            records = self._records
            try:
                with self._mutex:
                    self._records = []
                self._write(records)
            except BaseException as error:
                self.refuse(records[0].seq - 1, error)
                raise
            self.safe = records[-1].seq

    def refuse(self, after: int, error: BaseException) -> None:
        """Refuse all records from number `after` + 1 on, and take no more until `recover`."""
        with self._mutex:
            self._failure = self._explained(error)
            self._refused.append((after, self.last, self._failure))
            self._records = []

    def _is_written(self, seq: int) -> bool:
        """Whether record `seq` is written; the error of its write if that failed."""
        if self._refused:
            place = bisect_left(self._refused, seq, key=lambda span: span[1])
            if place < len(self._refused) and self._refused[place][0] < seq:
                raise _again(self._refused[place][2])
        return seq <= self.safe

    @property
    def failed(self) -> bool:
        """Whether a write failed, and `recover` was not called since."""
        return self._failure is not None

    def recover(self, stored: int | None = None) -> None:
        """Take records again, after those that are stored; the numbers of lost ones are not used a
        second time."""
        with self.lock, self._mutex:
            self._failure = None
            if stored is not None:
                self.last = max(self.last, stored)
                self.safe = max(self.safe, stored)

    def _explained(self, error: BaseException) -> LedgerError:
        if isinstance(error, LedgerError):
            return _again(error)
        return LedgerError(f"cannot write to {self._where}: it failed before ({error!r})")

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._records


def _again(error: LedgerError) -> LedgerError:
    """The same error for another caller, without the first one's traceback."""
    return type(error)(str(error))
