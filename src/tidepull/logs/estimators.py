"""What a fixed policy would have earned: estimators as sums over rows, each a top over a bottom.

With w = pi(a|x) / p the weight of a row, r its reward, q(x, a) a model of rewards and q(x, pi) its
mean under pi:

    ips        mean of w r                                  unbiased where p is right and never 0
    snips      sum of w r / sum of w                        a little biased, steadier
    clipped    mean of min(w, c) r                          too low by what is clipped, steadier
    dm         mean of q(x, pi)                             as good as the model
    dr         mean of q(x, pi) + w (r - q(x, a))           right where p or q is
    switch-dr  dr where w <= c, dm elsewhere                steadier than dr, biased where the model is wrong

Intervals resample blocks of neighbouring rows, since neighbours depend on each other (Politis and
Romano 1992: the circular block bootstrap). `WeightDiagnostics` and the warnings say when not to
believe an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import special

from tidepull.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class PolicyTerms:
    """All that the estimators need of a policy on a log, row by row; `clip` is c.

    `chosen` is q(x, a), `policy` q(x, pi), `pull` how much a row's reward moves the direct method
    (times rows), and `switch_pull` how much it moves `switch-dr` by way of the model.
    """

    weight: FloatArray
    reward: FloatArray
    chosen: FloatArray
    policy: FloatArray
    pull: FloatArray
    switch_pull: FloatArray
    clip: float


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The value is the sum of `top` over the sum of `bottom`; `noise` is what a row adds to its
    uncertainty beside."""

    top: FloatArray
    bottom: FloatArray
    noise: FloatArray | None = None

    def where(self, rows: Any) -> Scores:
        """Some of the rows."""
        noise = None if self.noise is None else self.noise[rows]
        return Scores(self.top[rows], self.bottom[rows], noise)

    @property
    def value(self) -> float:
        """The estimate; NaN where nothing counts."""
        bottom = float(self.bottom.sum())
        return float(self.top.sum()) / bottom if bottom else float("nan")


def _mean(terms: FloatArray) -> Scores:
    return Scores(terms, np.ones(len(terms)))


def _direct(rows: PolicyTerms) -> Scores:
    """The model is made of the same rewards: each row moves it by its pull times what the model
    missed there."""
    return Scores(rows.policy, np.ones(len(rows.policy)), rows.pull * (rows.reward - rows.chosen))


def _switch_dr(rows: PolicyTerms) -> Scores:
    weight = np.where(rows.weight <= rows.clip, rows.weight, 0.0)
    missed = rows.reward - rows.chosen
    return Scores(rows.policy + weight * missed, np.ones(len(weight)), rows.switch_pull * missed)


ESTIMATORS: Mapping[str, Callable[[PolicyTerms], Scores]] = MappingProxyType(
    {
        "ips": lambda rows: _mean(rows.weight * rows.reward),
        "snips": lambda rows: Scores(rows.weight * rows.reward, rows.weight),
        "clipped": lambda rows: _mean(np.minimum(rows.weight, rows.clip) * rows.reward),
        "dm": _direct,
        "dr": lambda rows: _mean(rows.policy + rows.weight * (rows.reward - rows.chosen)),
        "switch-dr": _switch_dr,
    }
)


RESAMPLES = 1000
_AT_ONCE = 4_000_000


def block_length(rows: int) -> int:
    """Rows of a block where nothing is said: the cube root of their number, upwards.

    >>> block_length(10_000)
    22
    """
    root: float = round(rows ** (1 / 3), 9)
    return max(1, math.ceil(root))


def interval(
    scores: Scores, *, block: int | None = None, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Percentiles of the value over circular moving blocks, widened as Student's t for few blocks
    or heavy ones. NaN where all rows say the same: that they do is no sign of certainty."""
    rows = len(scores.top)
    length = min(block_length(rows) if block is None else block, rows)
    count = math.ceil(rows / length) if rows else 0
    if count < 2:
        return float("nan"), float("nan")
    if _all_alike(scores):
        return float("nan"), float("nan")
    varied = scores if scores.noise is None else Scores(scores.top + scores.noise, scores.bottom)
    values = _values(varied, length, count, np.random.default_rng(seed))
    values = values - varied.value + scores.value
    tail = (1 - level) / 2
    freedom = _freedom(varied, length, count)
    wide = math.sqrt(count / (count - 1)) * float(special.stdtrit(freedom, tail))
    low, high = np.nanquantile(values, [special.ndtr(wide), special.ndtr(-wide)])
    return float(low), float(high)


def _freedom(scores: Scores, length: int, count: int) -> float:
    """How many normal blocks would tell the spread of a block's sum as well as these do: 2 n /
    (kurtosis - 1), at most n - 1, at least 2. A few heavy blocks say little about the spread."""
    share = scores.top - scores.value * scores.bottom
    share -= share.mean()
    squares = _block_sums(share, length)
    del share
    np.square(squares, out=squares)
    spread = float(squares.mean())
    np.square(squares, out=squares)
    excess = float(squares.mean()) / spread**2 - 1 if spread > 0 else 0.0
    return min(count - 1.0, max(2.0, 2 * count / excess)) if excess > 0 else count - 1.0


def _all_alike(scores: Scores) -> bool:
    parts = (scores.top, scores.bottom, *(() if scores.noise is None else (scores.noise,)))
    return all(part.min() == part.max() for part in parts)


def _values(scores: Scores, length: int, count: int, rng: np.random.Generator) -> FloatArray:
    """The value of every resample: sums over blocks are differences of running sums."""
    top, bottom = (_block_sums(part, length) for part in (scores.top, scores.bottom))
    values = np.empty(RESAMPLES)
    step = max(1, _AT_ONCE // count)
    for start in range(0, RESAMPLES, step):
        n = min(step, RESAMPLES - start)
        blocks = rng.integers(len(scores.top), size=(n, count))
        below = bottom[blocks].sum(axis=1)
        above = top[blocks].sum(axis=1)
        values[start : start + n] = np.divide(
            above, below, out=np.full(n, np.nan), where=below != 0
        )
    return values


def _block_sums(part: FloatArray, length: int) -> FloatArray:
    """The sum of the block that begins at each row, going on at the start after the end."""
    running: FloatArray = np.empty(len(part) + length)
    running[0] = 0.0
    running[1 : len(part) + 1] = part
    running[len(part) + 1 :] = part[: length - 1]
    np.cumsum(running, out=running)
    sums: FloatArray = running[length:] - running[:-length]
    return sums


FEW = 100
"""Effective rows below which estimates are not to be believed."""


@dataclass(frozen=True, slots=True)
class WeightDiagnostics:
    """Diagnostics of one policy on one log.

    `effective` is the effective number of rows (sum w)^2 / sum w^2, `tail` the share of all weight
    that the heaviest 1% of rows have, `mean` should be 1 where propensities are right and all arms
    are covered, `mean_error` is its standard error, `uncovered` the share of the policy's choices
    that go to arms the log never shows.
    """

    rows: int
    effective: float
    largest: float
    tail: float
    mean: float
    mean_error: float
    uncovered: float

    @property
    def off(self) -> bool:
        """Whether weights are so far from 1 on average that propensities cannot be right."""
        return abs(self.mean - 1) > 4 * self.mean_error + 1e-6 and not self.uncovered

    def warnings(self) -> list[str]:
        """When not to believe the estimates, in sentences."""
        sentences = []
        if self.effective < FEW:
            sentences.append(
                f"the weights leave {self.effective:.1f} effective rows of {self.rows:,}: do not "
                "believe it"
            )
        if self.tail > 0.5:
            sentences.append(
                f"1% of the rows carry {self.tail:.0%} of the weight: few decisions decide"
            )
        if self.off:
            sentences.append(
                f"weights are {self.mean:.3f} on average where they should be 1: the propensities "
                "look wrong"
            )
        if self.uncovered > 1e-6:
            sentences.append(
                f"{self.uncovered:.1%} of its choices go to arms that the log never shows: nothing "
                "is known of these"
            )
        return sentences


def weights_of(weight: FloatArray, uncovered: float) -> WeightDiagnostics:
    """The diagnostics of weights."""
    total, rows = float(weight.sum()), len(weight)
    heaviest = np.sort(weight)[-max(1, rows // 100) :]
    squares = float((weight**2).sum())
    return WeightDiagnostics(
        rows=rows,
        effective=total**2 / squares if squares else 0.0,
        largest=float(weight.max(initial=0.0)),
        tail=float(heaviest.sum()) / total if total else 0.0,
        mean=total / rows,
        mean_error=float(weight.std(ddof=1)) / rows**0.5 if rows > 1 else float("inf"),
        uncovered=uncovered,
    )


_PART = 0.01
"""A share of the weight that matters."""


def weights_warning(estimator: str, weight: FloatArray, clip: float, uncovered: float) -> str:
    """Of an estimate with these weights; empty where the interval is claimed to hold."""
    diagnostics = weights_of(weight, uncovered)
    if uncovered > 1e-6:
        return f"{uncovered:.1%} of choices unknown"
    if estimator == "dm":
        return "rests on the model"
    if diagnostics.effective < FEW:
        return f"{diagnostics.effective:.0f} effective rows"
    if diagnostics.off:
        return "propensities look wrong"
    total = float(weight.sum())
    if estimator == "clipped" and np.maximum(weight - clip, 0).sum() > _PART * total:
        return f"{np.maximum(weight - clip, 0).sum() / total:.0%} of the weight clipped"
    if estimator == "switch-dr" and weight[weight > clip].sum() > _PART * total:
        return f"{weight[weight > clip].sum() / total:.0%} rests on the model"
    return ""


def rows_warning(rows: int) -> str:
    """Of a plain mean over so many rows."""
    return f"{rows:,} row{'' if rows == 1 else 's'}" if rows < FEW else ""


def model_warnings(rows: PolicyTerms, block: int | None, seed: int) -> list[str]:
    """Whether the model of rewards is seen to be wrong where the policy goes, in a sentence: 1%
    false alarms."""
    missed = rows.weight * (rows.reward - rows.chosen)
    low, high = interval(Scores(missed, np.ones(len(missed))), block=block, level=0.99, seed=seed)
    if not (low > 0 or high < 0):
        return []
    by = sorted((abs(low), abs(high)))
    return [
        f"the model of rewards is too {'low' if low > 0 else 'high'} where this policy goes (by "
        f"{by[0]:.2g} to {by[1]:.2g}): do not believe dm"
    ]
