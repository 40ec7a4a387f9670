"""Worlds that are tables: every round's time, observation, expected rewards and rewards of all arms.

What is played moves nothing in them, so the whole world can be exported, and arms that were chosen
elsewhere can be scored. After the last row comes the first again, whole weeks later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidepull.problems.drift import read_only
from tidepull.problems.rewards import check_arm
from tidepull.types import Context, FloatArray, IntArray

HOUR, DAY, WEEK = 3600.0, 86_400.0, 604_800.0
MONDAY = 1_767_571_200.0
"""5 January 2026, 00:00 UTC."""
_FIRST_MONDAY = 4 * DAY
"""1 January 1970 was a Thursday."""


@dataclass(frozen=True, eq=False)
class WorldTable:
    """A world as arrays with a row for each round.

    `seconds_late` says when the reward of each arm arrives after its decision; None: at once.
    """

    rewards: FloatArray
    means: FloatArray
    time: FloatArray | None = None
    observation: FloatArray | None = None
    seconds_late: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.means)

    @cached_property
    def waits(self) -> IntArray | None:
        """By how many rounds each reward is late: it is known before the first decision at or after
        its arrival, and what arrives after the last row when the table has begun again."""
        if self.seconds_late is None or self.time is None:
            return None
        first = np.searchsorted(self.time, self.time[:, None] + self.seconds_late)
        last = np.where(first == len(self), len(self), first - 1)
        return np.maximum(0, last - np.arange(len(self))[:, None])

    @cached_property
    def span(self) -> float:
        """Seconds until the table begins again: whole weeks."""
        if self.time is None:
            return 0.0
        return float(np.floor((self.time[-1] - self.time[0]) / WEEK) + 1) * WEEK


class TableWorld:
    """Plays a table row by row."""

    def __init__(self, table: WorldTable) -> None:
        self.table = table
        self.n_arms = table.means.shape[1]
        self._means = read_only(table.means)
        self._seen = None if table.observation is None else read_only(table.observation)
        self._t = 0
        self._wait: int | None = 0

    def context(self) -> Context:
        """The time and the observation of this round, as far as there are any."""
        cycle, row = divmod(self._t, len(self.table))
        times = self.table.time
        time = None if times is None else float(times[row]) + cycle * self.table.span
        return Context(observation=None if self._seen is None else self._seen[row], time=time)

    def means(self) -> FloatArray:
        """Every arm's expected reward in this round."""
        row: FloatArray = self._means[self._t % len(self.table)]
        return row

    def step(self, arm: int) -> float:
        """The reward of an arm, and on to the next round."""
        check_arm(arm, self.n_arms)
        row = self._t % len(self.table)
        waits = self.table.waits
        self._wait = 0 if waits is None else int(waits[row, arm])
        self._t += 1
        return float(self.table.rewards[row, arm])

    def wait(self) -> int | None:
        """By how many rounds the latest reward is late."""
        return self._wait

    def totals(self, horizon: int) -> FloatArray:
        """Each arm's expected rewards, summed over the horizon."""
        return np.asarray(self._means[np.arange(horizon) % len(self.table)].sum(axis=0))

    def random_regret(self, horizon: int) -> float:
        """Expected regret of uniformly random arms: the sum of max_k mu_k - mean_k mu_k."""
        means = self._means[np.arange(horizon) % len(self.table)]
        return float((means.max(axis=1) - means.mean(axis=1)).sum())


def hour_weekend_cells(time: FloatArray) -> IntArray:
    """The cell of each time among 48: the hour of the day, and 24 more on weekends (UTC)."""
    hour = (time % DAY // HOUR).astype(np.int64)
    weekend = (time - _FIRST_MONDAY) % WEEK >= 5 * DAY
    return np.asarray(hour + 24 * weekend)


@dataclass(frozen=True, slots=True)
class ValueOfTime:
    """Mean reward a round of random arms, the best fixed arm, the best table of hour x weekend (all
    three in hindsight) and the oracle. Without times the table is the fixed arm."""

    rounds: int
    random: float
    fixed: float
    table: float
    oracle: float


def value_of_time(table: WorldTable) -> ValueOfTime:
    """What is known in hindsight of one world."""
    means, rounds = table.means, len(table)
    cells = np.zeros(rounds, np.int64) if table.time is None else hour_weekend_cells(table.time)
    sums = np.zeros((48, means.shape[1]))
    np.add.at(sums, cells, means)
    return ValueOfTime(
        rounds=rounds,
        random=float(means.mean()),
        fixed=float(means.mean(axis=0).max()),
        table=float(sums.max(axis=1).sum() / rounds),
        oracle=float(means.max(axis=1).mean()),
    )
