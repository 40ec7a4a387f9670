"""Encoders of your own with the least methods, where every reward comes before the next choice."""

from __future__ import annotations

import math

import numpy as np

from tidepull.encoders.training import Slices
from tidepull.errors import EventError, TrainingError
from tidepull.protocols import Accept, Encoder, PatientEncoder
from tidepull.types import Context, Event, FloatArray, IntArray, Snapshot


def patient(encoder: Encoder) -> PatientEncoder:
    """The encoder itself where it can wait for rewards, else in a `PromptEncoder`."""
    return encoder if isinstance(encoder, PatientEncoder) else PromptEncoder(encoder)


class PromptEncoder:
    """Any `Encoder` behind the methods of a `PatientEncoder`; a training is one slice.

    A round whose reward has not come by the next choice is never read, and its reward is refused.
    """

    oldest = 0

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.rounds = 0
        self._known: list[int] = []

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self._encoder.dim

    @property
    def version(self) -> int:
        """How many times the network has been refitted."""
        return self._encoder.version

    def features(self, context: Context) -> FloatArray:
        """One row for each arm in the coming round."""
        return self._encoder.features(context)

    def decide(self, context: Context, arm: int) -> FloatArray:
        """Pass over a round; returns the arm's features."""
        features: FloatArray = self._encoder.features(context)[arm]
        self.rounds += 1
        return features

    def pay(self, number: int, reward: float) -> FloatArray:
        """Refused: the round was passed over."""
        raise EventError(
            f"the reward of round {number} comes after the next choice, and {type(self._encoder).__name__} cannot "
            "wait for rewards: give it the methods of protocols.PatientEncoder"
        )

    def append(self, event: Event) -> FloatArray:
        """Take in a finished round; returns the chosen arm's features."""
        features = self._encoder.append(event)
        self._known.append(self.rounds)
        self.rounds += 1
        return features

    def amend(self, number: int, context: Context, arm: int) -> None:
        """Refused like a late reward, with which it comes."""
        self.pay(number, 0.0)

    def refit(self, epochs: int) -> float:
        """Train on the whole history; returns the last loss."""
        return self._encoder.refit(epochs)

    def refitting(self, epochs: int, accept: Accept | None = None) -> Slices:
        """The whole training as one slice, which leaves no trace when it fails."""
        yield from ()
        good = self._encoder.snapshot()
        try:
            loss = self._encoder.refit(epochs)
            if not math.isfinite(loss):
                raise TrainingError(f"the loss is {loss}")
            if accept is not None:
                accept(*self._encoder.encode_history())
        except BaseException:
            self._encoder.restore(good)
            raise
        return loss

    def encode_history(self) -> tuple[FloatArray, FloatArray]:
        """Features of every past event under the present network, and their rewards."""
        return self._encoder.encode_history()

    def known_rounds(self) -> IntArray:
        """The numbers of the rounds in `encode_history`."""
        return np.array(self._known, np.int64)

    def snapshot(self) -> Snapshot:
        """The whole state."""
        return {"encoder": self._encoder.snapshot(), "rounds": self.rounds, "known": self.known_rounds()}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._encoder.restore(snapshot["encoder"])
        self.rounds = int(snapshot["rounds"])
        self._known = [int(number) for number in snapshot["known"]]
