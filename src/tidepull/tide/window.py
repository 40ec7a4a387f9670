"""The latest finished rounds, which candidates and rebuilds replay; memory is bounded.

Rounds are in the order in which their rewards arrived, which need not be the order of decisions.
"""

from __future__ import annotations

import numpy as np

from tidepull.state import Stateful
from tidepull.tide.models.covariates import Past, all_covariates, standardised
from tidepull.tide.models.family import Rounds, Window
from tidepull.tide.scale import Seen, Units
from tidepull.types import FloatArray, IntArray

_SPARE_RAW = 256
_LONGEST_SPAN = 4
"""Largest span of a scan, relative to the number of rewards in the window."""


class RecentRounds(Stateful):
    """Ring buffer of `capacity` rounds. Contexts before the map are kept for the first
    `raw_capacity` rewards, and a few more, for those that arrive while a new map is fitted; after
    that the map is fixed."""

    state = (
        "count",
        "t",
        "arm",
        "reward",
        "covariates",
        "n_rewards_seen",
        "x",
        "raw",
        "evidence",
        "network",
    )

    def __init__(self, capacity: int, raw_capacity: int, context_dim: int, raw_dim: int) -> None:
        self.capacity, self.raw_capacity = capacity, raw_capacity
        self.count = 0
        self._t = np.zeros(capacity, np.int64)
        self._arm = np.zeros(capacity, np.int64)
        self._reward = np.zeros(capacity)
        self._covariates = np.zeros((capacity, len(all_covariates())))
        self._n_rewards_seen = np.zeros(capacity, np.int64)
        self._x = np.zeros((capacity, context_dim))
        self._raw = np.zeros((min(raw_capacity + _SPARE_RAW, capacity), raw_dim))
        self._evidence = np.zeros(capacity)
        self._network = np.zeros(capacity)

    def append(
        self,
        *,
        t: int,
        covariates: FloatArray,
        n_rewards_seen: int,
        arm: int,
        raw: FloatArray,
        x: FloatArray,
        reward: float,
        evidence: float,
        network: float,
    ) -> None:
        """Add a round; it replaces the oldest."""
        i = self.count % self.capacity
        self._t[i], self._arm[i], self._reward[i], self._covariates[i] = t, arm, reward, covariates
        self._n_rewards_seen[i], self._x[i], self._evidence[i], self._network[i] = (
            n_rewards_seen,
            x,
            evidence,
            network,
        )
        if self.count < len(self._raw):
            self._raw[self.count] = raw
        self.count += 1

    def __len__(self) -> int:
        return min(self.count, self.capacity)

    @property
    def start(self) -> int:
        """How many rewards n_rewards_seen before the oldest in the window."""
        return self.count - len(self)

    @property
    def rewards(self) -> FloatArray:
        """Rewards as they were paid, oldest first."""
        return self._reward[self._order()]

    def seen(self, most: int | None = None) -> Seen:
        """Rewards, arms and context vectors (of the latest `most` rewards), oldest first."""
        order = self._order(0 if most is None else self.count - most)
        return Seen(self._reward[order], self._arm[order], self._x[order])

    @property
    def raw(self) -> FloatArray | None:
        """Contexts of the chosen arms, one row for each reward; None if some are no longer kept."""
        return self._raw[: self.count] if self.count <= len(self._raw) else None

    def evidence_before(self, index: int) -> float:
        """Log evidence of the mixture before the n-th reward."""
        return float(self._evidence[index % self.capacity])

    def past(self, threshold: float) -> Past:
        """Arms and successes, from which trackers recompute their covariates."""
        order, start = self._order(), self.start
        return Past(
            self._t[order],
            self._arm[order],
            self._reward[order] > threshold,
            self._n_rewards_seen[order] - start,
            start == 0,
        )

    def covariates(self, since: int = 0) -> FloatArray:
        """Covariates of the rounds whose rewards arrived from the n-th on; a copy."""
        return self._covariates[self._order(since)]

    def network(self, since: int = 0) -> FloatArray:
        """Log likelihoods of rewards from the n-th on under the network, in the units of
        rewards."""
        return self._network[self._order(since)]

    def events(self, since: int) -> list[tuple[int, int, float]]:
        """Round, arm and reward of each reward from the n-th on."""
        order = self._order(since)
        rows = zip(self._t[order], self._arm[order], self._reward[order], strict=True)
        return [(int(t), int(arm), float(reward)) for t, arm, reward in rows]

    def window(self, units: Units, since: int = 0) -> Window:
        """The rounds whose rewards arrived from the n-th on, in these units, as the kernels read
        them."""
        order = self._order(since)
        return Window(
            t=self._t[order],
            covariates=standardised(self._covariates[order], units.centre, units.spread),
            arm=self._arm[order],
            x=self._x[order],
            y=units.standardised(self._reward[order]),
        )

    def adopt(
        self, covariates: FloatArray, x: FloatArray, evidence: FloatArray, *, drop_network: bool
    ) -> None:
        """Replace covariates, context vectors and evidence of all rounds in the window;
        `drop_network` forgets the scores of the network."""
        n = len(self)
        order = self._order()
        self._covariates[order], self._x[order], self._evidence[order] = (
            covariates[-n:],
            x[-n:],
            evidence[-n:],
        )
        if drop_network:
            self._network[:] = np.nan

    def clip(self, low: float, high: float) -> bool:
        """Clip rewards to these bounds; whether any was outside."""
        clipped = np.clip(self._reward, low, high) if self.count else self._reward
        changed = bool((clipped != self._reward)[self._order()].any())
        self._reward[self._order()] = clipped[self._order()]
        return changed

    def _order(self, since: int = 0) -> IntArray:
        return np.arange(max(self.start, since), self.count) % self.capacity


def one_by_one(window: Window) -> Rounds:
    """A window as rounds without gaps; rounds without a reward have the arm -1."""
    t, n = window.t, len(window.t)
    if t[-1] - t[0] == n - 1 and bool((np.diff(t) == 1).all()):
        return Rounds(int(t[0]), window.arm, window.y)
    last = int(t.max())
    first = max(int(t.min()), last + 1 - _LONGEST_SPAN * n)
    kept = t >= first
    arm, y = np.full(last + 1 - first, -1, np.int64), np.zeros(last + 1 - first)
    arm[t[kept] - first], y[t[kept] - first] = window.arm[kept], window.y[kept]
    return Rounds(first, arm, y)
