"""When which arm is best, in words of the calendar: from how often the policy would have chosen each arm of late."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from tidepull.types import FloatArray

DAYS = ("weekdays", "weekends")


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """Each arm's mean share in every hour of weekdays and weekends (2 x 24 x arms); NaN where nothing was decided."""

    shares: FloatArray

    @property
    def best(self) -> FloatArray:
        """The best arm of every hour (2 x 24); -1 where nothing is known."""
        known = ~np.isnan(self.shares).any(axis=2)
        return np.where(known, np.argmax(np.nan_to_num(self.shares), axis=2), -1)


def spans(best: FloatArray) -> list[tuple[int, str]]:
    """Every arm that is best at some hour, most hours first, and when: "from 18:00 to 23:00 on weekdays".

    >>> spans(np.array([[0] * 18 + [1] * 6, [0] * 24]))
    [(0, 'from 0:00 to 18:00 on weekdays, all day on weekends'), (1, 'from 18:00 to 24:00 on weekdays')]
    """
    arms = [int(arm) for arm in np.unique(best) if arm >= 0]
    arms.sort(key=lambda arm: -int((best == arm).sum()))
    if len(arms) == 1 and (best >= 0).all():
        return [(arms[0], "at all hours")]
    if (best[0] == best[1]).all():
        return [(arm, _ranges(best[0] == arm)) for arm in arms]
    said = []
    for arm in arms:
        parts = [(_ranges(best[day] == arm), DAYS[day]) for day in (0, 1)]
        said.append((arm, ", ".join(f"{text} on {day}" for text, day in parts if text)))
    return said


def _ranges(hours: FloatArray) -> str:
    """Hours of a day as text; a range that goes over midnight is one."""
    if hours.all():
        return "all day"
    if not hours.any():
        return ""
    starts = [h for h in range(24) if hours[h] and not hours[h - 1]]
    texts = []
    for start in starts:
        length = next(n for n in range(1, 25) if not hours[(start + n) % 24])
        end = start + length
        texts.append(f"from {start}:00 to {end if end <= 24 else end - 24}:00")
    if len(texts) > 1 and hours[0] and hours[23]:
        texts = texts[-1:] + texts[:-1]
    return " and ".join(texts)


def next_change(best: FloatArray, now: datetime) -> tuple[datetime, int, int] | None:
    """When another arm becomes the best, within a week: the hour, the arm until then, and the one after."""
    moment = now.replace(minute=0, second=0, microsecond=0)
    present = int(best[int(moment.weekday() >= 5), moment.hour])
    for _ in range(7 * 24):
        moment += timedelta(hours=1)
        arm = int(best[int(moment.weekday() >= 5), moment.hour])
        if arm >= 0 and arm != present and present >= 0:
            return moment, present, arm
    return None
