"""An abrupt season: two regimes that take turns."""

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
from tidepull.tide.models.spec import SQUARE, Hypothesis, Spec
from tidepull.types import FloatArray


@dataclass(frozen=True)
class Square:
    """tau = (1); the cell is floor((t + offset) / half_period) mod 2."""

    half_period: float
    offset: float = 0.0
    discount: float = 1.0
    contextual: bool = False
    family = "square"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        drifting = "" if self.discount == 1 else ", drifting"
        context = ", with the context" if self.contextual else ""
        return f"repeats every {2 * self.half_period:.1f} rounds, in two phases{drifting}{context}"

    def spec(self) -> Spec:
        """The same as numbers."""
        return Spec(
            self.family,
            shapes=(SQUARE, 0),
            periods=(self.half_period, 1.0),
            offsets=(self.offset, 0.0),
            discount=self.discount,
            contextual=self.contextual,
        )

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cell 0 in one phase, cell 1 in the other."""
        return math.floor((moment.t + self.offset) / self.half_period) % 2, np.ones(1)


def _pools(layout: Layout, contextual: bool) -> list[Pool]:
    """All whole half periods up to 16 with all offsets; longer ones log-spaced with eight offsets,
    unless a scan will find them."""
    q = layout.context_dim if contextual else 1
    count = min(336, affordable(layout, q))
    short = [(float(h), float(o)) for h in range(1, 17) for o in range(h)]
    longer = [round(17 * 2 ** (i / 8)) for i in range(25)]
    wide = [] if q == 1 else [(float(h), h * i / 8) for h in longer for i in range(8)]
    if count < len(short) + len(wide):
        short = [(float(h), float(o)) for h in range(1, 7) for o in range(h)]
        spare = max(count - len(short), 8)
        halves = np.geomspace(8, 128, max(spare // 8, 2)).round()
        wide = [(float(h), h * i / 8) for h in halves for i in range(8)]
    members = [Square(h, o, contextual=contextual) for h, o in short + wide]
    return growing(contextual, members, [Square(2.0, contextual=contextual)])


def _newborns(search: Search) -> Newborns:
    return _with_context(search) if search.contextual else _without_context(search)


def _without_context(search: Search) -> Newborns:
    """The best of about a thousand square waves, each improved by small moves."""
    looked_at = float(len(seek.squares(len(search.rounds.y))[0]))
    found = yield from seek.best_squares(search.rounds, search.layout.n_arms, 3)
    for half, offset in found:
        yield Newborn(Square(half, offset), looked_at)


def _with_context(search: Search) -> Newborns:
    """Rhythms and the heaviest of the pool; those of the most evidence climbed to the top."""
    window, layout = search.window, search.layout
    n, centre = len(window.t), float(window.t[len(window.t) // 2])
    moments = Moments(window, layout, search.ridge(Square(2.0, contextual=True)))
    plain = yield from moments.plain()
    worth = seek.worth_a_try(plain)
    rhythms = yield from search.rhythms(seek.MOST_RHYTHMS)
    proposed = [(0.5 * period, offset) for period, offset in rhythms]
    proposed += [(h.half_period, h.offset) for h in search.heaviest() if isinstance(h, Square)]
    halves, offsets = np.array([h for h, _ in proposed]), np.array([o for _, o in proposed])
    evidence = yield from moments.squares(halves, offsets)
    top = -math.inf
    for best in np.argsort(-evidence, kind="stable")[:2]:
        start, shift = proposed[best]
        if not seek.worth_climbing(evidence[best], plain):
            break
        step = 1.0 if best >= len(rhythms) else None  # one of the pool was climbed before
        half, offset = yield from seek.climb(start, shift, centre, moments.squares, step)
        reached = float((yield from moments.squares(np.array([half]), np.array([offset])))[0])
        top = max(top, reached)
        if not worth(reached, top):
            continue
        yield Newborn(Square(half, offset, contextual=True), 8.0 * n)
        # Whole half periods are likelier than others; the boundary at the centre is kept.
        whole = max(1, round(half))
        moved = round((centre + offset) * whole / half - centre) % (2 * whole)
        yield Newborn(Square(float(whole), float(moved), contextual=True), 8.0 * n)


def named(spec: Spec, clock: int = 0) -> Hypothesis:
    """The square wave of one of a spec's clocks."""
    assert spec.shapes[clock] == SQUARE
    return Square(spec.periods[clock], spec.offsets[clock], spec.discount, spec.contextual)


FAMILY = Family(
    name="square",
    words="repeats every 2h rounds, in two phases",
    prior=0.04,
    colour="#0072b2",
    pools=_pools,
    named=named,
    newborns=_newborns,
)
