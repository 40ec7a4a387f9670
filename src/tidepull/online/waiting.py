"""Records that wait to be safe: the first thread that needs one writes all that wait.

Those that come meanwhile wait for the next time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from tidepull.errors import LedgerError
from tidepull.online.records import Record


class Waiting:
    """A queue before a store that writes many records at once. `write` keeps all that it is given, in one piece, or
    raises and keeps none. `lock` is held by whoever writes to the store."""

    def __init__(self, last: int, write: Callable[[list[Record]], None], where: str) -> None:
        self.lock = threading.Lock()
        self.last = self.safe = last
        self._write = write
        self._where = where
        self._mutex = threading.Lock()  # guards all below, `last` and `safe`
        self._records: list[Record] = []
        self._failed: BaseException | None = None
        self._lost: list[tuple[int, int]] = []  # spans (after, upto] of records that could not be written

    def append(self, record: Record) -> None:
        """Take a record."""
        with self._mutex:
            if self._failed is not None:
                raise self._said_again()
            self.last = record.seq
            self._records.append(record)

    def flush(self, seq: int) -> None:
        """Return when record `seq` is written."""
        if seq <= self.safe and not self._lost:
            return
        with self.lock:
            with self._mutex:
                if any(after < seq <= upto for after, upto in self._lost):
                    raise self._said_again()
                if seq <= self.safe:
                    return
                records, self._records = self._records, []
            try:
                self._write(records)
            except BaseException as error:
                with self._mutex:
                    self._failed = error
                    self._lost.append((records[0].seq - 1, self.last))
                    self._records = []
                raise
            self.safe = records[-1].seq

    def recover(self, stored: int | None = None) -> None:
        """Take records again, after those that are stored; the numbers of lost ones are not used a second time."""
        with self.lock, self._mutex:
            self._failed = None
            if stored is not None:
                self.last = max(self.last, stored)
                self.safe = max(self.safe, stored)

    def _said_again(self) -> LedgerError:
        kind = type(self._failed) if isinstance(self._failed, LedgerError) else LedgerError
        return kind(str(self._failed or f"cannot write to {self._where}: it failed before"))

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._records
