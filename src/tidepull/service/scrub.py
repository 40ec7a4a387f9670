"""Damage that no request would meet: hashes of open agents' records are checked in the background, a
few records at a time."""

from __future__ import annotations

import asyncio
import logging
from weakref import WeakKeyDictionary

from tidepull.agent.replay import Scrub
from tidepull.errors import LedgerError
from tidepull.service.hosted import HostedAgent
from tidepull.service.hosting import Hosting
from tidepull.service.metrics import Metrics

_LOG = logging.getLogger("tidepull.serve")
INTERVAL = 1.0
"""Seconds between two looks, each at one agent."""

RECORDS = 1000
"""Records of a look: a million in a quarter of an hour, for some milliseconds a second."""


class Scrubber:
    """Goes round all open agents for ever, and says once what is damaged."""

    def __init__(self, hosting: Hosting, metrics: Metrics) -> None:
        self._hosting, self._metrics = hosting, metrics
        self._scrubs: WeakKeyDictionary[HostedAgent, Scrub] = WeakKeyDictionary()
        self._damaged: WeakKeyDictionary[HostedAgent, set[int]] = WeakKeyDictionary()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(INTERVAL)
            for hosted in self._hosting.opened:
                await self.look(hosted)
                await asyncio.sleep(INTERVAL)

    async def look(self, hosted: HostedAgent) -> None:
        """Check the next records of an agent."""
        scrub = self._scrubs.setdefault(hosted, Scrub())
        try:
            count, damaged = await hosted.aside(lambda agent: agent.scrub(scrub, RECORDS))
        except LedgerError as error:
            count, damaged = 0, [scrub.position]
            _LOG.error("agent %s cannot be read: %s", hosted.name, error)
        self._metrics.scrubbed.inc(count)
        known = self._damaged.setdefault(hosted, set())
        for seq in set(damaged) - known:
            known.add(seq)
            _LOG.error(
                "agent %s is damaged: record %d is not as it was written, or one before it is "
                "missing; `tidepull agent FILE check` says more, and a copy should be restored",
                hosted.name, seq,
            )  # fmt: skip
        if known:
            self._metrics.damaged.labels(hosted.name).set(len(known))
