"""Would forgetting help, how fast, and what would it have earned?

Every reward is predicted from its arm's earlier ones. A memory of n decisions weighs what lies k
decisions back by (1 - 1/n)^k. The gain of a memory is how much smaller its squared error is than
that of remembering everything; its interval resamples blocks of neighbouring events.

Three simple rules play, in every row, the arm with the best mean reward in the past: of everything,
of the best memory, or of the same part of the day. They look at earlier rows only, so their value
is estimated as for any other policy, here by self-normalised inverse propensities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull._internal.kernels import kernel
from tidepull.logs.backtesting import usable
from tidepull.logs.diagnosis.events import Events
from tidepull.logs.estimators import ESTIMATORS, Scores, interval, weights_of
from tidepull.logs.log import Log, local_seconds
from tidepull.logs.models import RewardModel
from tidepull.logs.policies import Target, terms_of
from tidepull.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class MemoryGain:
    """A memory of so many `decisions` (`seconds` on average, NaN where times are no dates), and by
    how much of the error of remembering everything its predictions are better."""

    decisions: float
    seconds: float
    gain: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Forgetting:
    """Memories from short to long; `helps` says whether the best of them is better for sure."""

    memories: tuple[MemoryGain, ...]

    @property
    def best(self) -> MemoryGain | None:
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
    results = []
    for memory in tried:
        better = (everything - _errors(events, float(memory))) / total
        scores, block = Scores(better, np.ones(n)), max(1, round(n**0.5))
        bounds = interval(scores, level=level, seed=seed, block=block)
        length = memory * events.scale, memory * per_event
        results.append(MemoryGain(*length, float(better.mean()), *bounds))
    return Forgetting(tuple(results))


def _errors(events: Events, memory: float) -> FloatArray:
    """Squared error of predicting each event."""
    keep = 1.0 if np.isinf(memory) else 1 - 1 / memory
    errors: FloatArray = np.empty(len(events))
    _predict(events.arm, events.reward, events.n_arms, keep, errors)
    return errors


@kernel(exact=False)
def _predict(
    arm: IntArray, reward: FloatArray, n_arms: int, keep: float, errors: FloatArray
) -> None:
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


MOST_ROWS = 200_000
"""The latest rows that are played through."""
BY_HOUR = "the best arm at this time of day so far (in parts of three hours)"
"""The rule that follows the clock, in words."""


@dataclass(frozen=True, slots=True)
class Worth:
    """A rule's mean reward with its 95% interval, the gain over remembering everything with its
    interval, and the effective number of rows behind it."""

    rule: str
    value: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float
    effective: float


def worth_of(log: Log, memory: float | None, *, seed: int = 0) -> tuple[Worth, ...]:
    """The rules; empty where propensities are missing, there is one arm, or rewards are all the
    same."""
    if log.propensity is None or log.n_arms < 2 or log.available is not None:
        return ()
    paid = log.reward[~np.isnan(log.reward)]
    if not len(paid) or paid.min() == paid.max() or np.isnan(log.propensity).all():
        return ()
    used, _ = usable(log.where(slice(max(0, len(log) - MOST_ROWS), None)))
    model = RewardModel(used)
    nowhere = np.zeros(len(used), np.int64)
    rules: list[tuple[str, IntArray, float]] = [("the best arm of everything so far", nowhere, 1.0)]
    if memory is not None:
        rules.append((f"the best arm of the last {memory:,.0f} decisions", nowhere, 1 - 1 / memory))
    if used.time is not None and used.dated:
        part = np.floor(local_seconds(used.time, used.timezone) / 10_800).astype(np.int64) % 8
        rules.append((BY_HOUR, part, 1.0))
    results: list[Worth] = []
    first: Scores | None = None
    for name, cell, keep in rules:
        chosen = np.empty(len(used), np.int64)
        _best_so_far(used.arm, used.reward, cell, used.n_arms, keep, chosen)
        rows, _ = terms_of(used, _playing(name, chosen), model, 10.0)
        scores = ESTIMATORS["snips"](rows)
        low, high = interval(scores, seed=seed)
        first = scores if first is None else first
        gain = _difference(scores, first)
        bounds = interval(gain, seed=seed) if scores is not first else (0.0, 0.0)
        effective = weights_of(rows.weight, 0.0).effective
        results.append(Worth(name, scores.value, low, high, gain.value, *bounds, effective))
    return tuple(results)


def _difference(one: Scores, other: Scores) -> Scores:
    """The difference of two self-normalised means, row by row: each row's own share of it, to first
    order."""
    n = len(one.top)
    share = (one.top - one.value * one.bottom) / max(float(one.bottom.mean()), 1e-12)
    rival = (other.top - other.value * other.bottom) / max(float(other.bottom.mean()), 1e-12)
    return Scores(share - rival + one.value - other.value, np.ones(n))


def _playing(name: str, chosen: IntArray) -> Target:
    def shares(log: Log, rows: slice) -> FloatArray:
        table: FloatArray = np.eye(log.n_arms)[chosen[rows]]
        return table

    return Target(name, shares)


@kernel(exact=False)
def _best_so_far(
    arm: IntArray, reward: FloatArray, cell: IntArray, n_arms: int, keep: float, chosen: IntArray
) -> None:
    """The arm with the best faded mean in this cell, drawn towards the mean of all as by one
    row."""
    cells = cell.max() + 1
    counts, sums = np.zeros((cells, n_arms)), np.zeros((cells, n_arms))
    last = np.zeros((cells, n_arms), np.int64)
    total, seen = 0.0, 0.0
    for n in range(len(arm)):
        c = cell[n]
        usual = total / seen if seen > 0 else 0.0
        best, most = 0, -np.inf
        for a in range(n_arms):
            faded = keep ** (n - last[c, a])
            mean = (sums[c, a] * faded + usual) / (counts[c, a] * faded + 1.0)
            if mean > most:
                best, most = a, mean
        chosen[n] = best
        a = arm[n]
        faded = keep ** (n - last[c, a])
        counts[c, a] = counts[c, a] * faded + 1.0
        sums[c, a] = sums[c, a] * faded + reward[n]
        last[c, a] = n
        total += reward[n]
        seen += 1.0
