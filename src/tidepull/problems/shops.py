"""Simulated shops: visitors come by the clock, faster by day and on weekdays, and arms follow it.

Each kind is a generator of a whole world from the streams of a seed (`docs/problems.md` has them all on
one page). Times are UTC.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tidepull.errors import ArmError
from tidepull.parameters import Parameters, parameter
from tidepull.problems.drift import read_only
from tidepull.problems.tables import DAY, HOUR, MONDAY, WEEK, TableWorld, WorldTable
from tidepull.protocols import Problem
from tidepull.random import Streams
from tidepull.types import Context, FloatArray

Kind = Literal[
    "hours", "banners", "clicks", "revenue", "holidays-told", "holidays-untold", "growth",
    "classes-evening", "fifty-arms", "contexts", "early-clicks", "wear-out",
]  # fmt: skip

NIGHT, WEEKEND = 0.1, 0.6
"""Traffic of the quietest hour as a share of the busiest (16:00), and of a day of the weekend as a
share of a weekday."""


@dataclass(frozen=True, kw_only=True)
class ShopParameters(Parameters):
    """Parameters of `shop`."""

    kind: Kind = parameter("hours", "kind of shop")
    rounds: int | None = parameter(
        None, "decisions until the world begins again (auto: those of the kind)", ge=1, le=10**7
    )


@dataclass(frozen=True, slots=True)
class Shop:
    """A kind of shop: its decisions in all and on a mean day, and its generator."""

    rounds: int
    per_day: float
    build: Callable[[FloatArray, Streams], WorldTable]


def shop(parameters: ShopParameters, streams: Streams) -> Problem:
    """The world of a kind under a seed."""
    if parameters.kind == "wear-out":
        rounds = parameters.rounds or WEAR_OUT_ROUNDS
        return WearOut(visits(rounds, WEAR_OUT_PER_DAY, streams.generator("traffic")), streams)
    kind = SHOPS[parameters.kind]
    time = visits(parameters.rounds or kind.rounds, kind.per_day, streams.generator("traffic"))
    return TableWorld(kind.build(time, streams))


def visits(rounds: int, per_day: float, rng: np.random.Generator) -> FloatArray:
    """Times of visits: Poisson numbers in each hour, from a Monday on."""
    hours = 24 * (math.ceil(1.5 * rounds / per_day) + 14)
    start = HOUR * np.arange(hours)
    wave = (1 + np.cos(2 * np.pi * (start / HOUR - 16) / 24)) / 2
    rate = (NIGHT + (1 - NIGHT) * wave) * np.where(start % WEEK >= 5 * DAY, WEEKEND, 1.0)
    counts = rng.poisson(rate / rate[: 7 * 24].mean() * per_day / 24)
    times = np.repeat(start, counts) + HOUR * rng.random(counts.sum())
    return np.asarray(MONDAY + np.sort(times)[:rounds])


def hour_of(time: FloatArray) -> FloatArray:
    """Hours of the day, from 0 to 24."""
    return np.asarray(time % DAY / HOUR)


def is_weekend(time: FloatArray) -> FloatArray:
    """1 on Saturdays and Sundays, else 0."""
    return ((time - MONDAY) % WEEK >= 5 * DAY).astype(float)


def swing(position: FloatArray, peaks: FloatArray, period: float) -> FloatArray:
    """A wave for each arm with its peak, as columns."""
    return np.asarray(np.cos(2 * np.pi * (position[:, None] - peaks) / period))


def bernoulli(
    time: FloatArray,
    chances: FloatArray,
    streams: Streams,
    *,
    observation: FloatArray | None = None,
    seconds_late: FloatArray | None = None,
) -> WorldTable:
    """Rewards of 0 and 1."""
    chances = np.clip(chances, 0.001, 0.999)
    rewards = (streams.generator("noise").random(chances.shape) < chances).astype(float)
    return WorldTable(rewards, chances, time, observation, seconds_late)


def _hours(time: FloatArray, streams: Streams) -> WorldTable:
    start = streams.generator("arms").uniform(0, 24)
    own = ((hour_of(time) - start) % 24 // 8)[:, None] == np.arange(3)
    return bernoulli(time, np.where(own, 0.3, 0.1), streams)


def _banners(time: FloatArray, streams: Streams) -> WorldTable:
    rng = streams.generator("arms")
    days = np.stack([rng.permutation(4), rng.permutation(4)])  # best arm of each quarter of a day
    best = days[is_weekend(time).astype(int), (hour_of(time) // 6).astype(int)]
    chances = np.where(best[:, None] == np.arange(4), 0.3, 0.1)
    return bernoulli(time, chances, streams, seconds_late=np.full(chances.shape, 3 * HOUR))


def _clicks(time: FloatArray, streams: Streams) -> WorldTable:
    peaks = streams.generator("arms").uniform(0, WEEK, 4)
    return bernoulli(time, 0.02 + 0.01 * swing(time - MONDAY, peaks, WEEK), streams)


def _revenue(time: FloatArray, streams: Streams) -> WorldTable:
    rng, noise = streams.generator("arms"), streams.generator("noise")
    hour = hour_of(time)
    chance = 0.1 + 0.05 * swing(hour, rng.uniform(0, 24, 4), 24)
    log_size = 3 + 0.4 * swing(hour, rng.uniform(0, 24, 4), 24)
    sizes = np.exp(log_size + noise.standard_normal(log_size.shape))
    rewards = np.where(noise.random(chance.shape) < chance, sizes, 0.0)
    late = streams.generator("delay").exponential(6 * HOUR, chance.shape)
    return WorldTable(rewards, chance * np.exp(log_size + 0.5), time, None, late)


def _holidays(time: FloatArray, streams: Streams, *, shown: bool) -> WorldTable:
    rng = streams.generator("arms")
    peaks, shift = rng.uniform(0, 24, 4), rng.permutation([-0.25, -0.1, 0.1, 0.25])
    days = ((time - MONDAY) // DAY).astype(int)
    holiday = (streams.generator("holidays").random(days.max() + 1) < 0.15)[days].astype(float)
    chances = 0.4 + 0.12 * swing(hour_of(time), peaks, 24) + holiday[:, None] * shift
    return bernoulli(time, chances, streams, observation=holiday[:, None] if shown else None)


def _growth(time: FloatArray, streams: Streams) -> WorldTable:
    rng = streams.generator("arms")
    share = np.arange(len(time))[:, None] / len(time)
    level = 0.25 + np.where(np.arange(4) == 0, 0.1 + 0 * share, 0.0)
    level[:, 1] += 0.25 * share[:, 0]  # overtakes slowly
    after = share[:, 0] >= rng.uniform(0.5, 0.7)
    level[after, 2] += 0.3  # one abrupt change
    chances = level + 0.1 * swing(time - MONDAY, rng.uniform(0, WEEK, 4), WEEK)
    chances = chances[:, rng.permutation(4)]
    return bernoulli(time, chances, streams, seconds_late=np.full(chances.shape, DAY))


def _classes(time: FloatArray, streams: Streams) -> WorldTable:
    rng, seen = streams.generator("arms"), streams.generator("contexts")
    numbers = seen.standard_normal((len(time), 5))
    classes = np.eye(3)[seen.integers(3, size=len(time))]
    evening = (hour_of(time) >= 18).astype(float)[:, None]
    means = 0.15 * numbers @ rng.standard_normal((5, 4))
    means += 0.3 * classes @ rng.standard_normal((3, 4))
    means += evening * (0.6 * classes @ rng.standard_normal((3, 4)))
    rewards = means + 0.5 * streams.generator("noise").standard_normal(means.shape)
    return WorldTable(rewards, means, time, np.hstack([numbers, classes]))


def _fifty(time: FloatArray, streams: Streams) -> WorldTable:
    rng = streams.generator("arms")
    chances = np.full((len(time), 50), 0.05)
    peaks = (rng.uniform(0, 24) + 24 * np.arange(5) / 5) % 24
    wave = np.maximum(0.0, swing(hour_of(time), peaks, 24))
    chances[:, rng.choice(50, 5, replace=False)] += 0.25 * wave
    return bernoulli(time, chances, streams)


def _contexts(time: FloatArray, streams: Streams) -> WorldTable:
    numbers = streams.generator("contexts").standard_normal((len(time), 5))
    means = 0.3 * numbers @ streams.generator("arms").standard_normal((5, 4))
    rewards = means + 0.5 * streams.generator("noise").standard_normal(means.shape)
    return WorldTable(rewards, means, time, numbers)


def _early_clicks(time: FloatArray, streams: Streams) -> WorldTable:
    chances = streams.generator("arms").permutation([0.04, 0.09, 0.06, 0.05])
    table = bernoulli(time, np.tile(chances, (len(time), 1)), streams)
    soon = streams.generator("delay").exponential(HOUR / 3, table.means.shape)
    late = np.where(table.rewards > 0, np.minimum(soon, DAY), DAY)  # zeros when the window closes
    return WorldTable(table.rewards, table.means, time, None, late)


SHOPS: dict[str, Shop] = {
    "hours": Shop(6000, 215, _hours),
    "banners": Shop(6000, 215, _banners),
    "clicks": Shop(50_000, 900, _clicks),
    "revenue": Shop(6000, 215, _revenue),
    "holidays-told": Shop(6000, 107, lambda t, s: _holidays(t, s, shown=True)),
    "holidays-untold": Shop(6000, 107, lambda t, s: _holidays(t, s, shown=False)),
    "growth": Shop(8000, 143, _growth),
    "classes-evening": Shop(6000, 215, _classes),
    "fifty-arms": Shop(12_000, 430, _fifty),
    "contexts": Shop(6000, 215, _contexts),
    "early-clicks": Shop(20_000, 1000, _early_clicks),
}
"""All kinds but `wear-out`, whose means hang on what was played."""

WEAR_OUT_ROUNDS, WEAR_OUT_PER_DAY = 6000, 215.0
_REST_SECONDS = DAY
"""Mean life of the memory of one showing."""
_TIREDNESS = 0.02
"""An arm that was shown n times in the latest day pays 1 / (1 + 0.02 n) of its fresh chance."""


class WearOut:
    """Six banners of .1 to .35 that wear out while they are shown and recover while they rest.

    p_k = fresh_k / (1 + 0.02 f_k), where f_k counts the showings with weight exp(-age / one day).
    Regret is against the best arm of the round, in the state that the player brought about.
    """

    n_arms = 6

    def __init__(self, time: FloatArray, streams: Streams) -> None:
        self._time = time
        self._fresh = streams.generator("arms").permutation(np.linspace(0.1, 0.35, self.n_arms))
        self._noise = streams.generator("noise")
        self._tired = np.zeros(self.n_arms)
        self._t = 0

    def context(self) -> Context:
        """The time."""
        return Context(time=self._now(self._t))

    def means(self) -> FloatArray:
        """The arms' chances in their present state."""
        return read_only(self._fresh / (1 + _TIREDNESS * self._tired))

    def step(self, arm: int) -> float:
        """A click or none; the arm wears, all others rest."""
        if not 0 <= arm < self.n_arms:
            raise ArmError(f"arm must be a whole number from 0 to {self.n_arms - 1}, got {arm!r}")
        drawn = self._noise.random(self.n_arms) < self.means()
        self._tired[arm] += 1
        self._tired *= math.exp((self._now(self._t) - self._now(self._t + 1)) / _REST_SECONDS)
        self._t += 1
        return float(drawn[arm])

    def totals(self, horizon: int) -> FloatArray:
        """What each arm pays in all if it alone is shown: it wears as much as any other would."""
        times = np.array([self._now(t) for t in range(horizon)])
        shares = np.exp(-np.diff(times) / _REST_SECONDS)
        tired, total = 0.0, 1.0
        for share in shares:
            tired = (tired + 1) * share
            total += 1 / (1 + _TIREDNESS * tired)
        return np.asarray(self._fresh * total)

    def _now(self, t: int) -> float:
        cycle, row = divmod(t, len(self._time))
        weeks = math.floor(float(self._time[-1] - self._time[0]) / WEEK) + 1
        return float(self._time[row]) + cycle * weeks * WEEK
