"""How long rewards take, and how long a decision waits before it is learnt.

A reward that came early tells nothing while other decisions of its time may still get theirs: a
click is known at once, no click only later. Every decision is therefore learnt when its *learning
window* closes, with the reward that came, or else the default reward.

The window is `reward_within` until delays are known, then twice the delay L beyond which few
rewards come. For a candidate L only decisions count that are at least 2L old, and of their rewards
only those that took at most 2L. All of them had the same time to come, so that short delays are not
over-represented because long ones have not been seen yet. L passes if at least 8 such rewards are
known and at most 2% of them took longer than L. The smallest L counts above which none fails.

An arm whose rewards come later than those of others would be learnt as worse than it is. So the
same is asked of each arm's own rewards, with 10%, and the window is the largest of all.
"""

from __future__ import annotations

import numpy as np

from tidepull.types import FloatArray, Snapshot

SAMPLE, LATE = 256, 0.02
"""Delays that are kept of all rewards, and the share of them that may be longer than L."""

SAMPLE_OF_ARM, LATE_OF_ARM = 32, 0.1
"""The same for each arm."""

LEAST = 8
"""Rewards without which a candidate is not judged."""

_ALL = -1
_HALVES = 2.0 ** (-np.arange(2, 28) / 2)
"""Candidates for L, as shares of `reward_within`: down to a window of 1/5,793 of that."""


class _Sample:
    """A sample of delays: rows (when decided, delay, draw), those with a draw below `share`. When
    it is full the share is halved, so that it reaches back in time however many rewards come."""

    def __init__(self, size: int, late: float) -> None:
        self.rows: list[tuple[float, float, float]] = []
        self.share = 1.0
        self.window: float | None = None
        self._size, self._late = size, late

    def add(self, row: tuple[float, float, float], now: float, within: float) -> None:
        """Keep a delay, and judge anew."""
        if row[2] >= self.share:
            return
        self.rows.append(row)
        if len(self.rows) > self._size:
            self.rows = [row for row in self.rows if row[0] >= now - 4 * within]
        if len(self.rows) > self._size:
            self.share /= 2
            self.rows = [row for row in self.rows if row[2] < self.share]
        if len(self.rows) >= LEAST:
            decided, delay, _ = np.array(self.rows).T
            self.window = learning_window(now - decided, delay, within, self._late)


class RewardDelays:
    """Delays of an agent's rewards, and its learning window.

    >>> delays = RewardDelays(3600.0)
    >>> for n in range(20):
    ...     delays.add(0, decided_at=60.0 * n, delay=10.0 + n, draw=n / 20, now=60.0 * n + 30)
    >>> delays.window < 120
    True
    """

    def __init__(self, within: float) -> None:
        self._within = within
        self._samples = {_ALL: _Sample(SAMPLE, LATE)}
        self.window = within

    def add(self, arm: int, *, decided_at: float, delay: float, draw: float, now: float) -> None:
        """A reward came. `draw` is a number in [0, 1) that belongs to its decision alone."""
        if not 0.0 <= delay <= self._within:
            return
        for key in (_ALL, arm):
            if key not in self._samples:
                self._samples[key] = _Sample(SAMPLE_OF_ARM, LATE_OF_ARM)
            self._samples[key].add((decided_at, delay, draw), now, self._within)
        windows = (sample.window for sample in self._samples.values())
        self.window = max((one for one in windows if one is not None), default=self._within)

    def snapshot(self) -> Snapshot:
        """What is known of delays."""
        samples = [
            [key, sample.share, sample.window, np.array(sample.rows).reshape(-1, 3)]
            for key, sample in self._samples.items()
        ]
        return {"window": self.window, "samples": samples}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self.window = float(snapshot["window"])
        for key, share, window, rows in snapshot["samples"]:
            sample = _Sample(SAMPLE, LATE) if key == _ALL else _Sample(SAMPLE_OF_ARM, LATE_OF_ARM)
            sample.share, sample.window = float(share), None if window is None else float(window)
            sample.rows = [(float(at), float(delay), float(draw)) for at, delay, draw in rows]
            self._samples[int(key)] = sample


def learning_window(age: FloatArray, delay: FloatArray, within: float, late: float) -> float | None:
    """Twice the smallest candidate that passes and above which none fails. It is `within` where one
    fails and none above it is judged, and None where none is judged."""
    half = within * _HALVES[:, None]
    seen = (age >= 2 * half) & (delay <= 2 * half)
    counts = seen.sum(axis=1)
    judged = np.flatnonzero(counts >= LEAST)
    if not len(judged):
        return None
    fails = (seen & (delay > half)).sum(axis=1) > late * counts
    passed = judged[np.cumsum(fails[judged]) == 0]
    return float(2 * half[passed[-1], 0]) if len(passed) else within
