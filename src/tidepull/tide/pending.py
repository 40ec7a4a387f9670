"""What was known when each round was decided, kept until its reward comes: bounded, whatever never
comes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidepull.tide.models.notes import Moment
from tidepull.types import FloatArray, Snapshot

CAPACITY = 8192
"""Rounds after which a decision without a reward is forgotten."""


class UnfinishedRound(NamedTuple):
    """A round that was decided: its moment (rewards as they were paid), how many rewards had come,
    the arm that was chosen, and what was seen of that arm."""

    moment: Moment
    came: int
    arm: int
    seen: FloatArray


class UnfinishedRounds:
    """Unfinished rounds, oldest first."""

    def __init__(self) -> None:
        self._rounds: dict[int, UnfinishedRound] = {}

    def __len__(self) -> int:
        return len(self._rounds)

    def add(self, known: UnfinishedRound) -> None:
        """A round has been decided."""
        self._rounds[known.moment.t] = known
        oldest = next(iter(self._rounds))
        if oldest <= known.moment.t - CAPACITY:
            del self._rounds[oldest]

    def take(self, t: int) -> UnfinishedRound | None:
        """Round t, which is finished now; None where it is forgotten."""
        return self._rounds.pop(t, None)

    def seen(self) -> dict[int, FloatArray]:
        """What was seen of the chosen arm in every unfinished round."""
        return {t: known.seen for t, known in self._rounds.items()}

    def snapshot(self) -> Snapshot:
        """Every unfinished round, as a few arrays."""
        rounds = list(self._rounds.values())
        if not rounds:
            return {"t": []}
        return {
            "t": list(self._rounds),
            "came": [known.came for known in rounds],
            "arm": [known.arm for known in rounds],
            "seen": np.array([known.seen for known in rounds]),
            "notes": np.array([known.moment.notes for known in rounds]),
            "each": np.array([known.moment.each for known in rounds]),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._rounds = {}
        rows: list[Any] = [
            snapshot[name] for name in ("came", "arm", "seen", "notes", "each") if snapshot["t"]
        ]
        for t, came, arm, seen, notes, each in zip(snapshot["t"], *rows, strict=True):
            moment = Moment(int(t), np.array(notes, float), np.array(each, float))
            self._rounds[int(t)] = UnfinishedRound(
                moment, int(came), int(arm), np.array(seen, float)
            )
