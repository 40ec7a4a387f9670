"""A model of rewards, fitted on other stretches of time than those that it is asked about.

    q(x, a) = b . [1, x] + h_a . [1, x],   x: context, hour and weekend

b is fitted to all rows, h_a to what b leaves of arm a's rows, pulled towards 0 as by ten rows. Where that would be too
many weights, h_a is one number. Rows count as 1 / p, so that b stands for the average arm and not for the one that was
liked best, and h_a for all times and not for those when arm a was liked; both are scaled to the effective number of
their rows, (sum 1/p)^2 / sum 1/p^2, so that few rows with great weights are pulled as few rows are.
"""

from __future__ import annotations

import numpy as np

from tidepull.logs.features import Features
from tidepull.logs.log import Log
from tidepull.types import FloatArray, IntArray

FOLDS = 5
PULL = 10.0
MOST = 2_000_000
"""Sums that are kept at most; beyond, arms differ by one number each."""


class RewardModel:
    """Sums over stretches of time, and the weights for every stretch from all the others."""

    def __init__(self, log: Log) -> None:
        self._features = Features(log, calendar=True)
        self._folds = min(FOLDS, len(log))
        self._bounds = np.linspace(0, len(log), self._folds + 1).astype(np.int64)
        wide = 1 + self._features.dim
        own = wide if FOLDS * log.n_arms * wide**2 <= MOST else 1
        shape = (self._folds, log.n_arms, own)
        self._cross = np.zeros((*shape, wide))
        self._sums = np.zeros(shape)
        self._all, self._total = np.zeros((self._folds, wide, wide)), np.zeros((self._folds, wide))
        self._own = own
        self._counts = _counts(log)
        for rows, x in self._features.chunks():
            self._add(
                np.column_stack([np.ones(len(x)), x]), log.arm[rows], log.reward[rows], self._fold(rows), rows
            )
        self._weights = [self._fitted(fold) for fold in range(self._folds)]

    def _fold(self, rows: slice) -> IntArray:
        return np.searchsorted(self._bounds, np.arange(rows.start, rows.stop), side="right") - 1

    def _add(self, x: FloatArray, arm: IntArray, reward: FloatArray, fold: IntArray, rows: slice) -> None:
        among_all, among_own = (counts[rows][:, None] for counts in self._counts)
        for f in np.unique(fold):
            here = fold == f
            counted = (among_all[here] * x[here]).T
            self._all[f] += counted @ x[here]
            self._total[f] += counted @ reward[here]
            for a in np.unique(arm[here]):
                mine = here & (arm == a)
                own = among_own[mine] * x[mine, : self._own]
                self._cross[f, a] += own.T @ x[mine]
                self._sums[f, a] += own.T @ reward[mine]

    def _fitted(self, fold: int) -> tuple[FloatArray, FloatArray]:
        """b and every h_a from all stretches but one."""
        others = np.arange(self._folds) != fold if self._folds > 1 else np.ones(1, bool)
        gram = self._all[others].sum(axis=0) + _ridge(self._all.shape[1])
        shared = np.linalg.solve(gram, self._total[others].sum(axis=0))
        cross, sums = self._cross[others].sum(axis=0), self._sums[others].sum(axis=0)
        left = sums - cross @ shared
        own = np.linalg.solve(cross[:, :, : self._own] + PULL * np.eye(self._own), left[:, :, None])[:, :, 0]
        return shared, own

    def pull(self, log: Log, mean_own: FloatArray, mean: FloatArray) -> FloatArray:
        """How much each row's reward moves the mean over rows of sum_a s_a q(x, a), times the number of rows, where
        s are shares of arms that may differ from row to row.

        `mean_own` is the mean over rows of s_a [1, x] for every arm, `mean` that of (sum_a s_a) [1, x]. With m_a the
        first's entries, w_a = A_a^-1 m_a and v = G^-1 (mean - sum_a C_a' w_a): the pull of row i is c_i x_i . v + k_i
        x_i . w_(a_i), times rows, where c_i and k_i are what the row counts among all rows and among those of its arm.
        """
        cross = self._cross.sum(axis=0)
        own = np.linalg.solve(cross[:, :, : self._own] + PULL * np.eye(self._own), mean_own[:, :, None])[
            :, :, 0
        ]
        gram = self._all.sum(axis=0) + _ridge(len(mean))
        shared = np.linalg.solve(gram, mean - np.einsum("amd,am->d", cross, own))
        made: FloatArray = np.empty(len(log))
        for rows, x in self._features.chunks():
            full = np.column_stack([np.ones(len(x)), x])
            alone = (full[:, : self._own] * own[log.arm[rows]]).sum(axis=1)
            made[rows] = self._counts[0][rows] * (full @ shared) + self._counts[1][rows] * alone
        return made * len(log)

    @property
    def own(self) -> int:
        """How many weights each arm has of its own."""
        return self._own

    def rewards(self, rows: slice, x: FloatArray) -> FloatArray:
        """The expected reward of every arm in some rows of the log (rows x arms); x are their features."""
        full = np.column_stack([np.ones(len(x)), x])
        fold = self._fold(rows)
        made = np.empty((len(x), self._sums.shape[1]))
        for f in np.unique(fold):
            shared, own = self._weights[f]
            here = fold == f
            made[here] = (full[here] @ shared)[:, None] + full[here, : self._own] @ own.T
        return made

    @property
    def features(self) -> Features:
        """The features that it reads."""
        return self._features


def _ridge(wide: int) -> FloatArray:
    """What pulls b towards 0, as by one row: all of it but the level."""
    made: FloatArray = np.eye(wide)
    made[0, 0] = 1e-9
    return made


def _counts(log: Log) -> tuple[FloatArray, FloatArray]:
    """What each row counts among all rows, and among those of its arm: 1 / p, scaled to the effective number."""
    if log.propensity is None:
        return np.ones(len(log)), np.ones(len(log))
    weight = 1 / log.propensity
    total, squares = (
        np.bincount(log.arm, weights=power, minlength=log.n_arms) for power in (weight, weight**2)
    )
    scale = np.divide(total, squares, out=np.zeros(log.n_arms), where=squares > 0)
    return weight * total.sum() / squares.sum(), weight * scale[log.arm]
