"""Lagged events: the latest round, or the arm of the latest success, decides.

family         regimes                             basis
last event     the last arm (0: none yet)          (1, last reward)
last success   the arm that paid last (0: none)    (1)
"""

from __future__ import annotations

import math

import numpy as np

from tidepull.state import Stateful
from tidepull.tide.jobs import Job
from tidepull.tide.models.covariates import Past, RoundState, declare_covariate
from tidepull.tide.models.family import Family, Layout, Pool, fixed
from tidepull.tide.models.spec import Spec
from tidepull.types import FloatArray

LAST_ARM = declare_covariate(
    "last arm", n_regimes=lambda n_arms: n_arms + 1
)  # 0: none yet, else 1 + the arm
LAST_REWARD = declare_covariate("last reward", reward=True)
LAST_SUCCESS = declare_covariate(
    "last success", n_regimes=lambda n_arms: n_arms + 1
)  # as `LAST_ARM`


def last_event(contextual: bool = False) -> Spec:
    """A regime for every last arm, and the basis (1, last reward)."""
    return Spec(
        "last event", regime_by=LAST_ARM.index, interaction=LAST_REWARD.index, contextual=contextual
    )


def last_success(contextual: bool = False) -> Spec:
    """A regime for every arm that may have succeeded last, and the basis (1)."""
    return Spec("last success", regime_by=LAST_SUCCESS.index, contextual=contextual)


class LastEventTracker(Stateful):
    """Tracker of the latest reward and its arm."""

    state = ("arm", "reward")

    def __init__(self, n_arms: int) -> None:
        self._arm, self._reward = -1, math.nan

    def write(self, state: RoundState) -> None:
        """Write its arm and its reward as it was paid."""
        state.covariates[LAST_ARM.index], state.covariates[LAST_REWARD.index] = (
            self._arm + 1,
            self._reward,
        )

    def observe(self, t: int, arm: int, reward: float, success: bool) -> None:
        """Store the latest reward and its arm."""
        self._arm, self._reward = arm, reward

    def recompute(self, past: Past, covariates: FloatArray) -> Job[None]:
        """Rewards are stored as they were paid: nothing to recompute."""
        yield from ()


class LastSuccessTracker(Stateful):
    """Tracker of the arm of the latest success."""

    state = ("arm",)

    def __init__(self, n_arms: int) -> None:
        self._arm = -1

    def write(self, state: RoundState) -> None:
        """Write the arm."""
        state.covariates[LAST_SUCCESS.index] = self._arm + 1

    def observe(self, t: int, arm: int, reward: float, success: bool) -> None:
        """Store the arm of a success."""
        if success:
            self._arm = arm

    def recompute(self, past: Past, covariates: FloatArray) -> Job[None]:
        """Recompute which arm had succeeded last, before each reward arrived."""
        column = covariates[:, LAST_SUCCESS.index]
        self._arm = -1 if past.whole or np.isnan(column[0]) else int(column[0]) - 1
        after = np.empty(len(past.t) + 1)
        after[0] = self._arm + 1
        for i, (arm, success) in enumerate(zip(past.arm, past.success, strict=True)):
            self.observe(int(past.t[i]), int(arm), 0.0, bool(success))
            after[i + 1] = self._arm + 1
        known = ~np.isnan(column)
        column[known] = after[np.clip(past.n_rewards_seen, 0, None)][known]
        yield 200 * len(past.t)


def _described(words: str, spec: Spec) -> str:
    return words + (", with the context" if spec.contextual else "")


def _pools(layout: Layout, spec: Spec) -> list[Pool]:
    """Arms that are known by vectors alone have no last arm to speak of."""
    return [] if layout.shared else fixed(layout, spec)


LAST_EVENT = Family(
    name="last event",
    words="the last arm and reward decide",
    prior=0.015,
    colour="#cc79a7",
    pools=lambda layout, contextual: _pools(layout, last_event(contextual)),
    describe=lambda spec: _described("the last arm and reward decide", spec),
    tracker=LastEventTracker,
)
LAST_SUCCESSES = Family(
    name="last success",
    words="the arm that paid last decides",
    prior=0.015,
    colour="#997700",
    pools=lambda layout, contextual: _pools(layout, last_success(contextual)),
    describe=lambda spec: _described("the arm that paid last decides", spec),
    tracker=LastSuccessTracker,
)
