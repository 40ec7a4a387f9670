"""What the choices of a camp of hypotheses earn, beside how well they predict.

Weights follow how well the rewards of arms that were played were predicted. While successes are rare, a hypothesis
that predicts failure well may keep failing. So where there are observations and rewards are 0 and 1, hypotheses are
parted into camps (with context or without, forgetting or not), and the camp that decides is itself chosen by posterior
sampling on what its decisions earned: a bandit with a handful of arms. Within the camp weights decide, as ever. What
was earned fades, because camps learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tidepull.hypotheses.family import Pool
from tidepull.types import FloatArray, IntArray, Snapshot

_MEMORY = 0.998
_LONGEST_WAIT = 8192


class Earnings:
    """Number and sum of standardised rewards of each camp; `camp_of` has the camp of every slot."""

    def __init__(self, camp_of: IntArray) -> None:
        self.camp_of = camp_of
        n = int(camp_of.max()) + 1
        self._count, self._sum = np.zeros(n), np.zeros(n)
        self._squares, self._rounds = 1.0, 1.0
        self._decided: dict[int, int] = {}

    def chances(self, weights: FloatArray, rng: np.random.Generator) -> FloatArray:
        """The weights within the camp that decides; a camp without weight is not asked."""
        there = np.bincount(self.camp_of, weights=weights, minlength=len(self._count)) > 0
        camp = int(np.argmax(np.where(there, self._draws(rng), -np.inf)))
        kept = np.where(self.camp_of == camp, weights, 0.0)
        return np.asarray(kept / kept.sum())

    def asks(self, camp: int, rng: np.random.Generator) -> bool:
        """Whether a camp comes out best in a draw of what each earns."""
        return int(np.argmax(self._draws(rng))) == camp

    def chance(self, camp: int, other: int) -> float:
        """How often one camp comes out before another."""
        means = self._sum / (self._count + 1)
        spread = self._squares / self._rounds / (self._count + 1)
        gap = (means[camp] - means[other]) / math.sqrt(2 * (spread[camp] + spread[other]))
        return 0.5 * math.erfc(-float(gap))

    def _draws(self, rng: np.random.Generator) -> FloatArray:
        spread = np.sqrt(self._squares / self._rounds / (self._count + 1))
        return np.asarray(self._sum / (self._count + 1) + spread * rng.standard_normal(len(spread)))

    def decided(self, t: int, slot: int) -> None:
        """Round t was decided by a slot."""
        self._decided[t] = int(self.camp_of[slot])
        oldest = next(iter(self._decided))
        if oldest <= t - _LONGEST_WAIT:
            del self._decided[oldest]

    def add(self, t: int, y: float) -> None:
        """The standardised reward of round t has come."""
        camp = self._decided.pop(t, None)
        if camp is None:
            return
        y = min(max(y, -3.0), 3.0)
        error = y - self._sum[camp] / (self._count[camp] + 1)
        for total in (self._count, self._sum):
            total *= _MEMORY
        self._count[camp] += 1.0
        self._sum[camp] += y
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
        self._decided = {int(t): int(camp) for t, camp in snapshot["decided"]}


def camps(pools: Sequence[Pool], sizes: Sequence[int], filters: int, network: bool) -> IntArray:
    """The camp of every slot: without context, with it, with it and forgetting, with a hidden state. The network
    sees contexts."""
    of = [(2 if pool.family == "discounted" else 1) if pool.contextual else 0 for pool in pools]
    found = np.concatenate([np.repeat(of, sizes), np.full(filters, 3), np.full(int(network), 1)])
    return np.unique(found, return_inverse=True)[1].astype(int)
