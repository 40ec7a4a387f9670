"""Hours and weekdays: rewards follow the calendar of the user's clock (seconds since 1970 in local
time)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tidepull.tide.models.family import Family, Layout, Newborn, Newborns, Pool, Search, too_large
from tidepull.tide.models.notes import Moment
from tidepull.tide.models.spec import HARMONICS, NO_CLOCK, NO_NOTE, Hypothesis, Spec
from tidepull.tide.models.wall_clock import (
    DAY,
    HOUR,
    PART,
    PART_APART,
    TIME,
    WEEK,
    WEEKDAY,
    WEEKEND,
    WallClock,
)
from tidepull.types import FloatArray

Cells = Literal["", "hour", "part", "part, weekends apart", "weekday", "weekend"]
_COLUMNS = {
    "hour": HOUR,
    "part": PART,
    "part, weekends apart": PART_APART,
    "weekday": WEEKDAY,
    "weekend": WEEKEND,
}
_SPOKEN = {
    "hour": "the hour of the day",
    "part": "the part of the day",
    "part, weekends apart": "the part of the day, weekends apart",
    "weekday": "the weekday",
    "weekend": "weekdays and weekends",
}


@dataclass(frozen=True)
class Calendar:
    """So many harmonics of the day and, added to them, of the week; and weights of their own for
    every cell:

    tau = (1, cos i w t / i, sin i w t / i, ...), w = 2 pi / day, i = 1 ... `day`, and the same for
    the week.
    """

    day: int = 0
    week: int = 0
    cells: Cells = ""
    contextual: bool = False
    family = "calendar"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        curve = "the hour of the day, smoothly" if self.day else ""
        if self.week:
            curve += " and the day of the week"
        parts = [curve] if curve else []
        if self.cells:
            parts.append(f"{_SPOKEN[self.cells]} apart" if curve else _SPOKEN[self.cells])
        fine = f" ({self.day} waves a day)" if self.day > 1 else ""
        return f"follows {', '.join(parts)}{fine}{', with the context' if self.contextual else ''}"

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(
            self.family,
            shapes=(HARMONICS if self.day else NO_CLOCK, HARMONICS if self.week else NO_CLOCK),
            periods=(DAY, WEEK),
            offsets=(float(self.day), float(self.week)),
            cell_by=_COLUMNS[self.cells].index if self.cells else NO_NOTE,
            contextual=self.contextual,
            reads=TIME.index,
        )

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """The cell that was noted, and the harmonics of the noted time."""
        cell = int(moment.notes[_COLUMNS[self.cells].index]) if self.cells else 0
        waves = [(DAY, i) for i in range(1, self.day + 1)] + [
            (WEEK, i) for i in range(1, self.week + 1)
        ]
        tau = [1.0]
        for period, i in waves:
            angle = 2 * math.pi * (moment.notes[TIME.index] / period % 1.0)
            tau += [math.cos(i * angle) / i, math.sin(i * angle) / i]
        return cell, np.array(tau)


def _members(contextual: bool) -> list[Calendar]:
    """Fine and coarse, sums and products of day and week."""
    smooth = [Calendar(day, contextual=contextual) for day in (1, 2, 3, 4)]
    apart = [Calendar(day, cells="weekend", contextual=contextual) for day in (1, 2, 3, 4)]
    sums = [Calendar(day, 3, contextual=contextual) for day in (1, 2, 3)]
    daily = [Calendar(day, cells="weekday", contextual=contextual) for day in (1, 2)]
    steps: list[Cells] = ["hour", "part", "part, weekends apart", "weekday", "weekend"]
    return (
        smooth
        + apart
        + sums
        + daily
        + [Calendar(cells=cells, contextual=contextual) for cells in steps]
    )


def _affordable(layout: Layout, contextual: bool) -> list[Calendar]:
    return [member for member in _members(contextual) if not too_large(layout, member.spec())]


def _pools(layout: Layout, contextual: bool) -> list[Pool]:
    """Nobody is there before a time has been given; one more slot than members, to be born in."""
    members = _affordable(layout, contextual)
    if not members or (layout.shared and not contextual):
        return []
    return [Pool("calendar", contextual, (), len(members) + 1, tuple(m.spec() for m in members))]


def _newborns(search: Search) -> Newborns:
    """All that are not there yet, as soon as there is a time in the window."""
    if np.isnan(search.window.notes[:, TIME.index]).all():
        return
    members = _affordable(search.layout, search.contextual)
    for member in members:
        if not search.knows(member):
            yield Newborn(member, float(len(members)))


def _named(spec: Spec) -> Hypothesis:
    named: dict[int, Cells] = {column.index: name for name, column in _COLUMNS.items()}  # type: ignore[misc]
    day, week = (int(n) if shape else 0 for shape, n in zip(spec.shapes, spec.offsets, strict=True))
    return Calendar(day, week, named.get(spec.cell_by, ""), spec.contextual)


FAMILY = Family(
    name="calendar",
    words="follows the hour and the weekday",
    prior=0.04,
    colour="#b15928",
    timed=True,
    pools=_pools,
    named=_named,
    newborns=_newborns,
    memory=WallClock,
)
