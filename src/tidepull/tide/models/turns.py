"""Turns: a hidden Markov model over the best arm, by the forward filter."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidepull.state import Stateful
from tidepull.tide.jobs import Job
from tidepull.tide.models.algebra import compiled
from tidepull.tide.models.covariates import Past, RoundState, declare_covariate
from tidepull.tide.models.family import Family, Layout, Pool, fixed
from tidepull.tide.models.spec import Spec
from tidepull.types import FloatArray, IntArray, Snapshot

BELIEF = declare_covariate("belief in the arm's turn", per_arm=True)
SCALE = 3.0
"""The prior standard deviation of a belief's weight, relative to that of another weight."""

_STAYS, _LEAVES = 9.0, 1.0
_RIGHT = (0.98, 0.9, 0.75)
"""Probability that the right arm succeeds and a wrong one fails, in each chain."""
_CLEAR = 0.8
_MEMORY = 0.999
_MOST_ARMS = 64
_STEPS_OF_A_ROUND = 20_000
_FARTHEST = 64
"""Moves without a reward after which a chain is practically at its stationary distribution."""


def turns(contextual: bool = False) -> Spec:
    """The basis (1), and the belief that it is the arm's turn appended to its features."""
    return Spec("turns", appended=BELIEF.index, contextual=contextual)


class _Ahead(NamedTuple):
    """Beliefs some moves after the latest round."""

    moves: int
    chances: FloatArray
    chains: FloatArray
    beliefs: FloatArray


class TurnFilter(Stateful):
    """Forward filter of a hidden Markov chain over arms, with online learning of transitions.

        P(arm j's turn in round t | successes before t) = sum_i P(i in t-1 | ...) T[i, j]

    T is the mean of Dirichlet distributions, whose counts slowly fade. A transition is counted when
    the posterior is concentrated on an arm again: from the arm on which it was concentrated before.
    (Expected counts, as in expectation-maximisation, would credit the arms that were tried in
    between.) The emission probabilities are not learnt, because "the right arm never pays" would
    explain everything: there is a chain for each of three values, weighed by predictive likelihood.
    """

    state = ("moves", "evidence", "clear", "now", "beliefs")

    def __init__(self, n_arms: int) -> None:
        self._moves0 = np.full((n_arms, n_arms), _LEAVES / max(n_arms - 1, 1))
        np.fill_diagonal(self._moves0, _STAYS)
        self._right = np.array(_RIGHT)
        self.reset()

    def reset(self) -> None:
        """Reset to the prior."""
        chains, n_arms = len(self._right), len(self._moves0)
        self._moves = np.repeat(self._moves0[None], chains, axis=0)
        self._now = np.full((chains, n_arms), 1 / n_arms)
        self._evidence = np.zeros(chains)
        self._clear = np.full(chains, -1)
        self.beliefs = np.full(n_arms, 1 / n_arms)
        self._ahead: _Ahead | None = None

    def ahead(self, moves: int) -> FloatArray:
        """Beliefs `moves` moves after the latest round; `beliefs` are those after one move.

        Decisions with late rewards need ever more moves, so the latest result is kept.
        """
        if moves <= 1:
            return self.beliefs
        moves, reached = min(moves, _FARTHEST), self._ahead
        if reached is not None and reached.moves == moves:
            return reached.beliefs
        if reached is None or reached.moves > moves:
            chances, chains, done = self._chances(), self._now, 0
        else:
            chances, chains, done = reached.chances, reached.chains, reached.moves
        for _ in range(moves - done):
            chains = np.einsum("ci,cij->cj", chains, chances)
        self._ahead = _Ahead(moves, chances, chains, self._mixed(chains))
        return self._ahead.beliefs

    def add(self, arm: int, success: bool, moves: int = 1) -> None:
        """Update with a round, `moves` moves after the one before, and predict the next."""
        self._ahead = None
        for _ in range(min(moves, _FARTHEST) - 1):  # rounds of which no reward has come
            self._now = np.einsum("ci,cij->cj", self._now, self._chances())
        emission = self._right if success else 1 - self._right
        self.beliefs = np.empty_like(self.beliefs)
        _take_in(
            arm, emission, self._now, self._moves, self._moves0, self._evidence, self._clear, _MEMORY, _CLEAR,
            self.beliefs,
        )  # fmt: skip

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        super().restore(snapshot)
        self._ahead = None

    def _mixed(self, chains: FloatArray) -> FloatArray:
        """Mixture of the chains' beliefs, by their predictive likelihood."""
        weights = np.exp(self._evidence - self._evidence.max())
        return np.asarray(weights @ chains / weights.sum())

    def _chances(self) -> FloatArray:
        return np.asarray(self._moves / self._moves.sum(axis=2, keepdims=True))


@compiled
def _take_in(
    arm: int,
    emission: FloatArray,
    now: FloatArray,
    moves: FloatArray,
    moves0: FloatArray,
    evidence: FloatArray,
    clear: IntArray,
    memory: float,
    threshold: float,
    beliefs: FloatArray,
) -> None:
    """Update every chain c with a round of `arm`, whose outcome has the probability emission[c] in its
    turn; then predict one move ahead (`beliefs`). Two passes over moves, of the order of arms
    squared."""
    chains, n = now.shape
    ahead = np.zeros((chains, n))
    for c in range(chains):
        joint = np.zeros(n)
        for i in range(n):
            share = 0.0
            for j in range(n):
                share += moves[c, i, j]
            share = now[c, i] / share
            for j in range(n):
                joint[j] += share * moves[c, i, j]
        total = 0.0
        for j in range(n):
            joint[j] *= emission[c] if j == arm else 1 - emission[c]
            total += joint[j]
        evidence[c] = memory * evidence[c] + math.log(total)
        turn = 0
        for j in range(n):
            now[c, j] = joint[j] / total
            if now[c, j] > now[c, turn]:
                turn = j
        for i in range(n):
            for j in range(n):
                moves[c, i, j] += (1 - memory) * (moves0[i, j] - moves[c, i, j])
        if now[c, turn] > threshold:
            if clear[c] >= 0:
                moves[c, clear[c], turn] += 1
            clear[c] = turn
        for i in range(n):
            share = 0.0
            for j in range(n):
                share += moves[c, i, j]
            share = now[c, i] / share
            for j in range(n):
                ahead[c, j] += share * moves[c, i, j]
    top, total = evidence.max(), 0.0
    beliefs[:] = 0.0
    for c in range(chains):
        weight = math.exp(evidence[c] - top)
        total += weight
        for j in range(n):
            beliefs[j] += weight * ahead[c, j]
    for j in range(n):
        beliefs[j] /= total


class TurnsTracker(Stateful):
    """Tracker of beliefs, in the order of decisions. A reward that arrives after that of a later
    round is ignored (it belongs to a turn that may be over); rounds without a reward are moves
    without an observation."""

    state = ("filter", "latest")

    def __init__(self, n_arms: int) -> None:
        self._filter = TurnFilter(n_arms)
        self._latest = -1

    def write(self, state: RoundState) -> None:
        """Write the belief in every arm, predicted over the rounds without a reward."""
        state.per_arm[BELIEF.index] = SCALE * self._filter.ahead(state.t - self._latest)

    def observe(self, t: int, arm: int, reward: float, success: bool) -> None:
        """Update the filter with the reward of round t."""
        if t > self._latest:
            self._filter.add(arm, success, t - self._latest)
            self._latest = t

    def recompute(self, past: Past, covariates: FloatArray) -> Job[None]:
        """Recompute the beliefs that would have been held before each reward came."""
        self._filter.reset()
        self._latest = int(past.t.min()) - 1
        column = covariates[:, BELIEF.index]
        waiting = np.argsort(
            past.n_rewards_seen, kind="stable"
        )  # rows by how many rewards had come before them
        next_row = 0
        for n_seen in range(len(past.t) + 1):
            while next_row < len(waiting) and past.n_rewards_seen[waiting[next_row]] <= n_seen:
                i = waiting[next_row]
                if not np.isnan(column[i]):
                    ahead = self._filter.ahead(int(past.t[i]) - self._latest)
                    column[i] = SCALE * ahead[past.arm[i]]
                next_row += 1
            yield _STEPS_OF_A_ROUND
            if n_seen < len(past.t):
                self.observe(
                    int(past.t[n_seen]), int(past.arm[n_seen]), 0.0, bool(past.success[n_seen])
                )


def _pools(layout: Layout, contextual: bool) -> list[Pool]:
    if layout.shared or layout.n_arms > _MOST_ARMS:
        return []
    return fixed(layout, turns(contextual))


def _describe(spec: Spec) -> str:
    return "arms take turns, each for a while" + (", with the context" if spec.contextual else "")


FAMILY = Family(
    name="turns",
    words="arms take turns, each for a while",
    prior=0.02,
    colour="#6a3d9a",
    pools=_pools,
    describe=_describe,
    tracker=TurnsTracker,
)
