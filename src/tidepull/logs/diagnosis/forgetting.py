"""Would forgetting help, and how fast? Every reward is predicted from its arm's earlier ones, with memories of any
length.

A memory of n decisions weighs what lies k decisions back by (1 - 1/n)^k. The gain of a memory is how much smaller its
squared error is than that of remembering everything; its interval resamples blocks of neighbouring events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from tidepull.logs.diagnosis.events import Events
from tidepull.logs.estimators import Scores
from tidepull.logs.intervals import interval
from tidepull.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory of so many `decisions` (`seconds` on average, NaN where times are no dates), and by how much of the
    error of remembering everything its predictions are better."""

    decisions: float
    seconds: float
    gain: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Memories from short to long; `helps` says whether the best of them is better for sure."""

    memories: tuple[Memory, ...]

    @property
    def best(self) -> Memory | None:
        """The memory with the greatest gain."""
        return max(self.memories, key=lambda memory: memory.gain, default=None)

    @property
    def helps(self) -> bool:
        """Whether the interval of the best memory lies above 0, having looked at all of them."""
        return self.best is not None and self.best.low > 0


def forgetting(events: Events, *, seed: int = 0) -> Forgetting:
    """Memories of 30 decisions up to the length of the log."""
    n = len(events)
    if n < 100 or np.ptp(events.reward) == 0:
        return Forgetting(())
    tried = [m for m in (30, 60, 125, 250, 500, 1000, 2000, 4000, 8000) if m <= n / 2]
    everything = _errors(events, np.inf)
    total = float(everything.mean())
    level = 1 - 0.05 / len(tried)
    per_event = float("nan")
    if events.time is not None and events.dated:
        per_event = float(events.time[-1] - events.time[0]) / max(1, n - 1)
    found = []
    for memory in tried:
        better = (everything - _errors(events, float(memory))) / total
        low, high = interval(Scores(better, np.ones(n)), level=level, seed=seed, block=max(1, round(n**0.5)))
        found.append(Memory(memory * events.scale, memory * per_event, float(better.mean()), low, high))
    return Forgetting(tuple(found))


def _errors(events: Events, memory: float) -> FloatArray:
    """Squared error of predicting each event."""
    keep = 1.0 if np.isinf(memory) else 1 - 1 / memory
    errors: FloatArray = np.empty(len(events))
    _predict(events.arm, events.reward, events.n_arms, keep, errors)
    return errors


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _predict(arm: IntArray, reward: FloatArray, n_arms: int, keep: float, errors: FloatArray) -> None:
    counts, sums, last = np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms, np.int64)
    total, seen = 0.0, 0.0
    for n in range(len(arm)):
        a = arm[n]
        faded = keep ** (n - last[a])
        counts[a] *= faded
        sums[a] *= faded
        last[a] = n
        usual = total / seen if seen > 0 else reward[n]
        errors[n] = (reward[n] - (sums[a] + usual) / (counts[a] + 1.0)) ** 2
        counts[a] += 1.0
        sums[a] += reward[n]
        total = total * keep + reward[n]
        seen = seen * keep + 1.0
