"""The recurrent network of the paper as one model of the mixture, for patterns of no other family.

Its features and those of the arm have a conjugate linear head like that of any model. It is scored
on a reward before it trains on it, and is inactive (its weight follows the mixture) until first
trained. It reads one step for every round, in the order of decisions, with or without a reward. It
trains on a bounded window at growing intervals, so its cost per round does not grow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from tidepull.encoders.recurrent import RecurrentEncoder
from tidepull.errors import TrainingError
from tidepull.tide.jobs import STEPS, Job
from tidepull.tide.models.bank import ModelBank
from tidepull.tide.models.covariates import all_covariates, empty_state
from tidepull.tide.models.family import Family, Layout, Window
from tidepull.tide.models.linear import stationary
from tidepull.tide.models.noise import NoisePrior
from tidepull.types import Context, FloatArray, ProblemShape, Snapshot

FAMILY = Family(
    name="network",
    words="something that only the recurrent network sees",
    prior=0.02,
    colour="#d55e00",
)

_EPOCHS, _FIRST_TRAINING = 16, 32
_ALWAYS_ACTIVE, _ACTIVE_ROUNDS, _LIGHT = 512, 128, 1e-4
_UNITS, _LEARNING_RATE = (32, 32, 32), 0.01
_MOST_ARMS = 64
_LARGEST = 1e6
"""Largest standardised reward of a network of single precision."""

Lessons: TypeAlias = Callable[[int], tuple[Window, int]]
"""Finished rounds from the n-th reward on (or from the oldest that is kept), and the number of
rewards so far."""


def too_many_arms(layout: Layout) -> bool:
    """Whether arms without vectors of their own are so many that a weight for each would make the
    head too large."""
    return not layout.shared and layout.n_arms > _MOST_ARMS


class _Open(NamedTuple):
    """The latest round before the network reads it: its arm may still change."""

    t: int
    X: FloatArray
    arm: int


class NetworkModel:
    """Encoder and head. Rewards come standardised, contexts as (1, z) for each arm; rounds are
    numbered from 0 without gaps."""

    def __init__(self, layout: Layout, window: int, rng: np.random.Generator) -> None:
        self._window = window
        z, n_arms = layout.context_dim - 1, layout.n_arms
        self._shared, self._n_arms, self._z = layout.shared, n_arms, z
        shape = ProblemShape(n_arms, 0 if self._shared else z, z if self._shared else 0)
        self._encoder = RecurrentEncoder(shape, units=_UNITS, learning_rate=_LEARNING_RATE, rng=rng)
        own = layout.context_dim if self._shared else n_arms
        self._head = ModelBank(
            Layout(n_arms, self._encoder.dim + own, shared=True),
            [[stationary(contextual=True)]],
            NoisePrior(most_noise=2.0, min_scale=1.0),
        )
        self._head.assign(0, stationary(contextual=True))
        self._nothing = empty_state(0, n_arms)
        self._codes = np.eye(0 if self._shared else n_arms)
        self._without = Context()
        self._open: _Open | None = None
        self._head_is_stale = (
            False  # between a change of units or features and the head that fits them
        )
        self.paused = False
        self.trainings = 0
        self.failures = 0

    @property
    def active(self) -> bool:
        """Whether the network is trained and not paused."""
        return self.trainings > 0 and not self._head_is_stale and not self.paused

    def update_schedule(self, count: int, weight: float) -> None:
        """Pause the network while its weight is below 1e-4, except for 128 rewards after every
        power of two. Paused rounds are recorded, and encoded at the next training."""
        since = count - (1 << (count.bit_length() - 1))
        paused = count > _ALWAYS_ACTIVE and weight < _LIGHT and since >= _ACTIVE_ROUNDS
        if self.paused and not paused:
            self._head_is_stale = True
        self.paused = paused

    def begin(self, t: int, X: FloatArray) -> None:
        """Begin round t; its input is fixed now."""
        if self._open is not None:
            self._read(self._open.X, self._open.arm)
        self._encoder.open()
        self._open = _Open(t, X, 0)

    def set_arm(self, arm: int) -> None:
        """The arm that was chosen in the round that began last."""
        assert self._open is not None
        self._open = _Open(self._open.t, self._open.X, arm)

    def draw(self, X: FloatArray, binary: bool, rng: np.random.Generator) -> FloatArray:
        """One posterior draw of every arm's expected reward in the round that began last."""
        features = self._encoder.features(self._context(X))
        return self._head.draw(0, self._nothing, self._with_own(features, X), binary, rng)

    def observe(
        self, t: int, arm: int, chosen_arm: int, X: FloatArray, y: float, binary: bool
    ) -> float:
        """Log likelihood of the reward of round t (NaN while inactive, or if the round is
        forgotten), which is then learnt. `chosen_arm` is the arm that was chosen, `arm` the one
        that was played."""
        if self._open is not None and self._open.t == t:
            self._read(X, arm)
            self._open = None
        elif t < self._encoder.oldest:
            return math.nan
        elif chosen_arm != arm:
            self._encoder.amend(t, self._context(X), arm)
        features = self._encoder.pay(t, min(max(y, -_LARGEST), _LARGEST))
        if not self.active:
            return math.nan
        row = np.concatenate([features, X[arm] if self._shared else self._codes[arm]], dtype=float)
        score = np.empty(1)
        self._head.score(0, self._nothing.covariates, arm, row, y, binary, score)
        return float(score[0])

    def training_is_due(self, count: int, weight: float) -> bool:
        """Whether a training is due: every 32 rewards up to 2,048, then half as often with every
        doubling; four times as rarely while the weight is below 1e-4."""
        if count < _FIRST_TRAINING:
            return False
        interval = 32 << max(0, (count - 1).bit_length() - 11)
        return (
            count % (interval if weight > _LIGHT or count <= _ALWAYS_ACTIVE else 4 * interval) == 0
        )

    def training(self, lessons: Lessons, binary: bool) -> Job[None]:
        """Train some epochs on the window; then the head learns the window under the new
        features."""
        try:
            for _ in self._encoder.refitting(_EPOCHS):
                yield STEPS
        except TrainingError:  # the encoder is as it was before
            self.failures += 1
            return
        self.trainings += 1
        self._head_is_stale = True
        noise = float(self._head.arrays.a[0]), float(self._head.arrays.b[0])
        head = self._head.copy()
        if self.trainings > 1:
            head.adapt_ridge(0, 1.0)
        head.reset(0)
        n_seen = -1
        while True:
            window, upto = lessons(max(n_seen, 0))
            if upto == n_seen:
                break
            yield from head.replay(0, self._lesson(window), binary)
            n_seen = upto
        if self.trainings > 1:
            # The noise is that of one-step errors: residuals on what it trained on would flatter
            # it.
            head.arrays.a[0], head.arrays.b[0] = noise
        self._head.replace_with(head)
        self._head_is_stale = False

    def rescale(self, lessons: Lessons, unfinished: dict[int, FloatArray]) -> None:
        """Convert stored rewards and contexts to new units; the network is inactive until trained.

        `unfinished` has the context row of rounds without a reward.
        """
        oldest, n = self._encoder.oldest, self._encoder.rounds - self._encoder.oldest
        window, _ = lessons(0)
        y, z = np.full(n, np.nan), np.zeros((n, self._z))
        kept = (window.t >= oldest) & (window.t < self._encoder.rounds)
        y[window.t[kept] - oldest], z[window.t[kept] - oldest] = window.y[kept], window.x[kept, 1:]
        for t, x in unfinished.items():
            if oldest <= t < self._encoder.rounds:
                z[t - oldest] = x[1:]
        self._encoder.rewrite(np.clip(y, -_LARGEST, _LARGEST), z if self._z else None, read=False)
        self._head_is_stale = True

    def snapshot(self) -> Snapshot:
        """Encoder, head, counts, and the round that is not read yet."""
        return {
            "encoder": self._encoder.snapshot(),
            "head": self._head.snapshot(),
            "trainings": self.trainings,
            "failures": self.failures,
            "head_is_stale": self._head_is_stale,
            **({"paused": True} if self.paused else {}),
            "open": None
            if self._open is None
            else {**self._open._asdict(), "X": self._open.X.copy()},
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._encoder.restore(snapshot["encoder"])
        self._head.restore(snapshot["head"])
        self.trainings, self.failures = int(snapshot["trainings"]), int(snapshot["failures"])
        self._head_is_stale, self.paused = (
            bool(snapshot["head_is_stale"]),
            bool(snapshot.get("paused", False)),
        )
        is_open = snapshot["open"]
        self._open = None
        if is_open is not None:
            self._open = _Open(int(is_open["t"]), np.array(is_open["X"]), int(is_open["arm"]))

    def _read(self, X: FloatArray, arm: int) -> None:
        if self.paused:
            self._encoder.note(self._context(X), arm)
        else:
            self._encoder.decide(self._context(X), arm)
        if self._encoder.rounds - self._encoder.oldest >= 2 * self._window:
            self._encoder.forget(self._window)

    def _lesson(self, window: Window) -> Window:
        """The window with the network's features for context vectors, as far as both are kept."""
        numbers = self._encoder.known_rounds()
        features, _ = self._encoder.encode_history()
        place = np.searchsorted(numbers, window.t)
        kept = np.isin(window.t, numbers)
        own = window.x[kept] if self._shared else self._codes[window.arm[kept]]
        x = np.concatenate([features[place[kept]].astype(float), own], axis=1)
        covariates = np.zeros((len(x), len(all_covariates())))
        return Window(window.t[kept], covariates, window.arm[kept], x, window.y[kept])

    def _context(self, X: FloatArray) -> Context:
        if not self._z:
            return self._without
        return Context(arm_features=X[:, 1:]) if self._shared else Context(observation=X[0, 1:])

    def _with_own(self, features: FloatArray, X: FloatArray) -> FloatArray:
        own = X if self._shared else self._codes
        return np.concatenate([features.astype(float), own], axis=1)
