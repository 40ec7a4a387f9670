"""Neural-linear posterior sampling: an encoder makes features, a posterior believes in the last layer,
an exploration rule decides.

t being the number of events so far:

1. the first `forced_rounds` rounds play the least pulled arm;
2. `choose`: features of every arm now -> exploration rule -> arm;
3. `learn`: the reward updates the posterior by the chosen arm's features at its decision (rank one), which
   equals recomputing it;
4. `upkeep`: after an event with t % train_every == 0 the encoder trains for `epochs` epochs on what it remembers, one
   epoch a slice; in the last slice the history is encoded again and the posterior recomputed from it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator

import numpy as np

from tidepull.encoders.prompt import patient
from tidepull.errors import NumericalError, SnapshotError, TrainingError
from tidepull.policies.exploration import ExplorationRule, PosteriorSampling
from tidepull.policies.neural_reading import Reading
from tidepull.protocols import Encoder, PatientEncoder, Pick, Posterior
from tidepull.state import generator_state, restore_generator
from tidepull.types import Context, Diagnostics, Event, FloatArray, Snapshot

_LOG = logging.getLogger("tidepull")
_NUMERICAL = (TrainingError, NumericalError, ArithmeticError, np.linalg.LinAlgError)
_KIND = "neural-linear"


class _SingularPosteriorError(NumericalError):
    """The posterior cannot be computed from the features of a trained network."""


class NeuralLinear:
    """Any `Encoder` x any `Posterior` x any exploration rule, as one policy.

    `encoder` and `posterior` must be fresh and of the same dimension, and belong to this policy alone. Rewards may
    come late if it is a `PatientEncoder`. Without calls of `upkeep` the network is never trained.
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
        self._encoder = patient(encoder)
        self._posterior = posterior
        self._explore = PosteriorSampling() if explore is None else explore
        self._epochs = epochs
        self._train_every = train_every
        self._forced_rounds = forced_rounds
        self._rng = rng
        self._t = 0
        self._reading = Reading(self._encoder, n_arms)
        self._all_arms = np.arange(n_arms)
        self._due = False
        self._training: Generator[None, None, float] | None = None
        self._last_loss: float | None = None
        self._counts = dict.fromkeys(("trainings", "too_late", "failed_trainings", "failed_posteriors"), 0)

    @property
    def encoder(self) -> PatientEncoder:
        """The network, to look at."""
        return self._encoder

    @property
    def posterior(self) -> Posterior:
        """What is believed of the last layer, to look at."""
        return self._posterior

    @property
    def rounds(self) -> int:
        """How many rounds there have been: the number that the next `choose` will get."""
        return len(self._reading)

    @property
    def pending(self) -> bool:
        """Whether a training is due or under way."""
        return self._due or self._training is not None

    def choose(self, context: Context) -> int:
        """The arm to play; a round begins."""
        return self._decide(context, 1, lambda shares: int(np.argmax(shares)))

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """Shares by so many uses of the exploration rule, or the least pulled arm while arms are forced."""
        return self._decide(context, draws, pick)

    def _decide(self, context: Context, draws: int, pick: Pick) -> int:
        arms = self._all_arms if context.available is None else np.flatnonzero(context.available)
        self._reading.read_proposed()
        features = self._encoder.features(context)
        if not np.isfinite(features).all():
            raise NumericalError("the features that the encoder made of this context are not finite")
        shares = np.zeros(len(self._all_arms))
        if self._forced:
            shares[arms[np.argmin(self._reading.pulls[arms])]] = 1.0
        else:
            for _ in range(draws):
                shares[self._explore(features, self._posterior, arms, self._rng)] += 1 / draws
        arm = pick(shares)
        self._reading.propose(context, arm)
        return arm

    def learn(self, event: Event) -> None:
        """Take in the reward of a round; one that comes when the round is forgotten is counted and ignored."""
        number = self._reading.number(event)
        if self._reading.too_late(number):
            self._count("too_late", f"the reward of round {number} was ignored: the round is forgotten")
            return
        self._take_in(number, event)
        self._t += 1
        self._due |= not self._forced and self._t % self._train_every == 0

    def upkeep(self) -> bool:
        """One epoch of a training that is due, or its end; True while more is pending.

        Whatever is not finite or singular leaves the last good network and posterior in place.
        """
        if self._training is None:
            if not self._due:
                return False
            self._due = False
            self._training = self._encoder.refitting(self._epochs, self._refit_posterior)
        training, self._training = self._training, None
        try:
            next(training)
            self._training = training
        except StopIteration as end:
            self._counts["trainings"] += 1
            self._last_loss = float(end.value)
        except _SingularPosteriorError as error:
            self._count("failed_posteriors", f"{error}; the last good network stays")
        except _NUMERICAL as error:
            self._count("failed_trainings", f"training failed ({error}); the last good network stays")
        return self.pending

    def diagnostics(self) -> Diagnostics:
        """How often training succeeded, what was ignored or failed, and the last loss (once there is one)."""
        return self._counts if self._last_loss is None else {**self._counts, "last_loss": self._last_loss}

    def snapshot(self) -> Snapshot:
        """The whole state: network, optimiser, recurrent state, posterior, generator and counters.

        A training that is under way goes back to its start, here too.
        """
        self._stop_training()
        return {
            "kind": _KIND,
            "encoder": self._encoder.snapshot(),
            "posterior": self._posterior.snapshot(),
            "generator": generator_state(self._rng),
            "reading": self._reading.snapshot(),
            "t": self._t,
            "due": self._due,
            "last_loss": self._last_loss,
            "counts": dict(self._counts),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of a policy with the same settings and shape."""
        if snapshot.get("kind") != _KIND:
            raise SnapshotError(f"the snapshot is of kind {snapshot.get('kind')!r}, this policy is {_KIND!r}")
        self._stop_training()
        self._reading.restore(snapshot["reading"])
        self._encoder.restore(snapshot["encoder"])
        self._posterior.restore(snapshot["posterior"])
        restore_generator(self._rng, snapshot["generator"])
        self._t = int(snapshot["t"])
        self._due = bool(snapshot["due"])
        self._last_loss = snapshot["last_loss"]
        self._counts = {name: int(count) for name, count in snapshot["counts"].items()}

    @property
    def _forced(self) -> bool:
        return self.rounds < self._forced_rounds

    def _take_in(self, number: int, event: Event) -> None:
        """Network and posterior learn of a reward."""
        amended = self._reading.other_arm(number, event.arm)
        if amended:
            self._reading.amend(number, event)
        features = self._reading.finish(number, event)
        try:
            if amended:  # later rounds have other features now
                self._posterior.refit(*self._encoder.encode_history())
            else:
                self._posterior.update(features, event.reward)
        except _NUMERICAL as error:
            self._count("failed_posteriors", f"the posterior could not take in a round ({error})")

    def _refit_posterior(self, features: FloatArray, rewards: FloatArray) -> None:
        """The last step before a trained network is adopted; raises if that must not be."""
        if not np.isfinite(features).all():
            raise TrainingError("the features are not finite")
        good = self._posterior.snapshot()
        try:
            self._posterior.refit(features, rewards)
        except _NUMERICAL as error:
            self._posterior.restore(good)
            raise _SingularPosteriorError(f"the posterior is singular ({error})") from error

    def _stop_training(self) -> None:
        """Send a training that is under way back to its start."""
        if self._training is not None:
            self._training.close()
            self._training, self._due = None, True

    def _count(self, name: str, message: str) -> None:
        self._counts[name] += 1
        if self._counts[name] == 1:
            _LOG.warning("%s (said once; counted in diagnostics as %s)", message, name)
