"""Where a simulated service keeps its agents: the real directory of files on a simulated disk, or a
shelf."""

from __future__ import annotations

from typing import Any

from tests.property.simulation.clock import Clocks
from tests.property.simulation.ledger import Shelf, ShelfLedger
from tests.property.simulation.paths import ROOT, SimulatedPath
from tests.property.simulation.plan import Plan
from tests.property.simulation.process import Process
from tests.property.simulation.threads import Threads
from tidepull.agent.served import ServedAgent
from tidepull.service.stores import Directory


class SimulatedDirectory(Directory):
    """The real store; its agents take snapshots more often."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(SimulatedPath(ROOT))
        self._given: dict[str, Any] = {"snapshot_every": plan.snapshot_every}

    def open(self, name: str) -> ServedAgent:
        return ServedAgent(self._path(name), training="manual", **self._given)

    def create(self, name: str, given: dict[str, Any]) -> None:
        super().create(name, {**given, **self._given})


class SimulatedShelf(Directory):
    """One agent on a shelf."""

    def __init__(
        self, shelf: Shelf, plan: Plan, clocks: Clocks, process: Process, threads: Threads
    ) -> None:
        self.remote = plan.ledger == "remote"
        self.here = ""
        self._shelf, self._process, self._threads = shelf, process, threads
        self._given: dict[str, Any] = {"snapshot_every": plan.snapshot_every}
        self._clocks = clocks

    def names(self) -> list[str]:
        return ["shop"] if self._shelf.read("settings") else []

    def exists(self, name: str) -> bool:
        return name in self.names()

    def open(self, name: str) -> ServedAgent:
        ledger: Any = ShelfLedger(self._shelf, self._process, self._threads, self._clocks.wall)
        return ServedAgent(ledger, training="manual", **self._given)

    def create(self, name: str, given: dict[str, Any]) -> None:
        ledger: Any = ShelfLedger(self._shelf, self._process, self._threads, self._clocks.wall)
        ServedAgent(ledger, training="manual", **given, **self._given).close()

    def owner(self, name: str) -> str | None:
        return None
