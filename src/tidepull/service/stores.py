"""Where a service keeps its agents: files of a directory, or a database that several services
share."""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidepull._internal.extras import needs
from tidepull._internal.files import exclusively, explained, sync, write_whole
from tidepull.agent.ledger.files import FileLock
from tidepull.agent.served import ServedAgent
from tidepull.errors import ParameterError, TidepullError
from tidepull.service.messages import NAME

if TYPE_CHECKING:
    from tidepull.agent.ledger.database import Shard
    from tidepull.agent.ledger.leases import LeaseState

_NAME = re.compile(NAME)


@dataclass(frozen=True, slots=True)
class StoreHealth:
    """What a look at a store finds: bytes that are free (None: not known), and what is wrong."""

    free: int | None = None
    problem: str | None = None


class AgentStore(ABC):
    """Agents by name. `remote`: a commit waits for a network. `here`: where others reach this
    process, once it listens. `fixed`: an agent never changes its owner. What concerns other
    processes does nothing here: a store that is shared overrides it."""

    remote = False
    fixed = False
    here = ""

    @abstractmethod
    def names(self) -> list[str]:
        """All agents, sorted."""

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Whether there is one of that name."""

    @abstractmethod
    def open(self, name: str) -> ServedAgent:
        """The agent of that name; a `HeldError` where another process has it."""

    @abstractmethod
    def create(self, name: str, settings: dict[str, Any]) -> None:
        """A new agent, whole or not at all."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Delete one that is closed, for good."""

    def health(self, *, write: bool) -> StoreHealth:
        """Whether it can be written to, as far as it shows; `write`: try it."""
        return StoreHealth()

    def recent(self, most: int) -> list[str]:
        """The agents that were written to last; none where others may have taken them."""
        return []

    def lease_state(self) -> LeaseState | None:
        """How leases stand; None where there are none."""
        return None

    def owner(self, name: str) -> str | None:
        """Where the owner of an agent takes requests (empty: it takes none); None where it has no
        owner."""
        return None

    def shards(self) -> list[Shard]:
        """The processes that share the store and live."""
        return []

    def lost(self) -> list[str]:
        """Agents that another process has taken, and that are still open here."""
        return []

    def announce(self) -> None:  # noqa: B027
        """Say that this process lives."""

    def leave(self) -> None:  # noqa: B027
        """Say that this process takes no requests any more."""

    def close(self) -> None:  # noqa: B027
        """Release all agents."""


class Directory(AgentStore):
    """Agents as files of a directory. `exclusive`: no other service may have it."""

    def __init__(self, root: Path, *, exclusive: bool = True) -> None:
        self.root = root
        self._exclusive = exclusive
        self._lock: FileLock | None = None
        with explained("make", root):
            root.mkdir(parents=True, exist_ok=True)

    def health(self, *, write: bool) -> StoreHealth:
        """Free space, another service that has the directory, and whether a file can be written."""
        try:
            status = os.statvfs(self.root)
            if write:
                self._try_writing()
            if self._exclusive and self._lock is None:
                self._lock = FileLock(self.root / ".service")
        except (OSError, TidepullError) as error:
            return StoreHealth(
                problem=f"Another service has this directory, or the disk fails: {error}"
            )
        return StoreHealth(free=status.f_bavail * status.f_frsize)

    def _try_writing(self) -> None:
        probe = self.root / ".probe"
        with probe.open("wb") as handle:
            handle.write(bytes(65_536))
            handle.flush()
            os.fsync(handle.fileno())
        probe.unlink()

    def close(self) -> None:
        """Let another service have the directory."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def recent(self, most: int) -> list[str]:
        """The files that were written to last."""

        def written(name: str) -> float:
            wal = self.root / f"{name}.db-wal"
            return max(path.stat().st_mtime for path in (self._path(name), wal) if path.exists())

        with explained("read", self.root):
            return sorted(self.names(), key=written, reverse=True)[:most]

    def names(self) -> list[str]:
        """All agents, sorted."""
        with explained("read", self.root):
            return sorted(
                path.stem for path in self.root.glob("*.db") if _NAME.fullmatch(path.stem)
            )

    def exists(self, name: str) -> bool:
        """Whether there is one of that name."""
        return self._path(name).is_file()

    def open(self, name: str) -> ServedAgent:
        """The agent of that name."""
        return ServedAgent(self._path(name))

    def create(self, name: str, settings: dict[str, Any]) -> None:
        """A new agent, whole or not at all: under another name until all is written."""
        self.remove(f".{name}")
        try:
            ServedAgent(self._path(f".{name}"), training="manual", **settings).close()
            with explained("write", self.root):
                self._path(f".{name}").replace(self._path(name))
                sync(self.root)  # the name too is on disk before anybody is told of it
        finally:
            self.remove(f".{name}")

    def remove(self, name: str) -> None:
        """Delete its files for good."""
        for ending in ("", "-wal", "-shm", ".lock"):
            with explained("delete", self.root), suppress(FileNotFoundError):
                self._path(name).with_name(f"{name}.db{ending}").unlink()

    def _path(self, name: str) -> Path:
        return self.root / f"{name}.db"


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """Which of several workers a process is, from 1 on, and the folder that they share."""

    number: int
    count: int
    folder: Path

    @property
    def others(self) -> list[str]:
        """The other workers."""
        return [worker_url(k) for k in range(1, self.count + 1) if k != self.number]


def worker_url(number: int) -> str:
    """What a worker is called in logs and answers."""
    return f"worker:{number}"


class WorkerDirectory(Directory):
    """A directory that several workers of one service share. An agent belongs to one of them as
    long as they run; a file in their folder says which."""

    fixed = True

    def __init__(self, root: Path, place: WorkerPlace) -> None:
        super().__init__(root, exclusive=place.number == 1)
        self.here = worker_url(place.number)
        self._workers = place.count
        self._file = place.folder / "agents.json"
        self._numbers: dict[str, int] = {}

    def recent(self, most: int) -> list[str]:
        """Those of this worker."""
        names = super().recent(most * self._workers)
        return [name for name in names if self.owner(name) == self.here]

    def owner(self, name: str) -> str:
        """The worker that an agent belongs to; a new one goes to the worker that has fewest."""
        if name not in self._numbers:
            self._assign(name)
        return worker_url(self._numbers[name])

    def _assign(self, name: str) -> None:
        with exclusively(self._file.with_suffix(".lock")):
            if self._file.exists():
                self._numbers = json.loads(self._file.read_bytes())
            if name not in self._numbers:
                counts = dict.fromkeys(range(1, self._workers + 1), 0)
                for other in set(self.names()) & set(self._numbers):
                    counts[self._numbers[other]] += 1
                numbers = {**self._numbers, name: min(counts, key=lambda number: counts[number])}
                write_whole(self._file, json.dumps(numbers).encode())
                self._numbers = numbers


class SharedDatabase(AgentStore):
    """Agents in one PostgreSQL database; each is held by one process, through a lease that says
    where it takes requests (`here`)."""

    remote = True

    def __init__(self, url: str, here: str = "") -> None:
        with needs("a ledger in PostgreSQL", "postgres"):
            from tidepull.agent.ledger.database import Shards
            from tidepull.agent.ledger.leases import Leases
            from tidepull.agent.ledger.postgres import Place
        if "agent=" in url:
            raise ParameterError(
                "--db names a database for all agents: leave agent= out of the URL"
            )
        self._url, self.here = url, here
        self._place = Place
        self._leases = Leases.shared(url)
        self._shards = Shards(self._leases.database)
        self._leases.database.prepare(write=True)

    def names(self) -> list[str]:
        """All agents, sorted."""
        return [name for name in self._leases.agents() if _NAME.fullmatch(name)]

    def exists(self, name: str) -> bool:
        """Whether there is one of that name."""
        return name in self._leases.agents()

    def open(self, name: str) -> ServedAgent:
        """The agent of that name. Whether to wait for a lease is the caller's business."""
        return ServedAgent(self._place(self._url, name, url=self.here, wait=False))

    def create(self, name: str, settings: dict[str, Any]) -> None:
        """A new agent; one that could not be made is not kept."""
        place = self._place(self._url, name, url=self.here, wait=False)
        ServedAgent(place, training="manual", **settings).close()

    def remove(self, name: str) -> None:
        """Delete its rows for good."""
        self._leases.delete(self._leases.acquire(name, url=self.here))

    def owner(self, name: str) -> str | None:
        """Where its owner takes requests."""
        owner = self._leases.owner_of(name)
        return None if owner is None else owner.url

    def shards(self) -> list[Shard]:
        """All that share the database and live."""
        return self._shards.alive()

    def announce(self) -> None:
        """Say where this process is."""
        if self.here:
            self._shards.announce(self.here)

    def leave(self) -> None:
        """Be asked nothing more."""
        self._shards.leave()

    def lease_state(self) -> LeaseState:
        """How leases of this process stand."""
        return self._leases.state()

    def lost(self) -> list[str]:
        """Agents whose lease another process has."""
        return self._leases.lost()

    def close(self) -> None:
        """Let go of the leases."""
        self._leases.close()
