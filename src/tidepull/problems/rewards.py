"""Kinds of reward. Each draws the noise of every arm in every round, so that the noise an arm meets
in a round does not depend on the arms that were played before.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tidepull.errors import ArmError
from tidepull.types import FloatArray


class Reward(Protocol):
    """Turns expected rewards into a paid one."""

    def __call__(self, means: FloatArray, arm: int) -> float:
        """The reward of `arm` in this round."""


class GaussianReward:
    """N(mean, noise_std^2)."""

    def __init__(self, noise_std: float, rng: np.random.Generator) -> None:
        self.noise_std = noise_std
        self._rng = rng

    def __call__(self, means: FloatArray, arm: int) -> float:
        """The mean of the arm plus its own noise of this round."""
        _check_arm(arm, len(means))
        noise = self._rng.standard_normal(len(means))
        return float(means[arm] + self.noise_std * noise[arm])


class HeavyReward(GaussianReward):
    """Gaussian rewards of which a share has Student noise of 2 degrees of freedom and unit scale instead."""

    def __init__(self, noise_std: float, share: float, rng: np.random.Generator) -> None:
        super().__init__(noise_std, rng)
        self._share = share

    def __call__(self, means: FloatArray, arm: int) -> float:
        """The mean of the arm plus its own noise of this round, sometimes from far away."""
        ordinary = super().__call__(means, arm)
        far, tails = self._rng.random() < self._share, self._rng.standard_t(2, len(means))
        return float(means[arm] + tails[arm]) if far else ordinary


class BernoulliReward:
    """1 with the probability `mean`, else 0."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def __call__(self, means: FloatArray, arm: int) -> float:
        """1 when the arm's own uniform number of this round lies below its mean."""
        _check_arm(arm, len(means))
        thresholds = self._rng.random(len(means))
        return 1.0 if thresholds[arm] < means[arm] else 0.0


def _check_arm(arm: int, n_arms: int) -> None:
    if not 0 <= arm < n_arms:
        raise ArmError(f"arm must be a whole number from 0 to {n_arms - 1}, got {arm!r}")
