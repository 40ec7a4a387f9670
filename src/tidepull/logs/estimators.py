"""What a fixed policy would have earned: estimators as sums over rows, each a top over a bottom.

With w = pi(a|x) / p the weight of a row, r its reward, q(x, a) a model of rewards and q(x, pi) its mean under pi:

    ips        mean of w r                                  unbiased where p is right and never 0
    snips      sum of w r / sum of w                        a little biased, steadier
    clipped    mean of min(w, c) r                          too low by what is clipped, steadier
    dm         mean of q(x, pi)                             as good as the model
    dr         mean of q(x, pi) + w (r - q(x, a))           right where p or q is
    switch-dr  dr where w <= c, dm elsewhere                steadier than dr, biased where the model is wrong
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tidepull.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """All that the estimators need of a policy on a log, row by row; `clip` is c.

    `chosen` is q(x, a), `policy` q(x, pi), `pull` how much a row's reward moves the direct method (times rows), and
    `switch_pull` how much it moves `switch-dr` by way of the model.
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
    """The value is the sum of `top` over the sum of `bottom`; `noise` is what a row adds to its uncertainty beside."""

    top: FloatArray
    bottom: FloatArray
    noise: FloatArray | None = None

    def where(self, rows: Any) -> Scores:
        """Some of the rows."""
        return Scores(self.top[rows], self.bottom[rows], None if self.noise is None else self.noise[rows])

    @property
    def value(self) -> float:
        """The estimate; NaN where nothing counts."""
        bottom = float(self.bottom.sum())
        return float(self.top.sum()) / bottom if bottom else float("nan")


def _mean(terms: FloatArray) -> Scores:
    return Scores(terms, np.ones(len(terms)))


def _direct(rows: Rows) -> Scores:
    """The model is made of the same rewards: each row moves it by its pull times what the model missed there."""
    return Scores(rows.policy, np.ones(len(rows.policy)), rows.pull * (rows.reward - rows.chosen))


def _switch_dr(rows: Rows) -> Scores:
    weight = np.where(rows.weight <= rows.clip, rows.weight, 0.0)
    missed = rows.reward - rows.chosen
    return Scores(rows.policy + weight * missed, np.ones(len(weight)), rows.switch_pull * missed)


ESTIMATORS: Mapping[str, Callable[[Rows], Scores]] = MappingProxyType(
    {
        "ips": lambda rows: _mean(rows.weight * rows.reward),
        "snips": lambda rows: Scores(rows.weight * rows.reward, rows.weight),
        "clipped": lambda rows: _mean(np.minimum(rows.weight, rows.clip) * rows.reward),
        "dm": _direct,
        "dr": lambda rows: _mean(rows.policy + rows.weight * (rows.reward - rows.chosen)),
        "switch-dr": _switch_dr,
    }
)
