"""A ledger in one SQLite file: written ahead, synced in full, many threads in one commit, one
writing process.

Records wait in a list until a thread needs one of them to be safe (`waiting.py`).
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tidepull._internal.files import drop_cache, sync, temporary_name
from tidepull.agent.ledger.base import COLUMNS, SqlLedger
from tidepull.agent.ledger.commits import GroupCommit
from tidepull.agent.ledger.files import WATCH, FileLock, identity
from tidepull.agent.ledger.wal import unreadable_commits
from tidepull.agent.records import RELEASE_KEY, Record, newer_store, record_of
from tidepull.errors import LedgerError, WrongStoreError

VERSION = 2
"""Version of the tables; raised with a step in `_MIGRATIONS` when they change."""

_MIGRATIONS: dict[int, str] = {1: "ALTER TABLE records ADD COLUMN hash BLOB"}
"""From a version to SQL that leads to the next one."""

CACHE = 256
"""Kilobytes of pages that a connection keeps for itself."""

_FILES = ("", "-wal", "-shm")

LOG_PAGES = 4000
"""Pages in the log (16 MB) after which it is moved into the file."""

PAGES_OF_A_COMMIT = 4
"""Pages that a commit of one record writes to the log, about."""

_PAGE = 4096

PATIENCE = 4_000
"""Milliseconds for which a connection waits for another program's lock; less than callers wait."""

_DISK_ERRORS = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_MISUSE,
)
_LOG = logging.getLogger("tidepull")
_MARK = 0x7D1E  # SQLite's application_id: the file is an agent of tidepull
_TABLES = """
CREATE TABLE texts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE records (seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, at REAL NOT NULL, slices INTEGER NOT NULL,
  ref INTEGER, body BLOB NOT NULL, context BLOB, subject BLOB, name TEXT, hash BLOB);
CREATE INDEX by_ref ON records (ref) WHERE ref IS NOT NULL;
CREATE INDEX by_subject ON records (subject) WHERE subject IS NOT NULL;
CREATE INDEX by_kind ON records (kind) WHERE kind > 3;
CREATE UNIQUE INDEX by_name ON records (name) WHERE name IS NOT NULL;
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, at REAL NOT NULL, checksum INTEGER NOT NULL, data BLOB NOT NULL);
"""
_INSERT = f"INSERT INTO records ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_NAMES = {"records": "records", "snapshots": "snapshots", "texts": "texts", "mine": "true"}
_NAMES |= {"of": "", "id": ""}


class SqliteLedger(SqlLedger):
    """The ledger at `path`, made if there is none (unless it is only read)."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path, self.where, self._names = path, str(path), _NAMES
        self._read_only = read_only
        self._file_lock: FileLock | None = None
        self._reading = threading.Lock()
        self._closed = False
        self._log_pages = 0
        if read_only and not path.is_file():
            raise WrongStoreError(f"there is no agent at {path}")
        if not read_only:
            if not path.parent.is_dir():
                raise WrongStoreError(
                    f"the directory of {path} does not exist: make it or choose another path"
                )
            self._file_lock = FileLock(path)
        try:
            with self._explained("open"):
                self._open()
        except BaseException:
            self.close()
            raise
        self._disk_failed = False
        stored = self._stored()
        if self._file_lock is not None:
            self._require_all(self._file_lock, stored)
        self._commits = GroupCommit(stored, self._write, self.where)
        if not read_only:
            WATCH.add(self)

    def _require_all(self, lock: FileLock, stored: int) -> None:
        """Refuse a file that ends before what was safe when a process died with it: its log was
        deleted or cut off."""
        marked = lock.marked(self._files[0])
        if marked <= stored:
            return
        lock.mark(self._files[0], marked)
        self.close()
        raise LedgerError(
            f"{self.path} ends at record {stored:,}, and had {marked:,}: its log (-wal) is missing "
            f"or cut off; put it back, restore a copy, or delete {self.path}.lock to go on without "
            "its end"
        )

    def _stored(self) -> int:
        return int(self._rows("SELECT coalesce(max(seq), 0) FROM records")[0][0])

    def _write(self, waiting: list[Record]) -> None:
        with self._explained("write to"):
            self._insert(waiting)
            if self._file_lock is not None:
                self._file_lock.mark(self._files[0], waiting[-1].seq)
            size = sum(len(record.body) + len(record.context or b"") for record in waiting)
            self._count_pages(PAGES_OF_A_COMMIT + size // _PAGE)

    def _count_pages(self, pages: int) -> None:
        """Move the log into the file when it has become long.

        SQLite would do so by itself and say nothing of a sync that fails. A reader would keep it
        from moving all: what it moves in part is not synced, and a failed sync later would lose it.
        """
        self._log_pages += pages
        if self._log_pages >= LOG_PAGES:
            with self._reading:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._log_pages = 0

    def _insert(self, waiting: list[Record]) -> None:
        with self._transaction():
            self._writer.executemany(
                _INSERT, [(int(record.kind), *record[1:]) for record in waiting]
            )

    def recover(self) -> None:
        """Take records again, after those that are in the file, which is opened anew if the disk
        has failed.

        After a failed sync the system's cache may differ from the disk, and open connections trust
        the cache.
        """
        if self._disk_failed:
            with self._commits.lock, self._reading, self._explained("open"):
                if identity(self.path) != self._files[0]:
                    raise LedgerError(
                        f"{self.path} is not the file that was opened: put it back, or close the "
                        "agent"
                    )
                self._close_connections(
                    ("_writer", "_reader")
                )  # a reader moves nothing: all of the log stays
                self._open()
                self._contexts_from, self._disk_failed = 0, False
        self._commits.recover(self._stored())

    def now(self) -> float:
        """By the machine's clock."""
        return time.time()

    def close(self) -> None:
        """Write what waits, close the file and let others have it."""
        try:
            if self._file_lock is not None and hasattr(self, "_commits"):
                self._flush_all()
                self._file_lock.mark(self._files[0], 0)
        finally:
            self._closed = True
            WATCH.remove(self)
            with self._alone():
                self._close_connections()
            if self._file_lock is not None:
                self._file_lock.release()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait for reads and writes of other threads, as long as a lock is waited for."""
        commits: GroupCommit | None = getattr(self, "_commits", None)
        locks = [self._reading] if commits is None else [commits.lock, self._reading]
        held = [lock for lock in locks if lock.acquire(timeout=PATIENCE / 1000)]
        try:
            yield
        finally:
            for lock in held:
                lock.release()

    def _close_connections(self, names: tuple[str, str] = ("_reader", "_writer")) -> None:
        """The last one moves the log into the file, if it may write."""
        for name in names:
            if hasattr(self, name):
                with suppress(sqlite3.Error):
                    getattr(self, name).close()

    def _open(self) -> None:
        if self._read_only:
            _require_whole(self.path)
            self._reader = _connect(f"{self.path.absolute().as_uri()}?{_reading(self.path)}")
            self._check(self._reader)
            return
        if not self.path.exists():
            self._create()
        _require_whole(self.path)
        log = Path(f"{self.path}-wal")
        drop_cache(log)  # only what is on disk is moved into the file
        if (lost := unreadable_commits(log)) > 1:
            raise LedgerError(
                f"the log of {self.path} (-wal) is damaged: {lost} commits in it cannot be read; "
                "restore a copy, or delete the log to go on without them"
            )
        self._writer = _connect(self.path.absolute().as_uri())
        (mode,) = self._writer.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise LedgerError(f"{self.path} cannot be written ahead here: choose a local disk")
        self._writer.execute("PRAGMA synchronous = FULL")
        self._writer.execute("PRAGMA wal_autocheckpoint = 0")
        self._check(self._writer)
        self._reader = _connect(f"{self.path.absolute().as_uri()}?mode=ro")
        self._reader.execute("SELECT 1 FROM records LIMIT 1").fetchall()  # now the log is there
        self._empty_log()
        self._migrate()
        self._files = self._identities()

    def _identities(self) -> list[tuple[int, int] | None]:
        """What the names of the file, its log and its index stand for now."""
        return [identity(Path(f"{self.path}{ending}")) for ending in _FILES]

    def inspect(self) -> None:
        """Notice files that were deleted or replaced while they are open.

        What is in a deleted log is still there for the open connection: it is moved into the file,
        and a new log is begun. A file that is gone takes nothing more until it is back.
        """
        if self._commits.failed or self._identities() == self._files:
            return
        with self._commits.lock, self._reading:
            there = self._identities()
            if there == self._files or self._closed:
                return
            if there[0] != self._files[0]:
                error = LedgerError(
                    f"{self.path} was deleted or replaced while the agent is open: put it back, or "
                    "close the agent; "
                    "nothing is taken until then"
                )
                self._commits.refuse(self._commits.safe, error)
                self._disk_failed = True
                _LOG.error("%s", error)
                return
            (busy, *_) = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if not busy:
                self._close_connections()
                self._open()
                _LOG.error(
                    "the log of %s (-wal or -shm) was deleted while the agent is open; all that "
                    "was acknowledged was "
                    "moved into the file, and nothing is lost: these files must never be deleted",
                    self.path,
                )

    def _empty_log(self) -> None:
        """Move all that is committed into the file and sync it.

        A process whose sync failed may have left frames in the log, or pages in the file, that are
        in the system's cache and not on the disk. Here they are written again, from the log, which
        is then empty.
        """
        self._writer.execute(
            "PRAGMA busy_timeout = 1000"
        )  # a program that reads the file keeps it from being emptied
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._writer.execute(f"PRAGMA busy_timeout = {PATIENCE}")
        self._log_pages = 0
        # An older log whose deletion or end is not on disk would be written over newer pages after
        # a power cut.
        sync(Path(f"{self.path}-wal"))
        sync(self.path.parent)

    def _create(self) -> None:
        """All tables or no file: who is killed in between leaves nothing that could be taken for an
        agent."""
        temporary = temporary_name(self.path)
        temporary.touch(0o600, exist_ok=False)  # nobody but its owner may read it
        connection = _connect(temporary.absolute().as_uri())
        try:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_MARK}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        finally:
            connection.close()
        temporary.replace(self.path)
        sync(self.path.parent)

    def remove(self, *, upto: int = 0, subject: bytes | None = None) -> int:
        """Delete decisions for good: freed pages are overwritten, and nothing stays behind in the
        log."""
        with self._commits.lock, self._explained("write to"):
            self._writer.execute("PRAGMA secure_delete = ON")
        count = super().remove(upto=upto, subject=subject)
        with self._commits.lock, self._explained("write to"):
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return count

    def faults(self) -> list[str]:
        """What SQLite finds wrong with the file."""
        return [row[0] for row in self._rows("PRAGMA integrity_check") if row[0] != "ok"]

    def _check(self, connection: sqlite3.Connection) -> None:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        if mark != _MARK:
            raise WrongStoreError(
                f"{self.path} is a database, but not of an agent: choose another path"
            )
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            named = None
            with suppress(sqlite3.Error):
                (named,) = connection.execute(
                    "SELECT value FROM texts WHERE key = ?", (RELEASE_KEY,)
                ).fetchone()
            raise newer_store(str(self.path), named, f" (tables of version {version})")
        before_hashes = self._read_only and version == 1
        self._columns = COLUMNS.replace("hash", "NULL") if before_hashes else COLUMNS

    def _migrate(self) -> None:
        (version,) = self._writer.execute("PRAGMA user_version").fetchone()
        for old in range(version, VERSION):
            with self._transaction():
                for statement in _MIGRATIONS[old].split(";"):
                    self._writer.execute(statement)
                self._writer.execute(f"PRAGMA user_version = {old + 1}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            yield
            self._writer.execute("COMMIT")
        except BaseException as error:
            if isinstance(error, sqlite3.Error):
                code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
                self._disk_failed |= code & 0xFF in _DISK_ERRORS
            with suppress(sqlite3.Error):
                self._writer.execute("ROLLBACK")
            raise

    @contextmanager
    def _writing(self, *, long: bool = False) -> Iterator[Callable[..., Any]]:
        def write(text: str, *values: Any) -> Any:
            size = sum(len(value) for value in values if isinstance(value, bytes))
            self._log_pages += size // _PAGE  # the next commit moves them
            return self._writer.execute(text.format(**self._names), values)

        with self._commits.lock, self._explained("write to"), self._transaction():
            yield write

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._reading, self._explained("read"):
            return self._reader.execute(query.format(**self._names), values).fetchall()

    def _records(self, where: str, *values: Any) -> list[Record]:
        return [
            record_of(row)
            for row in self._rows(f"SELECT {self._columns} FROM records WHERE {where}", *values)
        ]

    @contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if self._closed:
                raise LedgerError(f"the agent at {self.path} is closed; open it again") from error
            raise LedgerError(f"cannot {verb} {self.path}: {_fix(error)}") from error


def _require_whole(path: Path) -> None:
    """A file that is shorter than its own first page says was cut off, unless pages wait in the log
    to be moved."""
    with path.open("rb") as handle:
        head, size = handle.read(100), path.stat().st_size
    if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
        raise LedgerError(
            f"{path} is not a database, or its beginning is damaged: restore a copy, or remove it "
            "to start again"
        )
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    log = path.with_name(path.name + "-wal")
    if size < (65536 if page == 1 else page) * pages and not (log.is_file() and log.stat().st_size):
        raise LedgerError(f"{path} is damaged: its end is missing; restore a copy")


def _reading(path: Path) -> str:
    """How a file is opened for reading. SQLite needs to write beside a file that may change; where
    it cannot, one without a log is read as one that does not change."""
    has_log = path.with_name(path.name + "-wal").exists()
    return "mode=ro" if has_log or os.access(path.parent, os.W_OK) else "mode=ro&immutable=1"


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=PATIENCE / 1000
    )
    # The system keeps the file's pages; a second copy would be 2 MB for each connection of every
    # agent.
    connection.execute(f"PRAGMA cache_size = -{CACHE}")
    return connection


def _fix(error: Exception) -> str:
    text = str(error)
    fixes = {
        "database or disk is full": "the disk is full: free some space; nothing that was "
        "acknowledged is lost",
        "attempt to write a readonly database": "it is read-only: change its permissions, or give "
        "read_only=True",
        "unable to open database file": "it cannot be opened: check the path and its permissions",
        "disk I/O error": "the disk reports an error: check the disk; nothing that was "
        "acknowledged is lost",
        "file is not a database": "it is not a database, or its beginning is damaged: restore a "
        "copy",
        "database disk image is malformed": "it is damaged: restore a copy, or try .recover of the "
        "sqlite3 shell",
        "database is locked": "another program has locked it: close that program",
        "Cannot operate on a closed database": "it could not be opened again after its disk "
        "failed: check the disk",
    }
    return next((fix for sign, fix in fixes.items() if sign in text), text)
