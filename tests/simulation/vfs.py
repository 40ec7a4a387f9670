"""SQLite on the simulated disk: a VFS of `apsw`, and connections that look like those of `sqlite3`.

All bytes, sizes, names and syncs go to the disk of the simulation. Locks and the shared memory of the write-ahead log
die with a process anyway; SQLite's own unix VFS has them, on an empty file of the same name in a real directory.
"""

from __future__ import annotations

import errno
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import apsw

from tests.simulation.disk import Disk, File
from tests.simulation.process import Killed, Process
from tests.simulation.threads import Threads

NAME = "tidepull-simulation"
_LOGS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
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


class Machine:
    """What SQLite stands on just now: a disk, the process that uses it, and its threads. One at a time.
    `synchronous` takes the place of what the ledger asks for, where less is planted."""

    synchronous: str | None = None

    def __init__(self, disk: Disk, real: Path) -> None:
        self.disk = disk
        self.real = real
        self.process = Process(0, None)
        self.threads: Threads | None = None
        self.connections: list[apsw.Connection] = []
        self.checkpoint = 4000

    def boot(self, process: Process, threads: Threads) -> None:
        """A new process; locks and shared memory of the last one are gone."""
        self.process, self.threads = process, threads
        (self.real / str(process.number)).mkdir()

    def real_name(self, name: str) -> str:
        """The empty file that stands for a database, for this process."""
        return str(self.real / str(self.process.number) / Path(name).name)

    def drop(self) -> None:
        """The process is dead: its connections end without a trace."""
        for connection in self.connections:
            with suppress(apsw.Error):
                connection.close(True)
        self.connections.clear()


_machine: Machine | None = None


@contextmanager
def machine(disk: Disk) -> Iterator[Machine]:
    """SQLite runs on a disk, until the end of the block."""
    global _machine
    with tempfile.TemporaryDirectory(prefix="tidepull-", dir=_quick()) as real:
        _machine = Machine(disk, Path(real))
        try:
            yield _machine
        finally:
            _machine.process.alive = False
            _machine.drop()
            _machine = None


def _quick() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _now() -> Machine:
    assert _machine is not None, "SQLite's simulated disk is used outside of a simulation"
    return _machine


_Vfs: Any = apsw.VFS
_VfsFile: Any = apsw.VFSFile


class SimulatedVfs(_Vfs):  # type: ignore[misc]
    """Names and files on the simulated disk."""

    def __init__(self) -> None:
        super().__init__(NAME, "unix")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        here = _now()
        _alive(here.process)
        new = path not in here.disk.names
        if new and not flags[0] & apsw.SQLITE_OPEN_CREATE:
            raise apsw.CantOpenError(path)
        file = here.disk.names.setdefault(path, File())
        flags[1] = flags[0]
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return MainFile(here, path, file, flags)
        return PlainFile(here, file, syncs_names=new and bool(flags[0] & _LOGS))

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
        here = _now()
        _alive(here.process)
        if here.disk.names.pop(name, None) is None:
            raise _extended(apsw.IOError(name), apsw.SQLITE_IOERR_DELETE_NOENT)
        if sync:
            here.disk.sync_names()

    def xAccess(self, name: str, flags: int) -> bool:  # noqa: N802
        return name in _now().disk.names

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name

    def excepthook(self, *_: object) -> None:
        """What SQLite swallows is no news."""


class PlainFile:
    """A log or a journal. The directory is synced with the first sync of one that is new, as SQLite does on unix."""

    def __init__(self, here: Machine, file: File, *, syncs_names: bool) -> None:
        self._disk, self._process, self._file = here.disk, here.process, file
        self._syncs_names = syncs_names

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        _alive(self._process)
        with _as_sqlite():
            return self._disk.read(self._file, amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        _alive(self._process)
        with _as_sqlite():
            self._disk.write(self._file, bytes(data), offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        _alive(self._process)
        self._disk.truncate(self._file, size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        _alive(self._process)
        with _as_sqlite():
            self._disk.sync(self._file)
        if self._syncs_names:
            self._disk.sync_names()
            self._syncs_names = False

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._file.seen)

    def xClose(self) -> None:  # noqa: N802
        """Nothing is held."""

    def xLock(self, level: int) -> None:  # noqa: N802
        """Only the database itself is locked."""

    xUnlock = xLock  # noqa: N815

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return 4096

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return int(apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE)

    def excepthook(self, *_: object) -> None:
        """What SQLite swallows is no news."""


class MainFile(_VfsFile):  # type: ignore[misc]
    """A database: its bytes are simulated, its locks and shared memory are SQLite's own."""

    def __init__(self, here: Machine, path: str, file: File, flags: list[int]) -> None:
        real = [
            (flags[0] & ~apsw.SQLITE_OPEN_READONLY) | apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE,
            0,
        ]
        super().__init__("unix", here.real_name(path), real)
        plain = PlainFile(here, file, syncs_names=False)
        self.xRead, self.xWrite, self.xTruncate = plain.xRead, plain.xWrite, plain.xTruncate
        self.xSync, self.xFileSize = plain.xSync, plain.xFileSize

    def excepthook(self, *_: object) -> None:
        """What SQLite swallows is no news."""


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
        self._here = _now()
        parts = urlsplit(uri)
        read_only = parse_qs(parts.query).get("mode") == ["ro"]
        flags = (
            apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
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
        """Short histories need a short log, so that it is moved into the file too; planted faults sync less."""
        if sql.startswith("PRAGMA wal_autocheckpoint"):
            return f"PRAGMA wal_autocheckpoint = {self._here.checkpoint}"
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


def _alive(process: Process) -> None:
    if not process.step():
        raise apsw.IOError("the process is dead")


@contextmanager
def _as_sqlite() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise (apsw.FullError if error.errno == errno.ENOSPC else apsw.IOError)(str(error)) from None


def _extended(error: Any, code: int) -> Exception:
    error.extendedresult = code
    assert isinstance(error, Exception)
    return error


VFS = SimulatedVfs()
"""Registered for as long as this module is there."""
