"""A policy of another library at tidepull's seam: what all guests share."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tidepull._internal.extras import Package
from tidepull.errors import RewardError, SnapshotError
from tidepull.policies.checks import TRAIL
from tidepull.policies.exploration import decided_round
from tidepull.random import Streams
from tidepull.types import Context, Event, IntArray, Snapshot


class Player(Protocol):
    """Another library, as small as it can be said."""

    def choose(self, context: Context) -> tuple[int, Any]:
        """The arm, and what the library wants to be told again with the reward (None: nothing)."""

    def learn(self, event: Event, memo: Any) -> None:
        """One finished round; `memo` is None where none was kept, or the round was not decided here."""


class Guest:
    """A player with tidepull's methods; what it wants to be told again is remembered for the last `TRAIL` rounds."""

    def __init__(self, id: str, package: Package, player: Player) -> None:
        self._id = id
        self._package = package
        self._player = player
        self._begun = 0
        self._memos: dict[int, Any] = {}

    def choose(self, context: Context) -> int:
        """The arm that the library chooses."""
        arm, memo = self._player.choose(context)
        if memo is not None:
            self._memos[self._begun] = memo
            self._memos.pop(self._begun - TRAIL, None)
        self._begun += 1
        return int(arm)

    def learn(self, event: Event) -> None:
        """Pass the round on."""
        decided = decided_round(event)
        self._player.learn(event, self._memos.get(decided))
        self._memos.pop(decided, None)
        self._begun = max(self._begun, decided + 1)

    def snapshot(self) -> Snapshot:
        """Always an error: what the library holds is not JSON and arrays."""
        raise SnapshotError(
            f"{self._id} has no snapshots: its state lies inside {self._package.name}, which tidepull cannot save"
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Always an error, as there are no snapshots."""
        self.snapshot()


def seed_for(streams: Streams) -> int:
    """A seed for the library's own generator, from the policy's stream."""
    return int(streams.generator("guest").integers(2**31))


def open_arms(context: Context, n_arms: int) -> IntArray:
    """The arms that may be chosen now."""
    return np.arange(n_arms) if context.available is None else np.flatnonzero(context.available)


def require_unit(id: str, reward: float, hint: str) -> None:
    """Refuse a reward outside [0, 1] for a guest that was made for such rewards."""
    if not 0.0 <= reward <= 1.0:
        raise RewardError(f"reward must be from 0 to 1 for {id}, got {reward:g}; {hint}")
