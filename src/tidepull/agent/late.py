"""How often the policy found each arm best of late, by the hour: sums that grow with records and forget old ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from tidepull.agent.clock import Clock
from tidepull.agent.when import Hours
from tidepull.types import FloatArray, IntArray

HOURS = 4 * 7 * 24
"""How far back "when" looks."""

CHANCES = 200
"""Late decisions over which "now" is averaged."""

_THURSDAY = 3  # 1 January 1970


class LateShares:
    """Sums of shares for every hour of the last four weeks (a day begins at midnight where the user is), and the shares
    of the latest decisions."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._hours: dict[int, tuple[FloatArray, int]] = {}
        self._newest = -(1 << 62)
        self._latest: deque[IntArray] = deque(maxlen=CHANCES)

    def add(self, at: float, counts: IntArray) -> None:
        """A decision; `counts` has each arm's share of the draws, in 65535ths."""
        hour = int(self._clock.local(at) // 3600)
        self._latest.append(counts)
        if hour <= self._newest - HOURS:
            return
        if hour > self._newest:
            self._newest = hour
            for old in [known for known in self._hours if known <= hour - HOURS]:
                del self._hours[old]
        sums, number = self._hours.get(hour, (np.zeros(len(counts)), 0))
        if len(counts) > len(sums):
            sums = np.pad(sums, (0, len(counts) - len(sums)))
        sums[: len(counts)] += counts
        self._hours[hour] = sums, number + 1

    def now(self, room: int) -> FloatArray | None:
        """Each arm's mean share in the latest decisions; None: there are none."""
        if not self._latest:
            return None
        mean = np.zeros(room)
        for counts in self._latest:
            mean[: len(counts)] += counts
        return mean / (65535 * len(self._latest))

    def week(self, room: int) -> FloatArray:
        """Each arm's mean share in every hour of every weekday (7 x 24 x arms, from Monday); NaN: there is none."""
        return self._means(7, room, lambda weekday: weekday)

    def hours(self, room: int) -> Hours:
        """The same for weekdays and weekends."""
        return Hours(self._means(2, room, lambda weekday: int(weekday >= 5)))

    def _means(self, days: int, room: int, day_of: Callable[[int], int]) -> FloatArray:
        totals, numbers = np.zeros((days, 24, room)), np.zeros((days, 24, 1))
        for hour, (sums, number) in self._hours.items():
            day, place = divmod(hour, 24)
            where = day_of((day + _THURSDAY) % 7), place
            totals[where][: len(sums)] += sums / 65535
            numbers[where] += number
        with np.errstate(invalid="ignore"):
            return np.where(numbers > 0, totals / numbers, np.nan)
