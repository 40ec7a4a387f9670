"""Where a service keeps its agents: files of a directory, or a database that several services share."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from tidepull.errors import MissingExtraError, ParameterError
from tidepull.files import explained
from tidepull.online.agent import Agent
from tidepull.online.service.messages import NAME

_NAME = re.compile(NAME)


class Store(Protocol):
    """Agents by name. `remote`: a commit waits for a network."""

    remote: bool

    def names(self) -> list[str]:
        """All agents, sorted."""

    def exists(self, name: str) -> bool:
        """Whether there is one of that name."""

    def open(self, name: str) -> Agent:
        """The agent of that name; a `HeldError` where another process has it."""

    def make(self, name: str, given: dict[str, Any]) -> None:
        """A new agent, whole or not at all."""

    def remove(self, name: str) -> None:
        """Delete one that is closed, for good."""

    def owner(self, name: str) -> str | None:
        """Where the process that holds an agent takes requests, if that is known."""

    def close(self) -> None:
        """Let go of everything."""


class Directory:
    """Agents as files of a directory."""

    remote = False

    def __init__(self, root: Path) -> None:
        self.root = root
        with explained("make", root):
            root.mkdir(parents=True, exist_ok=True)

    def names(self) -> list[str]:
        """All agents, sorted."""
        with explained("read", self.root):
            return sorted(path.stem for path in self.root.glob("*.db") if _NAME.match(path.stem))

    def exists(self, name: str) -> bool:
        """Whether there is one of that name."""
        return self._path(name).is_file()

    def open(self, name: str) -> Agent:
        """The agent of that name."""
        return Agent(self._path(name), upkeep="manual")

    def make(self, name: str, given: dict[str, Any]) -> None:
        """A new agent, whole or not at all: under another name until all is written."""
        self.remove(f".{name}")
        try:
            Agent(self._path(f".{name}"), upkeep="manual", **given).close()
            with explained("write", self.root):
                self._path(f".{name}").replace(self._path(name))
        finally:
            self.remove(f".{name}")

    def remove(self, name: str) -> None:
        """Delete its files for good."""
        for ending in ("", "-wal", "-shm", ".lock"):
            with explained("delete", self.root), suppress(FileNotFoundError):
                self._path(name).with_name(f"{name}.db{ending}").unlink()

    def _path(self, name: str) -> Path:
        return self.root / f"{name}.db"

    def owner(self, name: str) -> str | None:
        """A file does not say."""
        return None

    def close(self) -> None:
        """Nothing is held."""


class SharedDatabase:
    """Agents in one PostgreSQL database; each is held by one process, through a lease that says where it takes
    requests (`here`)."""

    remote = True

    def __init__(self, url: str, here: str) -> None:
        try:
            from tidepull.online.leases import Leases
            from tidepull.online.postgres import Place
        except ImportError:
            raise MissingExtraError("agents in PostgreSQL", "postgres") from None
        if "agent=" in url:
            raise ParameterError("--db names a database for all agents: leave agent= out of the URL")
        self._url, self.here = url, here
        self._place = Place
        self._leases = Leases.shared(url)
        self._leases.database.prepare(write=True)

    def names(self) -> list[str]:
        """All agents, sorted."""
        return [name for name in self._leases.agents() if _NAME.match(name)]

    def exists(self, name: str) -> bool:
        """Whether there is one of that name."""
        return name in self._leases.agents()

    def open(self, name: str) -> Agent:
        """The agent of that name."""
        return Agent(self._place(self._url, name, url=self.here), upkeep="manual")

    def make(self, name: str, given: dict[str, Any]) -> None:
        """A new agent; one that could not be made is not kept."""
        Agent(self._place(self._url, name, url=self.here), upkeep="manual", **given).close()

    def remove(self, name: str) -> None:
        """Delete its rows for good."""
        self._leases.delete(self._leases.acquire(name, url=self.here))

    def owner(self, name: str) -> str | None:
        """Where its owner takes requests, unless that is here."""
        owner = self._leases.owner_of(name)
        return owner.url if owner is not None and owner.url not in ("", self.here) else None

    def close(self) -> None:
        """Let go of the leases."""
        self._leases.close()
