"""Connections of `apsw` that look like those of `sqlite3`: the small part of its interface that the
ledger uses.

A thread can be interrupted before each statement, and the process can die in it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import apsw

from tests.property.simulation.process import Killed
from tests.property.simulation.vfs import NAME, current

_MESSAGES: list[tuple[type[Exception], type[sqlite3.Error], str]] = [
    (apsw.FullError, sqlite3.OperationalError, "database or disk is full"),
    (apsw.IOError, sqlite3.OperationalError, "disk I/O error"),
    (apsw.BusyError, sqlite3.OperationalError, "database is locked"),
    (apsw.LockedError, sqlite3.OperationalError, "database table is locked"),
    (apsw.CantOpenError, sqlite3.OperationalError, "unable to open database file"),
    (apsw.ReadOnlyError, sqlite3.OperationalError, "attempt to write a readonly database"),
    (apsw.ConstraintError, sqlite3.IntegrityError, "constraint failed"),
    (apsw.NotADBError, sqlite3.DatabaseError, "file is not a database"),
    (apsw.CorruptError, sqlite3.DatabaseError, "database disk image is malformed"),
]


class Cursor:
    """Rows of a statement, all fetched."""

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows, self.rowcount = rows, rowcount

    def fetchone(self) -> Any:
        return self._rows.pop(0) if self._rows else None

    def fetchall(self) -> list[Any]:
        rows, self._rows = self._rows, []
        return rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


class Connection:
    """The part of `sqlite3.Connection` that the ledger uses."""

    def __init__(self, uri: str) -> None:
        self._here = current()
        parts = urlsplit(uri)
        read_only = parse_qs(parts.query).get("mode") == ["ro"]
        flags = (
            apsw.SQLITE_OPEN_READONLY
            if read_only
            else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        )
        with self._explained():
            self._apsw = apsw.Connection(unquote(parts.path), flags=flags, vfs=NAME)
        self._here.connections.append(self._apsw)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Cursor:
        self._point()
        with self._explained():
            rows = self._apsw.execute(self._adapted(sql), tuple(values)).fetchall()
            return Cursor(rows, self._apsw.changes())

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> Cursor:
        self._point()
        with self._explained():
            self._apsw.executemany(sql, [tuple(row) for row in rows])
            return Cursor([], self._apsw.changes())

    @property
    def in_transaction(self) -> bool:
        return bool(self._apsw.in_transaction)

    def close(self) -> None:
        with self._explained():
            self._apsw.close()
        if self._apsw in self._here.connections:
            self._here.connections.remove(self._apsw)

    def _adapted(self, sql: str) -> str:
        """Planted faults sync less."""
        if sql.startswith("PRAGMA busy_timeout"):
            return "PRAGMA busy_timeout = 0"  # nobody sleeps here
        if sql.startswith("PRAGMA synchronous") and self._here.synchronous is not None:
            return f"PRAGMA synchronous = {self._here.synchronous}"
        return sql

    def _point(self) -> None:
        if self._here.threads is not None:
            self._here.threads.point()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            if not self._here.process.alive:
                raise Killed from None
            for kind, as_kind, message in _MESSAGES:
                if isinstance(error, kind):
                    raise as_kind(message) from error
            raise sqlite3.DatabaseError(str(error)) from error
        if not self._here.process.alive:
            raise Killed


def connect(place: str, **_: Any) -> Connection:
    """In the place of `sqlite3.connect`."""
    return Connection(place)
