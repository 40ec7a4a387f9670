"""The recurrent network as one hypothesis: for structure that nobody listed.

Its features, with the arm's own beside them, carry a conjugate linear head like that of any hypothesis. It is
scored on a reward before it trains on it, and sleeps (its weight follows the others) until first trained.
It trains on a bounded window at growing intervals, so its cost per round does not grow.
"""

from __future__ import annotations

import numpy as np

from tidepull.encoders.recurrent import RecurrentEncoder
from tidepull.errors import TrainingError
from tidepull.hypotheses.bank import HypothesisBank, Layout, NoisePrior
from tidepull.hypotheses.kernels import Window
from tidepull.hypotheses.spec import Moment
from tidepull.hypotheses.stationary import Stationary
from tidepull.policies.tide_context import ContextMap
from tidepull.policies.tide_window import RecentRounds
from tidepull.types import Context, Event, FloatArray, ProblemShape, Snapshot

_EPOCHS, _FIRST_TRAINING = 16, 32
_UNITS, _LEARNING_RATE = (32, 32, 32), 0.01


class NetworkHypothesis:
    """Encoder and head. Rewards come standardised, contexts as `ContextMap` makes them."""

    def __init__(self, contexts: ContextMap, n_arms: int, window: int, rng: np.random.Generator) -> None:
        self._window = window
        self._length = 0
        z = contexts.dim - 1
        self._shared, self._n_arms, self._z = contexts.shared, n_arms, z
        shape = ProblemShape(n_arms, 0 if self._shared else z, z if self._shared else 0)
        self._encoder = RecurrentEncoder(shape, units=_UNITS, learning_rate=_LEARNING_RATE, rng=rng)
        beside = contexts.dim if self._shared else n_arms
        self._head = HypothesisBank(
            Layout(n_arms, self._encoder.dim + beside, shared=True),
            [[Stationary(contextual=True).spec()]],
            NoisePrior(most_noise=2.0, boldness=1.0),
        )
        self._head.assign(0, Stationary(contextual=True).spec())
        self.trainings = 0
        self.failures = 0

    @property
    def awake(self) -> bool:
        """Whether it has been trained."""
        return self.trainings > 0

    def draw(self, X: FloatArray, binary: bool, rng: np.random.Generator) -> FloatArray:
        """One posterior draw of every arm's expected reward; X has a context row for each arm."""
        features = self._encoder.features(self._context(X))
        return self._head.draw(0, Moment(), self._beside(features, X), binary, rng)

    def observe(self, arm: int, X: FloatArray, y: float, binary: bool) -> float:
        """Log likelihood of a reward (NaN while asleep), which is then learnt."""
        features = self._encoder.append(Event(self._context(X), arm, y))
        self._length += 1
        if self._length == 2 * self._window:
            self._forget_old()
        score = float("nan")
        if self.awake:
            row = self._beside(np.repeat(features[None, :], self._n_arms, axis=0), X)[arm]
            score = float(self._head.observe(Moment(), arm, row, y, binary)[0])
        return score

    def training_is_due(self, t: int, weight: float) -> bool:
        """Every 32 rounds up to 2,048, then half as often with every doubling; four times as rarely while
        hardly anything is expected of it."""
        if t < _FIRST_TRAINING:
            return False
        interval = 32 << max(0, (t - 1).bit_length() - 11)
        return t % (interval if weight > 1e-4 or t <= 512 else 4 * interval) == 0

    def train(self, rounds: RecentRounds, binary: bool, centre: float, spread: float) -> None:
        """Some epochs on the window; then the head learns the window under the new features."""
        try:
            self._encoder.refit(_EPOCHS)
        except TrainingError:  # the encoder is as it was before
            self.failures += 1
            return
        self.trainings += 1
        noise = self._noise()
        features, _ = self._encoder.encode_history()
        n = len(features)
        window = rounds.window(centre, spread)
        beside = window.x[-n:] if self._shared else np.eye(self._n_arms)[window.arm[-n:]]
        x = np.concatenate([features.astype(float), beside], axis=1)
        if self.trainings > 1:
            self._head.adapt_ridge(0, 1.0)
        self._head.reset(0)
        zeros = np.zeros((n, 4))
        lesson = Window(window.t[-n:], zeros, window.arm[-n:], x, window.y[-n:])
        self._head.replay(0, lesson, binary)
        if self.trainings > 1:
            # The noise is that of one-step errors: residuals on what it trained on would flatter it.
            self._set_noise(*noise)

    def rescale(self, rounds: RecentRounds, binary: bool, centre: float, spread: float) -> None:
        """Rewards and contexts have new units: put the history into them."""
        n = self._encoder.rounds - self._encoder.oldest
        window = rounds.window(centre, spread)
        self._encoder.rewrite(window.y[-n:], window.x[-n:, 1:])
        if self.awake:
            self.train(rounds, binary, centre, spread)

    def snapshot(self) -> Snapshot:
        """The whole state."""
        return {
            "encoder": self._encoder.snapshot(),
            "head": self._head.snapshot(),
            "length": self._length,
            "trainings": self.trainings,
            "failures": self.failures,
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._encoder.restore(snapshot["encoder"])
        self._head.restore(snapshot["head"])
        self._length = int(snapshot["length"])
        self.trainings, self.failures = int(snapshot["trainings"]), int(snapshot["failures"])

    def _context(self, X: FloatArray) -> Context:
        if not self._z:
            return Context()
        return Context(arm_features=X[:, 1:]) if self._shared else Context(observation=X[0, 1:])

    def _beside(self, features: FloatArray, X: FloatArray) -> FloatArray:
        own = X if self._shared else np.eye(self._n_arms)
        return np.concatenate([features.astype(float), own], axis=1)

    def _noise(self) -> tuple[float, float]:
        return float(self._head.arrays.a[0]), float(self._head.arrays.b[0])

    def _set_noise(self, a: float, b: float) -> None:
        self._head.arrays.a[0], self._head.arrays.b[0] = a, b

    def _forget_old(self) -> None:
        """Drop the older half of the encoder's history; its state stays."""
        self._encoder.forget(self._window)
        self._length = self._window
