"""Decisions whose reward has not arrived, with their covariates; memory is bounded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidepull.tide.models.covariates import RoundState
from tidepull.types import FloatArray, Snapshot

CAPACITY = 8192
"""Rounds after which a decision without a reward is forgotten."""


class UnfinishedRound(NamedTuple):
    """A decided round without a reward: its state (rewards as they were paid), how many rewards had
    arrived, the arm that was chosen, and the context of that arm."""

    state: RoundState
    n_rewards_seen: int
    arm: int
    seen: FloatArray


class UnfinishedRounds:
    """Decisions without a reward, oldest first."""

    def __init__(self) -> None:
        self._rounds: dict[int, UnfinishedRound] = {}

    def __len__(self) -> int:
        return len(self._rounds)

    def add(self, known: UnfinishedRound) -> None:
        """Add a decision; the oldest beyond the capacity is forgotten."""
        self._rounds[known.state.t] = known
        oldest = next(iter(self._rounds))
        if oldest <= known.state.t - CAPACITY:
            del self._rounds[oldest]

    def take(self, t: int) -> UnfinishedRound | None:
        """Remove and return the decision of round t; None if it is forgotten."""
        return self._rounds.pop(t, None)

    def seen(self) -> dict[int, FloatArray]:
        """Contexts of the chosen arms, by round."""
        return {t: known.seen for t, known in self._rounds.items()}

    def snapshot(self) -> Snapshot:
        """All pending decisions, as a few arrays."""
        rounds = list(self._rounds.values())
        if not rounds:
            return {"t": []}
        return {
            "t": list(self._rounds),
            "n_rewards_seen": [known.n_rewards_seen for known in rounds],
            "arm": [known.arm for known in rounds],
            "seen": np.array([known.seen for known in rounds]),
            "covariates": np.array([known.state.covariates for known in rounds]),
            "per_arm": np.array([known.state.per_arm for known in rounds]),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._rounds = {}
        rows: list[Any] = [
            snapshot[name]
            for name in ("n_rewards_seen", "arm", "seen", "covariates", "per_arm")
            if snapshot["t"]
        ]
        for t, n_rewards_seen, arm, seen, covariates, per_arm in zip(
            snapshot["t"], *rows, strict=True
        ):
            state = RoundState(int(t), np.array(covariates, float), np.array(per_arm, float))
            self._rounds[int(t)] = UnfinishedRound(
                state, int(n_rewards_seen), int(arm), np.array(seen, float)
            )
