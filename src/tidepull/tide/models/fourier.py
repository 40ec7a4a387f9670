"""A smooth season: rewards go up and down as a sine of real period."""

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
    affordable,
    growing,
)
from tidepull.tide.models.moments import Moments
from tidepull.tide.models.notes import Moment
from tidepull.tide.models.spec import ADDED_SINE, SINE, Hypothesis, Spec
from tidepull.types import FloatArray

DRIFTING = 0.99
LONGEST_PERIOD = 2048
_LARGEST_DRIFTING = 27


@dataclass(frozen=True)
class Fourier:
    """tau = (1, cos 2 pi t / P, sin 2 pi t / P), one cell."""

    period: float
    discount: float = 1.0
    contextual: bool = False
    family = "fourier"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        drifting = "" if self.discount == 1 else ", drifting"
        context = ", with the context" if self.contextual else ""
        return f"swings smoothly every {self.period:.1f} rounds{drifting}{context}"

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(
            self.family,
            shapes=(SINE, 0),
            periods=(self.period, 1.0),
            discount=self.discount,
            contextual=self.contextual,
        )

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0; the angle turns once in a period."""
        angle = 2 * math.pi * (moment.t / self.period % 1.0)
        return 0, np.array([1.0, math.cos(angle), math.sin(angle)])


def same_peak(
    period: FloatArray, other: float, n: float
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether n rounds (or a time of that length) can hardly tell the periods apart."""
    return np.asarray(np.abs(1 / period - 1 / other) < 0.5 / max(n, 1e-300))


def _pools(layout: Layout, contextual: bool) -> list[Pool]:
    """Log-spaced periods, eight to the octave where that is affordable; the shorter ones drifting,
    too."""
    q = layout.context_dim if contextual else 1
    count = min(76, affordable(layout, 3 * q) // (2 if q == 1 else 1))
    periods = np.geomspace(3, LONGEST_PERIOD, max(count, 2))
    members = [Fourier(float(p), 1.0, contextual) for p in periods]
    if q <= 3:
        members += [Fourier(float(p), DRIFTING, contextual) for p in periods if p <= 256]
    return growing(contextual, members, [Fourier(3.0, contextual=contextual)])


def _newborns(search: Search) -> Newborns:
    return _with_context(search) if search.contextual else _without_context(search)


def _without_context(search: Search) -> Newborns:
    """The highest peaks of the evidence over all frequencies."""
    n = len(search.window.t)
    for period in (yield from search.sines()):
        yield Newborn(Fourier(period), n / 3)
        yield Newborn(Fourier(period, DRIFTING), n)


def _with_context(search: Search) -> Newborns:
    """Rhythms and the heaviest of the pool; the two of most evidence climbed to the top, if they
    are worth a try."""
    moments = Moments(search.window, search.layout, search.ridge(Fourier(3.0, contextual=True)))
    n, proposed = moments.n, [period for period, _ in (yield from search.rhythms(3))]
    proposed += [h.period for h in search.heaviest() if isinstance(h, Fourier)]
    plain = yield from moments.plain()
    worth = seek.worth_a_try(plain)
    evidence = yield from moments.sines(np.array(proposed))
    best = -math.inf
    for i in np.argsort(-evidence, kind="stable")[:2]:
        if not seek.worth_climbing(evidence[i], plain):
            break
        period, reached = yield from seek.climb_sine(
            proposed[i], float(evidence[i]), n, moments.sines
        )
        best = max(best, reached)
        if worth(reached, best):
            yield Newborn(Fourier(period, 1.0, contextual=True), float(n))
            if search.layout.dim(Fourier(3.0, contextual=True).spec()) <= _LARGEST_DRIFTING:
                yield Newborn(Fourier(period, DRIFTING, contextual=True), float(n))


def named(spec: Spec, clock: int = 0) -> Hypothesis:
    """The sine of one of a spec's clocks."""
    assert spec.shapes[clock] in (SINE, ADDED_SINE)
    return Fourier(spec.periods[clock], spec.discount, spec.contextual)


FAMILY = Family(
    name="fourier",
    words="swings smoothly every P rounds",
    prior=0.04,
    colour="#56b4e9",
    pools=_pools,
    named=named,
    newborns=_newborns,
)
