"""Own periods: each arm repeats with a whole period of its own, exactly, for all periods at once.

Arm k has a period p of 1 (it is constant) to 48 rounds, and an expected reward of its own in each of the
p rounds of a period (Chen, Wang and Wang, 2025, have this model). With rewards y of arm k

    w_kp  <-  w_kp p_kp(y)        p_kp(y): prediction of the cell t mod p of arm k

and all w of one arm are divided by their sum. Cells are conjugate, and all share the noise (a, b), whose
errors are weighed by w. A draw takes a period of each arm by weight, then the mean of its cell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidepull.tide.jobs import Job, ranges
from tidepull.tide.models.algebra import compiled, inlined
from tidepull.tide.models.boxed import PythonBox
from tidepull.tide.models.family import Family, Filter, Finding, Layout, Window
from tidepull.tide.models.filters import Blocks, ConjugateFilter, learn, likelihood, predict_block
from tidepull.tide.models.noise import NoisePrior
from tidepull.types import FloatArray, IntArray, Snapshot

LONGEST = 48
"""Longest period, in rounds."""
_MOST_ARMS = 64
"""With more arms a period of each is not learnt in time."""
_CONSTANT = 0.5
"""Prior of a constant arm."""
_LEAST = 1e-12
"""Least weight of a period, so that none is lost for ever."""
_MOST_NAMED = 4
_STEPS_OF_A_PERIOD = 12


class Cells(NamedTuple):
    """All arrays: arm i, cell j; the cells of period p begin at p (p - 1) / 2."""

    weight: FloatArray  # (i, p - 1)
    n: FloatArray  # (i, j, 1) rewards
    s: FloatArray  # (i, j, 1) ... and their sum
    vec: FloatArray  # (i, j, 1, 0): without context
    mat: FloatArray
    noise: FloatArray  # (a, b, a0, b0, what is kept of them in a round, lam0)


@inlined
def _observe(
    cells: Cells, t: int, arm: int, y: float, binary: bool, x: FloatArray, scores: FloatArray
) -> float:
    top, error, total, v = -np.inf, 0.0, 0.0, x
    for i in range(scores.shape[0]):
        j = i * (i + 1) // 2 + t % (i + 1)
        mean, leverage = predict_block(cells, arm, j, 0, x, v)
        score = likelihood(cells, arm, j, 0, y, binary, False, mean, leverage, 1)
        scores[i] = math.log(score) if binary else score
        top = max(top, scores[i])
        error += cells.weight[arm, i] * (y - mean) * (y - mean) / (1 + leverage)
        learn(cells, arm, j, 0, y, mean, leverage, v)
    for i in range(scores.shape[0]):
        cells.weight[arm, i] *= math.exp(scores[i] - top)
        total += cells.weight[arm, i]
    for i in range(scores.shape[0]):
        cells.weight[arm, i] = max(cells.weight[arm, i] / total, _LEAST)
    kept = cells.noise[4]
    cells.noise[0] = kept * cells.noise[0] + (1 - kept) * cells.noise[2] + 0.5
    cells.noise[1] = kept * cells.noise[1] + (1 - kept) * cells.noise[3] + 0.5 * error
    evidence: float = top + math.log(total)
    return evidence


@compiled
def observe_boxed(box: PythonBox, t: int, arm: int, y: float, binary: bool) -> float:
    """Log likelihood of one reward, which is then learnt."""
    scores, x = np.empty(box.arrays.weight.shape[1]), np.ones(1)
    score: float = _observe(box.arrays, t, arm, y, binary, x, scores)
    return score


@compiled
def replay(
    cells: Cells, t: IntArray, arm: IntArray, y: FloatArray, binary: bool, likelihoods: FloatArray
) -> None:
    """Many rewards, one after the other; their log likelihoods."""
    scores, x = np.empty(cells.weight.shape[1]), np.ones(1)
    for i in range(len(t)):
        likelihoods[i] = _observe(cells, t[i], arm[i], y[i], binary, x, scores)


class OwnPeriods(ConjugateFilter):
    """Posterior over the period of each arm, and over its expected reward in each round of it."""

    family = "own periods"

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(blocks, _empty(blocks))

    @property
    def words(self) -> str:
        """One line that a person understands."""
        periods = [str(1 + p) for p in np.argmax(self.arrays.weight, axis=1)[:_MOST_NAMED]]
        more = ", ..." if len(self.arrays.weight) > _MOST_NAMED else ""
        return f"each arm repeats with a period of its own ({', '.join(periods)}{more} rounds)"

    def observe(self, t: int, arm: int, x: FloatArray, y: float, binary: bool) -> float:
        """Log likelihood of the reward of round t, which is then learnt."""
        return float(observe_boxed(self._box(self.arrays), t, arm, y, binary))

    def replay(self, window: Window, binary: bool) -> Job[FloatArray]:
        """Replay a window of past rounds; log likelihoods by round."""
        scores = np.empty(len(window.t))
        for start, stop, spent in ranges(len(scores), LONGEST * _STEPS_OF_A_PERIOD):
            part = slice(start, stop)
            replay(
                self.arrays, window.t[part], window.arm[part], window.y[part], binary, scores[part]
            )
            yield spent
        return scores

    def draw(self, t: int, X: FloatArray, binary: bool, rng: np.random.Generator) -> FloatArray:
        """One draw of every arm's expected reward in round t: a period of each arm, the mean of its
        cell."""
        sums = np.cumsum(self.arrays.weight, axis=1)
        picked = (sums < rng.random((len(sums), 1)) * sums[:, -1:]).sum(axis=1)
        cells = picked * (picked + 1) // 2 + t % (picked + 1)
        arms = np.arange(len(sums))
        return self._draw(np.stack([arms, cells, np.zeros_like(arms)], axis=1), X, binary, rng)

    def reset_copy(self, units: float | None) -> Filter:
        """An untrained copy; lam0 from the present noise, in new units."""
        made = OwnPeriods(self._blocks)
        made._adopt_ridge(self, units)
        return made

    def findings(self, centre: float, spread: float) -> list[Finding]:
        """Nothing besides the periods, which `words` names."""
        return []

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        self._restore(snapshot, {})


def _empty(blocks: Blocks) -> Cells:
    shape = blocks.layout.n_arms, LONGEST * (LONGEST + 1) // 2, 1
    vec, mat = blocks.array_sizes()
    weight = np.full((shape[0], LONGEST), (1 - _CONSTANT) / (LONGEST - 1))
    weight[:, 0] = _CONSTANT
    return Cells(
        weight=weight,
        n=np.zeros(shape),
        s=np.zeros(shape),
        vec=np.zeros((*shape, vec)),
        mat=np.zeros((*shape, mat)),
        noise=blocks.noise(),
    )


def _filters(layout: Layout, prior: NoisePrior, _: int) -> list[Filter]:
    """One filter, without context."""
    if layout.context_dim > 1 or layout.shared or layout.n_arms > _MOST_ARMS:
        return []
    return [OwnPeriods(Blocks(layout, contextual=False, prior=prior))]


FAMILY = Family(
    name="own periods",
    words="each arm repeats with a period of its own",
    # A draw of a model that fits no arm explores at random.
    prior=0.002,
    colour="#44aa99",
    filters=_filters,
)
