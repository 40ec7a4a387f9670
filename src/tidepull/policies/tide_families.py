"""Which hypotheses `tide` starts with, how many more may be born, and how likely each is beforehand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tidepull.hypotheses.bank import Layout
from tidepull.hypotheses.discounted import Discounted
from tidepull.hypotheses.fourier import Fourier
from tidepull.hypotheses.last_event import LastEvent
from tidepull.hypotheses.last_success import LastSuccess
from tidepull.hypotheses.seasons import Seasons
from tidepull.hypotheses.spec import Hypothesis, Spec
from tidepull.hypotheses.square import Square
from tidepull.hypotheses.stationary import Stationary
from tidepull.hypotheses.turns import Turns

GROUP_PRIOR = {
    "stationary": 0.80,
    "discounted": 0.06,
    "fourier": 0.04,
    "square": 0.04,
    "seasons": 0.01,
    "last event": 0.015,
    "last success": 0.015,
    "turns": 0.02,
    "network": 0.02,
}
"""How likely each family is before anything is seen. A wrong prior of 1 in 25 costs three nats of evidence,
which a season pays back in a few rounds; an exploring hypothesis that nothing speaks for costs regret."""

DISCOUNTS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)
DRIFTING_SEASON = 0.99
LONGEST_PERIOD = 2048
_MOST_TURNS = 64
_PRODUCTS_PER_ROUND = 150_000
_LARGEST_SLOT = 2_000_000


@dataclass(frozen=True)
class Pool:
    """Slots of one family: those filled at the start, and `spare` ones for births."""

    group: str
    contextual: bool
    initial: tuple[Spec, ...]
    spare: int
    room: tuple[Spec, ...]


def pools(layout: Layout, without: Collection[str]) -> list[Pool]:
    """Every pool that suits the problem; context-free hypotheses stand beside contextual ones, because
    they learn faster where contexts do not matter. Arms known by vectors alone need the vectors."""
    kinds = [True] if layout.shared else [False, True] if layout.context_dim > 1 else [False]
    made = [pool for contextual in kinds for pool in _pools(layout, contextual)]
    return [pool for pool in made if pool.group not in without]


def _pools(layout: Layout, contextual: bool) -> list[Pool]:
    q = layout.context_dim if contextual else 1
    fixed: list[Hypothesis] = [Stationary(contextual)]
    fixed += [Discounted(g, contextual) for g in DISCOUNTS]
    if not layout.shared:
        fixed += [LastEvent(contextual), LastSuccess(contextual)]
        fixed += [Turns(contextual)] if layout.n_arms <= _MOST_TURNS else []
    made = [_fixed(h) for h in fixed if _slot(layout, h.spec()) <= _LARGEST_SLOT]
    sine, square = Fourier(3.0, contextual=contextual), Square(2.0, contextual=contextual)
    sines = fourier_grid(min(76, _affordable(3 * q) // (2 if q == 1 else 1)), contextual, drifting=q <= 3)
    made.append(_growing("fourier", contextual, sines, [sine]))
    made.append(
        _growing("square", contextual, square_grid(min(336, _affordable(q)), contextual, q == 1), [square])
    )
    if q == 1:
        pairs: list[Hypothesis] = [Seasons(sine, sine), Seasons(sine, square), Seasons(square, square)]
        made.append(_growing("seasons", contextual, [], pairs))
    return made


def fourier_grid(count: int, contextual: bool, drifting: bool) -> list[Hypothesis]:
    """Log-spaced periods from 3 to 2048, eight to the octave where that is affordable."""
    periods = np.geomspace(3, LONGEST_PERIOD, max(count, 2))
    steady: list[Hypothesis] = [Fourier(float(p), 1.0, contextual) for p in periods]
    loose: list[Hypothesis] = [Fourier(float(p), DRIFTING_SEASON, contextual) for p in periods if p <= 256]
    return steady + (loose if drifting else [])


def square_grid(count: int, contextual: bool, scanned: bool) -> list[Hypothesis]:
    """All whole half periods up to 16 with all offsets; longer ones log-spaced with eight offsets, unless
    a scan will find them."""
    short = [(float(h), float(o)) for h in range(1, 17) for o in range(h)]
    longer = [round(17 * 2 ** (i / 8)) for i in range(25)]
    wide = [] if scanned else [(float(h), h * i / 8) for h in longer for i in range(8)]
    if count < len(short) + len(wide):
        few = [(float(h), float(o)) for h in range(1, 7) for o in range(h)]
        spare = max(count - len(few), 8)
        halves = np.geomspace(8, 128, max(spare // 8, 2)).round()
        short, wide = few, [(float(h), h * i / 8) for h in halves for i in range(8)]
    return [Square(h, o, contextual=contextual) for h, o in short + wide]


def _fixed(hypothesis: Hypothesis) -> Pool:
    spec = hypothesis.spec()
    return Pool(hypothesis.group, spec.contextual, (spec,), 0, (spec,))


def _growing(group: str, contextual: bool, initial: list[Hypothesis], room: list[Hypothesis]) -> Pool:
    spare = 24 if not contextual else 8
    return Pool(group, contextual, tuple(h.spec() for h in initial), spare, tuple(h.spec() for h in room))


def _slot(layout: Layout, spec: Spec) -> int:
    return layout.blocks(spec) * layout.dim(spec) ** 2


def _affordable(dim: int) -> int:
    return max(8, _PRODUCTS_PER_ROUND // (dim * dim))
