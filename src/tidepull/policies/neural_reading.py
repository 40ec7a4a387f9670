"""Which rounds an encoder has read, and which of them wait for their reward.

A round is read when its event comes, if that is before the next choice: then the arm that was really played
counts. Else it is read at the next choice, with the arm that was proposed.
"""

from __future__ import annotations

import numpy as np

from tidepull.errors import EventError, SnapshotError
from tidepull.protocols import PatientEncoder
from tidepull.types import Context, Event, FloatArray, IntArray, Snapshot


class Reading:
    """The rounds of one policy, in the order of decisions; `pulls` counts the arms of those that were read."""

    def __init__(self, encoder: PatientEncoder, n_arms: int) -> None:
        self._encoder = encoder
        self._proposed: tuple[Context, int] | None = None
        self._waiting: dict[int, int] = {}  # round -> the arm it was read with, oldest first
        self.pulls: IntArray = np.zeros(n_arms, np.int64)

    def __len__(self) -> int:
        return self._encoder.rounds + (self._proposed is not None)

    def read_proposed(self) -> None:
        """The next round begins: read the one before it, whose event has not come."""
        if self._proposed is not None:
            context, arm = self._proposed
            self._encoder.decide(context, arm)
            self._proposed = None
            self._waiting[self._encoder.rounds - 1] = arm
            self.pulls[arm] += 1
            self._drop_forgotten()

    def propose(self, context: Context, arm: int) -> None:
        """The round that has just been opened plays this arm, as far as anyone knows."""
        seen, arms = context.observation, context.arm_features
        self._proposed = (
            Context(
                None if seen is None else np.array(seen, np.float64),
                None if arms is None else np.array(arms, np.float64),
            ),
            arm,
        )

    def number(self, event: Event) -> int:
        """The round that an event finishes; an event without one is a round of its own."""
        if event.decided is None:
            return len(self) - (self._proposed is not None)
        if not 0 <= event.decided <= len(self):
            raise EventError(f"round {event.decided} has not been chosen yet; there are {len(self)} rounds")
        return event.decided

    def too_late(self, number: int) -> bool:
        """Whether a round has left the encoder's memory."""
        return number < self._encoder.oldest

    def other_arm(self, number: int, arm: int) -> bool:
        """Whether a round was read with another arm than this one."""
        return self._waiting.get(number, arm) != arm

    def amend(self, number: int, event: Event) -> None:
        """Correct the arm of a round that was read."""
        self._encoder.amend(number, event.context, event.arm)
        self.pulls[self._waiting[number]] -= 1
        self.pulls[event.arm] += 1
        self._waiting[number] = event.arm

    def finish(self, number: int, event: Event) -> FloatArray:
        """The reward of a round has come; returns the chosen arm's features."""
        if number < self._encoder.rounds:
            if number not in self._waiting:
                raise EventError(f"round {number} has its reward already")
            features = self._encoder.pay(number, event.reward)
            del self._waiting[number]
            return features
        if number == len(self):
            self.read_proposed()
        features = self._encoder.append(event)
        self._proposed = None
        self.pulls[event.arm] += 1
        self._drop_forgotten()
        return features

    def snapshot(self) -> Snapshot:
        """The whole state, but for the encoder's."""
        proposed = None
        if self._proposed is not None:
            context, arm = self._proposed
            proposed = {
                "observation": None if context.observation is None else context.observation.copy(),
                "arm_features": None if context.arm_features is None else context.arm_features.copy(),
                "arm": arm,
            }
        return {
            "proposed": proposed,
            "waiting": np.array(list(self._waiting.items()), np.int64).reshape(-1, 2),
            "pulls": self.pulls.copy(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot, after the encoder."""
        arms = np.size(snapshot["pulls"])
        if arms != len(self.pulls):
            raise SnapshotError(f"the snapshot has {arms} arms, this policy has {len(self.pulls)}")
        proposed = snapshot["proposed"]
        self._proposed = None
        if proposed is not None:
            self.propose(Context(proposed["observation"], proposed["arm_features"]), int(proposed["arm"]))
        self._waiting = {int(number): int(arm) for number, arm in snapshot["waiting"]}
        self.pulls = np.array(snapshot["pulls"], np.int64)

    def _drop_forgotten(self) -> None:
        if self._waiting:
            oldest = self._encoder.oldest
            while self._waiting and (number := next(iter(self._waiting))) < oldest:
                del self._waiting[number]
