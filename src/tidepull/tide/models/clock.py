"""A season of the user's time, whatever its period: found in times that are not evenly spaced."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidepull.tide.models import seek
from tidepull.tide.models.family import (
    Family,
    Layout,
    Newborn,
    Newborns,
    Pool,
    Search,
    growing,
    too_large,
)
from tidepull.tide.models.irregular import (
    Times,
    best_rhythms,
    best_swings,
    switch_evidence,
    times_of,
)
from tidepull.tide.models.notes import Moment
from tidepull.tide.models.slices import Pieces
from tidepull.tide.models.spec import HARMONICS, SQUARE, Hypothesis, Spec
from tidepull.tide.models.wall_clock import TIME, WallClock, duration
from tidepull.types import FloatArray

_OFFSETS = 12


@dataclass(frozen=True)
class Swing:
    """tau = (1, cos i w time / i, sin i w time / i, ...), w = 2 pi / period, i = 1 ... `waves`."""

    period: float
    waves: int = 1
    contextual: bool = False
    family = "clock"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return self._words(f"{self.period:.4g} of the clock")

    @property
    def spoken(self) -> str:
        """The same where the clock runs in seconds."""
        return self._words(duration(self.period))

    def _words(self, period: str) -> str:
        shape = "swings smoothly" if self.waves == 1 else "repeats"
        return f"{shape} every {period}{', with the context' if self.contextual else ''}"

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(
            self.family,
            shapes=(HARMONICS, 0),
            periods=(self.period, 1.0),
            offsets=(float(self.waves), 0.0),
            contextual=self.contextual,
            reads=TIME.index,
        )

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """One cell; the angle turns once in a period of the noted time."""
        angle = 2 * math.pi * (moment.notes[TIME.index] / self.period % 1.0)
        waves = range(1, self.waves + 1)
        return 0, np.array([1.0, *(f(i * angle) / i for i in waves for f in (math.cos, math.sin))])


@dataclass(frozen=True)
class Switch:
    """tau = (1); the cell is floor((time + offset) / half_period) mod 2."""

    half_period: float
    offset: float = 0.0
    contextual: bool = False
    family = "clock"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return self._words(f"{2 * self.half_period:.4g} of the clock")

    @property
    def spoken(self) -> str:
        """The same where the clock runs in seconds."""
        return self._words(duration(2 * self.half_period))

    def _words(self, period: str) -> str:
        return f"repeats every {period}, in two phases{', with the context' if self.contextual else ''}"

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(
            self.family,
            shapes=(SQUARE, 0),
            periods=(self.half_period, 1.0),
            offsets=(self.offset, 0.0),
            contextual=self.contextual,
            reads=TIME.index,
        )

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0 in one phase, cell 1 in the other."""
        return math.floor((moment.notes[TIME.index] + self.offset) / self.half_period) % 2, np.ones(
            1
        )


def _pools(layout: Layout, contextual: bool) -> list[Pool]:
    room: list[Hypothesis] = [
        Swing(3.0, 1 if contextual else 3, contextual),
        Switch(2.0, contextual=contextual),
    ]
    if any(too_large(layout, hypothesis.spec()) for hypothesis in room):
        return []
    return growing(contextual, [], room)


def _newborns(search: Search) -> Newborns:
    window = search.window
    times = times_of(window.notes[:, TIME.index], window.arm, window.y)
    if times is None:
        return
    n = len(times.u)
    if search.contextual:
        shared = search.layout.shared
        group = np.zeros(n, np.int64) if shared else times.arm
        groups = 1 if shared else search.layout.n_arms
        for period in (yield from best_rhythms(times, window.x, group, groups, 3)):
            half = 0.5 * times.period(period)
            yield Newborn(Swing(2 * half, contextual=True), 2.0 * n / 3)
        return
    periods = yield from best_swings(times, search.layout.n_arms, 3)
    for period in periods:
        for waves in (1, 3):
            yield Newborn(Swing(times.period(period), waves), 4.0 * n / 3)
    for period in periods[:2]:
        half, offset = yield from _best_switch(0.5 * period, times, search.layout.n_arms)
        yield Newborn(Switch(times.period(half), times.offset(half, offset)), 8.0 * n)


def _best_switch(half: float, times: Times, n_arms: int) -> Pieces[tuple[float, float]]:
    """The best offset of a square wave of that half period, then small moves of both."""

    def score(h: FloatArray, o: FloatArray) -> Pieces[FloatArray]:
        yield 2 * len(h) * len(times.u)
        return switch_evidence(h, o, times, n_arms)

    offsets = 2 * half * np.arange(_OFFSETS) / _OFFSETS
    evidence = yield from score(np.full(_OFFSETS, half), offsets)
    start = float(offsets[np.argmax(evidence)])
    return (yield from seek.climb(half, start, float(np.median(times.u)), score))


def _named(spec: Spec) -> Hypothesis:
    if spec.shapes[0] == SQUARE:
        return Switch(spec.periods[0], spec.offsets[0], spec.contextual)
    return Swing(spec.periods[0], int(spec.offsets[0]), spec.contextual)


FAMILY = Family(
    name="clock",
    words="repeats every P of the clock",
    prior=0.02,
    colour="#f0e442",
    timed=True,
    pools=_pools,
    named=_named,
    newborns=_newborns,
    memory=WallClock,
)
