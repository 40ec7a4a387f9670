"""Policies without contexts: UCB1, its discounted and sliding-window forms, and Thompson sampling.

    index_i = mean_i + c B sqrt(xi log n / N_i),    n = sum_i N_i

N_i and mean_i are the weighted number of plays and the weighted mean reward of arm i; an arm with
N_i = 0 comes first. c is 2 for UCB1 and D-UCB, 1 for SW-UCB (Garivier and Moulines, 2011, "On
upper-confidence bound policies for switching bandit problems"). With xi = 1/2 and B = 1, c = 2 is
the UCB1 of Auer, Cesa-Bianchi and Fischer (2002): mean_i + sqrt(2 log n / N_i).

A tally counts plays and rewards by the number of the round in which an arm was chosen, not by the
moment at which its reward is learnt: a late reward counts as little as its round, and rounds whose
reward never comes age the others. It costs O(K) a round, whatever the horizon.

Thompson sampling (Thompson, 1933), for arms that pay 0 or 1, draws p_i ~ Beta(a + successes_i,
b + failures_i) for every arm i and plays the arm of the largest draw.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tidepull.errors import RewardError
from tidepull.parameters import Parameters, parameter
from tidepull.policies.checks import count_true
from tidepull.policies.exploration import ArmIndices, best_arm, best_shares, decided_round
from tidepull.posteriors.linear_models import insert_by_round
from tidepull.protocols import Pick
from tidepull.random import Streams
from tidepull.state import Stateful, read_array, read_indices
from tidepull.types import Context, Event, FloatArray, IntArray, ProblemShape, Snapshot


@dataclass(frozen=True, kw_only=True)
class UcbParameters(Parameters):
    """Parameters of `ucb`."""

    xi: float = parameter(0.5, "exploration; 0.5 with reward_range 1 is UCB1", ge=0)
    reward_range: float = parameter(1.0, "B, the largest minus the smallest reward", gt=0)


@dataclass(frozen=True, kw_only=True)
class DiscountedUcbParameters(UcbParameters):
    """Parameters of `d-ucb`."""

    discount: float = parameter(
        0.99, "weight of a round for each round that it lies back", gt=0, le=1
    )


@dataclass(frozen=True, kw_only=True)
class SlidingUcbParameters(UcbParameters):
    """Parameters of `sw-ucb`."""

    window: int = parameter(100, "rounds remembered", ge=1)


class DiscountedTally(Stateful):
    """A round that lies k rounds back weighs discount^k: N_i = sum_s discount^(t-s) 1{I_s = i}, t
    being `latest`."""

    state = ("counts", "sums", "latest")

    def __init__(self, n_arms: int, discount: float) -> None:
        self.discount = discount
        self.counts: FloatArray = np.zeros(n_arms)
        self.sums: FloatArray = np.zeros(n_arms)
        self._latest = -1

    def advance(self, latest: int) -> None:
        """Age all arms."""
        if latest > self._latest:
            age = self.discount ** (latest - self._latest)
            self.counts *= age
            self.sums *= age
            self._latest = latest

    def add(self, arm: int, reward: float, decided: int) -> None:
        """Count a round by its age."""
        self.advance(decided)
        weight = self.discount ** (self._latest - decided)
        self.counts[arm] += weight
        self.sums[arm] += weight * reward


class WindowedTally(Stateful):
    """The last `window` rounds weigh 1, older ones 0: N_i = sum over s > t - window of 1{I_s = i},
    t being `latest`."""

    state = ("counts", "sums", "latest", "dropped")

    def __init__(self, n_arms: int, window: int) -> None:
        self.window = window
        self.counts: FloatArray = np.zeros(n_arms)
        self.sums: FloatArray = np.zeros(n_arms)
        # (decided, arm, reward), oldest first.
        self._rounds: deque[tuple[int, int, float]] = deque()
        self._latest = -1
        self._dropped = 0

    def advance(self, latest: int) -> None:
        """Drop the rounds that have left the window."""
        self._latest = max(self._latest, latest)
        while self._rounds and self._rounds[0][0] <= self._latest - self.window:
            _, gone, lost = self._rounds.popleft()
            self.counts[gone] -= 1.0
            self.sums[gone] -= lost
            self._dropped += 1
            if self._dropped == self.window:
                self._sum_afresh()

    def add(self, arm: int, reward: float, decided: int) -> None:
        """Count a round, unless it has left the window already."""
        if decided > self._latest - self.window:
            insert_by_round(self._rounds, (decided, arm, reward))
            self.counts[arm] += 1.0
            self.sums[arm] += reward
        self.advance(decided)

    def _sum_afresh(self) -> None:
        # Adding and subtracting leaves rounding errors; once per window they go (O(1) a round on
        # average).
        _, arms, rewards = self._history()
        self.sums = np.asarray(np.bincount(arms, rewards, len(self.sums)), dtype=float)
        self._dropped = 0

    def _history(self) -> tuple[IntArray, IntArray, FloatArray]:
        decided, arms, rewards = zip(*self._rounds, strict=True) if self._rounds else ((), (), ())
        return np.array(decided, np.int64), np.array(arms, np.int64), np.array(rewards, np.float64)

    def snapshot(self) -> Snapshot:
        """Counts and sums of the window, and the rounds that are in it."""
        decided, arms, rewards = self._history()
        return super().snapshot() | {"decided": decided, "arms": arms, "rewards": rewards}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of as many arms."""
        decided = read_indices(snapshot, "decided")
        arms = read_indices(snapshot, "arms", length=len(decided), below=len(self.counts))
        rewards = read_array(snapshot, "rewards", (len(decided),))
        super().restore(snapshot)
        self._rounds = deque(zip(decided.tolist(), arms.tolist(), rewards.tolist(), strict=True))


Tally: TypeAlias = DiscountedTally | WindowedTally
NO_CONTEXT = Context()


class Ucb(ArmIndices):
    """Any tally with the index above; `c` is its factor."""

    state = ("latest", "tally", "generator")

    def __init__(
        self, kind: str, tally: Tally, c: float, parameters: UcbParameters, streams: Streams
    ) -> None:
        self.kind, self._tally = kind, tally
        self._bonus_scale = float(c * parameters.reward_range * np.sqrt(parameters.xi))
        self._rng = streams.generator("ties")

    def indices(self, context: Context = NO_CONTEXT) -> FloatArray:
        """The index of every arm now, in any context."""
        self._tally.advance(self._latest)
        counts, sums = self._tally.counts, self._tally.sums
        played = counts > 0
        indices: FloatArray = np.full(len(counts), np.inf)
        np.divide(sums, counts, out=indices, where=played)
        # n >= 1 where the latest round has been learnt, which weighs 1; rounds that wait for a
        # reward leave less.
        bonus: FloatArray = self._bonus_scale * np.sqrt(
            np.log(max(counts.sum(), 1.0)) / np.where(played, counts, 1.0)
        )
        return indices + bonus

    def learn(self, event: Event) -> None:
        """Count the round."""
        decided = decided_round(event)
        self._tally.add(event.arm, event.reward, decided)
        self._latest = max(self._latest, decided)


def ucb(parameters: UcbParameters, shape: ProblemShape, streams: Streams) -> Ucb:
    """UCB1: nothing is forgotten."""
    return Ucb("ucb", DiscountedTally(shape.n_arms, 1.0), 2.0, parameters, streams)


def discounted_ucb(
    parameters: DiscountedUcbParameters, shape: ProblemShape, streams: Streams
) -> Ucb:
    """D-UCB: old rounds weigh less."""
    tally = DiscountedTally(shape.n_arms, parameters.discount)
    return Ucb("d-ucb", tally, 2.0, parameters, streams)


def sliding_ucb(parameters: SlidingUcbParameters, shape: ProblemShape, streams: Streams) -> Ucb:
    """SW-UCB: only the last `window` rounds count."""
    tally = WindowedTally(shape.n_arms, parameters.window)
    return Ucb("sw-ucb", tally, 1.0, parameters, streams)


@dataclass(frozen=True, kw_only=True)
class BernoulliThompsonParameters(Parameters):
    """Parameters of `bernoulli-ts`."""

    prior_successes: float = parameter(1.0, "a of the Beta(a, b) prior", gt=0)
    prior_failures: float = parameter(1.0, "b of the Beta(a, b) prior", gt=0)


class BetaBernoulli(Stateful):
    """p_i ~ Beta(a + successes_i, b + failures_i), independently for every arm i."""

    state = ("successes", "failures")

    def __init__(
        self, n_arms: int, *, prior_successes: float = 1.0, prior_failures: float = 1.0
    ) -> None:
        self._prior = (prior_successes, prior_failures)
        self._successes: FloatArray = np.zeros(n_arms)
        self._failures: FloatArray = np.zeros(n_arms)

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of every arm's chance."""
        a, b = self._parameters()
        return a / (a + b)

    def update(self, arm: int, success: bool) -> None:
        """Count one outcome."""
        (self._successes if success else self._failures)[arm] += 1.0

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """One draw of every arm's chance."""
        a, b = self._parameters()
        return rng.beta(a, b)

    def samples(
        self, rng: np.random.Generator, count: int, arms: IntArray | None = None
    ) -> FloatArray:
        """So many draws, one a row; of some arms only, if given."""
        a, b = self._parameters()
        if arms is not None:
            a, b = a[arms], b[arms]
        return rng.beta(a, b, size=(count, len(a)))

    def _parameters(self) -> tuple[FloatArray, FloatArray]:
        return self._prior[0] + self._successes, self._prior[1] + self._failures


class BernoulliThompson(Stateful):
    """Posterior sampling with Beta beliefs; rewards other than 0 and 1 are refused."""

    kind = "bernoulli-ts"
    state = ("beliefs", "generator")

    def __init__(
        self, parameters: BernoulliThompsonParameters, shape: ProblemShape, streams: Streams
    ) -> None:
        self._beliefs = BetaBernoulli(shape.n_arms, **parameters.to_mapping())
        self._rng = streams.generator("posterior")

    def choose(self, context: Context) -> int:
        """The available arm of the largest draw."""
        return best_arm(self._beliefs.sample(self._rng), context.available, self._rng)

    def choose_by(self, context: Context, draws: int, pick: Pick) -> int:
        """Shares by so many draws of the chance of every arm that is available."""
        beliefs, available = self._beliefs, context.available
        if available is None or count_true(available) == len(available):
            return pick(best_shares(beliefs.samples(self._rng, draws), None))
        arms = np.flatnonzero(available)
        shares = np.zeros(len(available))
        shares[arms] = best_shares(beliefs.samples(self._rng, draws, arms), None)
        return pick(shares)

    def learn(self, event: Event) -> None:
        """Count a success or a failure."""
        self.require_reward(event.reward)
        self._beliefs.update(event.arm, event.reward == 1.0)

    def require_reward(self, reward: float) -> None:
        """Only successes and failures can be counted."""
        if reward not in (0.0, 1.0):
            raise RewardError(
                f"reward must be 0 or 1 for bernoulli-ts, got {reward!r}; use ucb or lin-ts instead"
            )
