"""Neural-linear posterior sampling: an encoder makes features, a posterior believes in the last layer,
an exploration rule decides.

One round, t being the number of events so far:

1. the first `forced_rounds` rounds play the least pulled arm;
2. later, when t % train_every == 0, the encoder trains for `epochs` epochs on the whole history and the
   posterior is recomputed from the re-encoded history;
3. features of every arm now -> exploration rule -> arm;
4. the reward updates the posterior by the chosen arm's features (rank one), which equals recomputing it.
"""

from __future__ import annotations

import logging

import numpy as np

from tidepull.errors import ArmError, ContextError, NumericalError, SnapshotError, TrainingError
from tidepull.policies.exploration import ExplorationRule, PosteriorSampling
from tidepull.protocols import Encoder, Posterior
from tidepull.snapshots import generator_state, restore_generator
from tidepull.types import Context, Diagnostics, Event, IntArray, Snapshot

_LOG = logging.getLogger("tidepull")
_LARGEST_REWARD = 1e15  # its square still fits well into float32, in which networks are trained
_NUMERICAL = (TrainingError, NumericalError, ArithmeticError, np.linalg.LinAlgError)
_KIND = "neural-linear"


class NeuralLinear:
    """Any `Encoder` x any `Posterior` x any exploration rule, as one policy.

    `encoder` and `posterior` must be fresh and of the same dimension, and belong to this policy alone.
    """

    def __init__(
        self,
        encoder: Encoder,
        posterior: Posterior,
        *,
        n_arms: int,
        epochs: int,
        train_every: int,
        forced_rounds: int,
        rng: np.random.Generator,
        explore: ExplorationRule | None = None,
    ) -> None:
        self._encoder = encoder
        self._posterior = posterior
        self._explore = PosteriorSampling() if explore is None else explore
        self._epochs = epochs
        self._train_every = train_every
        self._forced_rounds = forced_rounds
        self._rng = rng
        self._t = 0
        self._rounds = 0  # like t, but also counts rounds whose reward was rejected
        self._pulls = np.zeros(n_arms, np.int64)
        self._all_arms = np.arange(n_arms)
        self._trained_at = 0
        self._last_loss: float | None = None
        self._counts = dict.fromkeys(
            ("trainings", "rejected_rewards", "failed_trainings", "failed_posteriors"), 0
        )

    @property
    def encoder(self) -> Encoder:
        """The network, to look at."""
        return self._encoder

    @property
    def posterior(self) -> Posterior:
        """What is believed of the last layer, to look at."""
        return self._posterior

    def choose(self, context: Context) -> int:
        """The arm to play; trains first when a training is due."""
        arms = self._open_arms(context)
        if self.training_due:
            self.train()
        features = self._encoder.features(context)
        if not np.isfinite(features).all():
            raise ContextError("observation and arm_features must hold finite numbers only")
        if self._forced:
            return int(arms[np.argmin(self._pulls[arms])])
        return self._explore(features, self._posterior, arms, self._rng)

    def learn(self, event: Event) -> None:
        """Take in one finished round; a reward that is not finite is counted and otherwise ignored."""
        if not 0 <= event.arm < len(self._pulls):
            raise ArmError(f"arm must be a whole number from 0 to {len(self._pulls) - 1}, got {event.arm!r}")
        if not abs(event.reward) <= _LARGEST_REWARD:
            self._count("rejected_rewards", f"the reward {event.reward} was ignored: rewards must be finite")
        else:
            features = self._encoder.append(event)
            self._t += 1
            try:
                self._posterior.update(features, event.reward)
            except _NUMERICAL as error:
                self._count("failed_posteriors", f"the posterior could not take in a round ({error})")
        self._rounds += 1
        self._pulls[event.arm] += 1

    @property
    def training_due(self) -> bool:
        """Whether the next `choose` would train first: once at every multiple of `train_every` events."""
        return not self._forced and self._t % self._train_every == 0 and self._trained_at != self._t

    @property
    def _forced(self) -> bool:
        return self._rounds < self._forced_rounds

    def train(self) -> None:
        """Fit the network to the whole history, then the posterior to the re-encoded history.

        Whatever is not finite or singular in between leaves the last good network and posterior in place.
        """
        self._trained_at = self._t
        good = self._encoder.snapshot(), self._posterior.snapshot()
        try:
            loss = self._encoder.refit(self._epochs)
            features, rewards = self._encoder.encode_history()
            if not (np.isfinite(loss) and np.isfinite(features).all()):
                raise NumericalError(f"the loss is {loss}")
        except _NUMERICAL as error:
            self._encoder.restore(good[0])
            self._count("failed_trainings", f"training failed ({error}); the last good network stays")
            return
        try:
            self._posterior.refit(features, rewards)
        except _NUMERICAL as error:
            self._encoder.restore(good[0])
            self._posterior.restore(good[1])
            self._count(
                "failed_posteriors", f"the posterior is singular ({error}); the last good network stays"
            )
            return
        self._counts["trainings"] += 1
        self._last_loss = float(loss)

    def diagnostics(self) -> Diagnostics:
        """How often training succeeded, what was ignored or failed, and the last loss (once there is one)."""
        return self._counts if self._last_loss is None else {**self._counts, "last_loss": self._last_loss}

    def snapshot(self) -> Snapshot:
        """The whole state: network, optimiser, recurrent state, posterior, generator and counters."""
        return {
            "kind": _KIND,
            "encoder": self._encoder.snapshot(),
            "posterior": self._posterior.snapshot(),
            "generator": generator_state(self._rng),
            "t": self._t,
            "pulls": self._pulls.copy(),
            "trained_at": self._trained_at,
            "last_loss": self._last_loss,
            "counts": dict(self._counts),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of a policy with the same settings and shape."""
        if snapshot.get("kind") != _KIND:
            raise SnapshotError(f"the snapshot is of kind {snapshot.get('kind')!r}, this policy is {_KIND!r}")
        arms = np.size(snapshot["pulls"])
        if arms != len(self._pulls):
            raise SnapshotError(f"the snapshot has {arms} arms, this policy has {len(self._pulls)}")
        self._encoder.restore(snapshot["encoder"])
        self._posterior.restore(snapshot["posterior"])
        restore_generator(self._rng, snapshot["generator"])
        self._t = int(snapshot["t"])
        self._pulls = np.array(snapshot["pulls"], np.int64)
        self._rounds = int(self._pulls.sum())
        self._trained_at = int(snapshot["trained_at"])
        self._last_loss = snapshot["last_loss"]
        self._counts = {name: int(count) for name, count in snapshot["counts"].items()}

    def _open_arms(self, context: Context) -> IntArray:
        if context.available is None:
            return self._all_arms
        available = np.asarray(context.available, dtype=bool)
        if available.shape != self._pulls.shape or not available.any():
            raise ContextError(
                f"available must mark at least one of {len(self._pulls)} arms, got {available.tolist()}"
            )
        return np.flatnonzero(available)

    def _count(self, name: str, message: str) -> None:
        self._counts[name] += 1
        if self._counts[name] == 1:
            _LOG.warning("%s (said once; counted in diagnostics as %s)", message, name)
