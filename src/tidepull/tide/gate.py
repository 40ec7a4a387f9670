"""Which of two groups of models decides, judged by the value of their choices.

A model with a hidden state may predict the arm that is played very well and choose badly. So two
groups are not weighed by how well they predict, but by what their choices earn where they differ.
In a round in which the groups play arm k with the chances s_k and p_k, arm a is played with the
chance q_a = g s_a + (1 - g) p_a and pays r. Its advantage r - b, over what both groups are expected
to earn in this round, counts for the group that prefers the arm, with the weight

    u = g max(0, s_a - p_a) / q_a  for the first,   (1 - g) max(0, p_a - s_a) / q_a  for the second

which is 0 where both agree, and 1 where one draw each decides. With discounted sums n of u, m of
u (r - b), the variance v of advantages, and n0 rounds of the prior for each group, the value of a
group's choices has the posterior N(m / (n + n0), v / (n + n0)), and

    g = P(first > second), with z0 standard deviations of the prior in favour of the first

is Thompson sampling over groups, kept between 0.01 and 0.99.
"""

from __future__ import annotations

import math

from tidepull.state import Stateful
from tidepull.types import Snapshot

_MEMORY = 0.9995
"""Factor of the sums in a round: the groups learn, so old values count less."""
_PRIOR_ROUNDS, _PRIOR_Z = 30.0, 1.4
"""n0 and z0: the structural models decide until choices of the patterns earned more."""
_LEAST = 0.01
_ROOT_2 = math.sqrt(2.0)
_LONGEST_WAIT = 8192
"""Rounds for which the chances of a decision are kept."""


class ValueGate(Stateful):
    """The chance with which the first of two groups decides."""

    state = ("counts", "sums", "squares", "rounds", "waiting")

    def __init__(self) -> None:
        self._counts, self._sums = [0.0, 0.0], [0.0, 0.0]
        self._squares, self._rounds = 0.0, 0.0
        self._waiting: dict[str, list[float]] = {}
        self.share = self._share()
        """g: how likely the first group's choices are worth more."""

    def _share(self) -> float:
        """g of the present sums, which change with rewards alone."""
        first = 1 / (self._counts[0] + _PRIOR_ROUNDS)
        second = 1 / (self._counts[1] + _PRIOR_ROUNDS)
        std = math.sqrt(self._squares / self._rounds) if self._squares else 1.0
        gap = self._sums[0] * first - self._sums[1] * second
        z = (gap / std + _PRIOR_Z * math.sqrt(2 / _PRIOR_ROUNDS)) / math.sqrt(first + second)
        return min(max(0.5 * (1 + math.erf(z / _ROOT_2)), _LEAST), 1 - _LEAST)

    def decided(self, t: int, first: float, second: float, expected: float) -> None:
        """Round t is decided.

        Parameters
        ----------
        t : int
            The round.
        first, second : float
            The chances of the played arm in both groups.
        expected : float
            b, what both groups are expected to earn in this round.
        """
        share = self.share
        chance = share * first + (1 - share) * second
        if first != second and chance > 0:
            weights = share * max(0.0, first - second), (1 - share) * max(0.0, second - first)
            self._waiting[str(t)] = [*(weight / chance for weight in weights), expected]
            oldest = next(iter(self._waiting))
            if int(oldest) <= t - _LONGEST_WAIT:
                del self._waiting[oldest]

    def learn(self, t: int, reward: float) -> None:
        """Update the values with the reward of round t."""
        if str(t) not in self._waiting:
            return
        *weights, expected = self._waiting.pop(str(t))
        for group, weight in enumerate(weights):
            self._counts[group] = _MEMORY * self._counts[group] + weight
            self._sums[group] = _MEMORY * self._sums[group] + weight * (reward - expected)
        self._squares = _MEMORY * self._squares + (reward - expected) ** 2
        self._rounds = _MEMORY * self._rounds + 1.0
        self.share = self._share()

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        super().restore(snapshot)
        self.share = self._share()
