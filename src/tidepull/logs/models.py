"""A model of rewards, fitted on other stretches of time than those that it is asked about.

    q(x, a) = b . [1, x] + h_a . [1, x],   x: context, hour and weekend

b is fitted to all rows, h_a to what b leaves of arm a's rows, pulled towards 0 as by ten rows. Where that would be too
many weights, h_a is one number.
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
        for rows, x in self._features.chunks():
            self._add(
                np.column_stack([np.ones(len(x)), x]), log.arm[rows], log.reward[rows], self._fold(rows)
            )
        self._weights = [self._fitted(fold) for fold in range(self._folds)]

    def _fold(self, rows: slice) -> IntArray:
        return np.searchsorted(self._bounds, np.arange(rows.start, rows.stop), side="right") - 1

    def _add(self, x: FloatArray, arm: IntArray, reward: FloatArray, fold: IntArray) -> None:
        for f in np.unique(fold):
            here = fold == f
            self._all[f] += x[here].T @ x[here]
            self._total[f] += x[here].T @ reward[here]
            for a in np.unique(arm[here]):
                mine = here & (arm == a)
                own = x[mine, : self._own]
                self._cross[f, a] += own.T @ x[mine]
                self._sums[f, a] += own.T @ reward[mine]

    def _fitted(self, fold: int) -> tuple[FloatArray, FloatArray]:
        """b and every h_a from all stretches but one."""
        others = np.arange(self._folds) != fold if self._folds > 1 else np.ones(1, bool)
        gram = self._all[others].sum(axis=0) + np.eye(self._all.shape[1])
        shared = np.linalg.solve(gram, self._total[others].sum(axis=0))
        cross, sums = self._cross[others].sum(axis=0), self._sums[others].sum(axis=0)
        left = sums - cross @ shared
        own = np.linalg.solve(cross[:, :, : self._own] + PULL * np.eye(self._own), left[:, :, None])[:, :, 0]
        return shared, own

    def pull(self, log: Log, mean_own: FloatArray) -> FloatArray:
        """How much each row's reward moves the mean over rows of sum_a pi(a|x) q(x, a), times the number of rows.

        `mean_own` is the mean over rows of pi(a|x) [1, x] for every arm. With m its entries, w_a = A_a^-1 m_a and
        v = G^-1 (mean [1, x] - sum_a C_a' w_a): the pull of row i is x_i . v + x_i . w_(a_i), times rows.
        """
        cross = self._cross.sum(axis=0)
        own = np.linalg.solve(cross[:, :, : self._own] + PULL * np.eye(self._own), mean_own[:, :, None])[
            :, :, 0
        ]
        mean = self._all.sum(axis=0)[0] / len(log)
        gram = self._all.sum(axis=0) + np.eye(len(mean))
        shared = np.linalg.solve(gram, mean - np.einsum("amd,am->d", cross, own))
        made: FloatArray = np.empty(len(log))
        for rows, x in self._features.chunks():
            full = np.column_stack([np.ones(len(x)), x])
            made[rows] = full @ shared + (full[:, : self._own] * own[log.arm[rows]]).sum(axis=1)
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
