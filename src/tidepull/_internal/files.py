"""Writing whole files that survive anything, and one sentence when the disk does not allow it."""

from __future__ import annotations

import errno
import os
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tidepull.errors import StoreError

TEMPORARY = ".tmp"
STALE = 3600.0
_FIXES = {
    errno.ENOSPC: "the disk is full: free some space and run the same command again",
    errno.EDQUOT: "the disk quota is used up: free some space and run the same command again",
    errno.EFBIG: "the file would exceed the size limit: raise it and run the same command again",
    errno.EROFS: "the file system is read-only: choose another directory",
    errno.EACCES: "permission denied: choose another directory or change its permissions",
    errno.EPERM: "permission denied: choose another directory or change its permissions",
    errno.ENOTDIR: "a part of the path is a file: choose another directory",
    errno.EEXIST: "a file is in the way: choose another directory",
    errno.EISDIR: "it is a directory: name a file",
    errno.ENOENT: "there is no such directory: make it or choose another one",
}
_NO_MISTAKE = (0, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of the machine; others come from the path that the caller gave (exit code 2)."""


def sync(path: Path) -> None:
    """Return when a file, or the names in a directory, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def drop_cache(path: Path) -> None:
    """Let the next reading of a file come from the disk, where the system can do so; no file is as
    good.

    After a failed sync the system may keep pages that are not on disk, and may drop them at any
    later moment.
    """
    with suppress(FileNotFoundError):
        handle = os.open(path, os.O_RDONLY)
        try:
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)


def write_whole(path: Path, data: bytes) -> None:
    """All of the data or nothing under that name."""
    with replacing(path) as handle:
        handle.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A handle whose content, synced, becomes `path` at the end; after an error `path` is as it was
    before."""
    temporary = temporary_name(path)
    with explained("write", path):
        try:
            with _created(temporary) as handle:
                yield handle
                handle.flush()
                os.fsync(handle.fileno())
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise


def _created(path: Path) -> BinaryIO:
    try:
        return path.open("xb")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")


def temporary_name(path: Path) -> Path:
    """A name beside `path` that no other process uses, and that says whose it is."""
    owner = f"{_host()}@{os.getpid()}"
    return path.with_name(f"{path.name}.{owner}.{uuid.uuid4().hex[:8]}{TEMPORARY}")


def abandoned(directory: Path) -> list[Path]:
    """Temporary files whose writer is dead: gone from this machine, or silent for an hour on
    another."""
    with explained("read", directory):
        return [path for path in directory.rglob(f"*{TEMPORARY}") if _is_abandoned(path)]


def _is_abandoned(path: Path) -> bool:
    owner = path.name.rsplit(".", 3)[1] if path.name.count(".") > 2 else ""
    host, _, pid = owner.partition("@")
    try:
        if host == _host() and pid.isdigit():
            os.kill(int(pid), 0)
            return False
        return time.time() - path.stat().st_mtime > STALE
    except ProcessLookupError:
        return True
    except OSError:
        return False


def _host() -> str:
    """This machine's name without dots, which separate the parts of a temporary name."""
    return socket.gethostname().replace(".", "_")


def read_whole(path: Path) -> bytes | None:
    """The file's content; None when there is no such file."""
    with explained("read", path):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None


@contextmanager
def explained(verb: str, path: Path) -> Iterator[None]:
    """Turn an operating-system error into one sentence."""
    try:
        yield
    except OSError as error:
        reason = _FIXES.get(error.errno or 0, f"{error.strerror or error}")
        failure = StoreError(f"cannot {verb} {path}: {reason}")
        failure.exit_code = 1 if (error.errno or 0) in _NO_MISTAKE else 2
        raise failure from error


@contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """Hold the lock of a file (flock), which is made where there is none; wait for those that have
    it."""
    import fcntl  # not on Windows

    with explained("lock", path), path.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
