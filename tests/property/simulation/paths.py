"""Paths on the simulated disk: the part of `pathlib.Path` that agents and their store use."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tests.property.simulation.disk import Disk, File
from tidepull.errors import HeldError

ROOT = "/simulated"
_disk: Disk | None = None
_held: set[str] = set()
_marks: dict[tuple[str, str], int] = {}  # they outlive power cuts, the worst case


def mount(disk: Disk | None) -> None:
    """All simulated paths are on this disk from now on."""
    global _disk
    _disk = disk
    _held.clear()
    _marks.clear()


def release_all() -> None:
    """A process died, and its locks with it."""
    _held.clear()


def _on() -> Disk:
    assert _disk is not None, "no disk is mounted"
    return _disk


class SimulatedPath(type(Path())):  # type: ignore[misc]
    """A file in the one simulated directory."""

    def is_dir(self) -> bool:
        return str(self) == ROOT

    def is_file(self) -> bool:
        return str(self) in _on().names

    def exists(self, **_: Any) -> bool:
        return self.is_file() or self.is_dir()

    def mkdir(self, *_: Any, **__: Any) -> None:
        assert self.is_dir()

    def open(self, mode: str = "r", *_: Any, **__: Any) -> Any:
        assert mode == "rb"
        disk = _on()
        return io.BytesIO(disk.read(self._file(), 1 << 40, 0))

    def stat(self, **_: Any) -> os.stat_result:
        file = self._file()
        return os.stat_result((0, file.number, 0, 0, 0, 0, len(file.seen), 0, 0, 0))

    def touch(self, *_: Any, **__: Any) -> None:
        assert not self.is_file()  # opening it makes it

    def replace(self, target: Any) -> Any:
        self._file()
        _on().rename(str(self), str(target))
        return target

    def unlink(self, missing_ok: bool = False) -> None:
        if _on().names.pop(str(self), None) is None and not missing_ok:
            raise FileNotFoundError(str(self))

    def glob(self, pattern: str) -> Iterator[Any]:
        return iter(
            [SimulatedPath(name) for name in _on().names if fnmatch(Path(name).name, pattern)]
        )

    def _file(self) -> File:
        try:
            return _on().names[str(self)]
        except KeyError:
            raise FileNotFoundError(str(self)) from None


def simulated_sync(path: Any) -> None:
    """A file, or the names in the one directory."""
    if str(path) == ROOT:
        _on().sync_names()
    else:
        _on().sync(SimulatedPath(path)._file())


def simulated_drop_cache(path: Any) -> None:
    """What is clean is read from the disk from now on."""
    if str(path) in _on().names:
        _on().drop_cache(SimulatedPath(path)._file())


class SimulatedFileLock:
    """The right to write to an agent's file; it dies with the process."""

    def __init__(self, path: Path) -> None:
        self._name = str(path)
        if self._name in _held:
            raise HeldError(f"{path} is held by this process")
        _held.add(self._name)

    def marked(self, file: object) -> int:
        return _marks.get((self._name, str(file)), 0)

    def mark(self, file: object, seq: int) -> None:
        _marks[self._name, str(file)] = seq

    def release(self) -> None:
        _held.discard(self._name)


class SimulatedWatch:
    """Who wants to be inspected from time to time; the history does it."""

    def __init__(self) -> None:
        self.opened: list[Any] = []

    def add(self, one: Any) -> None:
        self.opened.append(one)

    def remove(self, one: Any) -> None:
        if one in self.opened:
            self.opened.remove(one)
