"""Which shard has an agent, or should have it: asked of the database once, and known until it proves wrong."""

from __future__ import annotations

import time

from tidepull.service.stores import Store

SILENT = 1.0
"""Seconds for which a shard that could not be reached is not asked again."""


class ElsewhereError(Exception):
    """Another shard holds the agent, or is the one to take it; nothing was done here."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class UnsettledError(Exception):
    """The agent is between two owners; nothing was done, and in a moment one will be found."""


class Whereabouts:
    """What this shard knows of the others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._owners: dict[str, str] = {}
        self._silent: dict[str, float] = {}

    def known(self, name: str) -> str | None:
        """The shard that had an agent when it was last looked for."""
        return self._owners.get(name)

    def wrong(self, name: str, url: str, *, silent: bool = False) -> None:
        """That shard does not have it; or it did not even listen."""
        if self._owners.get(name) == url:
            del self._owners[name]
        if silent:
            self._silent[url] = time.monotonic() + SILENT

    def find(self, name: str, *, place: bool) -> str | None:
        """The shard to ask for an agent; None: this one may try to take it. With `place`, an agent that nobody has
        goes to the shard with the fewest agents, to this one among equals. Asks the database."""
        owner = self._store.owner(name)
        if owner is None and place:
            owner = self._emptiest()
        if not owner or owner == self._store.here or self._is_silent(owner):
            return None
        self._owners[name] = owner
        return owner

    def emptiest(self) -> str | None:
        """The shard that a new agent should go to, unless it is this one. Asks the database."""
        url = self._emptiest()
        return None if url == self._store.here else url

    def surplus(self) -> int:
        """How many agents this shard has more than the one that has fewest. Asks the database."""
        counts = {shard.url: len(shard.agents) for shard in self._store.shards()}
        return counts.get(self._store.here, 0) - min(counts.values(), default=0)

    def _emptiest(self) -> str | None:
        here = self._store.here
        shards = [shard for shard in self._store.shards() if not self._is_silent(shard.url)]
        shards.sort(key=lambda shard: (len(shard.agents), shard.url != here))
        return shards[0].url if shards else None

    def _is_silent(self, url: str) -> bool:
        return self._silent.get(url, 0.0) > time.monotonic()
