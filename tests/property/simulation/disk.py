"""A disk under a page cache: what is written is seen at once, and is there after a power cut only
if it was synced.

At a power cut every write since the last sync is kept, lost, or torn at a sector, each for itself:
so they are also reordered. A sync that fails leaves the pages clean, as on Linux: some of them are
on disk, the others will never be, unless they are written again.
"""

from __future__ import annotations

import errno
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

SECTOR = 512
_NUMBERS = count(1)


@dataclass
class Faults:
    """How often what fails; `full` is how often the disk becomes full, for some calls."""

    write: float = 0.0
    sync: float = 0.0
    read: float = 0.0
    full: float = 0.0


@dataclass
class File:
    """What is seen of a file, what is on disk, and what was done since: bytes at a place, or a
    size. No other file has its number."""

    seen: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    dirty: list[tuple[int, bytes | None]] = field(default_factory=list)
    number: int = field(default_factory=_NUMBERS.__next__)


class Disk:
    """Files by path. `names` are the entries of the one directory, `durable_names` those that
    outlive a power cut."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.faults = Faults()
        self.failed: Counter[str] = Counter()
        self._full_for = 0
        self.names: dict[str, File] = {}
        self.durable_names: dict[str, File] = {}

    # ---- files

    def read(self, file: File, size: int, offset: int) -> bytes:
        """Bytes of a file."""
        if self._fails(self.faults.read):
            self.failed["reads"] += 1
            raise OSError(errno.EIO, "simulated: the disk cannot be read")
        return bytes(file.seen[offset : offset + size])

    def write(self, file: File, data: bytes, offset: int) -> None:
        """Write; where it fails, some of the data may have been written."""
        if self._is_full():
            self.failed["writes"] += 1
            raise OSError(errno.ENOSPC, "simulated: the disk is full")
        if self._fails(self.faults.write):
            self.failed["writes"] += 1
            self._put(file, data[: self._rng.randrange(len(data) + 1)], offset)
            raise OSError(errno.EIO, "simulated: the disk cannot be written")
        self._put(file, data, offset)

    def _put(self, file: File, data: bytes, offset: int) -> None:
        if data:
            _write(file.seen, offset, data)
            file.dirty.append((offset, data))

    def truncate(self, file: File, size: int) -> None:
        """Cut a file, or lengthen it."""
        _write(file.seen, size, None)
        file.dirty.append((size, None))

    def sync(self, file: File) -> None:
        """All that was written is on disk; or an error, and nobody knows what is."""
        if self._fails(self.faults.sync):
            self.failed["syncs"] += 1
            self._settle(file)
            if self._rng.random() < 0.3:
                file.seen = bytearray(file.durable)  # clean pages leave the cache whenever it likes
            raise OSError(errno.EIO, "simulated: the disk cannot be synced")
        for place, data in file.dirty:
            _write(file.durable, place, data)
        file.dirty.clear()

    def drop_cache(self, file: File) -> None:
        """What is clean is read from the disk from now on."""
        file.seen = bytearray(file.durable)
        for place, data in file.dirty:
            _write(file.seen, place, data)

    # ---- names

    def rename(self, old: str, new: str) -> None:
        """One file takes the place of another, at once for everybody who looks."""
        self.names[new] = self.names.pop(old)

    def sync_names(self) -> None:
        """The directory is on disk."""
        self.durable_names = dict(self.names)

    # ---- the end of a life

    def power_cut(self) -> None:
        """Only what is durable is left, and by chance some of the rest."""
        if self._rng.random() < 0.5:
            self.names = dict(self.durable_names)
        self.sync_names()
        for file in self.names.values():
            self._settle(file)
            file.seen = bytearray(file.durable)

    def _settle(self, file: File) -> None:
        """Each dirty write for itself: kept, lost or torn. Some cuts are kinder than others."""
        kept = self._rng.choice((0.0, 0.5, 0.9, 1.0))
        for place, data in file.dirty:
            fate = self._rng.random()
            if fate < kept:
                _write(file.durable, place, data)
            elif data is not None and fate < kept + (1.0 - kept) / 3:
                sectors = self._rng.randrange(1 + len(data) // SECTOR)
                _write(file.durable, place, data[: sectors * SECTOR])
        file.dirty.clear()

    def heal(self) -> None:
        """Nothing fails any more."""
        self.faults = Faults()
        self._full_for = 0

    def _fails(self, chance: float) -> bool:
        return chance > 0.0 and self._rng.random() < chance

    def _is_full(self) -> bool:
        if self._full_for > 0:
            self._full_for -= 1
            return True
        if self._fails(self.faults.full):
            self._full_for = self._rng.randrange(1, 12)
            return True
        return False


def _write(content: bytearray, place: int, data: bytes | None) -> None:
    """Bytes at a place, or the size of the whole."""
    end = place if data is None else place + len(data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if data is None:
        del content[place:]
    else:
        content[place:end] = data
