"""Change points (Adams and MacKay, 2007): expected rewards are constant until they are drawn anew in
some round, for all arms at once or for one arm.

`run_lengths.py` has the equations. Findings are the rounds of changes, and the mean rewards before and
after.
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.tide.jobs import Job, ranges
from tidepull.tide.models import run_lengths
from tidepull.tide.models.family import Family, Filter, Finding, Layout, Window
from tidepull.tide.models.filters import Blocks, ConjugateFilter
from tidepull.tide.models.noise import NoisePrior
from tidepull.tide.models.run_lengths import NONE, RunLengths
from tidepull.types import FloatArray, Snapshot

HAZARDS = (1 / 5000, 1 / 1000, 1 / 200)
"""Hazards of a change of all arms."""
ARM_HAZARDS = tuple(hazard / 4 for hazard in HAZARDS)
"""Hazards of a change of one arm: every change of the world is one of its arms."""
_MOST_RUNS, _FEWEST_RUNS, _PRODUCTS = 100, 12, 40_000
_LARGEST = 4_000_000
_MOST_CHANGES = 16
_CURIOSITY = 0.1
"""Where each arm changes by itself, an arm that was not played for long may have changed. Thompson
sampling would explore it with the probability of a change, which is too often, since what is learnt
holds only until the next change. A tenth of that probability is used."""
_MOVED, _MOST_MOVED = 2.0, 3


class RunLengthFilter(ConjugateFilter):
    """Posterior over run lengths. `together`: all arms change at once, else each by itself."""

    family, fixed = "changes", ("hazards",)

    def __init__(self, blocks: Blocks, together: bool) -> None:
        super().__init__(blocks, _empty(blocks, together))
        self._together, self._arms = together, np.arange(blocks.layout.n_arms)

    @property
    def words(self) -> str:
        """One line that a person understands."""
        which = "all arms change at once" if self._together else "each arm changes by itself"
        rounds = round(1 / float(self.arrays.hazards[int(np.argmax(self.arrays.belief))]))
        every = f"{which}, about every {rounds:,} rounds"
        return every + (", the context decides" if self._blocks.contextual else "")

    def observe(self, t: int, arm: int, x: FloatArray, y: float, binary: bool) -> float:
        """Log likelihood of the reward of round t, which is then learnt; NaN if that round is
        forgotten."""
        block = 0 if self._blocks.layout.shared else arm
        series, block = (0, block) if self._together else (block, 0)
        box, x = self._box(self.arrays), self._blocks.seen(x)
        return float(run_lengths.observe_boxed(box, t, series, block, x, y, binary))

    def replay(self, window: Window, binary: bool) -> Job[FloatArray]:
        """Replay a window of past rounds; log likelihoods by round."""
        scores, none = np.empty(len(window.t)), np.zeros_like(window.arm)
        x, arms = self._seen(window)
        series, blocks = (none, arms) if self._together else (arms, none)
        steps = self.arrays.start.shape[1] * (10 + 2 * self._blocks.dim**2)
        for start, stop, spent in ranges(len(scores), steps):
            part = slice(start, stop)
            run_lengths.replay(
                self.arrays, window.t[part], series[part], blocks[part], x[part], window.y[part], binary, scores[part]
            )  # fmt: skip
            yield spent
        return scores

    def draw(self, t: int, X: FloatArray, binary: bool, rng: np.random.Generator) -> FloatArray:
        """One draw of every arm's expected reward in round t: a hazard, a run of every chain, the
        weights."""
        n_series = len(self.arrays.latest)
        picked, uniform = np.empty(n_series, np.int64), rng.random(1 + n_series)
        run_lengths.pick(self.arrays, t, 1.0 if self._together else _CURIOSITY, uniform, picked)
        none = np.zeros_like(self._arms)
        series, block = (none, self._arms) if self._together else (self._arms, none)
        return self._draw(np.stack([series, picked[series], block], axis=1), X, binary, rng)

    def reset_copy(self, units: float | None) -> Filter:
        """An untrained copy; lam0 from the present noise, in new units."""
        made = RunLengthFilter(self._blocks, self._together)
        made._adopt_ridge(self, units)
        return made

    def findings(self, centre: float, spread: float) -> list[Finding]:
        """Changes: their rounds (as in `Event.decided`), the probability of a change about then or
        since, and the arms whose mean rewards moved by more than chance."""
        found = [
            change
            for c in range(len(self.arrays.latest))
            for change in self._findings_of(c, centre, spread)
        ]
        return sorted(found, key=lambda change: int(change.facts["round"]))

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        last = self.arrays.start.shape[1] - 1
        self._restore(snapshot, {"lead": (NONE, last), "n_changes": (0, _MOST_CHANGES)})

    def _findings_of(self, c: int, centre: float, spread: float) -> list[Finding]:
        all_of, lead = self.arrays, int(self.arrays.lead[c])
        findings = []
        for i in range(int(all_of.n_changes[c])):
            last = i == all_of.n_changes[c] - 1
            start = int(all_of.change_round[c, i])
            chance = float(all_of.recent_chance[c] if last else all_of.chance[c, i])
            before = all_of.change_n[c, i], all_of.change_s[c, i]
            after = (
                (all_of.n[c, lead], all_of.s[c, lead])
                if last
                else (all_of.change_n[c, i + 1], all_of.change_s[c, i + 1])
            )
            findings.append(self._change(c, start, chance, before, after, centre, spread))
        return findings

    def _change(
        self,
        c: int,
        start: int,
        chance: float,
        before: tuple[FloatArray, FloatArray],
        after: tuple[FloatArray, FloatArray],
        centre: float,
        spread: float,
    ) -> Finding:
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
        return Finding(words, {"round": start, "chance": round(chance, 4), "arms": arms})


def _empty(blocks: Blocks, together: bool) -> RunLengths:
    n_arms = blocks.layout.n_arms
    n_series, own = (1, blocks.count) if together else (n_arms, 1)
    hazards = HAZARDS if together else ARM_HAZARDS
    most = _MOST_RUNS if not blocks.contextual else _runs_of(blocks)
    shape = (n_series, most, own)
    vec, mat = blocks.array_sizes()
    shape_of_changes = (n_series, _MOST_CHANGES, own)
    return RunLengths(
        latest=np.full(n_series, NONE),
        start=np.full((n_series, most), NONE),
        parent=np.full((n_series, most), NONE),
        weight=np.zeros((n_series, len(hazards), most)),
        hazards=np.array(hazards),
        belief=np.full(len(hazards), 1 / len(hazards)),
        n=np.zeros(shape),
        s=np.zeros(shape),
        before_n=np.zeros(shape),
        before_s=np.zeros(shape),
        vec=np.zeros((*shape, vec)),
        mat=np.zeros((*shape, mat)),
        noise=blocks.noise(),
        lead=np.full(n_series, NONE),
        recent_chance=np.zeros(n_series),
        before_chance=np.zeros((n_series, most)),
        change_round=np.full((n_series, _MOST_CHANGES), NONE),
        chance=np.zeros((n_series, _MOST_CHANGES)),
        change_n=np.zeros(shape_of_changes),
        change_s=np.zeros(shape_of_changes),
        n_changes=np.zeros(n_series, np.int64),
    )


def _runs_of(blocks: Blocks) -> int:
    return min(_MOST_RUNS, max(_FEWEST_RUNS, _PRODUCTS // blocks.dim**2))


def _filters(layout: Layout, prior: NoisePrior, _: int) -> list[Filter]:
    """Filters of changes of all arms at once and of each arm."""
    blocks = Blocks(layout, layout.context_dim > 1, prior)
    if layout.mixed or (
        blocks.contextual and _runs_of(blocks) * blocks.count * blocks.dim**2 > _LARGEST
    ):
        return []
    return [
        RunLengthFilter(blocks, together)
        for together in ((True,) if layout.shared else (True, False))
    ]


FAMILY = Family(
    name="changes",
    words="changes now and then",
    prior=0.16,
    colour="#1b7837",
    filters=_filters,
)
