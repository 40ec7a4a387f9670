"""Encoders around other encoders: one that cannot wait for rewards, and one with the arm beside its
features."""

from __future__ import annotations

import math

import numpy as np

from tidepull.encoders.base import ContextReader
from tidepull.encoders.training import Slices, finish
from tidepull.errors import EventError, TrainingError
from tidepull.protocols import Accept, Encoder, PatientEncoder
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape, Snapshot


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
            f"the reward of round {number} comes after the next choice, and "
            f"{type(self._encoder).__name__} cannot "
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
        return {
            "encoder": self._encoder.snapshot(),
            "rounds": self.rounds,
            "known": self.known_rounds(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._encoder.restore(snapshot["encoder"])
        self.rounds = int(snapshot["rounds"])
        self._known = [int(number) for number in snapshot["known"]]


class RawFeatures:
    """Features [network(arm), the arm's own features or one-hot code]; the network is trained as
    before."""

    def __init__(self, encoder: PatientEncoder, shape: ProblemShape) -> None:
        self._encoder = encoder
        self._reader = ContextReader(shape, np.float64)
        self._arms: list[FloatArray] = []  # the last one belongs to the last round

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self._encoder.dim + self._reader.arm_width

    @property
    def version(self) -> int:
        """How many times the network has been refitted."""
        return self._encoder.version

    @property
    def rounds(self) -> int:
        """How many rounds have been read: the number that the next one will get."""
        return self._encoder.rounds

    @property
    def oldest(self) -> int:
        """The oldest round that is remembered."""
        return self._encoder.oldest

    def features(self, context: Context) -> FloatArray:
        """One row for each arm in the coming round, which is opened if it was not yet."""
        return np.hstack([self._encoder.features(context), self._reader.arms(context)])

    def decide(self, context: Context, arm: int) -> FloatArray:
        """Read the coming round with the arm chosen in it; its reward is pending. Returns the arm's
        features."""
        return self._beside(self._encoder.decide(context, arm), context, arm)

    def pay(self, number: int, reward: float) -> FloatArray:
        """The reward of a round has come; returns the round's features under the present
        network."""
        learned = self._encoder.pay(number, reward)
        return np.concatenate([learned, self._arms[number - self.rounds]])

    def append(self, event: Event) -> FloatArray:
        """Decide and pay at once; returns the chosen arm's features."""
        return self._beside(self._encoder.append(event), event.context, event.arm)

    def amend(self, number: int, context: Context, arm: int) -> None:
        """Another arm was played in a past round than the one decided."""
        self._encoder.amend(number, context, arm)
        self._arms[number - self.rounds] = self._reader.arms(context)[arm].copy()

    def refit(self, epochs: int) -> float:
        """Train the network on what is remembered; returns the last loss."""
        return finish(self.refitting(epochs))

    def refitting(self, epochs: int, accept: Accept | None = None) -> Slices:
        """`refit` in slices; `accept` sees what `encode_history` would give."""

        def beside(features: FloatArray, rewards: FloatArray) -> None:
            if accept is not None:
                accept(np.hstack([features, self._matrix(self.known_rounds())]), rewards)

        return self._encoder.refitting(epochs, beside)

    def encode_history(self) -> tuple[FloatArray, FloatArray]:
        """Features of every remembered round whose reward is known, under the present network;
        these rewards."""
        learned, rewards = self._encoder.encode_history()
        return np.hstack([learned, self._matrix(self.known_rounds())]), rewards

    def known_rounds(self) -> IntArray:
        """The numbers of the rounds in `encode_history`."""
        return self._encoder.known_rounds()

    def snapshot(self) -> Snapshot:
        """The whole state."""
        return {
            "network": self._encoder.snapshot(),
            "arms": self._matrix(np.arange(self.oldest, self.rounds)),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._encoder.restore(snapshot["network"])
        self._arms = list(np.array(snapshot["arms"]))

    def _beside(self, learned: FloatArray, context: Context, arm: int) -> FloatArray:
        self._arms.append(self._reader.arms(context)[arm].copy())
        forgotten = len(self._arms) - (self.rounds - self.oldest)
        if forgotten > len(self._arms) // 2:
            del self._arms[:forgotten]
        return np.concatenate([learned, self._arms[-1]])

    def _matrix(self, numbers: IntArray) -> FloatArray:
        first = self.rounds - len(self._arms)
        rows = [self._arms[number - first] for number in numbers.tolist()]
        return np.array(rows).reshape(-1, self._reader.arm_width)
