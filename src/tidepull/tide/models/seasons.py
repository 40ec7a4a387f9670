"""Two seasons at once: the product of two periodic hypotheses, or the sum of two sines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidepull.tide.models import fourier, seek, square
from tidepull.tide.models.family import (
    Family,
    Layout,
    Newborn,
    Newborns,
    Pool,
    Rounds,
    Search,
    growing,
)
from tidepull.tide.models.fourier import Fourier
from tidepull.tide.models.notes import Moment
from tidepull.tide.models.pairs import climb_pair
from tidepull.tide.models.slices import Pieces
from tidepull.tide.models.spec import ADDED_SINE, SQUARE, Hypothesis, Spec
from tidepull.tide.models.spectrum import left_over
from tidepull.tide.models.square import Square
from tidepull.types import FloatArray

_TRIED = 2
"""Pairs of sines that are tried."""
_FAR_BEHIND = 12.0
"""Nats of evidence by which a pair may be behind the best one and still be tried."""


@dataclass(frozen=True)
class Seasons:
    """tau = tau_1 (x) tau_2, and a cell for every pair of cells.

    `added`: the second, a sine, only adds its cos and sin to tau_1, which takes fewer weights.
    """

    first: Fourier | Square
    second: Fourier | Square
    added: bool = False
    family = "seasons"

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return f"{self.first.words}; {'on top' if self.added else 'at once'} {self.second.words}"

    def spec(self) -> Spec:
        """The same as numbers."""
        one, two = self.first.spec(), self.second.spec()
        return Spec(
            self.family,
            shapes=(one.shapes[0], ADDED_SINE if self.added else two.shapes[0]),
            periods=(one.periods[0], two.periods[0]),
            offsets=(one.offsets[0], two.offsets[0]),
            contextual=one.contextual,
        )

    def locate(self, moment: Moment, n_arms: int) -> tuple[int, FloatArray]:
        """Cells and features multiply, or a sine is added."""
        cell_1, tau_1 = self.first.locate(moment, n_arms)
        cell_2, tau_2 = self.second.locate(moment, n_arms)
        if self.added:
            return cell_1, np.concatenate([tau_1, tau_2[1:]])
        return cell_1 * self.second.spec().cells(n_arms) + cell_2, np.kron(tau_1, tau_2)


def _pools(layout: Layout, contextual: bool) -> list[Pool]:
    """Pairs are born, never there from the start, and only without context: they would be too
    large."""
    if contextual and layout.context_dim > 1:
        return []
    sine, wave = Fourier(3.0, contextual=contextual), Square(2.0, contextual=contextual)
    return growing(contextual, [], [Seasons(sine, sine), Seasons(sine, wave), Seasons(wave, wave)])


def _newborns(search: Search) -> Newborns:
    """The heaviest season, and a second one in what it leaves unexplained; then pairs of sines
    climbed together."""
    yield from _on_top_of_the_heaviest(search)
    yield from _together(search)


def _together(search: Search) -> Newborns:
    """Pairs of sines: the strongest ones with what they leave, and the heaviest pair of the
    pool."""
    rounds, n_arms = search.rounds, search.layout.n_arms
    pairs = [
        (h.first.period, h.second.period)
        for h in search.heaviest()
        if isinstance(h, Seasons) and isinstance(h.first, Fourier) and isinstance(h.second, Fourier)
    ]
    for period in (yield from search.sines()):
        rest = yield from _residuals(Fourier(period), rounds, n_arms)
        left = rounds._replace(y=rest)
        others = yield from seek.best_sines(left, n_arms, 1)
        pairs += [(period, other) for other in others]
    climbed: list[tuple[float, float, float]] = []
    for pair in pairs:
        climbed += [(yield from climb_pair(pair, rounds, n_arms))]
    climbed.sort(key=lambda found: -found[2])
    n = len(search.window.t)
    for one, two, evidence in climbed[:_TRIED]:
        if evidence > climbed[0][2] - _FAR_BEHIND:
            yield Newborn(Seasons(Fourier(one), Fourier(two), added=True), 0.25 * n**2)


def _on_top_of_the_heaviest(search: Search) -> Newborns:
    first = search.heaviest_of(("fourier", "square"))
    if first is None:
        return
    assert isinstance(first, Fourier | Square)
    first = (
        Fourier(first.period)
        if isinstance(first, Fourier)
        else Square(first.half_period, first.offset)
    )
    n, n_arms = len(search.window.t), search.layout.n_arms
    rest = yield from _residuals(first, search.rounds, n_arms)
    left = search.rounds._replace(y=rest)
    others: list[Fourier | Square] = []
    others += [Fourier(period) for period in (yield from seek.best_sines(left, n_arms, 2))]
    found = yield from seek.best_squares(left, n_arms, 2)
    others += [Square(half, offset) for half, offset in found]
    for second in others:
        if isinstance(first, Fourier) and isinstance(second, Fourier):
            yield Newborn(Seasons(first, second, added=True), 0.25 * n**2)
        yield Newborn(Seasons(first, second), 0.25 * n**2)  # both were looked for


def _residuals(first: Fourier | Square, rounds: Rounds, n_arms: int) -> Pieces[FloatArray]:
    """What a season leaves of the rewards, by least squares with a little ridge."""
    t = rounds.t0 + np.arange(len(rounds.y))
    if isinstance(first, Square):
        cell = np.floor((t + first.offset) / first.half_period).astype(np.int64) % 2
        rest: FloatArray = left_over(
            np.ones((len(t), 1)), cell * n_arms + rounds.arm, rounds.arm, rounds.y, 2 * n_arms
        )
    else:
        angle = 2 * np.pi * (t / first.period % 1.0)
        tau = np.stack([np.ones(len(t)), np.cos(angle), np.sin(angle)], axis=1)
        rest = left_over(tau, rounds.arm, rounds.arm, rounds.y, n_arms)
    yield 100 * len(t)
    return rest


def _named(spec: Spec) -> Hypothesis:
    one, two = ((square if spec.shapes[i] == SQUARE else fourier).named(spec, i) for i in range(2))
    assert isinstance(one, Fourier | Square)
    assert isinstance(two, Fourier | Square)
    return Seasons(one, two, spec.shapes[1] == ADDED_SINE)


FAMILY = Family(
    name="seasons",
    words="two at once",
    prior=0.01,
    colour="#009e73",
    pools=_pools,
    named=_named,
    newborns=_newborns,
)
