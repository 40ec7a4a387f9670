"""Neural-linear posterior sampling: an encoder makes features, a posterior believes in the last
layer, an exploration rule decides.

t being the number of events so far:

1. the first `forced_rounds` rounds play the least pulled arm;
2. `choose`: features of every arm now -> exploration rule -> arm;
3. `learn`: the reward updates the posterior by the chosen arm's features at its decision (rank
   one), which equals recomputing it;
4. `upkeep`: after an event with t % train_every == 0 the encoder trains for `epochs` epochs on what
   it remembers, one epoch a slice; in the last slice the history is encoded again and the posterior
   recomputed from it.

A round is read by the encoder when its event comes, if that is before the next choice: then the arm
that was really played counts. Else it is read at the next choice, with the arm that was proposed.
"""

from __future__ import annotations

import logging
from collections.abc import Generator

import numpy as np

from tidepull.encoders.wrappers import patient
from tidepull.errors import EventError, NumericalError, SnapshotError, TrainingError
from tidepull.policies.exploration import ExplorationRule, PosteriorSampling
from tidepull.protocols import Encoder, PatientEncoder, Pick, Posterior
from tidepull.state import Stateful, check_kind
from tidepull.types import Context, Diagnostics, Event, FloatArray, IntArray, Snapshot


class PendingRounds:
    """The rounds of one policy, in the order of decisions; `pulls` counts the arms of those that
    were read."""

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
        seen, arms = (
            None if part is None else np.array(part, np.float64)
            for part in (context.observation, context.arm_features)
        )
        self._proposed = Context(seen, arms), arm

    def number(self, event: Event) -> int:
        """The round that an event finishes; an event without one is a round of its own."""
        if event.decided is None:
            return len(self) - (self._proposed is not None)
        if not 0 <= event.decided <= len(self):
            raise EventError(
                f"round {event.decided} has not been chosen yet; there are {len(self)} rounds"
            )
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
                "arm_features": None
                if context.arm_features is None
                else context.arm_features.copy(),
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
            context = Context(proposed["observation"], proposed["arm_features"])
            self.propose(context, int(proposed["arm"]))
        self._waiting = {int(number): int(arm) for number, arm in snapshot["waiting"]}
        self.pulls = np.array(snapshot["pulls"], np.int64)

    def _drop_forgotten(self) -> None:
        if self._waiting:
            oldest = self._encoder.oldest
            while self._waiting and (number := next(iter(self._waiting))) < oldest:
                del self._waiting[number]


_LOG = logging.getLogger("tidepull")
_NUMERICAL = (TrainingError, NumericalError, ArithmeticError, np.linalg.LinAlgError)


class _SingularPosteriorError(NumericalError):
    """The posterior cannot be computed from the features of a trained network."""


class NeuralLinear(Stateful):
    """Any `Encoder`, any `Posterior` and any exploration rule as one policy.

    `encoder` and `posterior` must be fresh and of equal dimension, and must not be used elsewhere.
    Without calls of `upkeep` the network is never trained.

    Parameters
    ----------
    encoder : Encoder
        The network that maps history and arms to features. Rewards may come late if it is a
        `PatientEncoder`.
    posterior : Posterior
        The posterior of the weights of the last layer.
    n_arms : int
        The number of arms.
    epochs : int
        The number of epochs of each training.
    train_every : int
        The number of events between two trainings.
    forced_rounds : int
        The number of rounds at the beginning in which the least pulled arm is played.
    rng : numpy.random.Generator
        The generator of the exploration rule.
    explore : ExplorationRule, optional
        Function from features and posterior to an arm. By default it is posterior sampling.

    Examples
    --------
    >>> import tidepull
    >>> from tidepull.encoders import FeedforwardEncoder
    >>> shape, rng = tidepull.ProblemShape(n_arms=2), np.random.default_rng(0)
    >>> encoder = FeedforwardEncoder(
    ...     shape, units=(4, 4, 4), order=1, sinusoids=1, learning_rate=0.01, rng=rng
    ... )
    >>> policy = tidepull.NeuralLinear(
    ...     encoder,
    ...     tidepull.LinearGaussian(encoder.dim),
    ...     n_arms=2,
    ...     epochs=2,
    ...     train_every=8,
    ...     forced_rounds=2,
    ...     rng=rng,
    ... )
    >>> policy.choose(tidepull.Context())
    0
    """

    kind = "neural-linear"
    state = ("reading", "encoder", "posterior", "generator", "t", "due", "last_loss", "counts")

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
        self._reading = PendingRounds(self._encoder, n_arms)
        self._all_arms = np.arange(n_arms)
        self._due = False
        self._training: Generator[None, None, float] | None = None
        self._last_loss: float | None = None
        self._counts = dict.fromkeys(
            ("trainings", "too_late", "failed_trainings", "failed_posteriors"), 0
        )

    @property
    def encoder(self) -> PatientEncoder:
        """The network, for inspection."""
        return self._encoder

    @property
    def posterior(self) -> Posterior:
        """The posterior of the weights of the last layer, for inspection."""
        return self._posterior

    @property
    def rounds(self) -> int:
        """Number of rounds so far, which is the number of the next one."""
        return len(self._reading)

    @property
    def pending(self) -> bool:
        """Whether a training is due or under way."""
        return self._due or self.under_way

    @property
    def under_way(self) -> bool:
        """Whether a training has begun, which a snapshot would start anew."""
        return self._training is not None

    def choose(self, context: Context) -> int:
        """Return the arm to play, and begin a round.

        Parameters
        ----------
        context : Context
            What is seen in this round.

        Returns
        -------
        int
            The arm, counted from 0.

        Raises
        ------
        NumericalError
            If the features of the context are not finite.
        """
        return self._decide(context, 1, lambda shares: int(np.argmax(shares)))

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """Begin a round, and let a function choose the arm from the shares of all arms.

        A share is how often the exploration rule chooses the arm. While arms are forced, the least
        pulled arm has all of it.

        Parameters
        ----------
        context : Context
            What is seen in this round.
        draws : int
            How often the exploration rule is used.
        pick : callable
            Function from the shares to an arm.

        Returns
        -------
        int
            The arm that `pick` returned.

        Raises
        ------
        NumericalError
            If the features of the context are not finite.
        """
        return self._decide(context, draws, pick)

    def _decide(self, context: Context, draws: int, pick: Pick) -> int:
        arms = self._all_arms if context.available is None else np.flatnonzero(context.available)
        self._reading.read_proposed()
        features = self._encoder.features(context)
        if not np.isfinite(features).all():
            raise NumericalError(
                "the features that the encoder made of this context are not finite"
            )
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
        """Learn from the reward of a round.

        A reward of a round that is no longer remembered is counted and ignored.

        Parameters
        ----------
        event : Event
            Context, arm and reward.

        Raises
        ------
        EventError
            If the round has not been chosen yet, or has its reward already.
        """
        number = self._reading.number(event)
        if self._reading.too_late(number):
            self._count(
                "too_late", f"the reward of round {number} was ignored: the round is forgotten"
            )
            return
        self._take_in(number, event)
        self._t += 1
        self._due |= not self._forced and self._t % self._train_every == 0

    def upkeep(self) -> bool:
        """Do one epoch of a training that is due, or finish it.

        If anything is not finite or singular, the last good network and posterior stay in place.

        Returns
        -------
        bool
            True while more is pending.
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
            self._count(
                "failed_trainings", f"training failed ({error}); the last good network stays"
            )
        return self.pending

    def diagnostics(self) -> Diagnostics:
        """Return counts of trainings, ignored rewards and failures, and the last loss."""
        last = {} if self._last_loss is None else {"last_loss": self._last_loss}
        return {**self._counts, **last}

    def snapshot(self) -> Snapshot:
        """Return network, optimiser, recurrent state, posterior, generator and counters.

        A training that is under way goes back to its start, in this policy too.
        """
        self._stop_training()
        return super().snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of a policy with the same settings and shape.

        Parameters
        ----------
        snapshot : Snapshot
            What `snapshot` returned.

        Raises
        ------
        SnapshotError
            If the snapshot belongs to something else, or is damaged.
        """
        check_kind(snapshot, self.kind)
        self._stop_training()
        super().restore(snapshot)

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
