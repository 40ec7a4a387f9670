"""GLR-klUCB with per-arm restarts, the published specialist for piecewise-stationary Bernoulli
arms.

Besson, Kaufmann, Maillard and Seznec, "Efficient change-point detection for tackling
piecewise-stationary bandits" (2019), written from the paper's description, with the defaults of its
authors' package SMPyBandits 0.9.7. Every arm keeps its rewards since its latest restart; an arm of
n rewards restarts when, for some s,

    s kl(mean of the first s, mean of all) + (n - s) kl(mean of the rest, mean of all)  >=  log(3
    n^(3/2) / delta)

(tested at every tenth reward of an arm, for every tenth s) and keeps what came after the first such
s. The arm with the largest klUCB index sup{q: n kl(mean, q) <= log(rounds since the restart)} is
played, but for K of every ceil(K / alpha) rounds since the latest restart of all, in which every
arm has its turn. Told the horizon T and the number of changes m: alpha = 0.1 sqrt(K m log T / T)
and delta = 1 / sqrt(K m T). (The package's own function for delta has a fault: a product larger
than 1 is replaced by 0.1. `faithful=False` takes the delta that follows, 1 / sqrt(0.1), with which
restarts are easier.)
"""

from __future__ import annotations

import math

import numba
import numpy as np

from tidepull.types import Context, Event, FloatArray

_EVERY = 10


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _kl(p: float, q: float) -> float:
    p, q = min(max(p, 1e-15), 1 - 1e-15), min(max(q, 1e-15), 1 - 1e-15)
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _index(mean: float, bound: float) -> float:
    """The largest q with kl(mean, q) <= bound, by halving."""
    low, high = mean, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        if _kl(mean, middle) > bound:
            high = middle
        else:
            low = middle
    return low


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _changed(rewards: FloatArray, n: int, delta: float) -> int:
    """How many of an arm's rewards came before the change that the test finds; -1 when it finds
    none."""
    total = 0.0
    for i in range(n):
        total += rewards[i]
    mean, before = total / n, 0.0
    threshold = math.log(3 * n**1.5 / delta)
    for s in range(1, n):
        before += rewards[s - 1]
        if (s - 1) % _EVERY == 0:
            after = (total - before) / (n - s)
            if s * _kl(before / s, mean) + (n - s) * _kl(after, mean) >= threshold:
                return s
    return -1


class GLRklUCB:
    """One trial of it."""

    def __init__(self, n_arms: int, horizon: int, changes: int, *, faithful: bool = True) -> None:
        told = n_arms * max(changes, 1)
        self._alpha = 0.1 * math.sqrt(told / horizon * math.log(horizon))
        self._delta = 1 / math.sqrt(told * horizon if faithful else 0.1)
        self._rewards = np.zeros((n_arms, horizon))
        self._n = np.zeros(n_arms, np.int64)
        self._restarted = np.zeros(n_arms, np.int64)
        self._t = 0
        self.restarts = 0

    def choose(self, context: Context) -> int:
        """A forced turn, or the largest index."""
        n_arms = len(self._n)
        turn = (self._t - int(self._restarted.max())) % math.ceil(n_arms / self._alpha)
        if turn < n_arms:
            return int(turn)
        indices = np.full(n_arms, np.inf)
        for k in np.flatnonzero(self._n):
            n = int(self._n[k])
            since = max(self._t - int(self._restarted[k]), 1)
            indices[k] = _index(float(self._rewards[k, :n].mean()), math.log(since) / n)
        return int(np.argmax(indices))

    def learn(self, event: Event) -> None:
        """Keep the reward; restart the arm when it changed."""
        k = event.arm
        self._rewards[k, self._n[k]] = event.reward
        self._n[k] += 1
        self._t += 1
        if self._n[k] % _EVERY == 0:
            s = int(_changed(self._rewards[k], int(self._n[k]), self._delta))
            if s >= 0:
                kept = self._rewards[k, s : self._n[k]].copy()
                self._rewards[k, : len(kept)], self._n[k] = kept, len(kept)
                self._restarted[k] = self._t - len(kept) + 1
                self.restarts += 1
