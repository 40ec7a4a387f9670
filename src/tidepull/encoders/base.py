"""What all encoders share: the rows that a network reads, the history of rounds, and rewards that
come late.

An arm is described by its own feature vector where the problem has one, else by its one-hot code.
The recurrent network reads `[previous reward, observation, arm]`. The feedforward one reads
`[observation, arm]`, the last n triplets `(observation, arm, reward)`, and the time. Where rewards
come late, "previous" and "last" mean the latest that had arrived when the round was decided, in the
order of arrival.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from tidepull.encoders.training import History, Slices, Trainer, finish
from tidepull.errors import ArmError, ContextError, RewardError
from tidepull.protocols import Accept
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape

LARGEST_REWARD = 1e15
"""Its square still fits well into float32, in which networks are trained."""


class ContextReader:
    """Reads the parts of a context as vectors of one dtype, and says what does not fit the
    shape."""

    def __init__(self, shape: ProblemShape, dtype: Any) -> None:
        self.shape = shape
        self.arm_width = shape.arm_dim or shape.n_arms
        self._dtype = dtype
        self._nothing = np.empty(0, dtype)
        self._codes = np.eye(shape.n_arms, dtype=dtype)

    @property
    def width(self) -> int:
        """Length of observation and arm together."""
        return self.shape.observation_dim + self.arm_width

    def observation(self, context: Context) -> FloatArray:
        """The vector shared by all arms; empty where the problem has none."""
        expected = self.shape.observation_dim
        if not expected:
            return self._nothing
        if context.observation is None:
            raise ContextError(
                f"the context has no observation; this policy expects one of length {expected}"
            )
        vector = np.ascontiguousarray(context.observation, self._dtype).reshape(-1)
        if vector.size != expected:
            raise ContextError(
                f"the observation has length {vector.size}; this policy expects {expected}"
            )
        return vector

    def arms(self, context: Context) -> FloatArray:
        """A row for each arm: its features, or its one-hot code."""
        if not self.shape.arm_dim:
            return self._codes
        expected = (self.shape.n_arms, self.shape.arm_dim)
        if context.arm_features is None:
            raise ContextError(
                f"the context has no arm_features; this policy expects a {expected[0]} x "
                f"{expected[1]} matrix"
            )
        rows = np.ascontiguousarray(context.arm_features, self._dtype)
        if rows.shape != expected:
            raise ContextError(
                f"arm_features has the shape {rows.shape}; this policy expects {expected}"
            )
        return rows

    def chosen(self, context: Context, arm: int) -> tuple[FloatArray, FloatArray]:
        """Observation and chosen arm; refuses what would poison the history."""
        if not 0 <= arm < self.shape.n_arms:
            raise ArmError(f"arm {arm} is outside 0 to {self.shape.n_arms - 1}")
        observation: FloatArray = self.observation(context)
        features: FloatArray = self.arms(context)[arm]
        if self.shape.observation_dim and not np.isfinite(observation).all():
            raise ContextError("the observation must hold finite numbers only")
        if self.shape.arm_dim and not np.isfinite(features).all():
            raise ContextError(f"the features of arm {arm} must be finite numbers")
        return observation, features


def checked_reward(reward: float) -> float:
    """The reward; refuses one that would poison the history."""
    if not abs(reward) <= LARGEST_REWARD:
        raise RewardError(
            f"the reward must be finite and at most {LARGEST_REWARD:g} in size, got {reward}"
        )
    return reward


class HistoryEncoder(ABC):
    """An encoder that remembers its rounds; rewards may come late, in any order, or never.

    `_first_column` is where observation and arm begin in a row of inputs.
    """

    _history: History
    _reader: ContextReader
    _first_column = 0

    @property
    def rounds(self) -> int:
        """Number of rounds that were read, which is the number of the next one."""
        return self._history.rounds

    @property
    def oldest(self) -> int:
        """Number of the oldest round that is remembered."""
        return self._history.oldest

    @abstractmethod
    def decide(self, context: Context, arm: int) -> FloatArray:
        """Read the coming round with the arm chosen in it; its reward is pending.

        Parameters
        ----------
        context : Context
            The context of the round.
        arm : int
            The chosen arm, counted from 0.

        Returns
        -------
        array of shape (dim,)
            The features of the chosen arm.
        """

    @abstractmethod
    def refitting(self, epochs: int, accept: Accept | None = None) -> Slices:
        """Train in slices: one epoch in each, and reading the history again in the last.

        Rounds continue under the last good network in between; they are read again at the end. A
        generator that is closed before its end changes nothing, and is not part of a snapshot.

        Parameters
        ----------
        epochs : int
            The number of epochs.
        accept : callable, optional
            Function that is called with features and rewards, as `encode_history` returns them,
            just before the new network is used. If it raises, the training is undone.

        Yields
        ------
        None
            After each slice. The generator returns the loss of the trained network.
        """

    @abstractmethod
    def _reward_arrived(self, place: int, number: int) -> None:
        """Note the reward of a round, which lies at `place` in the history, as the latest."""

    @abstractmethod
    def _read_again(self) -> None:
        """Encode the history after its inputs have changed."""

    def pay(self, number: int, reward: float) -> FloatArray:
        """Record the reward of a round.

        Parameters
        ----------
        number : int
            The number of the round, counted from 0.
        reward : float
            Its reward.

        Returns
        -------
        array of shape (dim,)
            The features of the round under the present network, as a copy.

        Raises
        ------
        RewardError
            If the reward is not finite, or too large.
        """
        place = self._history.pay(number, checked_reward(reward))
        self._reward_arrived(place, number)
        features: FloatArray = self._history.features[place].copy()
        return features

    def append(self, event: Event) -> FloatArray:
        """Read a finished round: `decide` and `pay` in one call.

        Parameters
        ----------
        event : Event
            Context, arm and reward.

        Returns
        -------
        array of shape (dim,)
            The features of the chosen arm.
        """
        checked_reward(event.reward)
        features = self.decide(event.context, event.arm)
        self.pay(self.rounds - 1, event.reward)
        return features

    def amend(self, number: int, context: Context, arm: int) -> None:
        """Correct the arm of a past round, and read the history again.

        Parameters
        ----------
        number : int
            The number of the round, counted from 0.
        context : Context
            The context of the round.
        arm : int
            The arm that was played.
        """
        row, first = self._history.inputs[self._history.place(number)], self._first_column
        row[first : first + self._reader.width] = np.concatenate(self._reader.chosen(context, arm))
        self._read_again()

    def refit(self, epochs: int) -> float:
        """Train on the history, then read it again.

        Parameters
        ----------
        epochs : int
            The number of epochs.

        Returns
        -------
        float
            The loss of the trained network.

        Raises
        ------
        TrainingError
            If there is no history, or training diverges; nothing has changed then.
        """
        return finish(self.refitting(epochs))

    def encode_history(self) -> tuple[FloatArray, FloatArray]:
        """Return features and rewards of the remembered rounds whose reward is known.

        Returns
        -------
        features : array of shape (n, dim)
            The features under the present network.
        rewards : array of shape (n,)
            The rewards.
        """
        known = self._history.known
        return self._history.features[known], self._history.rewards[known]

    def known_rounds(self) -> IntArray:
        """Return the numbers of the rounds in `encode_history`."""
        return self.oldest + np.flatnonzero(self._history.known)


class NetworkEncoder(HistoryEncoder):
    """A `HistoryEncoder` with a network of this package and its trainer."""

    _trainer: Trainer

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self._trainer.network.units[2]

    @property
    def version(self) -> int:
        """How many times the network has been refitted."""
        return self._trainer.version

    def _arm_rows(self, context: Context, weights: FloatArray) -> FloatArray:
        """What each arm adds to the first products of the network."""
        return self._reader.arms(context) @ weights if self._reader.shape.arm_dim else weights

    def _chosen_row(self, arm: int, described: FloatArray, weights: FloatArray) -> FloatArray:
        """What one arm adds to them, as a matrix of one row."""
        if self._reader.shape.arm_dim:
            return described[None] @ weights
        return weights[arm : arm + 1]
