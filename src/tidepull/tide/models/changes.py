"""Change points: rewards stay as they are until, in some round, they are drawn anew; all arms at
once, or one arm.

`runs.py` has the equations. Which round it was, and what the rewards were before and after, can be
asked for.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.tide.models import runs
from tidepull.tide.models.family import Family, Filter, Layout, Told, Window
from tidepull.tide.models.filters import (
    RIDGE,
    A,
    B,
    Blocks,
    checked_arrays,
    misled,
)
from tidepull.tide.models.held import Ready
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.runs import NOBODY, Runs
from tidepull.tide.models.slices import Pieces, ranges
from tidepull.types import FloatArray, IntArray, Snapshot

HAZARDS = (1 / 5000, 1 / 1000, 1 / 200)
"""Of all arms together."""
ARM_HAZARDS = tuple(hazard / 4 for hazard in HAZARDS)
"""Of each arm by itself: every change of the world is one of its arms."""
_MOST_RUNS, _FEWEST_RUNS, _PRODUCTS = 100, 12, 40_000
_LARGEST = 4_000_000
_DATES = 16
_CURIOSITY = 0.1
"""Where each arm changes by itself, an arm that was not played for long may be another by now.
Thompson sampling asks after it with the chance that it is, which is too often: what is found out is
worth no more than the time to the next change. A tenth of that chance."""
_MOVED, _MOST_MOVED = 2.0, 3
_FIXED = ("hazards",)
_LEARNT = tuple(name for name in Runs._fields if name not in _FIXED)


class RunFilter:
    """When did the present stretch begin? `together`: all arms change at once, else each by
    itself."""

    family = "changes"

    def __init__(self, blocks: Blocks, together: bool) -> None:
        self._blocks, self._together = blocks, together
        self._arms = np.arange(blocks.layout.n_arms)
        self.runs = _empty(blocks, together)
        self._ready = Ready()

    @property
    def words(self) -> str:
        """One line that a person understands."""
        who = "all arms change at once" if self._together else "each arm changes by itself"
        rounds = round(1 / float(self.runs.hazards[int(np.argmax(self.runs.belief))]))
        every = f"{who}, about every {rounds:,} rounds"
        return every + (", the context decides" if self._blocks.contextual else "")

    def observe(self, t: int, arm: int, x: FloatArray, y: float, binary: bool) -> float:
        """Log likelihood of the reward of round t, which is then learnt; NaN when that round is
        forgotten."""
        chain, block = self._place(arm)
        return float(
            runs.observe_held(
                self._ready(self.runs), t, chain, block, self._blocks.seen(x), y, binary
            )
        )

    def live(self, window: Window, binary: bool) -> Pieces[FloatArray]:
        """Live through a window of past rounds; log likelihoods round by round."""
        scores = np.empty(len(window.t))
        nowhere = np.zeros_like(window.arm)
        chains = nowhere if self._together else window.arm
        blocks = window.arm if self._together and not self._blocks.layout.shared else nowhere
        x = np.ascontiguousarray(self._blocks.seen(window.x))
        steps = self.runs.start.shape[1] * (10 + 2 * self._blocks.dim**2)
        for start, stop, spent in ranges(len(scores), steps):
            part = slice(start, stop)
            runs.replay(
                self.runs, window.t[part], chains[part], blocks[part], x[part], window.y[part], binary, scores[part]
            )  # fmt: skip
            yield spent
        return scores

    def draw(self, t: int, X: FloatArray, binary: bool, rng: np.random.Generator) -> FloatArray:
        """One draw of every arm's expected reward in round t: a hazard, a run of every chain, the
        weights."""
        X, chains = np.ascontiguousarray(self._blocks.seen(X)), len(self.runs.latest)
        picked = np.empty(chains, np.int64)
        runs.pick(
            self.runs, t, 1.0 if self._together else _CURIOSITY, rng.random(1 + chains), picked
        )
        if binary and self._blocks.dim == 1:
            return self._blocks.beta_draw(*self._counts(picked), rng)
        means, errors, leverages = np.empty((3, len(X)))
        if self._blocks.layout.shared:
            z: FloatArray = rng.standard_normal(X.shape[1:])
            runs.shared_outlook(self.runs, int(picked[0]), X, z, means, errors, leverages)
        else:
            runs.outlook(self.runs, picked, X, self._together, means, leverages)
            errors = np.sqrt(leverages) * rng.standard_normal(len(X))
        return self._blocks.drawn(self.runs.noise, (means, errors, leverages), rng)

    def fresh(self, units: float | None) -> Filter:
        """The same hypothesis that knows nothing; lam0 from the noise as it sees it now in new
        units."""
        made = RunFilter(self._blocks, self._together)
        noise = self.runs.noise
        made.runs.noise[RIDGE] = (
            noise[RIDGE] if units is None else self._blocks.ridge(units**2 * noise[B] / noise[A])
        )
        return made

    def refresh_ridge(self) -> None:
        """lam0 from the noise as it sees it now; with a context only `fresh` can do it."""
        if not self._blocks.contextual:
            noise = self.runs.noise
            noise[RIDGE] = self._blocks.ridge(float(noise[B] / noise[A]))

    def told(self, centre: float, spread: float) -> list[Told]:
        """Changes with their rounds (as in `Event.decided`), how likely it is that something
        changed about then or since, and which arms' mean rewards moved by more than chance would
        have it."""
        found = [
            change
            for c in range(len(self.runs.latest))
            for change in self._told_of(c, centre, spread)
        ]
        return sorted(found, key=lambda change: int(change.facts["round"]))

    def snapshot(self) -> Snapshot:
        """All that it learnt."""
        return {name: getattr(self.runs, name).copy() for name in _LEARNT}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        last = self.runs.start.shape[1] - 1
        checked_arrays(_LEARNT, snapshot, self.runs, {"lead": (NOBODY, last), "dates": (0, _DATES)})

    def _place(self, arm: int) -> tuple[int, int]:
        if self._blocks.layout.shared:
            return 0, 0
        return (0, arm) if self._together else (arm, 0)

    def _counts(self, picked: IntArray) -> tuple[FloatArray, FloatArray]:
        """Numbers and sums of rewards of every arm under the runs that were picked."""
        if self._together:
            run = int(picked[0])
            nothing = np.zeros(len(self._arms))
            return (
                (nothing, nothing) if run == NOBODY else (self.runs.n[0, run], self.runs.s[0, run])
            )
        known = picked != NOBODY
        n, s = self.runs.n[self._arms, picked, 0], self.runs.s[self._arms, picked, 0]
        return np.where(known, n, 0.0), np.where(known, s, 0.0)

    def _told_of(self, c: int, centre: float, spread: float) -> list[Told]:
        all_of, lead = self.runs, int(self.runs.lead[c])
        told = []
        for i in range(int(all_of.dates[c])):
            last = i == all_of.dates[c] - 1
            start = int(all_of.dated[c, i])
            chance = float(all_of.sure[c] if last else all_of.chance[c, i])
            before = all_of.dated_n[c, i], all_of.dated_s[c, i]
            after = (
                (all_of.n[c, lead], all_of.s[c, lead])
                if last
                else (all_of.dated_n[c, i + 1], all_of.dated_s[c, i + 1])
            )
            told.append(self._change(c, start, chance, before, after, centre, spread))
        return told

    def _change(
        self,
        c: int,
        start: int,
        chance: float,
        before: tuple[FloatArray, FloatArray],
        after: tuple[FloatArray, FloatArray],
        centre: float,
        spread: float,
    ) -> Told:
        moved = []
        for k in range(len(before[0])):
            arm = k if self._together else c
            first, second = (centre + spread * s[k] / max(n[k], 1.0) for n, s in (before, after))
            if before[0][k] and after[0][k] and not self._blocks.layout.shared:
                error = spread * math.sqrt(1 / before[0][k] + 1 / after[0][k])
                moved.append((abs(second - first) / error, arm, float(first), float(second)))
        moved = sorted((m for m in moved if m[0] > _MOVED), reverse=True)
        said = ", ".join(
            f"arm {arm} {'rose' if second > first else 'fell'} from {first:.2g} to {second:.2g}"
            for _, arm, first, second in moved[:_MOST_MOVED]
        )
        words = f"changed at round {start:,} ({chance:.0%})" + (f": {said}" if said else "")
        arms = [{"arm": arm, "before": first, "after": second} for _, arm, first, second in moved]
        return Told(words, {"round": start, "chance": round(chance, 4), "arms": arms})


def _empty(blocks: Blocks, together: bool) -> Runs:
    n_arms = blocks.layout.n_arms
    chains, own = (1, blocks.count) if together else (n_arms, 1)
    hazards = HAZARDS if together else ARM_HAZARDS
    most = _MOST_RUNS if not blocks.contextual else _runs_of(blocks)
    shape = (chains, most, own)
    vec, mat = blocks.kept(most)
    dated = (chains, _DATES, own)
    return Runs(
        latest=np.full(chains, NOBODY),
        start=np.full((chains, most), NOBODY),
        parent=np.full((chains, most), NOBODY),
        weight=np.zeros((chains, len(hazards), most)),
        hazards=np.array(hazards),
        belief=np.full(len(hazards), 1 / len(hazards)),
        n=np.zeros(shape),
        s=np.zeros(shape),
        before_n=np.zeros(shape),
        before_s=np.zeros(shape),
        vec=np.zeros((*shape, vec)),
        mat=np.zeros((*shape, mat)),
        noise=blocks.noise(),
        lead=np.full(chains, NOBODY),
        sure=np.zeros(chains),
        before_sure=np.zeros((chains, most)),
        dated=np.full((chains, _DATES), NOBODY),
        chance=np.zeros((chains, _DATES)),
        dated_n=np.zeros(dated),
        dated_s=np.zeros(dated),
        dates=np.zeros(chains, np.int64),
    )


def _runs_of(blocks: Blocks) -> int:
    return min(_MOST_RUNS, max(_FEWEST_RUNS, _PRODUCTS // blocks.dim**2))


def _filters(layout: Layout, prior: NoisePrior, _: int) -> list[Filter]:
    """All arms together and each by itself."""
    blocks = Blocks(layout, layout.context_dim > 1, prior)
    if misled(layout) or (
        blocks.contextual and _runs_of(blocks) * blocks.count * blocks.dim**2 > _LARGEST
    ):
        return []
    return [
        RunFilter(blocks, together) for together in ((True,) if layout.shared else (True, False))
    ]


FAMILY = Family(
    name="changes",
    words="changes now and then",
    prior=0.16,
    colour="#1b7837",
    filters=_filters,
)
