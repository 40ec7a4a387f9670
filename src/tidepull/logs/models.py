"""A model of rewards, fitted on other stretches of time than those that it is asked about.

    q(x, a) = b . [1, x] + h_a . [1, x],   x: context, hour and weekend

b is fitted to all rows, h_a to what b leaves of arm a's rows, pulled towards 0 as by ten rows.
Where that would be too many weights, h_a is one number. Rows count as 1 / p, so that b stands for
the average arm and not for the one that was liked best, and h_a for all times and not for those
when arm a was liked; both are scaled to the effective number of their rows, (sum 1/p)^2 / sum
1/p^2, so that few rows with great weights are pulled as few rows are.

Features are contexts as rows of numbers: numbers standardised, the commonest texts as flags.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidepull.logs.log import Log, local_seconds
from tidepull.types import FloatArray, IntArray

LEVELS = 10
"""Texts of a column that get a flag, the commonest first; others have none."""

CHUNK = 8192
"""Rows that are made at once."""


class Features:
    """Rows of numbers for a log. Means and spreads are those of the whole log.

    With `calendar` a row also has sine and cosine of the hour and whether it is a weekend, where
    times are dates.
    """

    def __init__(self, log: Log, *, calendar: bool = False) -> None:
        self._log = log
        self._calendar = calendar and log.dated and log.time is not None
        self.names: list[str] = []
        self._numbers: list[tuple[str, float, float]] = []
        self._flags: list[tuple[str, int]] = []
        for name, column in log.context.items():
            if column.labels is None:
                known = column.values[~np.isnan(column.values)]
                if len(known) and known.min() < known.max():
                    self._numbers.append((name, float(known.mean()), float(known.std())))
            else:
                counts = np.bincount(
                    column.values[column.values >= 0], minlength=len(column.labels)
                )
                common = [
                    int(code)
                    for code in np.argsort(-counts, kind="stable")[:LEVELS]
                    if counts[code]
                ]
                self._flags += [(name, code) for code in (common if len(common) > 1 else [])]
        self.names = [name for name, _, _ in self._numbers]
        for name, code in self._flags:
            labels = log.context[name].labels
            assert labels is not None
            self.names.append(f"{name}={labels[code]}")
        self.names += ["hour, sine", "hour, cosine", "weekend"] if self._calendar else []

    @property
    def dim(self) -> int:
        """How many numbers a row has."""
        return len(self.names)

    def rows(self, start: int, stop: int) -> FloatArray:
        """Some rows; what is missing counts as average."""
        log = self._log
        values: FloatArray = np.empty((min(stop, len(log)) - start, self.dim))
        place = 0
        for name, mean, spread in self._numbers:
            values[:, place] = np.nan_to_num((log.context[name].values[start:stop] - mean) / spread)
            place += 1
        for name, code in self._flags:
            values[:, place] = log.context[name].values[start:stop] == code
            place += 1
        if self._calendar:
            assert log.time is not None
            local = local_seconds(log.time[start:stop], log.timezone)
            angle = 2 * np.pi * local / 86_400
            values[:, place], values[:, place + 1] = np.sin(angle), np.cos(angle)
            values[:, place + 2] = (np.floor(local / 86_400) + 3) % 7 >= 5
        return values

    def chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        """All rows, some at a time."""
        for start in range(0, len(self._log), CHUNK):
            yield slice(start, min(start + CHUNK, len(self._log))), self.rows(start, start + CHUNK)


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
            full = np.column_stack([np.ones(len(x)), x])
            self._add(full, log.arm[rows], log.reward[rows], self._fold(rows), rows)
        self._weights = [self._fit(fold) for fold in range(self._folds)]

    def _fold(self, rows: slice) -> IntArray:
        return np.searchsorted(self._bounds, np.arange(rows.start, rows.stop), side="right") - 1

    def _add(
        self, x: FloatArray, arm: IntArray, reward: FloatArray, fold: IntArray, rows: slice
    ) -> None:
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

    def _fit(self, fold: int) -> tuple[FloatArray, FloatArray]:
        """b and every h_a from all stretches but one."""
        others = np.arange(self._folds) != fold if self._folds > 1 else np.ones(1, bool)
        gram = self._all[others].sum(axis=0) + _ridge(self._all.shape[1])
        shared = np.linalg.solve(gram, self._total[others].sum(axis=0))
        cross, sums = self._cross[others].sum(axis=0), self._sums[others].sum(axis=0)
        left = sums - cross @ shared
        return shared, self._solve_own(cross, left)

    def _solve_own(self, cross: FloatArray, right: FloatArray) -> FloatArray:
        gram = cross[:, :, : self._own] + PULL * np.eye(self._own)
        return np.asarray(np.linalg.solve(gram, right[:, :, None])[:, :, 0])

    def pull(self, log: Log, mean_own: FloatArray, mean: FloatArray) -> FloatArray:
        """How much each row's reward moves the mean over rows of sum_a s_a q(x, a), times the
        number of rows, where s are shares of arms that may differ from row to row.

        `mean_own` is the mean over rows of s_a [1, x] for every arm, `mean` that of (sum_a s_a) [1,
        x]. With m_a the first's entries, w_a = A_a^-1 m_a and v = G^-1 (mean - sum_a C_a' w_a): the
        pull of row i is c_i x_i . v + k_i x_i . w_(a_i), times rows, where c_i and k_i are what the
        row counts among all rows and among those of its arm.
        """
        cross = self._cross.sum(axis=0)
        own = self._solve_own(cross, mean_own)
        gram = self._all.sum(axis=0) + _ridge(len(mean))
        shared = np.linalg.solve(gram, mean - np.einsum("amd,am->d", cross, own))
        values: FloatArray = np.empty(len(log))
        for rows, x in self._features.chunks():
            full = np.column_stack([np.ones(len(x)), x])
            alone = (full[:, : self._own] * own[log.arm[rows]]).sum(axis=1)
            values[rows] = self._counts[0][rows] * (full @ shared) + self._counts[1][rows] * alone
        return values * len(log)

    @property
    def own(self) -> int:
        """How many weights each arm has of its own."""
        return self._own

    def rewards(self, rows: slice, x: FloatArray) -> FloatArray:
        """The expected reward of every arm in some rows of the log (rows x arms); x are their
        features."""
        full = np.column_stack([np.ones(len(x)), x])
        fold = self._fold(rows)
        values = np.empty((len(x), self._sums.shape[1]))
        for f in np.unique(fold):
            shared, own = self._weights[f]
            here = fold == f
            values[here] = (full[here] @ shared)[:, None] + full[here, : self._own] @ own.T
        return values

    @property
    def features(self) -> Features:
        """The features that it reads."""
        return self._features


def _ridge(wide: int) -> FloatArray:
    """What pulls b towards 0, as by one row: all of it but the level."""
    values: FloatArray = np.eye(wide)
    values[0, 0] = 1e-9
    return values


def _counts(log: Log) -> tuple[FloatArray, FloatArray]:
    """What each row counts among all rows, and among those of its arm: 1 / p, scaled to the
    effective number."""
    if log.propensity is None:
        return np.ones(len(log)), np.ones(len(log))
    weight = 1 / log.propensity
    total, squares = (np.bincount(log.arm, w, log.n_arms) for w in (weight, weight**2))
    scale = np.divide(total, squares, out=np.zeros(log.n_arms), where=squares > 0)
    return weight * total.sum() / squares.sum(), weight * scale[log.arm]
