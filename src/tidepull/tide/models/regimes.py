"""Regimes that return at irregular times, each with rewards of its own.

`particles.py` has the equations (Fearnhead and Clifford, 2003). The number of regimes, their
transitions and durations are learnt.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidepull.tide.jobs import Job, ranges
from tidepull.tide.models import particles
from tidepull.tide.models.family import Family, Filter, Finding, Layout, Window
from tidepull.tide.models.filters import Blocks, ConjugateFilter
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.particles import NONE, Particles
from tidepull.types import FloatArray, Snapshot

_PARTICLES, _REGIMES = 40, 6
_CONTEXTUAL_PARTICLES, _CONTEXTUAL_REGIMES = 24, 4
_STAY, _NEWNESS = 200.0, 1.0
_MOST_ARMS, _LARGEST = 128, 4_000_000
_SELDOM = 0.02
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
_NUMBERS = ("one", "two", "three", "four", "five", "six")


class RegimeFilter(ConjugateFilter):
    """Particle filter of the present regime."""

    family, fixed = "regimes", ("settings",)

    def __init__(self, blocks: Blocks, seed: int) -> None:
        super().__init__(blocks, _empty(blocks, seed))

    @property
    def words(self) -> str:
        """One line that a person understands."""
        return "regimes return" + (", the context decides" if self._blocks.contextual else "")

    def observe(self, t: int, arm: int, x: FloatArray, y: float, binary: bool) -> float:
        """Log likelihood of the reward of round t, which is then learnt; NaN if that round is
        forgotten."""
        block = 0 if self._blocks.layout.shared else arm
        box, x = self._box(self.arrays), self._blocks.seen(x)
        return float(particles.observe_boxed(box, t, block, x, y, binary))

    def replay(self, window: Window, binary: bool) -> Job[FloatArray]:
        """Replay a window of past rounds; log likelihoods by round."""
        scores = np.empty(len(window.t))
        x, blocks = self._seen(window)
        steps = self.arrays.rounds.size * (20 + 2 * self._blocks.dim**2)
        for start, stop, spent in ranges(len(scores), steps):
            part = slice(start, stop)
            particles.replay(
                self.arrays, window.t[part], blocks[part], x[part], window.y[part], binary, scores[part]
            )  # fmt: skip
            yield spent
        return scores

    def draw(self, t: int, X: FloatArray, binary: bool, rng: np.random.Generator) -> FloatArray:
        """One draw of every arm's expected reward in round t: of a particle, its regime, and the
        weights."""
        particle, regime = particles.pick(self.arrays, t, rng.random())
        places = np.array([(particle, regime, arm) for arm in range(len(X))])
        return self._draw(places, X, binary, rng)

    def reset_copy(self, units: float | None) -> Filter:
        """An untrained copy; lam0 from the present noise, in new units."""
        made = RegimeFilter(self._blocks, int(self.arrays.seed[0]))
        made._adopt_ridge(self, units)
        return made

    def findings(self, centre: float, spread: float) -> list[Finding]:
        """The present regime in the heaviest particle: its ordinal, visits, mean duration,
        successors, and the mean rewards of arms in each regime. Regimes of less than a fiftieth of
        the rounds are not counted."""
        ps, particle = self.arrays, int(np.argmax(self.arrays.weight))
        if ps.latest[0] == NONE:
            return []
        now, count = int(ps.now[particle]), int(ps.known[particle])
        rounds, visits = ps.rounds[particle, :count], ps.visits[particle, :count]
        counted = [i for i in range(count) if i == now or rounds[i] >= _SELDOM * rounds.sum()]
        place, seen = counted.index(now), int(visits[now])
        so_far = float(ps.latest[0] - ps.since[particle] + 1)
        stay = so_far if seen == 1 else (rounds[now] - so_far) / (seen - 1)
        chance = float(ps.weight[(ps.now == now) & (ps.known == count)].sum())
        which = (
            f"the {_ORDINALS[place]} of {_NUMBERS[len(counted) - 1]} regimes"
            if len(counted) > 1
            else "the only regime so far"
        )
        words = f"{which} ({chance:.0%}), seen {seen} time{'s' * (seen != 1)}, typical stay {stay:,.0f} rounds"
        moves = ps.moves[particle][np.ix_(counted, counted)]
        n, s = ps.n[particle, counted], ps.s[particle, counted]
        levels = np.where(n > 0, centre + spread * s / np.maximum(n, 1), np.nan)
        facts = {
            "regime": place + 1,
            "of": len(counted),
            "chance": round(chance, 4),
            "seen": seen,
            "stay": round(float(stay), 1),
            "since": int(ps.since[particle]),
            "followed_by": moves.astype(int).tolist(),
            "means": [[None if np.isnan(v) else round(float(v), 4) for v in row] for row in levels],
        }
        return [Finding(words, facts)]

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        most = self.arrays.rounds.shape[1]
        self._restore(snapshot, {"now": (0, most - 1), "known": (0, most)})


def _empty(blocks: Blocks, seed: int) -> Particles:
    most, regimes = (
        (_CONTEXTUAL_PARTICLES, _CONTEXTUAL_REGIMES)
        if blocks.contextual
        else (_PARTICLES, _REGIMES)
    )
    shape = (most, regimes, blocks.count)
    vec, mat = blocks.array_sizes()
    return Particles(
        latest=np.full(1, NONE),
        weight=np.zeros(most),
        now=np.zeros(most, np.int64),
        since=np.zeros(most, np.int64),
        known=np.zeros(most, np.int64),
        rounds=np.zeros((most, regimes)),
        visits=np.zeros((most, regimes)),
        moves=np.zeros((most, regimes, regimes)),
        n=np.zeros(shape),
        s=np.zeros(shape),
        vec=np.zeros((*shape, vec)),
        mat=np.zeros((*shape, mat)),
        noise=blocks.noise(),
        settings=np.array([_STAY, _NEWNESS, blocks.prior.by_density]),
        seed=np.array([seed]),
    )


def _filters(layout: Layout, prior: NoisePrior, seed: int) -> list[Filter]:
    return [] if layout.mixed else _build(layout, prior, seed)


def _gated(layout: Layout, prior: NoisePrior, seed: int) -> list[Filter]:
    return _build(layout, prior, seed) if layout.mixed else []


def _build(layout: Layout, prior: NoisePrior, seed: int) -> list[Filter]:
    # With narrow draws arms that once paid nothing in a regime would never be explored in it again.
    blocks = Blocks(layout, layout.context_dim > 1, replace(prior, min_scale_plain=1.0))
    numbers = _CONTEXTUAL_PARTICLES * _CONTEXTUAL_REGIMES * blocks.count * blocks.dim**2
    if layout.n_arms > _MOST_ARMS or (blocks.contextual and numbers > _LARGEST):
        return []
    return [RegimeFilter(blocks, seed)]


FAMILY = Family(
    name="regimes",
    words="regimes return",
    prior=0.01,
    colour="#b2182b",
    filters=_filters,
    gated=_gated,
)
