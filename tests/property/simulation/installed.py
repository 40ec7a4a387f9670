"""The one place where simulated parts take the place of real ones in the code under test."""

from __future__ import annotations

import logging
import pkgutil
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import patch

from tests.property.simulation.connections import connect
from tests.property.simulation.paths import (
    SimulatedFileLock,
    SimulatedPath,
    SimulatedWatch,
    simulated_drop_cache,
    simulated_sync,
)
from tidepull.agent.ledger import ledger_at as real_ledger_at
from tidepull.agent.ledger.sqlite import SqliteLedger

PACKAGES = ("tidepull.agent", "tidepull.service")
for _package in PACKAGES:  # what is imported later would see the real clock
    for _module in pkgutil.walk_packages(import_module(_package).__path__, f"{_package}."):
        import_module(_module.name)
agents: Any = import_module("tidepull.agent.agent")
sqlite: Any = import_module("tidepull.agent.ledger.sqlite")
stores: Any = import_module("tidepull.service.stores")


class Sqlite3:
    """The module `sqlite3` as the ledger sees it."""

    connect = staticmethod(connect)

    def __getattr__(self, name: str) -> Any:
        return getattr(sqlite3, name)


def ledger_at(path: Any, *, read_only: bool = False, create: bool = True) -> Any:
    """A ledger is its own place; a simulated path is opened as it is; all else as ever."""
    if hasattr(path, "append"):
        return path, "the simulation"
    if isinstance(path, SimulatedPath):
        return SqliteLedger(path, read_only=read_only), str(path)
    return real_ledger_at(path, read_only=read_only, create=create)


class Installed:
    """Simulated modules in the place of `time` and `threading`, in all of the agent and the
    service."""

    def __init__(self) -> None:
        self.watch = SimulatedWatch()
        loaded = list(sys.modules.items())  # the thread of the kernels imports modules, too
        modules = [module for name, module in loaded if name.startswith(PACKAGES)]
        self._time = [module for module in modules if getattr(module, "time", None) is time]
        self._threading = [
            module for module in modules if getattr(module, "threading", None) is threading
        ]

    def shorten_log(self, pages: int) -> None:
        """Short histories need a short log, so that it is moved into the file too."""
        sqlite.LOG_PAGES = pages

    def put(self, simulated_time: Any, simulated_threading: Any) -> None:
        """From now on they see these."""
        for module in self._time:
            module.time = simulated_time  # type: ignore[attr-defined]
        for module in self._threading:
            module.threading = simulated_threading  # type: ignore[attr-defined]


@contextmanager
def installed(*, quiet: bool = True) -> Iterator[Installed]:
    """The simulation's parts are in place until the end of the block."""
    log = logging.getLogger("tidepull")
    level, parts = log.level, Installed()
    with (
        patch.object(agents, "ledger_at", ledger_at),
        patch.object(agents, "_release_dropped", lambda *_: None),  # its process was killed
        patch.object(sqlite, "sqlite3", Sqlite3()),
        patch.object(sqlite, "Path", SimulatedPath),
        patch.object(sqlite, "sync", simulated_sync),
        patch.object(stores, "sync", simulated_sync),
        patch.object(sqlite, "drop_cache", simulated_drop_cache),
        patch.object(sqlite, "LOG_PAGES", sqlite.LOG_PAGES),
        patch.object(sqlite, "FileLock", SimulatedFileLock),
        patch.object(sqlite, "WATCH", parts.watch),
    ):
        try:
            if quiet:
                log.setLevel(logging.CRITICAL + 1)
            yield parts
        finally:
            log.setLevel(level)
            parts.put(time, threading)
