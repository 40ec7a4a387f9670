"""A network, its optimiser and its history: epochs of training that all succeed or leave no trace.

The optimiser is Adam, as in Algorithm 1 of Kingma and Ba (2014): epsilon is added after the bias
correction.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from tidepull.encoders import kernels
from tidepull.encoders.layers import FlatWeights, LinearPair, NetworkSettings
from tidepull.errors import EventError, ParameterError, SnapshotError, TrainingError
from tidepull.protocols import Accept
from tidepull.state import Stateful
from tidepull.types import BoolArray, FloatArray, IntArray, Snapshot

NO_ROUND = -1
"""`heard` of a round that was decided before any reward had come."""


class History:
    """Inputs, rewards and features of every remembered round, in the order of decisions.

    A row of `inputs` holds `n_inputs` numbers, then `n_scratch` columns for the network's own use,
    then 1, so that biases come out of the same products as weights. Rounds keep their number for
    ever, counted from 0; a reward that has not come is NaN. Buffers hold up to twice `memory`, so
    that moving rows costs O(1) a round; what has been handed out as a view never changes under its
    holder when rows move.
    """

    def __init__(
        self,
        n_inputs: int,
        n_features: int,
        dtype: Any,
        *,
        n_scratch: int = 0,
        memory: int | None = None,
    ) -> None:
        self._n_inputs, self._n_scratch, self._n_features = n_inputs, n_scratch, n_features
        self._dtype = dtype
        self._memory = memory
        self._start, self._end = 0, 0
        self.rounds = 0
        self._allocate(64)

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def oldest(self) -> int:
        """The oldest round that is remembered."""
        return self.rounds - self._end + self._start

    @property
    def inputs(self) -> FloatArray:
        """What the network read in each round (rounds x inputs + scratch + 1)."""
        return self._inputs[self._start : self._end]

    @property
    def rewards(self) -> FloatArray:
        """What each round paid; NaN while that is not known."""
        return self._rewards[self._start : self._end]

    @property
    def features(self) -> FloatArray:
        """The chosen arm's features in each round (rounds x features)."""
        return self._features[self._start : self._end]

    @property
    def heard(self) -> IntArray:
        """The round whose reward was the latest to have come when each one was decided (`NO_ROUND`:
        none)."""
        return self._heard[self._start : self._end]

    @property
    def known(self) -> BoolArray:
        """Which rewards have come."""
        return ~np.isnan(self.rewards)

    def append(self, row: FloatArray, features: FloatArray, heard: int = NO_ROUND) -> None:
        """Add one round whose reward is not known yet."""
        if self._end == len(self._rewards):
            self._make_room()
        self._inputs[self._end, : self._n_inputs] = row
        self._rewards[self._end] = np.nan
        self._features[self._end] = features
        self._heard[self._end] = heard
        self._end += 1
        self.rounds += 1
        if self._memory is not None:
            self.forget(self._memory)

    def pay(self, number: int, reward: float) -> int:
        """Write down the reward of a round; returns the round's place among the remembered ones."""
        place = self.place(number)
        row = self._start + place
        if not math.isnan(self._rewards[row]):
            raise EventError(f"round {number} has its reward already")
        self._rewards[row] = reward
        return place

    def place(self, number: int) -> int:
        """Where a round lies among the remembered ones."""
        oldest = self.oldest
        if not oldest <= number < self.rounds:
            raise EventError(
                f"round {number} is not remembered; the rounds from {oldest} to {self.rounds - 1} "
                "are"
            )
        return number - oldest

    def forget(self, keep: int) -> None:
        """Drop all but the last rounds."""
        if keep < 1:
            raise ParameterError(f"keep must be at least 1, got {keep}")
        self._start = max(self._start, self._end - keep)

    def snapshot(self) -> Snapshot:
        """All remembered rounds."""
        return {
            "rounds": self.rounds,
            "inputs": self.inputs[:, : self._n_inputs].copy(),
            "rewards": np.where(self.known, self.rewards, 0),
            "known": self.known,
            "features": self.features.copy(),
            "heard": self.heard.copy(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        inputs, rewards, features = snapshot["inputs"], snapshot["rewards"], snapshot["features"]
        if inputs.shape[1:] + features.shape[1:] != (self._n_inputs, self._n_features):
            raise SnapshotError("the snapshot's history belongs to a network of another shape")
        if self._memory is not None and len(rewards) > self._memory:
            raise SnapshotError(
                f"the snapshot remembers {len(rewards)} rounds; this network remembers "
                f"{self._memory}"
            )
        self._start, self._end, self.rounds = 0, len(rewards), int(snapshot["rounds"])
        self._allocate(max(64, self._end))
        self.inputs[:, : self._n_inputs] = inputs
        self.features[:], self.heard[:] = features, snapshot["heard"]
        self.rewards[:] = np.where(snapshot["known"], rewards, np.nan)

    def _allocate(self, capacity: int) -> None:
        self._inputs = np.ones((capacity, self._n_inputs + self._n_scratch + 1), self._dtype)
        self._rewards = np.empty(capacity, self._dtype)
        self._features = np.empty((capacity, self._n_features), self._dtype)
        self._heard = np.empty(capacity, np.int64)

    def _make_room(self) -> None:
        """New buffers for twice as many rounds as are remembered, with those at their beginning."""
        old = self.inputs, self.rewards, self.features, self.heard
        self._start, self._end = 0, len(self)
        self._allocate(max(64, 2 * self._end))
        self.inputs[:], self.rewards[:], self.features[:], self.heard[:] = old


BETA1, BETA2 = 0.9, 0.999


class Adam(Stateful):
    """The optimiser of one parameter vector; its moments live as long as the network.

    m <- 0.9 m + 0.1 g,  v <- 0.999 v + 0.001 g^2,
    p <- p - rate * m / (1 - 0.9^t) / (sqrt(v / (1 - 0.999^t)) + 1e-8)
    """

    state = ("m", "v", "steps")

    def __init__(self, parameters: FloatArray, learning_rate: float) -> None:
        self._p = parameters
        self._rate = learning_rate
        self._m = np.zeros_like(parameters)
        self._v = np.zeros_like(parameters)
        self._steps = 0
        self._mark = np.zeros_like(self._m), np.zeros_like(self._v), 0

    def mark(self) -> None:
        """Remember where the moments are, for `back`."""
        m, v, _ = self._mark
        m[:], v[:] = self._m, self._v
        self._mark = m, v, self._steps

    def back(self) -> None:
        """Put the moments where they were at the last `mark`; the parameters are left alone."""
        self._m[:], self._v[:], self._steps = self._mark

    def step(self, gradient: FloatArray) -> None:
        """Move the parameters, in place."""
        self._steps += 1
        corrections = 1.0 / (1.0 - BETA1**self._steps), 1.0 / (1.0 - BETA2**self._steps)
        kernels.adam_step(self._p, gradient, self._m, self._v, self._rate, *corrections)

    @property
    def finite(self) -> bool:
        """Whether no moment has overflowed: a squared gradient does so long before the loss."""
        return bool(np.isfinite(self._v).all() and np.isfinite(self._m).all())

    def marked(self) -> Snapshot:
        """Moments and number of steps at the last `mark`."""
        m, v, steps = self._mark
        return {"m": m.copy(), "v": v.copy(), "steps": steps}


Slices: TypeAlias = Generator[None, None, float]
"""A training in instalments: one epoch each, then adoption; its value is the loss of the trained
network."""


class Network(ABC):
    """Weights, loss and gradients of a network whose first two layers are a `LinearPair`.

    Both methods work in room for one pass over the history, which is used again in every epoch.
    `first` is the number of the first row's round.
    """

    def __init__(
        self, settings: NetworkSettings, weights: FlatWeights, second: str, offset: FloatArray
    ) -> None:
        self.units, self.l2 = settings.units, settings.l2
        self.weights, self.gradient = weights, weights.zeros_like()
        self._pair = LinearPair(weights, self.gradient, second, offset)
        self._capacity = 0
        self._workspace = SimpleNamespace()

    @abstractmethod
    def loss(self, inputs: FloatArray, rewards: FloatArray, first: int = 0) -> float:
        """Mean squared error over the known rewards (those that are not NaN) + l2 / 2 * sum of
        squared weights, and the gradient into `gradient`."""

    @abstractmethod
    def encode(self, inputs: FloatArray, first: int = 0) -> FloatArray:
        """Features of every row; a view that the next call overwrites."""

    @abstractmethod
    def _buffers(self, capacity: int) -> dict[str, FloatArray]:
        """Arrays for a pass over so many rounds."""

    def combined_input_weights(self) -> FloatArray:
        """The two linear maps at the beginning as one; its last row is the bias."""
        return self._pair.combined()

    def _reserve(self, n: int) -> SimpleNamespace:
        """Room for n rounds."""
        if n > self._capacity:
            self._capacity = max(64, 1 << (n - 1).bit_length())
            self._workspace = SimpleNamespace(**self._buffers(self._capacity))
        return self._workspace


class Trainer:
    """Full-batch training of a network on what is remembered; Adam's state lives as long as the
    network.

    `weights` are those of the last good network, with which decisions are made; the network's own
    are the same, except while a training is under way.
    """

    def __init__(self, network: Network, history: History, learning_rate: float) -> None:
        self.history = history
        self.version = 0
        self.weights = network.weights.copy()
        self.network = network
        self._adam = Adam(network.weights.flat, learning_rate)
        self._targets = np.empty(0, network.weights.flat.dtype)
        self._busy = False

    def refitting(self, epochs: int, accept: Accept | None = None) -> Slices:
        """Train on the rounds and rewards known now, one epoch each time; the last slice reads
        everything that is remembered by then and adopts the network.

        When training diverges a `TrainingError` is raised; then, and when the generator is closed
        before its end, nothing has changed.
        """
        if epochs < 1:
            raise ParameterError(f"epochs must be at least 1, got {epochs}")
        self.check_idle("train")
        if not self.history.known.any():
            raise TrainingError("there is no history to train on yet")
        self._busy = True
        self._adam.mark()
        try:
            yield from self._epochs(epochs)
            loss = self._adopt(epochs, accept)
        except BaseException:
            self.network.weights.flat[:] = self.weights.flat
            self._adam.back()
            raise
        finally:
            self._busy = False
        self.version += 1
        return loss

    def check_idle(self, what: str) -> None:
        """Refuse what would pull the ground from under a training."""
        if self._busy:
            raise TrainingError(f"a training is under way: finish or close it before you {what}")

    def read_again(self) -> None:
        """Encode what is remembered with the last good network, after inputs have changed."""
        trained = self.network.weights.flat.copy() if self._busy else self.weights.flat
        self.network.weights.flat[:] = self.weights.flat
        self.history.features[:] = self.network.encode(self.history.inputs, self.history.oldest)
        self.network.weights.flat[:] = trained

    def snapshot(self) -> Snapshot:
        """Everything but a training that is under way."""
        return {
            "version": self.version,
            "weights": self.weights.flat.copy(),
            "adam": self._adam.marked() if self._busy else self._adam.snapshot(),
            "history": self.history.snapshot(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self.check_idle("restore a snapshot")
        if np.shape(snapshot["weights"]) != self.weights.flat.shape:
            raise SnapshotError("the snapshot's weights belong to a network of another shape")
        self.history.restore(snapshot["history"])
        self.weights.flat[:] = snapshot["weights"]
        self.network.weights.flat[:] = snapshot["weights"]
        self._adam.restore(snapshot["adam"])
        self.version = int(snapshot["version"])

    def _epochs(self, epochs: int) -> Generator[None, None, None]:
        inputs, first = self.history.inputs, self.history.oldest
        targets = self._frozen(self.history.rewards)
        for epoch in range(epochs):
            with np.errstate(all="ignore"):  # what overflows is found in the loss
                loss = self.network.loss(inputs, targets, first)
                _check(loss, f"in epoch {epoch + 1} of {epochs}")
                self._adam.step(self.network.gradient.flat)
            yield

    def _frozen(self, rewards: FloatArray) -> FloatArray:
        """The rewards known now: one that comes while training goes on has to wait for the next."""
        n = len(rewards)
        if len(self._targets) < n:
            self._targets = np.empty(2 * n, rewards.dtype)
        self._targets[:n] = rewards
        return self._targets[:n]

    def _adopt(self, epochs: int, accept: Accept | None) -> float:
        network, history = self.network, self.history
        with np.errstate(all="ignore"):
            features = network.encode(history.inputs, history.oldest)
            loss = network.weights.loss(features, history.rewards, network.l2)
        _check(loss if self._adam.finite else math.inf, f"after {epochs} epochs")
        if accept is not None:
            known = history.known
            accept(features[known], history.rewards[known])
        history.features[:] = features
        self.weights.flat[:] = network.weights.flat
        return loss


def finish(slices: Slices) -> float:
    """Run a training to its end; returns the loss."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return float(end.value)


def _check(loss: float, when: str) -> None:
    if not math.isfinite(loss):
        raise TrainingError(
            f"training diverged: the loss became {loss} {when}; the last good network is kept "
            "(a smaller learning_rate or smaller rewards may help)"
        )
