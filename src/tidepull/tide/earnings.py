"""What the decisions of a hypothesis on trial earn, and those of all others: who decides is drawn
by it (`trial.py`).

Two means of standardised rewards, each with its posterior; a draw of each says who comes out best.
What was earned fades, because hypotheses learn.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.types import FloatArray, Snapshot

_MEMORY = 0.998
_LONGEST_WAIT = 8192


class Earnings:
    """Number and sum of standardised rewards of each of `n` parties."""

    def __init__(self, n: int) -> None:
        self._count, self._sum = np.zeros(n), np.zeros(n)
        self._squares, self._rounds = 1.0, 1.0
        self._decided: dict[int, int] = {}

    def asks(self, party: int, rng: np.random.Generator) -> bool:
        """Whether a party comes out best in a draw of what each earns."""
        return int(np.argmax(self._draws(rng))) == party

    def chance(self, party: int, other: int) -> float:
        """How often one party comes out before another."""
        means = self._sum / (self._count + 1)
        spread = self._squares / self._rounds / (self._count + 1)
        gap = (means[party] - means[other]) / math.sqrt(2 * (spread[party] + spread[other]))
        return 0.5 * math.erfc(-float(gap))

    def _draws(self, rng: np.random.Generator) -> FloatArray:
        spread = np.sqrt(self._squares / self._rounds / (self._count + 1))
        return np.asarray(self._sum / (self._count + 1) + spread * rng.standard_normal(len(spread)))

    def decided(self, t: int, party: int) -> None:
        """Round t was decided by a party."""
        self._decided[t] = party
        oldest = next(iter(self._decided))
        if oldest <= t - _LONGEST_WAIT:
            del self._decided[oldest]

    def add(self, t: int, y: float) -> None:
        """The standardised reward of round t has come."""
        party = self._decided.pop(t, None)
        if party is None:
            return
        y = min(max(y, -3.0), 3.0)
        error = y - self._sum[party] / (self._count[party] + 1)
        for total in (self._count, self._sum):
            total *= _MEMORY
        self._count[party] += 1.0
        self._sum[party] += y
        self._squares = _MEMORY * self._squares + error**2
        self._rounds = _MEMORY * self._rounds + 1.0

    def snapshot(self) -> Snapshot:
        """Totals, and who decided the rounds whose rewards have not come."""
        return {
            "count": self._count.copy(),
            "sum": self._sum.copy(),
            "noise": [self._squares, self._rounds],
            "decided": [list(item) for item in self._decided.items()],
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        for name, array in (("count", self._count), ("sum", self._sum)):
            if np.shape(snapshot[name]) != array.shape:
                raise ValueError(f"earnings that do not fit in '{name}'")
            array[:] = snapshot[name]
        self._squares, self._rounds = (float(number) for number in snapshot["noise"])
        self._decided = {int(t): int(party) for t, party in snapshot["decided"]}
