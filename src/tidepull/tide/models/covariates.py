"""Lagged covariates: named numbers that are written when a round is decided.

A reward that comes late is explained by the covariates of its own round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from tidepull.tide.jobs import Job
from tidepull.types import BoolArray, FloatArray, IntArray, Snapshot


@dataclass(frozen=True)
class Covariate:
    """One lagged covariate. `n_regimes`: it names one of so many regimes (given the number of arms);
    `per_arm`: it has a value for each arm; `reward`: it is a reward as it was paid, and is
    standardised when it is read."""

    name: str
    index: int
    n_regimes: Callable[[int], int] | None = None
    per_arm: bool = False
    reward: bool = False


_declared: list[Covariate] = []
_rewards: list[int] = []
_per_arm: list[int] = []


def declare_covariate(
    name: str,
    *,
    n_regimes: Callable[[int], int] | None = None,
    per_arm: bool = False,
    reward: bool = False,
) -> Covariate:
    """Declare a covariate; a family declares its own in its own file."""
    if any(other.name == name for other in _declared):
        raise ValueError(f"there is already a covariate '{name}'")
    made = Covariate(name, len(_declared), n_regimes, per_arm, reward)
    _declared.append(made)
    _rewards.extend([made.index] * reward)
    _per_arm.extend([made.index] * per_arm)
    return made


def all_covariates() -> tuple[Covariate, ...]:
    """All covariates that families declared, in order."""
    return tuple(_declared)


class RoundState(NamedTuple):
    """Inputs of a model besides the context: the round, and the covariates when it was decided.
    `per_arm` has a row for each covariate and a column for each arm."""

    t: int
    covariates: FloatArray
    per_arm: FloatArray

    def row(self, arm: int) -> FloatArray:
        """The covariates of one arm."""
        row: FloatArray = self.covariates.copy()
        for i in _per_arm:
            row[i] = self.per_arm[i, arm]
        return row

    def standardised(self, centre: float, spread: float) -> RoundState:
        """Rewards in the units that kernels read, as the function `standardised` does for many
        rounds."""
        return RoundState(self.t, in_units(self.covariates, centre, spread), self.per_arm)


def empty_state(t: int, n_arms: int) -> RoundState:
    """Round t, all covariates 0."""
    return RoundState(t, np.zeros(len(_declared)), np.zeros((len(_declared), n_arms)))


def in_units(row: FloatArray, centre: float, spread: float) -> FloatArray:
    """One row of covariates in the units that kernels read, as `standardised` does for many."""
    made: FloatArray = row.copy()
    for i in _rewards:
        y = (float(made[i]) - centre) / spread
        made[i] = 0.0 if math.isnan(y) else min(max(y, -3.0), 3.0)
    return made


def standardised(covariates: FloatArray, centre: float, spread: float) -> FloatArray:
    """Rows of covariates in the units that kernels read: rewards standardised, not beyond 3, and 0 where
    there was none (NaN)."""
    made: FloatArray = np.array(covariates)
    for i in _rewards:
        made[..., i] = np.nan_to_num(np.clip((made[..., i] - centre) / spread, -3.0, 3.0))
    return made


class Past(NamedTuple):
    """Finished rounds in the order in which their rewards came."""

    t: IntArray  # the round of the decision
    arm: IntArray
    success: BoolArray
    # how many of these rewards had come when the round was decided (below 0: fewer than none)
    n_rewards_seen: IntArray
    whole: bool  # whether nothing came before them


class CovariateTracker(Protocol):
    """Computes the covariates of a family from past rewards."""

    def write(self, state: RoundState) -> None:
        """Write the present covariates, when the round `state.t` is decided."""

    def observe(self, t: int, arm: int, reward: float, success: bool) -> None:
        """The reward of round t has come."""

    def recompute(self, past: Past, covariates: FloatArray) -> Job[None]:
        """Recompute the covariates of past rounds (a row each) in slices, after the threshold of
        success changed."""

    def snapshot(self) -> Snapshot:
        """The state of the tracker."""

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot."""
