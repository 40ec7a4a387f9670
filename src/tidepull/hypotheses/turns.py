"""One arm is right at a time, for a while, then another takes its turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.hypotheses.spec import TURNS, Moment, Spec
from tidepull.types import FloatArray, IntArray, Snapshot

_STAYS, _LEAVES = 9.0, 1.0
_RIGHT = (0.98, 0.9, 0.75)
"""How often the right arm succeeds, and a wrong one fails."""
_CLEAR = 0.8
_MEMORY = 0.999


@dataclass(frozen=True)
class Turns:
    """tau = (1), and behind the features of an arm the belief that it is its turn."""

    contextual: bool = False
    group = "turns"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return "arms take turns, each for a while" + (", with the context" if self.contextual else "")

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(memory=TURNS, contextual=self.contextual)

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """There is one cell."""
        return 0, np.ones(1)


class TurnFilter:
    """Whose turn is it? The forward recursion of a hidden Markov chain over arms, learnt as it goes.

        P(arm j's turn in round t | successes before t) = sum_i P(i in t-1 | ...) T[i, j]

    T is the mean of Dirichlet distributions, whose counts slowly fade. A move is counted when it is clear again
    whose turn it is: from the arm whose turn it clearly was before. (Sharing each round's move out by its
    posterior, as expectation-maximisation does, credits the arms that were tried in between.) How well
    successes tell the right arm from a wrong one is not learnt, because "the right arm never pays" would
    explain everything: there is a chain for each of three answers, weighed by how well they predicted.
    """

    def __init__(self, n_arms: int) -> None:
        self._moves0 = np.full((n_arms, n_arms), _LEAVES / max(n_arms - 1, 1))
        np.fill_diagonal(self._moves0, _STAYS)
        self._right = np.array(_RIGHT)
        self.reset()

    def reset(self) -> None:
        """Nothing seen yet."""
        chains, n_arms = len(self._right), len(self._moves0)
        self._moves = np.repeat(self._moves0[None], chains, axis=0)
        self._now = np.full((chains, n_arms), 1 / n_arms)
        self._evidence = np.zeros(chains)
        self._clear = np.full(chains, -1)
        self.beliefs = np.full(n_arms, 1 / n_arms)

    def add(self, arm: int, success: bool) -> None:
        """Take in a round, and look ahead to the next."""
        told = self._right if success else 1 - self._right
        likelihood = np.repeat(1 - told[:, None], self._now.shape[1], axis=1)
        likelihood[:, arm] = told
        joint = self._now[:, :, None] * self._chances() * likelihood[:, None, :]
        total = joint.sum(axis=(1, 2))
        joint /= total[:, None, None]
        self._evidence = _MEMORY * self._evidence + np.log(total)
        self._now = joint.sum(axis=1)
        self._moves += (1 - _MEMORY) * (self._moves0 - self._moves)
        for c, chain in enumerate(self._now):
            turn = int(np.argmax(chain))
            if chain[turn] > _CLEAR:
                if self._clear[c] >= 0:
                    self._moves[c, self._clear[c], turn] += 1
                self._clear[c] = turn
        weights = np.exp(self._evidence - self._evidence.max())
        ahead = np.einsum("ci,cij->cj", self._now, self._chances())
        self.beliefs = weights @ ahead / weights.sum()

    def replay(self, arms: IntArray, successes: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> FloatArray:
        """Start anew and live through rounds; the belief in each one's arm before it was played."""
        self.reset()
        held = np.empty(len(arms))
        for i, (arm, success) in enumerate(zip(arms, successes, strict=True)):
            held[i] = self.beliefs[arm]
            self.add(int(arm), bool(success))
        return held

    def snapshot(self) -> Snapshot:
        """The whole state."""
        return {
            "moves": self._moves.copy(),
            "evidence": self._evidence.copy(),
            "clear": self._clear.copy(),
            "now": self._now.copy(),
            "beliefs": self.beliefs.copy(),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._moves, self._evidence = np.array(snapshot["moves"]), np.array(snapshot["evidence"])
        self._clear = np.array(snapshot["clear"])
        self._now, self.beliefs = np.array(snapshot["now"]), np.array(snapshot["beliefs"])

    def _chances(self) -> FloatArray:
        return np.asarray(self._moves / self._moves.sum(axis=2, keepdims=True))
