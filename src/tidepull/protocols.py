"""The seams of tidepull; read this file first.

Anything with these methods takes part: no base class, no registration. A `Problem` knows the truth,
a `Policy` only ever sees contexts and events, and the loop in `experiments/loop.py` stands between
them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np

from tidepull.types import Context, Diagnostics, Event, FloatArray, IntArray, Snapshot, Structure

Accept: TypeAlias = Callable[[FloatArray, FloatArray], None]
"""Is shown features and rewards of the known rounds under a trained network before that is adopted;
what it raises undoes the training."""


Pick: TypeAlias = Callable[[FloatArray], int]
"""From each arm's share to the arm that is played."""


@runtime_checkable
class Problem(Protocol):
    """A world that pays rewards.

    `context` and `means` describe the coming round and may be called any number of times before
    `step`, which ends the round. `step` draws the noise of every arm, so that two policies under
    one seed face one world.

    Examples
    --------
    >>> class Coin:
    ...     n_arms = 1
    ...     def context(self): return Context()
    ...     def means(self): return np.array([0.5])
    ...     def step(self, arm): return 1.0
    >>> isinstance(Coin(), Problem)
    True
    """

    @property
    def n_arms(self) -> int:
        """Number of arms."""

    def context(self) -> Context:
        """Return what a policy sees before it chooses.

        Returns
        -------
        Context
            The context of the coming round.
        """

    def means(self) -> FloatArray:
        """Return the true expected reward of every arm in the coming round, for the loop only.

        Returns
        -------
        array of shape (n_arms,)
            Expected rewards.
        """

    def step(self, arm: int) -> float:
        """Play an arm, and continue with the next round.

        Parameters
        ----------
        arm : int
            The arm, counted from 0.

        Returns
        -------
        float
            Its reward.
        """


@runtime_checkable
class HasVariationBudget(Protocol):
    """A linear problem that says how much its parameter vector moves over a horizon."""

    def variation_budget(self, horizon: int) -> float:
        """B_T = sum over t of ||w_{t+1} - w_t||."""


@runtime_checkable
class HasLinearBounds(Protocol):
    """A linear problem that says how long its vectors are."""

    def linear_bounds(self, horizon: int) -> tuple[float, float]:
        """S and L: w is never longer than S over the horizon, and no vector on offer longer than
        L."""


@runtime_checkable
class AsksProblem(Protocol):
    """Parameters of a policy that may leave some of their values to the problem.

    `run_trial` and suites settle them; whoever builds a policy without a problem gives numbers.
    """

    @property
    def asks(self) -> tuple[str, ...]:
        """Names of the parameters that are left to the problem."""

    def settled(self, problem: object, *, horizon: int, dim: int) -> Self:
        """The same with the problem's own values, for so many rounds and vectors of that length."""


@runtime_checkable
class HasTotals(Protocol):
    """A problem that says what every arm would pay if it were played throughout."""

    def totals(self, horizon: int) -> FloatArray:
        """Each arm's expected rewards, summed over the rounds of the horizon."""


@runtime_checkable
class HasWait(Protocol):
    """A problem that says when its rewards arrive."""

    def wait(self) -> int | None:
        """By how many rounds the reward of the latest `step` is late; None if it never comes."""


@runtime_checkable
class HasStructure(Protocol):
    """A problem that can tell how its coming round hangs together with others, but for the
    values."""

    def structure(self) -> Structure:
        """The structure of the coming round; only the loop asks."""


@runtime_checkable
class HasBenchmark(Protocol):
    """A problem whose regret is measured against more than its best arm, where no arm pays."""

    def benchmark(self) -> float:
        """The expected reward that regret is measured against in the coming round."""


@runtime_checkable
class HasRegimes(Protocol):
    """Parameters of a problem that say when its world changes, in every trial alike."""

    def changes(self, horizon: int) -> IntArray:
        """The rounds in which a new regime begins, counted from 0; empty where nothing changes
        abruptly."""

    def returns_after(self) -> float | None:
        """Rounds after which the world is as it was; None where it never returns."""


@runtime_checkable
class HasRemark(Protocol):
    """A problem whose results must carry a remark wherever they are shown ("synthetic Criteo")."""

    @property
    def remark(self) -> str:
        """The remark; empty when there is none."""


@runtime_checkable
class Learner(Protocol):
    """What the loop needs of a policy.

    Each call of `choose` begins a round. `Event.decided` is the round that an event finishes, so
    rewards may come late, in any order, or never.

    Examples
    --------
    >>> class First:
    ...     def choose(self, context): return 0
    ...     def learn(self, event): pass
    >>> isinstance(First(), Learner)
    True
    """

    def choose(self, context: Context) -> int:
        """Return the arm to play.

        Parameters
        ----------
        context : Context
            What is seen in this round.

        Returns
        -------
        int
            The arm, counted from 0.
        """

    def learn(self, event: Event) -> None:
        """Learn from one finished round.

        Parameters
        ----------
        event : Event
            Context, arm and reward. The context is that of the decision.
        """


@runtime_checkable
class Policy(Learner, Protocol):
    """A learner that can be stopped and continued; every registered policy is one.

    Examples
    --------
    >>> class Stateless:
    ...     def choose(self, context): return 0
    ...     def learn(self, event): pass
    ...     def snapshot(self): return {}
    ...     def restore(self, snapshot): pass
    >>> isinstance(Stateless(), Policy)
    True
    """

    def snapshot(self) -> Snapshot:
        """Return the whole state.

        Returns
        -------
        Snapshot
            JSON values and arrays that share nothing with the policy.
        """

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot, with the same results as an undisturbed run.

        Parameters
        ----------
        snapshot : Snapshot
            What `snapshot` of a policy with equal settings returned.
        """


@runtime_checkable
class HasRewardCheck(Protocol):
    """A policy that does not learn from every reward, and says so before it is asked to."""

    def require_reward(self, reward: float) -> None:
        """A `RewardError` where it does not learn from such a reward."""


@runtime_checkable
class HasUpkeep(Protocol):
    """A policy whose heavy work (training, births, new context maps) is paid in instalments.

    `learn` and `choose` stay cheap; whoever runs the policy calls `upkeep` when there is time. The
    loop calls it after every event until nothing is pending. A piece of work that has not finished
    has changed nothing yet, and a `snapshot` sends it back to its start. A policy that has a
    property `pending` as well is warned about when `upkeep` is not called; one that has a property
    `under_way` gets no snapshot by itself while that is True.
    """

    def upkeep(self) -> bool:
        """One slice of pending work, of bounded cost; True while more is pending."""


@runtime_checkable
class HasNotFinite(Protocol):
    """A policy whose state holds NaN or infinity on purpose; elsewhere in a snapshot they are a
    sign of damage."""

    @property
    def not_finite(self) -> frozenset[str]:
        """Which parts of its snapshot may hold them: dotted names, as "rounds.recent"."""


@runtime_checkable
class HasPropensities(Protocol):
    """A policy that can say how often it would choose each arm, so that whoever plays can log exact
    chances."""

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """A round begins. `pick` is shown each arm's share of the choices that so many draws lead
        to, and says which arm is played; that arm is returned. Drawn from these shares, it is
        chosen as `choose` would."""


@runtime_checkable
class HasRounds(Protocol):
    """A policy that says how many rounds it has begun, so that late rewards can name theirs."""

    @property
    def rounds(self) -> int:
        """How many rounds there have been: the number that the next `choose` will get."""


@runtime_checkable
class NeedsMeans(Protocol):
    """A policy that the loop lets see the truth (only the oracle)."""

    def choose_knowing(self, context: Context, means: FloatArray) -> int:
        """The arm to play, given every arm's true expected reward."""


@runtime_checkable
class NeedsStructure(Protocol):
    """A policy that the loop tells the structure of every round, but no value (only the
    specialist)."""

    def choose_told(self, context: Context, structure: Structure) -> int:
        """The arm to play, given which rounds pay alike."""


@runtime_checkable
class HasDiagnostics(Protocol):
    """A policy that counts what happened inside it."""

    def diagnostics(self) -> Diagnostics:
        """Counts and figures kept with the trial."""


class HasDecisions(Protocol):
    """A log of decisions that an agent can learn from."""

    def decisions(self) -> Iterator[Mapping[str, Any]]:
        """One after the other: `arm` (its label), and where they are known `reward`, `at` and
        `context`."""


class Encoder(Protocol):
    """A network that turns history and a candidate arm into features of fixed length.

    `version` changes whenever features of past events would come out differently (after a refit).
    These methods are enough where every reward comes before the next choice; a `PatientEncoder`
    also takes late ones.
    """

    @property
    def dim(self) -> int:
        """Length of a feature vector."""

    @property
    def version(self) -> int:
        """How many times the network has been refitted."""

    def features(self, context: Context) -> FloatArray:
        """One row for each arm in the coming round (n_arms x dim)."""

    def append(self, event: Event) -> FloatArray:
        """Take in a finished round; returns the chosen arm's features as they were."""

    def refit(self, epochs: int) -> float:
        """Train on the whole history; returns the last loss."""

    def encode_history(self) -> tuple[FloatArray, FloatArray]:
        """Features of every past event (t x dim) under the present network, and their rewards."""

    def snapshot(self) -> Snapshot:
        """Network, optimiser and history: all that later features hang on."""

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""


@runtime_checkable
class PatientEncoder(Encoder, Protocol):
    """An encoder that can wait for rewards, and trains in slices.

    It reads rounds in the order of decisions and counts them from 0. The input of a round holds
    what had arrived when the round was opened, by its first call of `features`. `append` is
    `decide` and `pay` at once.
    """

    @property
    def rounds(self) -> int:
        """How many rounds have been read: the number that the next one will get."""

    @property
    def oldest(self) -> int:
        """The oldest round that is remembered; a reward for one before it comes too late."""

    def decide(self, context: Context, arm: int) -> FloatArray:
        """Read the coming round with the arm chosen in it; its reward is pending. Returns the arm's
        features."""

    def pay(self, number: int, reward: float) -> FloatArray:
        """The reward of a round has come; returns the round's features under the present
        network."""

    def amend(self, number: int, context: Context, arm: int) -> None:
        """Another arm was played in a round than the one decided; its features and later ones may
        change."""

    def refitting(self, epochs: int, accept: Accept | None = None) -> Generator[None, None, float]:
        """`refit` in slices of bounded cost, on the rewards known when it began.

        The trained network is adopted in the last slice, if `accept` raises nothing; until then,
        and for ever where training fails or the generator is closed, the last good one stays.
        """

    def known_rounds(self) -> IntArray:
        """The numbers of the rounds in `encode_history`: those remembered whose reward has come."""


class Posterior(Protocol):
    """What is believed of a weight vector w when rewards are w . x plus noise."""

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of w."""

    def update(self, x: FloatArray, y: float) -> None:
        """Take in one observation (rank one)."""

    def refit(self, X: FloatArray, Y: FloatArray) -> None:
        """Forget everything, then take in all rows at once."""

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw of w."""

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of w . x for every row x."""

    def snapshot(self) -> Snapshot:
        """All that later draws and predictions hang on."""

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""


class Executor(Protocol):
    """Where trials run: here, in local processes, on a cluster."""

    def run(self, specs: Iterable[Any]) -> Iterator[Any]:
        """Yield results as they finish, in any order."""
