"""What the estimators need of a fixed policy on a log, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidepull.errors import ParameterError
from tidepull.logs.estimators import Rows
from tidepull.logs.log import Log
from tidepull.logs.models import RewardModel
from tidepull.logs.targets import Target
from tidepull.types import FloatArray


def rows_of(log: Log, target: Target, model: RewardModel, clip: float) -> tuple[Rows, float]:
    """What the estimators need, and the share of the policy's choices that the log never shows."""
    assert log.propensity is not None
    weight, chosen, policy = (np.empty(len(log)) for _ in range(3))
    shown = np.bincount(log.arm, minlength=log.n_arms) > 0
    uncovered = 0.0
    asked, kept = _Asked(log.n_arms, model), _Asked(log.n_arms, model)
    for rows, x in model.features.chunks():
        shares = _checked(target.shares(log, rows), rows, log, target.name)
        expected = model.rewards(rows, x)
        arm = log.arm[rows]
        each = np.arange(len(arm))
        weight[rows] = shares[each, arm] / log.propensity[rows]
        chosen[rows] = expected[each, arm]
        policy[rows] = (shares * expected).sum(axis=1)
        uncovered += float(shares[:, ~shown].sum())
        full = np.column_stack([np.ones(len(x)), x])
        asked.add(shares, full)
        light = np.where(weight[rows] <= clip, weight[rows], 0.0)
        left = shares.copy()
        left[each, arm] -= light
        kept.add(left, full)
    pull, switch_pull = (model.pull(log, one.own / len(log), one.all / len(log)) for one in (asked, kept))
    return Rows(weight, log.reward, chosen, policy, pull, switch_pull, clip), uncovered / len(log)


class _Asked:
    """Sums of what the model is asked for: shares of arms times features."""

    def __init__(self, n_arms: int, model: RewardModel) -> None:
        self.own = np.zeros((n_arms, model.own))
        self.all = np.zeros(1 + model.features.dim)

    def add(self, shares: FloatArray, full: FloatArray) -> None:
        self.own += shares.T @ full[:, : self.own.shape[1]]
        self.all += shares.sum(axis=1) @ full


def _checked(shares: Any, rows: slice, log: Log, name: str) -> FloatArray:
    made = np.asarray(shares, float)
    shape = (rows.stop - rows.start, log.n_arms)
    if made.shape != shape or not (made >= 0).all() or not np.allclose(made.sum(axis=1), 1, atol=1e-6):
        raise ParameterError(
            f"{name}: shares must be {shape[0]} x {shape[1]} numbers that add up to 1 in every row"
        )
    return made
