"""Does time matter at all? A test whose false alarms are held to 2%, next to the evidence of
hypotheses.

If nothing changes, the rewards of an arm may be put into any other order. So they are: within every
arm rewards are shuffled, and each of several measures of order is compared with its values after a
thousand shuffles. That the best of several measures is looked at is part of the comparison: the
least of their p-values (of equal ones the rest decide) is itself compared with its values after the
same shuffles. So all together raise a false alarm in 2% of logs, whatever the rewards look like.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import signal

from tidepull.logs.diagnosis.events import Events
from tidepull.logs.log import hour_of, weekday_of
from tidepull.types import FloatArray, IntArray

SHUFFLES = 999
LEVEL = 0.02
"""The share of false alarms."""
_BINS = 64
_LEAST = 5
_ARMS = 8
"""Arms that have a spectrum of their own, the most played ones; the others share one."""
DAY, WEEK = 86_400.0, 604_800.0


@dataclass(frozen=True, slots=True)
class TimeTest:
    """`p` is how often a log in which nothing changes looks at least as orderly; `measures` has the
    p-value of each by itself, of which the least is expected to be small when there are many."""

    p: float
    measures: Mapping[str, float]
    shuffles: int

    @property
    def matters(self) -> bool:
        """Whether time matters, with 2% false alarms."""
        return self.p <= LEVEL


Measure = Callable[[FloatArray], float]


def time_test(
    events: Events,
    *,
    shuffles: int = SHUFFLES,
    seed: int = 0,
    beside: FloatArray | None = None,
    tick: Callable[[int], None] = lambda _: None,
) -> TimeTest:
    """The test of an arm's rewards; `beside` are rewards that something else has been taken out of.
    `tick` is told after each shuffle how many are done."""
    z = standardise(events, events.reward if beside is None else beside)
    if not len(z) or not np.any(z):
        return TimeTest(1.0, {}, 0)
    measures = _measures(events)
    rng = np.random.default_rng(seed)
    places = [np.flatnonzero(events.arm == arm) for arm in np.unique(events.arm)]
    values = np.empty((shuffles + 1, len(measures)))
    values[0] = [measure(z) for measure in measures.values()]
    shuffled = z.copy()
    for n in range(shuffles):
        for mine in places:
            shuffled[mine] = z[rng.permutation(mine)]
        values[n + 1] = [measure(shuffled) for measure in measures.values()]
        tick(n + 1)
    chances = _chances(values)
    least, rest = chances.min(axis=1), np.log(chances).mean(axis=1)
    as_orderly = (least < least[0]) | ((least == least[0]) & (rest <= rest[0]))
    by_measure = dict(zip(measures, chances[0].tolist(), strict=True))
    return TimeTest(float(as_orderly.mean()), by_measure, shuffles)


def _chances(values: FloatArray) -> FloatArray:
    """For every value the share of its column that is at least as large; rounding is no
    difference."""
    result = np.empty(values.shape)
    for column in range(values.shape[1]):
        rounded = np.round(values[:, column], 9)
        ranked = np.sort(rounded)
        result[:, column] = 1 - np.searchsorted(ranked, rounded, side="left") / len(rounded)
    return result


def standardise(events: Events, reward: FloatArray) -> FloatArray:
    """Rewards less their arm's mean, in standard deviations of all arms; arms that never vary stay
    0."""
    counts = np.bincount(events.arm, minlength=events.n_arms)
    means = np.bincount(events.arm, weights=reward, minlength=events.n_arms) / np.maximum(counts, 1)
    left = reward - means[events.arm]
    squares = np.bincount(events.arm, left**2, events.n_arms) / np.maximum(counts, 1)
    spread = np.sqrt(squares)[events.arm]
    result: FloatArray = np.divide(left, spread, out=np.zeros(len(left)), where=spread > 1e-12)
    return result


def without_context(events: Events) -> FloatArray:
    """Rewards less what a linear model of the contexts, fitted within arms, makes of them."""
    x = events.features - events.features.mean(axis=0)
    counts = np.maximum(np.bincount(events.arm, minlength=events.n_arms), 1)
    for column in range(x.shape[1]):
        means = np.bincount(events.arm, weights=x[:, column], minlength=events.n_arms) / counts
        x[:, column] -= means[events.arm]
    means = np.bincount(events.arm, weights=events.reward, minlength=events.n_arms) / counts
    y = events.reward - means[events.arm]
    left: FloatArray = events.reward - x @ np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ y)
    return left


def _measures(events: Events) -> dict[str, Measure]:
    """The measures that a log of this length and kind allows."""
    n = len(events)
    result: dict[str, Measure] = {}
    if n >= 4 * _LEAST:
        together, alone = _changes(events)
        result |= {
            "one change point, all arms": together,
            "one change point, one arm": alone,
            "slow drift": _drift(events),
        }
        for name, memory in (("short autocorrelation", 8), ("long autocorrelation", 64)):
            result[name] = _alike(events, memory)
    if n >= 64:
        grouped = _arm_groups(events)
        result["period in decisions"] = _season(np.arange(n), n, grouped)
        if events.time is not None and events.time[-1] > events.time[0]:
            places, cells = _on_a_grid(events.time)
            result["period in time"] = _season(places, cells, grouped)
    if events.time is not None and events.dated:
        days = (events.time[-1] - events.time[0]) / DAY
        if days >= 2:
            result["hour of the day"] = _cells(events.arm, hour_of(events.time))
        if days >= 14:
            result["weekday"] = _cells(events.arm, weekday_of(events.time))
    if events.each == 1 and events.scale < 1.01 and n >= 64:
        before = np.concatenate([[events.n_arms], events.arm[:-1]])
        result["previous arm"] = _cells(events.arm, before)
        result["previous reward"] = _reward_before(events)
    return result


def _changes(events: Events) -> tuple[Measure, Measure]:
    """How far sums before and after a moment differ, at the best of 63 moments: summed over arms,
    and of one arm."""
    n, cells = len(events), min(_BINS, len(events) // 2)
    place = events.arm * cells + np.minimum(np.arange(n) * cells // n, cells - 1)
    size = events.n_arms * cells

    def sums_before(weights: FloatArray | None = None) -> FloatArray:
        table = np.bincount(place, weights, size).reshape(-1, cells)
        return np.asarray(table.cumsum(axis=1)[:, :-1], float)

    before = sums_before()
    total = np.bincount(events.arm, minlength=events.n_arms)[:, None]
    fair = (before >= _LEAST) & (total - before >= _LEAST)
    variance = np.where(fair, before * (1 - before / np.maximum(total, 1)), 1.0)

    def apart(z: FloatArray) -> FloatArray:
        return np.asarray(np.where(fair, sums_before(z) ** 2 / variance, 0.0))

    return lambda z: float(apart(z).sum(axis=0).max()), lambda z: float(apart(z).max())


def _drift(events: Events) -> Measure:
    """Energy of slow waves of each arm: half a wave, one, one and a half and two over the whole
    log."""
    n = len(events)
    u = (np.arange(n) + 0.5) / n
    counts = np.maximum(np.bincount(events.arm, minlength=events.n_arms), 1)
    waves = [np.cos(np.pi * k * u) for k in range(1, 5)]

    def energy(z: FloatArray) -> float:
        total = 0.0
        for k, wave in enumerate(waves, start=1):
            sums = np.bincount(events.arm, weights=z * wave, minlength=events.n_arms)
            total += float((sums**2 / counts).sum()) / k**2
        return total

    return energy


def _alike(events: Events, memory: int) -> Measure:
    """How well an arm's reward goes with a fading mean of those before."""
    order = np.argsort(events.arm, kind="stable")
    first = np.concatenate([[True], np.diff(events.arm[order]) != 0])
    starts = np.flatnonzero(first)
    keep = 1 - 1 / memory

    def together(z: FloatArray) -> float:
        total = 0.0
        sorted_z = z[order]
        for start, stop in zip(starts, [*starts[1:], len(z)], strict=True):
            mine = sorted_z[start:stop]
            faded = signal.lfilter([1 / memory], [1, -keep], mine)
            total += float(mine[1:] @ faded[:-1])
        return total

    return together


def _cells(arm: IntArray, cell: IntArray) -> Measure:
    """Squared sums over cells of arm and hour (or whatever it is), each by its count."""
    kinds, place = np.unique(arm * (int(cell.max()) + 1) + cell, return_inverse=True)
    counts = np.bincount(place)
    size = len(kinds)
    return lambda z: float((np.bincount(place, z, size) ** 2 / counts).sum())


def _reward_before(events: Events) -> Measure:
    """How each arm's reward goes with the reward of the decision before, whichever arm that was
    of."""

    def along(z: FloatArray) -> float:
        products = z[1:] * z[:-1]
        sums = np.bincount(events.arm[1:], weights=products, minlength=events.n_arms)
        counts = np.maximum(np.bincount(events.arm[1:], minlength=events.n_arms), 1)
        return float((sums**2 / counts).sum())

    return along


def _arm_groups(events: Events) -> IntArray:
    """The most played arms by number, all others as one."""
    counts = np.bincount(events.arm, minlength=events.n_arms)
    place = np.full(events.n_arms, min(_ARMS, events.n_arms - 1))
    for n, arm in enumerate(
        np.argsort(-counts, kind="stable")[: _ARMS if events.n_arms > _ARMS else events.n_arms]
    ):
        place[arm] = n
    return place[events.arm]


def _on_a_grid(time: FloatArray) -> tuple[IntArray, int]:
    """The place of each event on an even grid of time."""
    cells = min(8192, 2 * len(time))
    places = np.floor((time - time[0]) / (time[-1] - time[0]) * (cells - 1)).astype(np.int64)
    return places, cells


def _season(places: IntArray, cells: int, group: IntArray) -> Measure:
    """The highest peak of the arms' spectra together, of periods that fit three times or more."""
    groups = int(group.max()) + 1
    counts = np.maximum(np.bincount(group, minlength=groups), 1)
    where = group * cells + places
    length = _quick_length(cells)

    def peak(z: FloatArray) -> float:
        series = np.bincount(where, weights=z, minlength=groups * cells).reshape(groups, cells)
        spectrum = np.abs(np.fft.rfft(series, length)) ** 2 / counts[:, None]
        slowest = -(-3 * length // cells)
        return float(spectrum.sum(axis=0)[slowest:].max())

    return peak


def _quick_length(cells: int) -> int:
    from scipy import fft

    return int(fft.next_fast_len(cells, real=True))
