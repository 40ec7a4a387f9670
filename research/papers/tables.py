"""A table of expected rewards, a row for each round, as a drift of arms.

`DriftingArms` plays it; rounds in which an arm has the same value pay alike, which is what
`specialist` is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tidepull.problems.arms import DriftingArms
from tidepull.problems.drift import read_only
from tidepull.problems.rewards import BernoulliReward
from tidepull.random import Streams
from tidepull.types import FloatArray


class TableDrift:
    """The rows of a table; the first again after the last."""

    def __init__(self, means: FloatArray) -> None:
        self.means = read_only(means)

    def __call__(self, t: int) -> FloatArray:
        """Row t."""
        row: FloatArray = self.means[t % len(self.means)]
        return row

    def variation(self, horizon: int) -> float:
        """The sum of the lengths of all steps."""
        rows = self.means[np.arange(horizon + 1) % len(self.means)]
        return float(np.linalg.norm(np.diff(rows, axis=0), axis=1).sum())


def segments(rows: Sequence[Sequence[float]], starts: Sequence[int], rounds: int) -> FloatArray:
    """A table whose rows hold from their start to the next."""
    lengths = [after - before for before, after in pairwise([*starts, rounds])]
    return np.repeat(np.array(rows, dtype=float), lengths, axis=0)


def clicks(means: FloatArray, streams: Streams) -> DriftingArms:
    """Rewards of 0 and 1."""
    return DriftingArms(TableDrift(means), BernoulliReward(streams.generator("noise")))
