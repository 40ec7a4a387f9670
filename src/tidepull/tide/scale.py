"""Rewards in units that suit every problem: centre, spread, and what counts as a success."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidepull.tide.two_point import explained_within, fit_two_clusters, is_still_two_point
from tidepull.types import FloatArray, IntArray, Snapshot


class Units(NamedTuple):
    """Units y = (r - centre) / spread. A reward above the threshold is a success. With `binary`
    only success counts, y = -1 or 1, because rewards are 0 and 1 or, with `two_point`, have two
    values with noise (`two_point.py`)."""

    centre: float = 0.5
    spread: float = 0.5
    threshold: float = 0.5
    binary: bool = True
    two_point: bool = False

    def standardised(self, rewards: FloatArray) -> FloatArray:
        """Many rewards in these units."""
        if self.two_point:
            return np.where(rewards > self.threshold, 1.0, -1.0)
        return (rewards - self.centre) / self.spread


class Seen(NamedTuple):
    """Recent rewards as they were paid, with arms and contexts, oldest first."""

    rewards: FloatArray
    arms: IntArray
    x: FloatArray


class RewardScale:
    """The units in force. Every arm weighs the same in centre and spread, however often it was
    played.

    While all rewards are 0 or 1 the scale is fixed: y = -1 or 1. Totals are always updated, but
    the units in force change only when they are set, after which all models are rebuilt.
    `two_point`: rewards may be two-point rewards.
    """

    def __init__(self, n_arms: int, *, two_point: bool = False) -> None:
        self.units = Units()
        self._may_be_two_point = two_point
        self._totals = np.zeros(
            (n_arms, 3)
        )  # rounds, sum and sum of squares about the first reward
        self._first = math.nan

    def add(self, arm: int, reward: float) -> None:
        """Take in a reward."""
        if math.isnan(self._first):
            self._first = reward
        r, totals = reward - self._first, self._totals
        totals[arm, 0] += 1.0
        totals[arm, 1] += r
        totals[arm, 2] += r * r

    def recount(self, arms: Sequence[int], rewards: FloatArray) -> None:
        """Recompute the totals from these rewards."""
        self._totals[:] = 0.0
        self._first = math.nan
        for arm, reward in zip(arms, rewards, strict=True):
            self.add(arm, float(reward))

    def fits(self, reward: float) -> bool:
        """Whether the units in force allow a reward."""
        units = self.units
        if units.two_point:
            return abs(reward - units.centre) <= 2 * units.spread
        return not units.binary or reward in (0.0, 1.0)

    def standardise(self, reward: float) -> float:
        """In the units in force."""
        units = self.units
        if units.two_point:
            return 1.0 if reward > units.threshold else -1.0
        return (reward - units.centre) / units.spread

    def is_stale(self, seen: Seen) -> bool:
        """Whether the units in force are off by more than a tenth of a spread, or recent rewards
        are no longer, or only now, two-point rewards."""
        if self.units.two_point:
            return self._two_point_units(seen) != self.units
        if self.units.binary:
            return False
        if self._two_point_units(seen) is not None:
            return True
        centre, spread = self._from_totals()
        in_force = self.units
        return (
            abs(centre - in_force.centre) > 0.1 * in_force.spread
            or not 0.9 < spread / in_force.spread < 1.1
        )

    def fitted(self, seen: Seen) -> Units:
        """New units from the totals, and the threshold of success from recent rewards."""
        rewards = seen.rewards
        if self.units.binary and bool(np.isin(rewards, (0.0, 1.0)).all()):
            return Units()
        return self._two_point_units(seen) or Units(
            *self._from_totals(), two_means_threshold(rewards), False
        )

    def _two_point_units(self, seen: Seen) -> Units | None:
        """The units in force if they are two-point and still fit, new two-point units if rewards
        have two clusters, else None."""
        if not self._may_be_two_point or not len(seen.rewards):
            return None
        rewards, known, units = seen.rewards, self.units, None
        if known.two_point and is_still_two_point(rewards, known.centre, known.spread):
            units = known
        elif (found := fit_two_clusters(rewards, two_means_threshold(rewards))) is not None:
            units = Units(*found, found[0], True, True)
        if units is None or explained_within(rewards, seen.arms, seen.x, units.centre):
            return None
        return units

    def _from_totals(self) -> tuple[float, float]:
        n, s, q = self._totals[self._totals[:, 0] > 0].T
        centre = float(np.mean(s / n))
        variance = float(np.mean(q / n)) - centre**2
        size = abs(self._first) + math.sqrt(float(np.max(q / n)))
        spread = math.sqrt(variance) if variance > (1e-6 * size) ** 2 else (size or 1.0)
        return self._first + centre, spread

    def snapshot(self) -> Snapshot:
        """The units in force and the totals."""
        return {"units": list(self.units), "first": self._first, "totals": self._totals.copy()}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
        centre, spread, threshold, binary, two_point = snapshot["units"]
        if np.shape(snapshot["totals"]) != self._totals.shape or not (0 < spread < math.inf):
            raise ValueError("a scale of rewards that does not fit")
        self.units = Units(
            float(centre), float(spread), float(threshold), bool(binary), bool(two_point)
        )
        self._first = float(snapshot["first"])
        self._totals[...] = snapshot["totals"]


def two_means_threshold(rewards: FloatArray) -> float:
    """The cut that leaves the least squares on both sides, half-way between the two means.

    >>> two_means_threshold(np.array([0.0, 0.1, 0.1, 1.0]))
    0.5333333333333333
    """
    ordered = np.sort(rewards)
    n = len(ordered)
    if n < 2 or ordered[0] == ordered[-1]:
        return float(ordered[0])
    below = np.cumsum(ordered)[:-1]
    sizes = np.arange(1, n)
    low, high = below / sizes, (ordered.sum() - below) / (n - sizes)
    cut = int(np.argmax(sizes * (n - sizes) * (high - low) ** 2))
    return float((low[cut] + high[cut]) / 2)
