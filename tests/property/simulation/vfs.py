"""SQLite on the simulated disk: a VFS of `apsw`.

All bytes, sizes, names and syncs go to the disk of the simulation. Locks and the shared memory of
the write-ahead log die with a process anyway; SQLite's own unix VFS has them, on an empty file of
the same name in a real directory.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from tests.property.simulation.disk import Disk, File
from tests.property.simulation.process import Process
from tests.property.simulation.threads import Threads

NAME = "tidepull-simulation"
_LOGS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL


class Machine:
    """What SQLite stands on just now: a disk, the process that uses it, and its threads. One at a
    time. `synchronous` takes the place of what the ledger asks for, where less is planted."""

    synchronous: str | None = None

    def __init__(self, disk: Disk, real: Path) -> None:
        self.disk = disk
        self.real = real
        self.process = Process(0, None)
        self.threads: Threads | None = None
        self.connections: list[apsw.Connection] = []

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


def current() -> Machine:
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
        here = current()
        _alive(here.process)
        if path not in here.disk.names and not flags[0] & apsw.SQLITE_OPEN_CREATE:
            raise apsw.CantOpenError(path)
        file = here.disk.names.setdefault(path, File())
        flags[1] = flags[0]
        if flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return MainFile(here, path, file, flags)
        created = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _LOGS)
        return PlainFile(here, file, syncs_names=created)

    def xDelete(self, name: str, sync: bool) -> None:  # noqa: N802
        here = current()
        _alive(here.process)
        if here.disk.names.pop(name, None) is None:
            raise _extended(apsw.IOError(name), apsw.SQLITE_IOERR_DELETE_NOENT)
        if sync:
            here.disk.sync_names()

    def xAccess(self, name: str, flags: int) -> bool:  # noqa: N802
        return name in current().disk.names

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name

    def excepthook(self, *_: object) -> None:
        """What SQLite swallows is no news."""


class PlainFile:
    """A log or a journal. The directory is synced with its first sync by whoever may create it, as
    on unix."""

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
            (flags[0] & ~apsw.SQLITE_OPEN_READONLY)
            | apsw.SQLITE_OPEN_READWRITE
            | apsw.SQLITE_OPEN_CREATE,
            0,
        ]
        super().__init__("unix", here.real_name(path), real)
        plain = PlainFile(here, file, syncs_names=False)
        self.xRead, self.xWrite, self.xTruncate = plain.xRead, plain.xWrite, plain.xTruncate
        self.xSync, self.xFileSize = plain.xSync, plain.xFileSize

    def excepthook(self, *_: object) -> None:
        """What SQLite swallows is no news."""


def _alive(process: Process) -> None:
    if not process.step():
        raise apsw.IOError("the process is dead")


@contextmanager
def _as_sqlite() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise (apsw.FullError if error.errno == errno.ENOSPC else apsw.IOError)(
            str(error)
        ) from None


def _extended(error: Any, code: int) -> Exception:
    error.extendedresult = code
    assert isinstance(error, Exception)
    return error


VFS = SimulatedVfs()
"""Registered for as long as this module is there."""
